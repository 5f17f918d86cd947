//! What was ready when a call returned that waits for several descriptors.

use super::records_of;
use punctual_trace::{Ready, Record};
use std::fmt::Write as _;

/// What is known to have been ready at the end of a wait that slept, or of one that did not.
fn ready(call: &str, memory: &[(&str, i64)], result: i64, slept: bool) -> Vec<u32> {
    let mut text = format!("in 1000 0 0\n{call} 2000 0 0\n");
    if slept {
        text += "out 3000 0 1\nwake 10000 0 0\nin 11000 0 0\n";
    }
    for (what, argument) in memory {
        let _ = writeln!(text, "{what} 12000 0 {argument}");
    }
    let _ = writeln!(text, "exit 12000 0 {result}\nloop 15000 0 0\nout 16000 0 1");
    let records = records_of(&text);
    let resumed = records.iter().find_map(|record| match record {
        Record::Activation(activation) => activation.resumed,
        _ => None,
    });
    resumed.expect("an activation").ready.keys().to_vec()
}

#[test]
fn epoll_shows_the_data_of_its_events() {
    for slept in [false, true] {
        assert_eq!(ready("loop", &[("data", 7)], 1, slept), [7]);
        assert_eq!(ready("loop", &[("data", 9), ("data", 3), ("data", 9)], 3, slept), [3, 9]);
        assert_eq!(ready("loop", &[], 0, slept), [Ready::TIMEOUT]);
    }
    // Addresses stay apart.
    let [one, other] = [0x7f12_3456_7000, 0x7f12_3456_7040].map(|at| ready("loop", &[("data", at)], 1, true));
    assert!(one.len() == 1 && other.len() == 1 && one != other, "{one:?} {other:?}");
}

#[test]
fn poll_shows_its_descriptors() {
    assert_eq!(ready("poll", &[("revents", 0b100)], 1, true), [7]);
    assert_eq!(ready("poll", &[("revents", 0b1001_0001)], 3, false), [5, 9, 12]);
    assert_eq!(ready("poll", &[], 0, true), [Ready::TIMEOUT]);
}

#[test]
fn what_is_not_found_is_not_known() {
    let five: Vec<(&str, i64)> = (1..6).map(|data| ("data", data)).collect();
    assert_eq!(ready("loop", &five, 5, true), [] as [u32; 0]);
    assert_eq!(ready("poll", &[("revents", 0b1_1111)], 5, true), [] as [u32; 0]);
    // Beyond the descriptors that are looked through.
    assert_eq!(ready("poll", &[("revents", 0b1_1000_0000_0000_0000)], 2, true), [] as [u32; 0]);
    // A signal.
    assert_eq!(ready("loop", &[("data", 7)], -4, true), [] as [u32; 0]);
}
