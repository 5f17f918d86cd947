//! Threads of a trace that have no models: who they are and when they ran, so that one sees who preempted a
//! thread that has.

use super::switched;
use super::thread::Out;
use punctual_model::Instant;
use punctual_trace::{Begin, Record, Step, Switch};
use rustc_hash::FxHashMap;

/// Threads that are remembered; of more, each step would introduce its thread anew.
const MOST: usize = 1 << 18;

/// What a thread was last seen as.
struct Known {
    priority: i64,
    is_woken: bool,
}

/// The threads that are not followed.
#[derive(Default)]
pub struct Bystanders {
    known: FxHashMap<u32, Known>,
}

/// A thread at a switch.
pub struct Shown<'a> {
    pub tid: u32,
    /// Its process, where that is known.
    pub pid: Option<u32>,
    pub priority: i64,
    /// Its name; asked for only if the thread is new or changed.
    pub name: &'a dyn Fn() -> String,
}

impl Bystanders {
    /// A thread got a processor.
    pub fn enter(&mut self, shown: &Shown, cpu: u32, at: Instant, out: Out) {
        self.introduce(shown, at, out);
        step(shown.tid, Step::In, cpu, at, out);
    }

    /// A thread left a processor in this state, as tracepoints report it.
    pub fn leave(&mut self, shown: &Shown, state: i64, cpu: u32, at: Instant, out: Out) {
        if switched::is_dead(state) {
            return self.end(shown.tid, at, out);
        }
        self.introduce(shown, at, out);
        let ready = state == 0 || state & switched::PREEMPTED != 0;
        let left = match state {
            _ if ready => Step::Preempted,
            state if state & switched::STOPPED != 0 => Step::Stopped,
            state => Step::Asleep { interruptible: state & 1 != 0 },
        };
        step(shown.tid, left, cpu, at, out);
    }

    /// A thread is woken. Sources tell of it once or twice: only the first counts.
    pub fn wake(&mut self, tid: u32, by: u32, cpu: u32, at: Instant, out: Out) {
        if let Some(known) = self.known.get_mut(&tid).filter(|known| !known.is_woken) {
            known.is_woken = true;
            step(tid, Step::Woken { by }, cpu, at, out);
        }
    }

    /// A thread ended, or it is followed from now on.
    pub fn end(&mut self, tid: u32, at: Instant, out: Out) {
        if self.known.remove(&tid).is_some() {
            out(Record::BystanderExit { tid, at });
        }
    }

    /// A thread has another name, which its next switch tells.
    pub fn forget(&mut self, tid: u32) {
        self.known.remove(&tid);
    }

    fn introduce(&mut self, shown: &Shown, at: Instant, out: Out) {
        let Shown { tid, priority, .. } = *shown;
        if let Some(known) = self.known.get_mut(&tid) {
            known.is_woken = false;
            if std::mem::replace(&mut known.priority, priority) == priority {
                return;
            }
        } else if self.known.len() < MOST {
            self.known.insert(tid, Known { priority, is_woken: false });
        }
        let pid = shown.pid.unwrap_or(tid);
        let task = switched::task(tid, pid, priority, at, Begin::Seen, (shown.name)());
        out(Record::Bystander(Box::new(task)));
    }
}

fn step(tid: u32, step: Step, cpu: u32, at: Instant, out: Out) {
    out(Record::Switch(Switch { tid, at, cpu, step }));
}
