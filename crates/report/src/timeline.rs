//! Timelines: recordings as traces for the Perfetto UI.
//!
//! A thread has a track of its jobs, what the kernel did with it (running, runnable, preempted, asleep), its
//! wake-ups with arrows from who woke it, and its changes of policy, priority, affinity, name and program. A
//! processor has a track of who ran there. What the kernel did is there only where every step of the
//! scheduler was recorded ([`punctual_trace::Record::Switch`]), and only of threads that were watched:
//! elsewhere a processor's track is empty.
//!
//! Packets leave as they come; what is held is the state of threads and processors.

use lanes::Ended;
use packets::{Argument, Flow, Packets};
use punctual_model::{Instant, Job, Separator, TimingModel};
use punctual_trace::{About, Begin, Record, Step, Switch};
use scheduling::{Scheduling, Seen};
use std::collections::HashMap;
use std::io::Write;
use threads::Threads;

pub mod dataflow;
mod error;
mod lanes;
pub mod latency;
mod packets;
mod passages;
mod proto;
mod scheduling;
mod threads;
pub mod time_table;

pub use error::Error;

/// What a timeline shows and what it leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Threads, each as often as it was introduced.
    pub threads: u64,
    /// Threads that were never watched, each as often as it was introduced.
    pub bystanders: u64,
    /// Jobs of primary separators.
    pub jobs: u64,
    /// Jobs of the tasks' other separators.
    pub other_jobs: u64,
    /// Steps of the scheduler. Without any, there are jobs but nothing of who ran when: `punctual record
    /// --detail switches` has that.
    pub steps: u64,
    /// Arrows from who woke to who was woken.
    pub arrows: u64,
    /// Steps that were missed and reconstructed; each is marked on its thread.
    pub mended: u64,
    /// Steps that were left out: on processors that Perfetto does not show (it has 1,024), or of threads that
    /// cannot be.
    pub left_out: u64,
    /// Jobs of unknown threads, left out.
    pub unknown: u64,
}

/// The primary separator of a task, and when it was observed.
struct Primary {
    from: Instant,
    until: Instant,
    separator: Separator,
}

/// Writes a timeline, record by record and job by job.
pub struct Timeline<W: Write> {
    packets: Packets<W>,
    threads: Threads,
    scheduling: Scheduling,
    primary: HashMap<(u32, u32), Vec<Primary>>,
    /// When the latest record came that says when it came.
    now: Instant,
    counts: Counts,
}

impl<W: Write> Timeline<W> {
    /// An empty timeline of the recording that `about` describes. `model` is its timing model, which has the
    /// primary separator of each task.
    pub fn new(out: W, about: &About, model: &TimingModel) -> Result<Self, Error> {
        let mut primary: HashMap<_, Vec<Primary>> = HashMap::new();
        for task in model.tasks() {
            if let Some(stream) = task.primary.and_then(|place| task.streams.get(place)) {
                let known =
                    Primary { from: task.from_ns, until: task.until_ns, separator: stream.separator.key() };
                primary.entry((task.tid, task.phase)).or_default().push(known);
            }
        }
        Ok(Self {
            packets: Packets::new(out, about)?,
            threads: Threads::default(),
            scheduling: Scheduling::new(&about.platform.kernel),
            primary,
            now: about.from,
            counts: Counts::default(),
        })
    }

    /// Takes the recording's next record.
    pub fn record(&mut self, record: &Record) -> Result<(), Error> {
        match record {
            Record::Task(task) | Record::Known(task) if self.threads.is_bystander(task) => {
                self.now = task.at;
                self.counts.bystanders -= 1;
                self.counts.threads += 1;
                self.threads.change(task, &mut self.packets)
            }
            Record::Task(task) => {
                self.now = task.at;
                if task.begin == Begin::Seen {
                    self.counts.threads += 1;
                    self.vanish(task.tid, task.at)?;
                    return self.threads.introduce(task, true, &mut self.packets);
                }
                if self.threads.get(task.tid).is_none() {
                    self.counts.threads += 1;
                }
                self.threads.change(task, &mut self.packets)
            }
            Record::Known(task) if self.threads.get(task.tid).is_some() => Ok(()),
            Record::Known(task) => {
                self.counts.threads += 1;
                self.threads.introduce(task, true, &mut self.packets)
            }
            Record::Bystander(task) if self.threads.get(task.tid).is_some() => {
                self.threads.update(task, &mut self.packets)
            }
            Record::Bystander(task) => {
                self.counts.bystanders += 1;
                self.threads.introduce(task, false, &mut self.packets)
            }
            Record::Activation(activation) => {
                self.now = activation.resumed.map_or(activation.stop, |resumed| resumed.start);
                Ok(())
            }
            Record::Renamed { tid, name, .. } => self.threads.rename(*tid, name, self.now, &mut self.packets),
            Record::Command { tid, command, .. } => {
                self.threads.command(*tid, command, self.now, &mut self.packets)
            }
            Record::Last { tid, at, .. } => self.end(*tid, *at, false),
            Record::Exit { tid, at, .. } | Record::BystanderExit { tid, at } => self.end(*tid, *at, true),
            Record::Switch(switch) => self.switch(switch),
            Record::Busy { .. }
            | Record::ClockSet { .. }
            | Record::Lost { .. }
            | Record::Latency(_)
            | Record::Dispatch(_) => Ok(()),
        }
    }

