//! The kernel's own counts of interrupts and softirqs, against which those that were seen are checked: a
//! tracepoint program that is not run leaves no trace of what it missed.

use std::collections::BTreeMap;
use std::fs;

/// By processor and row of `/proc/interrupts` and `/proc/softirqs`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<(u32, String), u64>);

impl Counters {
    /// As they are now.
    pub fn read() -> Counters {
        let mut counters = Counters::default();
        for file in ["/proc/interrupts", "/proc/softirqs"] {
            counters.add(&fs::read_to_string(file).unwrap_or_default());
        }
        counters
    }

    /// A head that names the processors, then rows of a label and a count for each.
    fn add(&mut self, text: &str) {
        let mut lines = text.lines();
        let head = lines.next().unwrap_or_default().split_whitespace();
        let cpus: Vec<u32> = head.filter_map(|name| name.strip_prefix("CPU")?.parse().ok()).collect();
        for line in lines {
            let Some((label, rest)) = line.split_once(':') else { continue };
            let counts: Vec<u64> = rest.split_whitespace().map_while(|word| word.parse().ok()).collect();
            // Some rows have one count for all processors.
            if counts.len() >= cpus.len() {
                let each = cpus.iter().zip(counts);
                self.0.extend(each.map(|(cpu, count)| ((*cpu, label.trim().to_owned()), count)));
            }
        }
    }

    /// How many there have been since an earlier reading.
    pub fn since(&self, before: &Counters, cpu: u32, row: &str) -> u64 {
        let count = |counters: &Counters| counters.0.get(&(cpu, row.to_owned())).copied().unwrap_or(0);
        count(self).saturating_sub(count(before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_rows_with_one_for_each_processor() {
        let read = |first: u64| {
            let mut counters = Counters::default();
            counters.add(&format!(
                "      CPU0  CPU2\n 36: {first}  7  PCI-MSIX  0-edge  disk\nLOC: 5 6 Local\nERR: 9\n"
            ));
            counters
        };
        let (before, after) = (read(3), read(8));
        assert_eq!(after.since(&before, 0, "36"), 5);
        assert_eq!((after.since(&before, 2, "36"), after.since(&before, 1, "36")), (0, 0));
        assert_eq!(after.since(&Counters::default(), 2, "LOC"), 6);
        assert_eq!(after.since(&Counters::default(), 0, "ERR"), 0);
    }
}
