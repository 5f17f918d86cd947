//! Why there is no table: which processors, which slots, how much too much.

use crate::slot_shifting::Overload;
use punctual_model::{ReadError, counted};
use std::fmt::{self, Display};

/// Tasks that are named in one message.
const MOST_NAMES: usize = 5;

/// Why no table is made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// Some values of the request make no sense.
    Invalid(ReadError),
    /// The table would be repeated after too many slots.
    TooLong {
        /// The tasks with their periods.
        periods: Vec<(String, u64)>,
    },
    /// All tasks together need more than all slots of all processors.
    Utilization {
        /// Slots needed in one repetition.
        needed: u64,
        /// Slots of one processor in one repetition.
        slots: u64,
        /// The processors.
        processors: Vec<u32>,
    },
    /// A task that must run after or before others has too little time left.
    Window {
        /// The task.
        task: String,
        /// The first slot of its period in which it can start.
        from: u64,
        /// The slot in which it must have ended.
        to: u64,
        /// The slots that it needs.
        needed: u64,
    },
    /// Jobs share more slots than there are.
    Overload {
        /// The processors.
        processors: Vec<u32>,
        /// Whose jobs they are.
        tasks: Vec<String>,
        /// The slots within which they must run, and what they need.
        overload: Overload,
        /// The most that they can get of it.
        available: u64,
    },
    /// No processor was found for some tasks that stay together.
    Unplaced {
        /// The tasks.
        tasks: Vec<String>,
        /// Of the processor where the least is missing: what is too much.
        closest: Option<(u32, Overload)>,
        /// Whether there is no partition; else the search was not ended.
        is_certain: bool,
    },
    /// No processor is left for a task that needs one for itself, or for one that must not use such.
    NoProcessor {
        /// The task.
        task: String,
        /// Whether it is the one that needs it for itself.
        exclusive: bool,
    },
}

impl std::error::Error for Refusal {}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => write!(f, "{error}"),
            Self::TooLong { periods } => too_long(f, periods),
            Self::Utilization { needed, slots, processors } => write!(
                f,
                "the tasks need {} processors, and there {}: {needed} slots in {slots}",
                decimal(*needed, *slots),
                if processors.len() == 1 { "is 1".to_owned() } else { format!("are {}", processors.len()) },
            ),
            Self::Window { task, from, to, needed } => write!(
                f,
                "{task} needs {} after the tasks that it follows and before those that follow it; that \
                 leaves it {}",
                counted(*needed, "slot"),
                match to.saturating_sub(*from) {
                    0 => "none".to_owned(),
                    left => format!("{} of its period, from {from} on", counted(left, "slot")),
                }
            ),
            Self::Overload { processors, tasks, overload: Overload { from, to, needed }, available } => {
                write!(
                    f,
                    "{}: jobs of {} need {needed} slots between slots {from} and {to} and can get \
                 {available}: {} too many",
                    named(processors),
                    names(tasks),
                    needed - available,
                )
            }
            Self::Unplaced { tasks, closest, is_certain } => {
                write!(f, "no processor was found for {}", names(tasks))?;
                if let Some((processor, Overload { from, to, needed })) = closest {
                    write!(
                        f,
                        "; on processor {processor}, where the least is missing, jobs would need {needed} \
                         slots between slots {from} and {to}: {} too many",
                        needed - (to - from)
                    )?;
                }
                f.write_str(match is_certain {
                    true => ". No other partition serves all tasks either",
                    false => {
                        ". Neither worst fit, first fit nor a search finds a partition, but one may exist"
                    }
                })
            }
            Self::NoProcessor { task, exclusive: true } => {
                write!(f, "{task} needs a processor of its own, and none is left")
            }
            Self::NoProcessor { task, exclusive: false } => {
                write!(f, "every processor that {task} may use is reserved by another task")
            }
        }
    }
}

fn too_long(f: &mut fmt::Formatter<'_>, periods: &[(String, u64)]) -> fmt::Result {
    let list: Vec<String> =
        periods.iter().take(MOST_NAMES).map(|(task, period)| format!("{task} {period}")).collect();
    let more = if periods.len() > MOST_NAMES { ", …" } else { "" };
    write!(
        f,
        "the hyperperiod would have more than {} slots (periods in slots: {}{more})",
        punctual_model::table::MOST_SLOTS,
        list.join(", "),
    )
}

/// `processor 1`, `processors 1, 2 and 5`.
fn named(processors: &[u32]) -> String {
    let numbers: Vec<String> = processors.iter().map(u32::to_string).collect();
    match &numbers[..] {
        [one] => format!("processor {one}"),
        _ => format!("processors {}", listed(&numbers)),
    }
}

fn names(tasks: &[String]) -> String {
    match tasks.len() > MOST_NAMES {
        true => format!("{} and {} more", tasks[..MOST_NAMES].join(", "), tasks.len() - MOST_NAMES),
        false => listed(tasks),
    }
}

fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Rounded up to three digits, so that what is too much never looks as if it were not.
fn decimal(numerator: u64, denominator: u64) -> String {
    let thousandths = (u128::from(numerator) * 1000).div_ceil(u128::from(denominator.max(1)));
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}
