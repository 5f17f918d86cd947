//! Utilization clamps (`sched_setattr(2)`, CONFIG_UCLAMP_TASK): how much of a processor's capacity a thread
//! is taken to need, at least and at most. They decide at which frequency, and on which kind of processor it
//! runs.

use super::Refused;
use serde::{Deserialize, Serialize};
use std::fs;

/// All of the greatest processor at its highest frequency.
pub const WHOLE: u32 = 1024;

/// Of one thread, or what is to be set of them: of 1024. What is `None` is not touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clamps {
    /// `sched_util_min`.
    pub min: Option<u32>,
    /// `sched_util_max`.
    pub max: Option<u32>,
}

/// What was done to the clamps of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clamped {
    /// What they were.
    pub before: Clamps,
    /// What was set, or is being set.
    pub applied: Clamps,
    /// What was set before that.
    pub previous: Clamps,
}

/// `struct sched_attr` as of Linux 5.3.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

const SIZE: u32 = size_of::<Attributes>() as u32;
const KEEP_ALL: u64 = 0x08 | 0x10;
const CLAMP_MIN: u64 = 0x20;
const CLAMP_MAX: u64 = 0x40;
/// Back to the default, of which the thread then has none of its own.
const RESET: u32 = u32::MAX;

impl Clamps {
    /// Whether nothing is to be set.
    pub fn is_empty(&self) -> bool {
        *self == Clamps::default()
    }
}

impl Clamped {
    /// Of a thread that nothing was done to.
    pub fn new(before: Clamps) -> Clamped {
        Clamped { before, ..Clamped::default() }
    }

    /// Goes on to other clamps, of a thread that has `now`: what is to be set for that. What someone else has
    /// set since stays.
    pub fn change(&mut self, now: Clamps, wanted: Clamps) -> Clamps {
        (self.previous, self.applied) = (self.applied, wanted);
        let change = |now: Option<u32>, before: Option<u32>, was: Option<u32>, wanted: Option<u32>| {
            let is_ours = was.is_none() || now == was;
            wanted.or(before.filter(|_| was.is_some())).filter(|_| is_ours && wanted != was)
        };
        let (before, was) = (self.before, self.previous);
        Clamps {
            min: change(now.min, before.min, was.min, wanted.min),
            max: change(now.max, before.max, was.max, wanted.max),
        }
    }

    /// As it is after a crash, of a thread that has `now`: what was being set may not have been.
    pub fn settled(&self, now: Clamps) -> Clamped {
        let settle = |now: Option<u32>, [before, is, was]: [Option<u32>; 3]| match was {
            _ if now == is => is,
            Some(_) if now == was => was,
            None if now == before => None,
            _ => is,
        };
        let Clamped { before, applied: is, previous: was } = *self;
        let applied = Clamps {
            min: settle(now.min, [before.min, is.min, was.min]),
            max: settle(now.max, [before.max, is.max, was.max]),
        };
        Clamped { applied, ..*self }
    }

    /// What is to be set to undo it, of a thread that has `now`.
    pub fn undo(&self, now: Clamps) -> Clamps {
        let undo = |now: Option<u32>, before: Option<u32>, given: [Option<u32>; 2]| {
            before.filter(|_| now.is_some() && given.contains(&now))
        };
        let (is, was) = (self.applied, self.previous);
        Clamps {
            min: undo(now.min, self.before.min, [is.min, was.min]),
            max: undo(now.max, self.before.max, [is.max, was.max]),
        }
    }
}

/// Whether this kernel has them.
pub fn has_clamps() -> bool {
    use std::sync::OnceLock;
    static HAS: OnceLock<bool> = OnceLock::new();
    // The default of the caller, which it has.
    *HAS.get_or_init(|| set(0, &Clamps { min: Some(RESET), max: None }).is_ok())
}

/// Those of a thread; 0 is the caller.
pub fn clamps(thread: u32) -> Result<Clamps, Refused> {
    let found = attributes(thread)?;
    Ok(Clamps { min: Some(found.util_min), max: Some(found.util_max) })
}

fn attributes(thread: u32) -> Result<Attributes, Refused> {
    let mut found = Attributes::default();
    // SAFETY: the kernel writes at most the size that is said, which is that of the struct.
    match unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut found, SIZE, 0) } {
        0 => Ok(found),
        _ => Err(Refused::last(format!("sched_getattr of thread {thread}"))),
    }
}

