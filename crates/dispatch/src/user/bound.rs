//! A thread that is bound to a task of the table: its priority, its processor, what it has used.

use super::Priorities;
use crate::freezer::Freezer;
use punctual_linux::scheduling::{self, Processors, Refused, Scheduling};
use punctual_model::Duration;
use punctual_schedule::AssignedPolicy;
use punctual_tables::Job;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// A thread of the table.
#[derive(Debug)]
pub struct Bound {
    /// Its number.
    pub tid: u32,
    freezer: Option<Freezer>,
    /// Whether it may run beside everything else where its processor is lent.
    is_guest: bool,
    turn: Scheduling,
    waiting: Scheduling,
    /// `schedstat` of `/proc`, open. Reading it fails once the thread has ended.
    used: File,
    state: State,
    /// What it has used, read shortly before a turn begins or ends.
    ahead: Option<u64>,
    /// The processor that it is bound to.
    processor: u32,
    /// Whether it gets the priority of its turn before it is moved.
    ///
    /// On PREEMPT_RT a thread with a kernel lock cannot leave its processor, and who moves it waits
    /// until it gives the lock back. With the waiting priority it would not even run where it was cut off.
    /// Elsewhere that hardly happens, and a thread that does not run there is moved faster.
    is_raised_to_move: bool,
    /// The lane whose turn it is or was last; `None` until its first turn.
    pub(super) holder: Option<usize>,
    is_raised: bool,
    /// Processor time at the beginning of its turn, and at the end of the one before.
    begun_ns: u64,
    ended_ns: u64,
    /// Whether it is left out until the end of its next job, because it overran.
    is_skipping: bool,
    /// The policy that its last turn ended with, if somebody had changed it, until that is told.
    changed: Option<Scheduling>,
    /// What it used in its last turn, for a lane that finds it gone to another.
    last: Used,
}

/// Tells if a thread is ready.
#[derive(Debug)]
enum State {
    /// `wchan` of `/proc`: what it waits for in the kernel. Readable where the thread may be traced.
    Wait(File),
    /// `stat`, which takes four times as long.
    Stat(File),
}

impl State {
    fn open(place: &str, may_trace: bool) -> Result<State, String> {
        let open = |name: &str| {
            let path = format!("{place}/{name}");
            File::open(&path).map_err(|error| format!("{path}: {error}"))
        };
        match open("wchan") {
            Ok(file) if may_trace => Ok(State::Wait(file)),
            _ => open("stat").map(State::Stat),
        }
    }

    fn is_ready(&self) -> io::Result<bool> {
        let mut text = [0; 256];
        match self {
            State::Wait(file) => {
                let length = file.read_at(&mut text, 0)?;
                Ok(&text[..length] == b"0")
            }
            State::Stat(file) => {
                let length = file.read_at(&mut text, 0)?;
                let after_name = text[..length].iter().rposition(|byte| *byte == b')');
                Ok(after_name.is_some_and(|at| text.get(at + 2) == Some(&b'R')))
            }
        }
    }
}

/// Processor time of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// In the turn.
    pub ran: Duration,
    /// Between the end of the turn before and this one.
    pub outside: Duration,
}