    /// Takes a job that has ended: before or after the record that ended it.
    pub fn job(
        &mut self,
        tid: u32,
        phase: u32,
        separator: &Separator,
        number: u64,
        job: &Job,
    ) -> Result<(), Error> {
        let key = separator.key();
        let tasks = self.primary.get(&(tid, phase));
        let primary = tasks.is_some_and(|tasks| {
            tasks.iter().any(|task| task.separator == key && (task.from..=task.until).contains(&job.end))
        });
        if !primary && *separator == Separator::SUSPENSION {
            // The jobs between any two sleeps: the thread's states show them.
            return Ok(());
        }
        let Some(thread) = self.threads.get_mut(tid) else {
            self.counts.unknown += 1;
            return Ok(());
        };
        *if primary { &mut self.counts.jobs } else { &mut self.counts.other_jobs } += 1;
        let ended = Ended { thread: thread.track, phase, separator: *separator, primary, number, job };
        thread.streams.job(&ended, &mut self.packets)
    }

    /// Writes the rest; returns what the timeline shows.
    pub fn finish(mut self) -> Result<(W, Counts), Error> {
        let threads = &self.threads;
        for (cpu, events) in self.scheduling.finish(|tid| threads.label(tid)) {
            self.packets.ftrace(cpu, events)?;
        }
        Ok((self.packets.finish()?, self.counts))
    }

    fn switch(&mut self, switch: &Switch) -> Result<(), Error> {
        if switch.step.is_detail() {
            return Ok(());
        }
        self.now = switch.at;
        let threads = &self.threads;
        let seen = self.scheduling.step(switch, |tid| threads.label(tid));
        if let Some(events) = self.scheduling.full(switch.cpu) {
            self.packets.ftrace(switch.cpu, events)?;
        }
        self.counts.steps += u64::from(seen != Seen::OutOfRange);
        match seen {
            Seen::Follows => Ok(()),
            Seen::OutOfRange => {
                self.counts.left_out += 1;
                Ok(())
            }
            Seen::Mended => {
                self.counts.mended += 1;
                match self.threads.get(switch.tid) {
                    Some(thread) => {
                        let name = "steps before this were not seen".to_owned();
                        self.packets.instant(thread.track, "mended", name, switch.at, Vec::new(), None)
                    }
                    None => Ok(()),
                }
            }
            Seen::Wakes => match switch.step {
                Step::Woken { by } => self.arrow(by, switch.tid, switch.at),
                _ => Ok(()),
            },
        }
    }

    /// An arrow from who woke to who was woken, where both are watched.
    fn arrow(&mut self, by: u32, woken: u32, at: Instant) -> Result<(), Error> {
        let (Some(waker), Some(sleeper)) = (self.threads.get(by), self.threads.get(woken)) else {
            return Ok(());
        };
        let (wakes, woken_by) = (format!("wakes {}", sleeper.name), format!("woken by {}", waker.name));
        let flow = self.packets.new_flow();
        let arguments = |tid: u32| vec![Argument::number("tid", tid.into())];
        self.packets.instant(waker.track, "wakeup", wakes, at, arguments(woken), Some(Flow::From(flow)))?;
        self.packets.instant(sleeper.track, "wakeup", woken_by, at, arguments(by), Some(Flow::To(flow)))?;
        self.counts.arrows += 1;
        Ok(())
    }

    /// A TID was reused, though the end of its thread was not seen.
    fn vanish(&mut self, tid: u32, at: Instant) -> Result<(), Error> {
        // Perfetto must have seen the end before it sees the other thread.
        if self.threads.get(tid).is_some() {
            self.end(tid, Instant::from_ns(at.ns().saturating_sub(1)), true)
        } else {
            Ok(())
        }
    }

    fn end(&mut self, tid: u32, at: Instant, exits: bool) -> Result<(), Error> {
        self.now = at;
        let label = self.threads.label(tid);
        let free = self.threads.end(tid, at, exits, &mut self.packets)?;
        let label = |_| label.clone();
        if exits {
            self.scheduling.exit(tid, at, &free, label);
        } else {
            self.scheduling.last(tid, at, label);
        }
        Ok(())
    }
}
