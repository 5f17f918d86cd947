//! What this machine has, as far as a configuration can be wrong about it.

use crate::supply;
use punctual_model::{Platform, TimingModel};
use punctual_schedule::Reserve;

/// Processors, priorities and the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The processors that are online, ascending.
    pub processors: Vec<u32>,
    /// `sched_get_priority_min/max(2)` of SCHED_FIFO and SCHED_RR, which have the same range on Linux.
    pub priorities: (u32, u32),
    /// What the kernel keeps of each processor for ordinary threads.
    pub reserves: Vec<Reserve>,
    /// Whether the kernel has utilization clamps.
    pub clamps: bool,
    /// The kernel's release (`uname -r`); empty if unknown.
    pub kernel: String,
    /// The hardware's name (`uname -m`); empty if unknown.
    pub hardware: String,
}

/// Beyond every kernel's `NR_CPUS`: a bound on what a list of processors may make.
const GREATEST_PROCESSOR: u32 = 8191;

impl Machine {
    /// This one.
    pub fn here() -> Machine {
        let processors = punctual_linux::system::online().unwrap_or_else(|| {
            // Without sysfs: as many as there are, numbered as they are where none was taken away.
            let count = std::thread::available_parallelism().map_or(1, usize::from);
            (0..u32::try_from(count).unwrap_or(1)).collect()
        });
        // SAFETY: both take a number and touch no memory.
        let (least, greatest) = unsafe {
            (libc::sched_get_priority_min(libc::SCHED_FIFO), libc::sched_get_priority_max(libc::SCHED_FIFO))
        };
        let or = |given: i32, otherwise: u32| u32::try_from(given).unwrap_or(otherwise);
        let reserves = supply::of_kernel(&processors);
        let system = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        Machine {
            processors,
            priorities: (or(least, 1), or(greatest, 99)),
            kernel: text(system.release()),
            hardware: text(system.machine()),
            reserves,
            clamps: punctual_linux::scheduling::has_clamps(),
        }
    }

    /// In what it differs from the one on which a timing model was made, in words; `None` if in nothing that
    /// is known of both.
    pub fn differs_from(&self, model: &TimingModel) -> Option<String> {
        let here = Platform {
            kernel: self.kernel.clone(),
            machine: self.hardware.clone(),
            cpus: u32::try_from(self.processors.len()).unwrap_or(u32::MAX),
        };
        model.latency_platform()?.differs_from(&here)
    }
}

/// Processors as the kernel writes them, `0,2-3`: ascending, each once.
pub fn processor_list(text: &str) -> Result<Vec<u32>, String> {
    let mut processors = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number =
            |text: &str| text.trim().parse::<u32>().ok().filter(|number| *number <= GREATEST_PROCESSOR);
        match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to => processors.extend(from..=to),
            _ => {
                return Err(format!(
                    "'{part}' is not a processor or a range of them; expected something like 0,2-3"
                ));
            }
        }
        // However often a range is repeated.
        processors.sort_unstable();
        processors.dedup();
    }
    Ok(processors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(processor_list("0,2-3"), Ok(vec![0, 2, 3]));
        assert_eq!(processor_list("3, 1 - 2,2"), Ok(vec![1, 2, 3]));
        for wrong in ["", "x", "1-", "-1", "3-1", "0,,1", "99999", "0-99999999999"] {
            assert!(processor_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn this_machine_has_a_processor_and_the_usual_priorities() {
        let here = Machine::here();
        assert!(!here.processors.is_empty());
        assert_eq!(here.priorities, (1, 99));
    }
}