impl Bound {
    /// Gives a thread the waiting priority and the processor of its first turn. Note how to undo that before.
    ///
    /// # Errors
    /// What the kernel refused, in words.
    pub fn new(
        (tid, process): (u32, u32),
        processor: u32,
        priorities: Priorities,
        mut freezer: Option<Freezer>,
    ) -> Result<Bound, String> {
        // Its first turn thaws it. Until then it must not run where the dispatcher lends its processor.
        if let Some(freezer) = &mut freezer {
            freezer.set_frozen(true).map_err(|error| format!("freezing it: {error}"))?;
        }
        let place = format!("/proc/{process}/task/{tid}");
        let open = |name: &str| {
            let path = format!("{place}/{name}");
            File::open(&path).map_err(|error| format!("{path}: {error}"))
        };
        let fifo = |priority| Scheduling::from_policy(AssignedPolicy::Fifo(priority));
        let mut bound = Bound {
            tid,
            freezer,
            is_guest: false,
            turn: fifo(priorities.turn()),
            waiting: fifo(priorities.waiting()),
            used: open("schedstat")?,
            state: State::open(&place, fs::read_link(format!("/proc/{process}/exe")).is_ok())?,
            ahead: None,
            processor: u32::MAX,
            is_raised_to_move: scheduling::is_preempt_rt(),
            holder: None,
            is_raised: false,
            begun_ns: 0,
            ended_ns: 0,
            is_skipping: false,
            changed: None,
            last: Used::default(),
        };
        let before = scheduling::scheduling(tid).map_err(|refused| refused.to_string())?;
        bound.move_to(processor, &before).map_err(|refused| refused.to_string())?;
        scheduling::schedule(tid, &bound.waiting).map_err(|refused| refused.to_string())?;
        bound.is_raised = false;
        bound.ended_ns = bound.used_ns().map_err(|error| format!("{place}/schedstat: {error}"))?;
        Ok(bound)
    }

    /// The thread of a guest, which was as `before`: outside of its slots, it is that again, on the
    /// processor of its guest. An ordinary thread so runs beside everything else where the processor is
    /// lent.
    ///
    /// # Errors
    /// What the kernel refused, in words.
    pub fn guest(
        thread: (u32, u32),
        processor: u32,
        priorities: Priorities,
        before: Scheduling,
    ) -> Result<Bound, String> {
        let mut bound = Bound::new(thread, processor, priorities, None)?;
        bound.is_guest = true;
        if before.priority == 0 && !before.is_deadline() {
            scheduling::schedule(bound.tid, &before).map_err(|refused| refused.to_string())?;
            bound.waiting = before;
        }
        Ok(bound)
    }

    /// Processor time at the beginning of its turn.
    pub(super) fn begun(&self) -> u64 {
        self.begun_ns
    }

    /// Leaves out the job that comes next.
    pub(super) fn skip_next(&mut self) {
        self.is_skipping = true;
    }

    /// Whether the turn that begins is left out. Ask once for each.
    pub(super) fn skips(&mut self, job: Job) -> bool {
        let skips = self.is_skipping;
        self.is_skipping &= !job.is_last;
        skips
    }

    /// Begins a turn on a lane. What is left of a turn elsewhere ends.
    pub(super) fn give(&mut self, lane: usize, processor: u32) -> Result<(), Failed> {
        if self.is_raised {
            self.account();
        }
        self.begun_ns = self.used_ns()?;
        self.holder = Some(lane);
        if self.processor != processor {
            let waiting = self.waiting;
            self.move_to(processor, &waiting)?;
        }
        self.raise()?;
        self.thaw()
    }

    /// Gives it the priority of its turn.
    fn raise(&mut self) -> Result<(), Refused> {
        if !self.is_raised {
            scheduling::schedule(self.tid, &self.turn)?;
            self.is_raised = true;
        }
        Ok(())
    }

    /// Ends a turn, unless another lane has begun one with this thread.
    pub(super) fn take(&mut self, lane: usize) -> Result<Used, Failed> {
        if self.holder == Some(lane) && self.is_raised {
            scheduling::schedule(self.tid, &self.waiting)?;
            self.is_raised = false;
            self.account();
        }
        Ok(self.last)
    }

    /// The end of a turn and the beginning of the next one of the same thread.
    pub(super) fn turn_over(&mut self) -> Result<Used, Failed> {
        self.account();
        self.begun_ns = self.ended_ns;
        Ok(self.last)
    }

    /// Keeps it from running until its next turn. False where it cannot be frozen.
    pub(super) fn freeze(&mut self) -> Result<bool, Failed> {
        match &mut self.freezer {
            Some(freezer) => Ok(freezer.set_frozen(true).map(|()| true)?),
            None => Ok(self.is_guest),
        }
    }

    /// Lets it run again, as far as its priority allows.
    pub(super) fn thaw(&mut self) -> Result<(), Failed> {
        match &mut self.freezer {
            Some(freezer) => Ok(freezer.set_frozen(false)?),
            None => Ok(()),
        }
    }

