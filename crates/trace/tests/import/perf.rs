//! What perf records on this machine.

use super::{import, mutations, skipped};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Records half a second of what goes on here; `None`, with a line that says so, where perf cannot.
fn recorded_by_perf(folder: &Path) -> Option<Vec<u8>> {
    let path = folder.join("perf.data");
    let recorded = Command::new("perf")
        .args(["record", "-q", "-a", "-e", "sched:sched_switch,sched:sched_waking,raw_syscalls:*", "--exclude-perf", "-o"])
        .arg(&path)
        .args(["--", "sleep", "0.05"])
        .output();
    match recorded {
        Ok(output) if output.status.success() => fs::read(&path).ok(),
        _ => {
            skipped!("perf cannot record here");
            None
        }
    }
}

#[test]
fn changed_perf_data_never_panics() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(original) = recorded_by_perf(folder.path()) else { return };
    let path = folder.path().join("changed.data");
    // The headers are at both ends; what is between is many times the same.
    mutations(&original, 60, |bytes| {
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    });
    let head = original.len().min(4_096);
    mutations(&original[..head], 300, |changed| {
        let bytes = [changed, &original[head..]].concat();
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    });
    let tail = original.len() - original.len().min(4_096);
    mutations(&original[tail..], 300, |changed| {
        let bytes = [&original[..tail], changed].concat();
        fs::write(&path, bytes).expect("written");
        let _ = import(&path);
    });
}
