//! From times to slots, so that what holds in slots holds in time: a WCET is rounded up, a deadline down, a
//! release up. A period must be a whole number of slots; if asked to, the next shorter one is taken, which
//! serves every job in time as well, but needs more.

use punctual_model::{Duration, Percent, counted};
use std::fmt;

/// What is added to an observed WCET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margin(pub Percent);

impl Margin {
    /// The time with the margin, rounded up; saturates.
    pub fn add_to(self, time: Duration) -> Duration {
        self.0.above_time(time)
    }
}

/// The timing of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From one activation to the next.
    pub period: Duration,
    /// The most that a job needs.
    pub wcet: Duration,
    /// The first activation.
    pub offset: Duration,
    /// From an activation until its job must have ended.
    pub deadline: Duration,
}

/// The same in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingInSlots {
    /// Slots from one activation to the next.
    pub period: u64,
    /// Slots that a job needs at most.
    pub wcet: u64,
    /// The slot of the first activation that the table has, in its period.
    pub offset: u64,
    /// Activations of the table before the first one: periods in the offset, after it is rounded up.
    pub skipped: u64,
    /// Slots from an activation until its job must have ended.
    pub deadline: u64,
}

/// Why times cannot be expressed in slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// The period is not a whole number of slots.
    Period {
        /// The period.
        period: Duration,
        /// The next shorter one that is; zero if there is none.
        shorter: Duration,
    },
    /// The deadline is after the next activation.
    Deadline,
    /// A job does not fit between the first whole slot after its release and the last before its deadline.
    Wcet {
        /// Slots that it needs.
        needed: u64,
        /// Whole slots that there are.
        slots: u64,
    },
    /// A time is zero where it must not be.
    Zero(&'static str),
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Period { period, shorter: Duration::ZERO } => {
                write!(f, "its period of {period} is shorter than a slot")
            }
            Self::Period { period, shorter } => write!(
                f,
                "its period of {period} is not a whole number of slots; the next shorter one is {shorter}"
            ),
            Self::Deadline => f.write_str("its deadline is longer than its period"),
            Self::Wcet { needed, slots } => write!(
                f,
                "a job needs {}, and {} between its release and its deadline",
                counted(*needed, "slot"),
                if *slots == 1 { "1 whole slot lies".into() } else { format!("{slots} whole slots lie") }
            ),
            Self::Zero(what) => write!(f, "its {what} is zero"),
        }
    }
}

impl std::error::Error for SlotError {}

/// A task's timing in slots of this length. With `shorten`, a period that is not a whole number of slots
/// becomes the next shorter one; a deadline of the whole period follows it.
///
/// # Errors
/// If a job would not fit, or the period is not a whole number of slots.
pub fn in_slots(timing: Timing, slot: Duration, shorten: bool) -> Result<TimingInSlots, SlotError> {
    let Timing { period, wcet, offset, deadline } = timing;
    let times = [("period", period), ("WCET", wcet), ("deadline", deadline), ("slot", slot)];
    if let Some((what, _)) = times.iter().find(|(_, time)| time.is_zero()) {
        return Err(SlotError::Zero(what));
    }
    if deadline > period {
        return Err(SlotError::Deadline);
    }
    let slot = slot.ns();
    let periods = period.ns() / slot;
    if periods == 0 || (period.ns() % slot != 0 && !shorten) {
        return Err(SlotError::Period { period, shorter: Duration::from_ns(periods * slot) });
    }
    let (earlier, offset) = (offset.ns() / period.ns(), offset.ns() % period.ns());
    let release = offset.div_ceil(slot);
    let end = (u128::from(offset) + u128::from(deadline.ns())) / u128::from(slot);
    let end = u64::try_from(end).unwrap_or(u64::MAX);
    let slots = end.saturating_sub(release).min(periods);
    let needed = wcet.ns().div_ceil(slot);
    if needed > slots {
        return Err(SlotError::Wcet { needed, slots });
    }
    Ok(TimingInSlots {
        period: periods,
        wcet: needed,
        offset: release % periods,
        skipped: earlier.saturating_add(release / periods),
        deadline: slots,
    })
}