/// Sets those that are said.
pub fn clamp(thread: u32, to: &Clamps) -> Result<(), Refused> {
    if to.is_empty() { Ok(()) } else { set(thread, to) }
}

/// The same; what is the default of the thread's policy becomes that again.
pub fn unclamp(thread: u32, to: &Clamps) -> Result<(), Refused> {
    if to.is_empty() {
        return Ok(());
    }
    let is_realtime = matches!(attributes(thread)?.policy as i32, libc::SCHED_FIFO | libc::SCHED_RR);
    let least = if is_realtime { realtime_default() } else { 0 };
    let or_reset = |value: Option<u32>, default| value.map(|it| if it == default { RESET } else { it });
    set(thread, &Clamps { min: or_reset(to.min, least), max: or_reset(to.max, WHOLE) })
}

fn realtime_default() -> u32 {
    let text = fs::read_to_string("/proc/sys/kernel/sched_util_clamp_min_rt_default").unwrap_or_default();
    text.trim().parse().unwrap_or(WHOLE)
}

fn set(thread: u32, to: &Clamps) -> Result<(), Refused> {
    let flag = |value: Option<u32>, flag: u64| value.map_or(0, |_| flag);
    let attributes = Attributes {
        size: SIZE,
        flags: KEEP_ALL | flag(to.min, CLAMP_MIN) | flag(to.max, CLAMP_MAX) | reset_on_fork(thread)?,
        util_min: to.min.unwrap_or(0),
        util_max: to.max.unwrap_or(0),
        ..Attributes::default()
    };
    // SAFETY: the kernel reads as much as `size` says, which is that of the struct.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => {
            let shown = |value: Option<u32>| match value {
                None => "as it is".to_owned(),
                Some(RESET) => "default".to_owned(),
                Some(value) => value.to_string(),
            };
            let what = format!("clamps {} and {} (of 1024)", shown(to.min), shown(to.max));
            Err(Refused::last(format!("sched_setattr({what}) of thread {thread}")))
        }
    }
}

/// `SCHED_FLAG_KEEP_POLICY` does not keep that.
fn reset_on_fork(thread: u32) -> Result<u64, Refused> {
    Ok(attributes(thread)?.flags & super::RESET_ON_FORK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(min: u32, max: u32) -> Clamps {
        Clamps { min: Some(min), max: Some(max) }
    }

    #[test]
    fn only_what_was_set_is_undone() {
        let wanted = Clamps { min: Some(700), max: None };
        let mut clamped = Clamped::new(of(0, 1024));
        assert_eq!(clamped.undo(of(0, 1024)), Clamps::default());
        assert_eq!(clamped.change(of(0, 1024), wanted), wanted);
        assert_eq!(clamped.undo(of(700, 1024)), Clamps { min: Some(0), max: None });
        assert_eq!(clamped.undo(of(300, 1024)), Clamps::default(), "someone else has set it");
    }

    #[test]
    fn a_change_leaves_what_someone_else_has_set() {
        let mut clamped = Clamped::new(of(0, 1024));
        clamped.change(of(0, 1024), of(700, 900));
        let next = Clamps { min: Some(500), max: None };
        let mut other = clamped;
        assert_eq!(clamped.change(of(700, 900), next), of(500, 1024), "the second goes back");
        assert_eq!(clamped.undo(of(500, 1024)), Clamps { min: Some(0), max: None });
        assert_eq!(clamped.undo(of(700, 900)), of(0, 1024), "killed before the kernel was told");
        assert_eq!(clamped.settled(of(700, 900)).applied, of(700, 900));
        assert_eq!(clamped.settled(of(500, 1024)).applied, next);
        assert_eq!(other.change(of(100, 200), next), Clamps::default());
        assert_eq!(clamped.change(of(500, 1024), next), Clamps::default(), "nothing new");
    }

    #[test]
    fn a_kernel_without_them_says_so() {
        if has_clamps() {
            let before = clamps(0).unwrap();
            clamp(0, &of(100, 900)).unwrap();
            assert_eq!(clamps(0).unwrap(), of(100, 900));
            unclamp(0, &before).unwrap();
            assert_eq!(clamps(0).unwrap(), before);
            return;
        }
        eprintln!("SKIPPED: this kernel has no utilization clamps (CONFIG_UCLAMP_TASK)");
        let error = clamp(0, &of(100, 900)).unwrap_err().to_string();
        assert!(error.starts_with("sched_setattr(clamps 100 and 900 (of 1024)) of thread 0"), "{error}");
        assert!(clamp(0, &Clamps::default()).is_ok());
    }
}
