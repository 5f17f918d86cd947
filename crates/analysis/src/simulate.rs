//! A discrete-event simulation of preemptive scheduling: SCHED_DEADLINE by absolute deadlines, then
//! priorities, first in, first out among equal ones, on processors that tasks may be pinned to.
//!
//! It shares no code with the analyses, so that tests compare them with it. It also draws the schedule in
//! which a task takes longest.

use crate::task::{Scheduling, Task};

/// A job to simulate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Index of its task.
    pub task: usize,
    /// When it is released, in ns.
    pub release: u64,
    /// Execution and the suspension after it, in ns. The last suspension must be zero.
    pub segments: Vec<(u64, u64)>,
}

/// A stretch of time in which a processor runs a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The processor.
    pub cpu: u32,
    /// The index of the job among those given.
    pub job: usize,
    /// When it begins.
    pub from: u64,
    /// When it ends.
    pub to: u64,
}

/// What happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// When each job ended, in the order given.
    pub ends: Vec<u64>,
    /// What each processor ran, by time.
    pub runs: Vec<Run>,
}

#[derive(Clone, Debug)]
struct Pending {
    job: usize,
    segment: usize,
    left: u64,
    /// When it became ready, or will be.
    ready_at: u64,
    /// The order in which jobs became ready.
    sequence: u64,
}

/// Runs all jobs to their ends. Jobs of one task run one after the other.
pub fn simulate(tasks: &[Task], jobs: &[Job]) -> Schedule {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| std::cmp::Reverse((jobs[job].release, job)));
    let mut state = State {
        tasks,
        jobs,
        to_come: order,
        pending: Vec::new(),
        schedule: Schedule { ends: vec![0; jobs.len()], runs: Vec::new() },
        now: 0,
        sequence: 0,
    };
    while state.step() {}
    state.schedule.runs.sort_by_key(|run| (run.from, run.cpu));
    state.schedule
}

struct State<'a> {
    tasks: &'a [Task],
    jobs: &'a [Job],
    /// Jobs that have not been released, the next one last.
    to_come: Vec<usize>,
    pending: Vec<Pending>,
    schedule: Schedule,
    now: u64,
    sequence: u64,
}

impl State<'_> {
    /// Goes on to the next instant at which something changes; false when all jobs have ended.
    fn step(&mut self) -> bool {
        self.release();
        let running = self.assign();
        let next_release = self.to_come.last().map(|&job| self.jobs[job].release);
        let next_ready = self.pending.iter().map(|it| it.ready_at).filter(|&at| at > self.now).min();
        let next_end = running.iter().map(|&(_, pending)| self.now + self.pending[pending].left).min();
        let Some(until) = [next_release, next_ready, next_end].into_iter().flatten().min() else {
            return false;
        };
        for (cpu, pending) in running {
            self.run(cpu, pending, until);
        }
        self.now = until;
        self.finish_segments();
        true
    }

    fn release(&mut self) {
        while let Some(&job) = self.to_come.last().filter(|&&job| self.jobs[job].release <= self.now) {
            self.to_come.pop();
            let left = self.jobs[job].segments.first().map_or(0, |segment| segment.0);
            self.sequence += 1;
            let (ready_at, sequence) = (self.now, self.sequence);
            self.pending.push(Pending { job, segment: 0, left, ready_at, sequence });
        }
        self.finish_segments();
    }

    /// The pending jobs that run, with their processors: by urgency, each on the first free one.
    fn assign(&self) -> Vec<(u32, usize)> {
        let mut ready: Vec<usize> = (0..self.pending.len()).filter(|&it| self.is_ready(it)).collect();
        ready.sort_by_key(|&it| self.urgency(&self.pending[it]));
        let mut running: Vec<(u32, usize)> = Vec::new();
        for it in ready {
            let processors = &self.tasks[self.jobs[self.pending[it].job].task].processors;
            let free = processors.iter().find(|&&cpu| running.iter().all(|&(taken, _)| taken != cpu));
            running.extend(free.map(|&cpu| (cpu, it)));
        }
        running
    }

    /// Whether it can run now: it is not suspended, and no earlier job of its task is pending.
    fn is_ready(&self, it: usize) -> bool {
        let (own, task) = (&self.pending[it], self.jobs[self.pending[it].job].task);
        let is_earlier = |other: &Pending| {
            self.jobs[other.job].task == task
                && (self.jobs[other.job].release, other.job) < (self.jobs[own.job].release, own.job)
        };
        own.ready_at <= self.now && !self.pending.iter().any(is_earlier)
    }

    fn urgency(&self, pending: &Pending) -> (u32, u64, u64) {
        let job = &self.jobs[pending.job];
        match self.tasks[job.task].scheduling {
            Scheduling::Deadline(it) => (0, job.release + it.deadline_ns.ns(), pending.sequence),
            Scheduling::Priority(priority) => (100 - priority.min(99), pending.sequence, 0),
            Scheduling::BestEffort | Scheduling::Unknown => (u32::MAX, pending.sequence, 0),
        }
    }

    fn run(&mut self, cpu: u32, pending: usize, until: u64) {
        let (job, from) = (self.pending[pending].job, self.now);
        self.pending[pending].left -= until - from;
        let runs = &mut self.schedule.runs;
        match runs.iter_mut().rev().find(|run| run.cpu == cpu) {
            Some(last) if last.job == job && last.to == from => last.to = until,
            _ => runs.push(Run { cpu, job, from, to: until }),
        }
    }

    /// Ends segments that have nothing left, and jobs whose last one that is.
    fn finish_segments(&mut self) {
        let now = self.now;
        for it in 0..self.pending.len() {
            while self.pending[it].left == 0 && self.pending[it].ready_at <= now && self.is_ready(it) {
                let segments = &self.jobs[self.pending[it].job].segments;
                let (segment, suspended) = (self.pending[it].segment, segments.get(self.pending[it].segment));
                let suspended = suspended.map_or(0, |it| it.1);
                let Some(next) = segments.get(segment + 1) else { break };
                self.sequence += 1;
                let own = &mut self.pending[it];
                (own.segment, own.left, own.sequence) = (segment + 1, next.0, self.sequence);
                own.ready_at = now + suspended;
            }
        }
        let jobs = self.jobs;
        let ends = &mut self.schedule.ends;
        let mut ended: Vec<usize> = Vec::new();
        for pending in &self.pending {
            let is_last = pending.segment + 1 >= jobs[pending.job].segments.len();
            if is_last && pending.left == 0 && pending.ready_at <= now {
                ends[pending.job] = now;
                ended.push(pending.job);
            }
        }
        self.pending.retain(|pending| !ended.contains(&pending.job));
    }
}
