//! One task: a thread between two transitions, and its job streams, one per separator.

use crate::lane::{Lane, Sleeps};
use crate::primary;
use crate::stream::Options;
use punctual_model::{self as model, Call, EndedBy, Instant, Job, Object, Segment, Separator};
use punctual_trace::{Activation, TaskRecord};

/// How many separators a task has of its own; those that come later share one stream for each kind of call.
pub const MAX_SEPARATORS: usize = 32;

/// A job that has just ended, and where it belongs.
///
/// Each stream of the model gets its own: the jobs between sleeps (`suspension`) are given besides those at the call that slept, also
/// while one stream stands for both. So those given for a task at one separator are as many as its stream there has
/// ([`punctual_model::Stream::jobs`]).
#[derive(Clone, Copy, Debug)]
pub struct JobSeen<'a> {
    /// The thread.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// Which of the thread's tasks.
    pub phase: u32,
    /// The task's name at this moment.
    pub name: &'a str,
    /// Where the job ended and the next begins: the stream's separator as far as it is known. A descriptor's inode is dropped from
    /// it once the same descriptor has been another file, so it is matched to a stream of the model by [`Separator::key`], which stays.
    pub separator: Separator,
    /// The place of its release in its stream, from 0.
    pub number: u64,
    /// The job.
    pub job: &'a Job,
    /// Its last segments; those that no longer fitted are merged into the first.
    pub segments: &'a [Segment],
}

/// Where the jobs between any two sleeps are.
#[derive(Clone, Debug)]
enum Suspension {
    /// In the first lane: so far every sleep was one at its separator, and every call of it slept.
    First,
    /// In a lane of their own.
    Own(Box<Lane>),
}

/// A task that is being observed.
#[derive(Clone, Debug)]
pub struct Task {
    about: TaskRecord,
    phase: u32,
    lanes: Vec<Lane>,
    suspension: Suspension,
    sleeps: Sleeps,
    capped: bool,
    merged_transitions: u64,
    /// The lane used last, where the next activation mostly belongs.
    recent: usize,
    last_seen: Instant,
    segments: Vec<Segment>,
}

impl Task {
    pub fn new(about: TaskRecord, phase: u32) -> Self {
        let last_seen = about.at;
        Self {
            about,
            phase,
            lanes: Vec::new(),
            suspension: Suspension::First,
            sleeps: Sleeps::default(),
            capped: false,
            merged_transitions: 0,
            recent: 0,
            last_seen,
            segments: Vec::new(),
        }
    }

    /// A transition that was not to end the task.
    pub fn merge_transition(&mut self) {
        self.merged_transitions += 1;
    }

    pub fn phase(&self) -> u32 {
        self.phase
    }

    pub fn last_seen(&self) -> Instant {
        self.last_seen
    }

    pub fn about_mut(&mut self) -> &mut TaskRecord {
        &mut self.about
    }

    pub fn about(&self) -> &TaskRecord {
        &self.about
    }

    /// Takes one separation and gives the jobs that it ended; returns how many ended at its own separator.
    pub fn activation(&mut self, activation: &Activation, options: &Options, each: &mut impl FnMut(&JobSeen)) -> u64 {
        let lane = (activation.separator.call != Call::Suspension).then(|| self.lane(activation.separator, options));
        self.keep_suspension_apart(lane, activation.slept, options);
        self.last_seen = activation.stop;
        let mut segments = std::mem::take(&mut self.segments);
        let mut ended = 0;
        if let Some(lane) = lane {
            if let Some(job) = self.lanes[lane].close(activation, &self.sleeps, &mut segments) {
                ended += 1;
                self.give(&self.lanes[lane], self.lanes[lane].separator(), &job, &segments, each);
                if matches!(self.suspension, Suspension::First) {
                    self.give(&self.lanes[lane], Separator::SUSPENSION, &job, &segments, each);
                }
            }
        }
        if let (true, Suspension::Own(own)) = (activation.slept, &mut self.suspension) {
            let job = own.close(activation, &self.sleeps, &mut segments);
            ended += u64::from(job.is_some() && lane.is_none());
            if let (Some(job), Some(own)) = (job, self.suspension_lane()) {
                self.give(own, Separator::SUSPENSION, &job, &segments, each);
            }
        }
        self.segments = segments;
        let Some(resumed) = &activation.resumed else { return ended };
        self.last_seen = resumed.start;
        if let Some(release) = resumed.release {
            self.sleeps.push(activation.cpu, release.latest().since(activation.stop));
        }
        if let Some(lane) = lane {
            self.lanes[lane].open(activation, resumed, &self.sleeps);
        }
        if activation.slept {
            if let Suspension::Own(own) = &mut self.suspension {
                own.open(activation, resumed, &self.sleeps);
            }
        }
        if resumed.suspended_after > model::Duration::ZERO {
            self.sleeps.push(activation.cpu, resumed.suspended_after);
        }
        ended
    }