    /// Whether it could be frozen on this processor and is not in a turn.
    pub(super) fn waits_on(&self, processor: u32) -> bool {
        self.processor == processor && !self.is_raised
    }

    /// Whether it is ready to run, as the kernel says.
    pub(super) fn is_ready(&self) -> io::Result<bool> {
        self.state.is_ready()
    }

    /// Whether it is bound to a processor.
    pub(super) fn is_on(&self, processor: u32) -> bool {
        self.processor == processor
    }

    /// Reads what it has used for a turn that begins or ends soon; it must not run until then. Or forgets it.
    pub(super) fn read_ahead(&mut self, is_wanted: bool) {
        self.ahead = None;
        if is_wanted {
            self.ahead = self.used_ns().ok();
            // The end of its turn gives it another one, before the session looks.
            let found = self.is_raised.then(|| scheduling::scheduling(self.tid).ok()).flatten();
            self.changed = found.filter(|found| !found.matches(&self.turn)).or(self.changed);
        }
    }

    /// What a turn has come to so far.
    fn account(&mut self) {
        // Where it cannot be read, the thread is gone: the next call says so.
        let now = self.used_ns().unwrap_or(self.begun_ns);
        self.last = Used {
            ran: Duration::from_ns(now.saturating_sub(self.begun_ns)),
            outside: Duration::from_ns(self.begun_ns.saturating_sub(self.ended_ns)),
        };
        self.ended_ns = now;
    }

    /// Moves it; where that fails, it is scheduled `otherwise`.
    fn move_to(&mut self, processor: u32, otherwise: &Scheduling) -> Result<(), Refused> {
        let Some(only) = Processors::one(processor) else { return Ok(()) };
        if self.is_raised_to_move {
            self.raise()?;
        }
        scheduling::pin(self.tid, &only).inspect_err(|_| {
            // It must not run where it is.
            let _ = scheduling::schedule(self.tid, otherwise);
        })?;
        self.processor = processor;
        Ok(())
    }

    /// Gives it again what it should have, if somebody else changed that. Returns what was found, in words.
    pub fn mend(&mut self) -> Option<String> {
        let should = if self.is_raised { self.turn } else { self.waiting };
        let found = scheduling::State::read(self.tid).ok()?;
        let place = Processors::one(self.processor)?;
        let (is_elsewhere, mut changed) = (found.processors != place, Vec::new());
        // One that is gone meanwhile is noticed at its next turn.
        let set = |scheduling| _ = scheduling::schedule(self.tid, scheduling);
        let before = self.changed.take();
        if !found.scheduling.matches(&should) {
            changed.push(format!("the policy to {}", found.scheduling));
            set(&should);
        } else if let Some(before) = before {
            changed.push(format!("the policy to {before}"));
        }
        if is_elsewhere {
            changed.push(format!("the processors to {:?}", found.processors));
            if self.is_raised_to_move {
                set(&self.turn);
            }
            let _ = scheduling::pin(self.tid, &place);
            if self.is_raised_to_move {
                set(&should);
            }
        }
        (!changed.is_empty()).then(|| changed.join(" and "))
    }

    /// Processor time so far: the first number of `schedstat`.
    fn used_ns(&mut self) -> io::Result<u64> {
        if let Some(used) = self.ahead.take() {
            return Ok(used);
        }
        let mut text = [0; 64];
        let length = self.used.read_at(&mut text, 0)?;
        let digits = text[..length].iter().take_while(|byte| byte.is_ascii_digit());
        let number =
            digits.fold(0_u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
        if length == 0 { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(number) }
    }
}

/// A thread that cannot be dispatched: it has ended, or the kernel refused.
#[derive(Debug)]
pub(super) struct Failed;

impl From<io::Error> for Failed {
    fn from(_: io::Error) -> Failed {
        Failed
    }
}

impl From<Refused> for Failed {
    fn from(_: Refused) -> Failed {
        Failed
    }
}
