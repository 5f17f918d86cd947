//! Jobs of the table that end early: their threads sleep before their slots are used up, and the rest of
//! these is given back. Only for tasks of which that was said: a thread may also sleep in the middle of a
//! job.

use super::{Event, Session};
use crate::clock::Readable as _;
use crate::engine::Engine;
use punctual_linux::proc::processor_time;
use punctual_model::Duration;
use punctual_tables::Job;
use punctual_trace::dispatch::Dispatch;
use std::time;

/// How often threads are looked at: at every slot, but neither all the time nor seldom.
const OFTEN: Duration = Duration::from_ms(1);
const SELDOM: Duration = Duration::from_ms(20);

impl Session {
    /// Waits until somebody asks something, or for a while, and has jobs that end early give back their
    /// slots.
    pub fn wait(&mut self, time: time::Duration) {
        if self.guests.is_none() || !self.plan.tasks.iter().any(|task| task.sleep_ends_job) {
            self.nap(time);
            return;
        }
        let slot = time::Duration::from_nanos(self.plan.slot.clamp(OFTEN, SELDOM).ns());
        let begun = time::Instant::now();
        loop {
            let left = time.saturating_sub(begun.elapsed());
            let is_asked = self.nap(left.min(slot));
            self.give_back();
            if is_asked || left.is_zero() {
                return;
            }
        }
    }

    /// Whether somebody asks something.
    fn nap(&self, time: time::Duration) -> bool {
        match &self.managers {
            Some(managers) => managers.wait(time),
            None => {
                std::thread::sleep(time);
                false
            }
        }
    }

    /// Gives back what jobs whose threads sleep have left.
    fn give_back(&mut self) {
        for task in 0..self.plan.tasks.len() {
            if !self.plan.tasks[task].sleep_ends_job || self.threads[task].is_none() {
                continue;
            }
            let slept = match &self.engine {
                Engine::User(_) => self.slept_in_user_space(task),
                Engine::Ext(ext) => ext.dispatcher.slept(task),
            };
            if slept.is_some() && slept != self.slept[task] {
                self.slept[task] = slept;
                let job = slept.and_then(|slot| Some((self.job_of(task, slot)?, slot)));
                job.into_iter().for_each(|(job, slot)| self.job_over(job, slot));
            }
        }
    }

    /// The first slot of the task's present turn, if its thread has run in it and sleeps.
    fn slept_in_user_space(&self, task: usize) -> Option<u64> {
        let now = self.plan.slot_at(self.plan.clock.now(), self.start)?;
        let is_its = |lane: &usize| self.owner(*lane, now).is_some_and(|job| job.task as usize == task);
        let lane = (0..self.plan.lanes.len()).find(is_its)?;
        let Engine::User(dispatcher) = &self.engine else { return None };
        let known = self.threads[task].as_ref()?;
        let used = |tid| {
            let time = processor_time(known.process, tid).ok().filter(|_| tid == known.thread.number);
            time.map(Duration::ns)
        };
        dispatcher.slept(lane, used)
    }

    /// The job of a task that had this slot.
    fn job_of(&self, task: usize, slot: u64) -> Option<Job> {
        let owners = (0..self.plan.lanes.len()).filter_map(|lane| self.owner(lane, slot));
        owners.into_iter().find(|job| job.task as usize == task)
    }

    fn job_over(&mut self, job: Job, slot: u64) {
        let Session { guests, engine, priority, plan, .. } = self;
        let Some(guests) = guests else { return };
        // Beside a partition of the kernel's, nobody runs in slots of nobody.
        let (lends, clock) = (matches!(engine, Engine::User(_)), plan.clock);
        let mut publish = |lane, rows| priority.raised(|| engine.publish(lane, rows));
        if let Some(first) = guests.over_early(job, slot, lends, &|| clock.now(), &mut publish) {
            self.statistics.tasks[job.task as usize].early += 1;
            self.events.push(Event::Record(Dispatch::GuestOver { number: job.task, slot: first }));
        }
    }
}
