//! Records of a recording as events of threads.

use punctual_causes::{Departure, Event, Step as What, Urgency, Wait, Waker};
use punctual_model::Policy;
use punctual_report::why::ThreadInfo;
use punctual_trace::{Record, Step, Switch, TaskRecord};
use std::collections::HashMap;

/// Turns records into events, and knows the threads that they are about.
#[derive(Default)]
pub(super) struct Events {
    threads: HashMap<u32, ThreadInfo>,
}

impl Events {
    /// The event that a record tells of, if any.
    pub fn of(&mut self, record: &Record) -> Option<Event> {
        match record {
            Record::Task(task) | Record::Known(task) | Record::Bystander(task) => self.introduce(task),
            Record::Renamed { tid, name, .. } => {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.name.clone_from(name);
                }
            }
            Record::Switch(switch) => return Some(self.event(switch)),
            _ => {}
        }
        None
    }

    fn introduce(&mut self, task: &TaskRecord) {
        let TaskRecord { tid, policy, priority, .. } = *task;
        self.threads.insert(tid, ThreadInfo { tid, name: task.name.clone(), policy: Some(policy), priority });
    }

    fn event(&self, switch: &Switch) -> Event {
        let (thread, urgency) = (switch.tid, self.urgency(switch.tid));
        let step = match switch.step {
            Step::In => What::In { thread, urgency },
            Step::Preempted => What::Out { thread, urgency, why: Departure::Preempted },
            Step::Asleep { interruptible } => {
                let wait = Wait { uninterruptible: !interruptible, ..Wait::default() };
                What::Out { thread, urgency, why: Departure::Asleep(wait) }
            }
            Step::Woken { by: 0 } => What::Woken { thread, by: Waker::Interrupt },
            Step::Woken { by } => What::Woken { thread, by: Waker::Thread(by) },
        };
        Event { at: switch.at, cpu: switch.cpu, step }
    }

    fn urgency(&self, tid: u32) -> Urgency {
        let Some(thread) = self.threads.get(&tid) else { return Urgency::FAIR };
        match thread.policy {
            Some(Policy::Deadline) => Urgency::DEADLINE,
            Some(Policy::Fifo | Policy::Rr) => Urgency::real_time(thread.priority),
            _ => Urgency::FAIR,
        }
    }

    /// A thread as it is at this moment.
    pub fn who(&self, tid: u32) -> ThreadInfo {
        let unknown = || ThreadInfo { tid, name: format!("thread {tid}"), policy: None, priority: 0 };
        self.threads.get(&tid).cloned().unwrap_or_else(unknown)
    }
}
