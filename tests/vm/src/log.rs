//! Faults in a kernel's log.

/// Messages of a kernel with a fault, the most informative first.
const FAULTS: &[&str] = &[
    "Kernel panic",
    "Oops",
    "BUG:",
    "kernel BUG at",
    "general protection fault",
    "unable to handle",
    "WARNING:",
    "soft lockup",
    "hard LOCKUP",
    "detected stalls",
    "possible circular locking",
    "suspicious RCU usage",
    "scheduling while atomic",
    "sleeping function called from invalid context",
    "Out of memory",
];

/// The lines of a log that are faults.
pub fn faults(log: &str) -> Vec<&str> {
    let is_fault = |line: &&str| FAULTS.iter().any(|fault| line.contains(fault));
    log.lines().filter(is_fault).collect()
}

/// A record of `/dev/kmsg` (`priority,sequence,microseconds,flags;text`, then lines that describe the device)
/// as one would read it.
pub fn readable(record: &str) -> String {
    let Some((prefix, rest)) = record.split_once(';') else { return format!("{record}\n") };
    let microseconds: u64 = prefix.split(',').nth(2).and_then(|field| field.parse().ok()).unwrap_or(0);
    let text = rest.lines().next().unwrap_or("");
    format!("[{:5}.{:06}] {text}\n", microseconds / 1_000_000, microseconds % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_shown_as_dmesg_shows_them() {
        assert_eq!(
            readable("6,12,1234567,-;NET: Registered\n SUBSYSTEM=net\n"),
            "[    1.234567] NET: Registered\n"
        );
    }

    #[test]
    fn faults_are_found_and_ordinary_lines_are_not() {
        let log = "[    0.000000] Linux version 6.1\n[    5.000000] BUG: kernel NULL pointer dereference, \
            address: 0\n[    5.1] sched: RT throttling activated\n";
        assert_eq!(faults(log), ["[    5.000000] BUG: kernel NULL pointer dereference, address: 0"]);
    }
}