    #[inline]
    fn give(&self, lane: &Lane, separator: Separator, job: &Job, segments: &[Segment], each: &mut impl FnMut(&JobSeen)) {
        let (TaskRecord { tid, pid, name, .. }, phase) = (&self.about, self.phase);
        each(&JobSeen { tid: *tid, pid: *pid, phase, name, separator, number: lane.stream().releases() - 1, job, segments });
    }

    /// As long as one separator accounts for every sleep, its jobs are those between sleeps too: they are kept once.
    fn keep_suspension_apart(&mut self, lane: Option<usize>, slept: bool, options: &Options) {
        if matches!(self.suspension, Suspension::Own(_)) || (lane == Some(0) && slept) {
            return;
        }
        self.suspension = Suspension::Own(Box::new(match self.lanes.first() {
            // A lane that was made for this very activation has no jobs to share.
            Some(first) if first.stream().releases() > 0 => {
                let mut own = first.clone();
                own.rename(Separator::SUSPENSION);
                own
            }
            _ => Lane::new(Separator::SUSPENSION, options),
        }));
    }

    fn lane(&mut self, separator: Separator, options: &Options) -> usize {
        let key = separator.key();
        let is_it = |lane: &Lane| lane.key() == key;
        if self.lanes.get(self.recent).is_some_and(is_it) {
            self.lanes[self.recent].meet(separator);
            return self.recent;
        }
        let found = self.lanes.iter().position(is_it);
        self.recent = match found {
            Some(lane) => {
                self.lanes[lane].meet(separator);
                lane
            }
            None if self.lanes.len() < MAX_SEPARATORS || separator.object == Object::Others => {
                self.lanes.push(Lane::new(separator, options));
                self.lanes.len() - 1
            }
            None => {
                self.capped = true;
                return self.lane(Separator { call: separator.call, object: Object::Others }, options);
            }
        };
        self.recent
    }

    /// The task as it stands in the file.
    pub fn into_model(self, until: Instant, ended_by: EndedBy) -> model::Task {
        let choice = primary::choose(&self.lanes, self.suspension_lane(), self.sleeps.total());
        let mut streams: Vec<_> = self.lanes.iter().map(|lane| lane.stream().to_model(lane.separator())).collect();
        match &self.suspension {
            Suspension::Own(lane) => streams.push(lane.stream().to_model(Separator::SUSPENSION)),
            Suspension::First => {
                if let Some(first) = streams.first().cloned() {
                    streams.push(model::Stream { separator: Separator::SUSPENSION, ..first });
                }
            }
        }
        streams.retain(|stream| stream.releases > 0);
        let primary = choice.and_then(|choice| {
            let place = streams.iter().position(|stream| stream.separator == choice.separator)?;
            Some((place, choice.reason))
        });
        let (primary, primary_reason) = primary.unzip();
        let about = self.about;
        model::Task {
            name: about.name,
            pid: about.pid,
            tid: about.tid,
            phase: self.phase,
            command: about.command,
            policy: about.policy,
            priority: about.priority,
            nice: about.nice,
            reservation: about.reservation,
            affinity: about.affinity,
            from_ns: about.at,
            until_ns: until.max(about.at),
            ended_by,
            primary,
            primary_reason,
            separators_capped: self.capped,
            merged_transitions: self.merged_transitions,
            recording: None,
            streams,
        }
    }

    fn suspension_lane(&self) -> Option<&Lane> {
        match &self.suspension {
            Suspension::Own(lane) => Some(lane),
            Suspension::First => None,
        }
    }
}
