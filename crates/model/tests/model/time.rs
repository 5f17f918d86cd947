//! Durations as they are printed, and arithmetic that saturates instead of wrapping.

use proptest::prelude::*;
use punctual_model::{Duration, Instant, Window};

#[test]
fn durations_print_exactly_with_the_unit_that_fits() {
    for (ns, printed) in [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1 µs"),
        (41_000, "41 µs"),
        (1_001, "1.001 µs"),
        (5_339_000, "5.339 ms"),
        (5_000_010, "5.00001 ms"),
        (1_000_000_000, "1 s"),
        (90_000_000_000, "90 s"),
        (1_500_000_001, "1.500000001 s"),
    ] {
        assert_eq!(Duration::from_ns(ns).to_string(), printed);
    }
    assert_eq!(format!("{:>8}|", Duration::from_us(41)), "   41 µs|");
}

proptest! {
    #[test]
    fn a_printed_duration_reads_back(ns in prop_oneof![0..2_000_u64, 0..3_000_000_000_u64, any::<u64>()]) {
        let printed = Duration::from_ns(ns).to_string();
        let (number, unit) = printed.split_once(' ').expect("a unit");
        let digits = match unit { "ns" => 0, "µs" => 3, "ms" => 6, "s" => 9, _ => panic!("unit {unit}") };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        prop_assert!(!part.ends_with('0'));
        prop_assert_eq!(format!("{whole}{part:0<digits$}").parse::<u64>().expect("digits"), ns);
    }

    #[test]
    fn arithmetic_saturates(a in any::<u64>(), b in any::<u64>()) {
        let (instant, span) = (Instant::from_ns(a), Duration::from_ns(b));
        prop_assert_eq!((instant + span).ns(), a.saturating_add(b));
        prop_assert_eq!((instant - span).ns(), a.saturating_sub(b));
        prop_assert_eq!(instant.since(Instant::from_ns(b)).ns(), a.saturating_sub(b));
        prop_assert_eq!(Duration::from_ns(a).saturating_sub(span).ns(), a.saturating_sub(b));
    }

    #[test]
    fn windows_are_never_empty(a in any::<u64>(), b in any::<u64>()) {
        let window = Window::new(Instant::from_ns(a), Instant::from_ns(b));
        prop_assert_eq!(window.is_some(), a <= b);
        if let Some(window) = window {
            prop_assert_eq!(window.width().ns(), b - a);
            prop_assert_eq!(window.is_exact(), a == b);
        }
    }
}
