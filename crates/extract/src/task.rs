//! One task: a thread between two transitions, with one job stream per separator.

use crate::lane::OpenJob;
use crate::lanes::Lanes;
use crate::stream::{Circumstances, Options};
use crate::summary::stream::StreamSummary;
use punctual_model::{self as model, Disturbance, Duration, EndedBy, Instant, Job, Segment, Separator};
use punctual_trace::{Activation, TaskRecord};

/// A job that has just ended, and where it belongs.
///
/// Every stream of the model gets its jobs: those between sleeps (`suspension`) are handed out as well as
/// those at the call that slept, even while one stream stands for both. So a task's jobs at a separator are
/// as many as its stream there counts ([`punctual_model::Stream::jobs`]).
#[derive(Clone, Copy, Debug)]
pub struct JobSeen<'a> {
    /// The thread.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// Which of the thread's tasks.
    pub phase: u32,
    /// When that task began: the TID of an ended thread is reused.
    pub from: Instant,
    /// The task's current name.
    pub name: &'a str,
    /// Where the job ended and the next begins: the stream's separator as far as it is known. A descriptor's
    /// inode is dropped once the descriptor has been another file, so match it to a stream of the model by
    /// [`Separator::key`], which stays the same.
    pub separator: Separator,
    /// The index of its release in its stream, from 0.
    pub number: u64,
    /// The job.
    pub job: &'a Job,
    /// Its segments; if there were too many, the oldest are merged into the first.
    pub segments: &'a [Segment],
    /// Timer expirations that its release stands for; 0 if unknown.
    pub expirations: u64,
    /// What moved its release, if the kernel side saw it.
    pub disturbance: Option<Disturbance>,
}

/// A task under observation.
#[derive(Clone, Debug)]
pub struct Task {
    about: TaskRecord,
    phase: u32,
    lanes: Lanes,
    merged_transitions: u64,
    /// The processor time that it took, if it never waited.
    busy: Option<Duration>,
}

impl Task {
    pub fn new(about: TaskRecord, phase: u32) -> Self {
        Self { about, phase, lanes: Lanes::new(), merged_transitions: 0, busy: None }
    }

    /// Counts a transition that does not end the task.
    pub fn merge_transition(&mut self) {
        self.merged_transitions += 1;
    }

    pub fn phase(&self) -> u32 {
        self.phase
    }

    pub fn last_seen(&self) -> Instant {
        self.lanes.last_seen().unwrap_or(self.about.at)
    }

    /// It never waited, and took this processor time; `None` where that is not known.
    pub fn set_busy(&mut self, cpu: Option<Duration>) {
        self.busy = cpu;
    }

    pub fn about_mut(&mut self) -> &mut TaskRecord {
        &mut self.about
    }

    pub fn about(&self) -> &TaskRecord {
        &self.about
    }

    /// Takes one activation and hands out the jobs that it ended; returns how many ended at its own
    /// separator.
    pub fn activation(
        &mut self,
        activation: &Activation,
        options: &Options,
        each: &mut impl FnMut(&JobSeen),
    ) -> u64 {
        let (TaskRecord { tid, pid, name, at, .. }, phase) = (&self.about, self.phase);
        self.lanes.activation(activation, options, &mut |ended| {
            let number = ended.lane.stream().releases() - 1;
            let (separator, job, segments) = (ended.separator, ended.job, ended.segments);
            let Circumstances { expirations, disturbance, .. } = ended.circumstances;
            each(&JobSeen {
                tid: *tid,
                pid: *pid,
                phase,
                from: *at,
                name,
                separator,
                number,
                job,
                segments,
                expirations,
                disturbance,
            });
        })
    }

    /// The key of its primary separator, so far.
    pub fn primary_key(&self) -> Option<Separator> {
        self.lanes.primary_key()
    }

    /// The jobs that have not ended.
    pub fn open_jobs(&self) -> impl Iterator<Item = OpenJob> {
        self.lanes.open_jobs()
    }

    /// Whether appending these lanes, of the stretch that follows, gives the same as taking their
    /// activations.
    pub fn can_append(&self, later: &Lanes, options: &Options) -> bool {
        self.lanes.can_append(later, options)
    }

    /// Appends lanes that [`Self::can_append`] accepts; returns how many jobs ended across the border.
    pub fn append(&mut self, later: &Lanes, options: &Options) -> u64 {
        self.lanes.append(later, options)
    }

    /// The task for the file.
    pub fn to_model(&self, until: Instant, ended_by: EndedBy) -> model::Task {
        let (streams, primary) = self.lanes.to_model();
        self.with(streams, primary, until, ended_by)
    }

    /// The same of a task whose end is in the records, so that it is known whether the thread slept.
    pub fn to_whole_model(&self, until: Instant, ended_by: EndedBy) -> model::Task {
        let task = self.to_model(until, ended_by);
        let open_ns = self.open(task.until_ns, task.primary.and_then(|place| task.streams.get(place)));
        model::Task { open_ns, ..task }
    }

    /// What [`Lanes::summaries`] returns of a task that has ended.
    pub fn summaries(&self, task: &model::Task) -> Vec<StreamSummary> {
        self.lanes.summaries(&task.streams)
    }

    /// The task without streams other than its primary one.
    pub fn sketch(&self, until: Instant) -> model::Task {
        let (streams, primary) = match self.lanes.primary() {
            Some((stream, reason)) => (vec![stream], Some((0, reason))),
            None => (Vec::new(), None),
        };
        self.with(streams, primary, until, EndedBy::ObservationEnd)
    }

    fn with(
        &self,
        streams: Vec<model::Stream>,
        primary: Option<(usize, String)>,
        until: Instant,
        ended_by: EndedBy,
    ) -> model::Task {
        let (primary, primary_reason) = primary.unzip();
        let about = self.about.clone();
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
            separators_capped: self.lanes.are_capped(),
            merged_transitions: self.merged_transitions,
            open_ns: None,
            busy_ns: self.busy.filter(|_| self.merged_transitions == 0),
            recording: None,
            streams,
        }
    }

    /// For how long the last job has been open, since the thread last woke up, if that is longer than all
    /// that its models tell of.
    fn open(&self, until: Instant, primary: Option<&model::Stream>) -> Option<Duration> {
        // One that sleeps has no job between sleeps.
        let awake = self.open_jobs().find(|job| job.separator == Separator::SUSPENSION)?;
        let last = awake.release.window.earliest();
        let response = |stream: &model::Stream| stream.response.as_ref().map(|it| it.max_ns);
        let cost = |stream: &model::Stream| stream.execution.as_ref()?.wcet_ns.first().copied();
        let known = primary.and_then(|stream| response(stream).or(cost(stream)));
        Some(until.since(last)).filter(|open| *open > known.unwrap_or(Duration::ZERO))
    }
}
