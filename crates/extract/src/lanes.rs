//! All job streams of one task: sorts activations into lanes, and keeps the jobs between sleeps.

use crate::lane::{Closed, Lane, OpenJob, Sleeps};
use crate::primary::{self, Choice};
use crate::stream::{Circumstances, Options};
use crate::summary::stream::StreamSummary;
use punctual_model::{self as model, Call, Disturbance, Duration, Instant, Job, Object, Segment, Separator};
use punctual_trace::Activation;

/// Most separators of a task with streams of their own; later ones share one stream per kind of call.
pub const MAX_SEPARATORS: usize = 32;

/// Where the jobs between sleeps are.
#[derive(Clone, Debug)]
enum Suspension {
    /// In the first lane: so far every sleep was at its separator, and every call there slept.
    First,
    /// In their own lane.
    Own(Box<Lane>),
}

/// The lanes of one task, or of a stretch of a task that began elsewhere ([`crate::piece`]).
#[derive(Clone, Debug)]
pub struct Lanes {
    lanes: Vec<Lane>,
    suspension: Suspension,
    sleeps: Sleeps,
    capped: bool,
    /// Whether jobs may be open that these lanes do not know.
    continues: bool,
    /// The lane used last, where most activations belong.
    recent: usize,
    last_seen: Option<Instant>,
    segments: Vec<Segment>,
}

/// A job that has just ended, and its lane.
pub struct Ended<'a> {
    pub lane: &'a Lane,
    pub separator: Separator,
    pub job: &'a Job,
    pub segments: &'a [Segment],
    pub circumstances: Circumstances,
}

impl Lanes {
    /// The lanes of a task that begins.
    pub fn new() -> Self {
        Self {
            lanes: Vec::new(),
            suspension: Suspension::First,
            sleeps: Sleeps::default(),
            capped: false,
            continues: false,
            recent: 0,
            last_seen: None,
            segments: Vec::new(),
        }
    }

    /// The lanes of a task that began earlier, without its beginning.
    pub fn continuing() -> Self {
        Self { continues: true, ..Self::new() }
    }

    /// When the thread last did something.
    pub fn last_seen(&self) -> Option<Instant> {
        self.last_seen
    }

    /// Whether there were too many separators.
    pub fn are_capped(&self) -> bool {
        self.capped
    }

    /// Takes one activation and hands out the jobs that it ended; returns how many ended at its own
    /// separator.
    #[inline]
    pub fn activation(
        &mut self,
        activation: &Activation,
        options: &Options,
        each: &mut impl FnMut(&Ended),
    ) -> u64 {
        if is_stop(activation) {
            self.stop(activation);
            return 0;
        }
        let lane =
            (activation.separator.call != Call::Suspension).then(|| self.lane(activation.separator, options));
        self.keep_suspension_apart(lane, activation.slept, options);
        self.last_seen = Some(activation.stop);
        let mut segments = std::mem::take(&mut self.segments);
        let mut ended = 0;
        if let Some(lane) = lane {
            let lane = &mut self.lanes[lane];
            if let Some(Closed { job, circumstances }) = lane.close(activation, &self.sleeps, &mut segments) {
                ended += 1;
                let seen = Ended {
                    lane,
                    separator: lane.separator(),
                    job: &job,
                    segments: &segments,
                    circumstances,
                };
                each(&seen);
                if matches!(self.suspension, Suspension::First) {
                    each(&Ended { separator: Separator::SUSPENSION, ..seen });
                }
            }
        }
        if let (true, Suspension::Own(own)) = (activation.slept, &mut self.suspension) {
            if let Some(Closed { job, circumstances }) = own.close(activation, &self.sleeps, &mut segments) {
                ended += u64::from(lane.is_none());
                each(&Ended {
                    lane: own,
                    separator: Separator::SUSPENSION,
                    job: &job,
                    segments: &segments,
                    circumstances,
                });
            }
        }
        self.segments = segments;
        let Some(resumed) = &activation.resumed else { return ended };
        self.last_seen = Some(resumed.start);
        if let Some(release) = resumed.release {
            self.sleeps.push(activation.cpu, release.latest().since(activation.stop));
        }
        let arrival = match lane {
            Some(lane) => self.lanes[lane].open(activation, resumed, &self.sleeps),
            None => activation.arrival,
        };
        if let (true, Suspension::Own(own)) = (activation.slept, &mut self.suspension) {
            own.open(&Activation { arrival, ..*activation }, resumed, &self.sleeps);
        }
        if resumed.suspended_after > Duration::ZERO {
            self.sleeps.push(activation.cpu, resumed.suspended_after);
        }
        ended
    }

    /// The jobs that have not ended, of every stream as the model has them.
    pub fn open_jobs(&self) -> impl Iterator<Item = OpenJob> {
        let between_sleeps = match &self.suspension {
            Suspension::First => self.lanes.first(),
            Suspension::Own(own) => Some(&**own),
        };
        let between_sleeps = between_sleeps.and_then(Lane::open_job);
        let between_sleeps = between_sleeps.map(|job| OpenJob { separator: Separator::SUSPENSION, ..job });
        self.lanes.iter().filter_map(Lane::open_job).chain(between_sleeps)
    }

    /// The thread was stopped by a signal, and goes on with the same job.
    #[cold]
    fn stop(&mut self, activation: &Activation) {
        let Some(resumed) = &activation.resumed else { return };
        self.last_seen = Some(resumed.start);
        let slept = resumed.release.map_or(Duration::ZERO, |release| release.latest().since(activation.stop));
        self.sleeps.push(activation.cpu, slept + resumed.suspended_after);
    }

    /// As long as one separator accounts for every sleep, its jobs are also those between sleeps, and are
    /// kept once.
    #[inline]
    fn keep_suspension_apart(&mut self, lane: Option<usize>, slept: bool, options: &Options) {
        if matches!(self.suspension, Suspension::First) && !(lane == Some(0) && slept) {
            self.split_suspension(options);
        }
    }

    #[cold]
    fn split_suspension(&mut self, options: &Options) {
        // A lane made for this very activation is as empty as a new one.
        let own = match self.lanes.first() {
            Some(first) => first.renamed(Separator::SUSPENSION),
            None => self.new_lane(Separator::SUSPENSION, options),
        };
        self.suspension = Suspension::Own(Box::new(own));
    }

    fn lane(&mut self, separator: Separator, options: &Options) -> usize {
        let key = separator.key();
        if self.lanes.get(self.recent).is_none_or(|lane| lane.key() != key) {
            self.recent = match self.position(key) {
                Some(lane) => lane,
                None if self.lanes.len() < MAX_SEPARATORS || separator.object == Object::Others => {
                    self.lanes.push(self.new_lane(separator, options));
                    self.lanes.len() - 1
                }
                None => {
                    self.capped = true;
                    return self.lane(Separator { call: separator.call, object: Object::Others }, options);
                }
            };
        }
        self.lanes[self.recent].meet(separator);
        self.recent
    }

    fn position(&self, key: Separator) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.key() == key)
    }

    fn new_lane(&self, separator: Separator, options: &Options) -> Lane {
        if self.continues { Lane::continuing(separator, options) } else { Lane::new(separator, options) }
    }

    /// Whether appending `later`, of the stretch that follows, gives the same as taking its activations here.
    pub fn can_append(&self, later: &Lanes, options: &Options) -> bool {
        let is_new = |lane: &&Lane| self.position(lane.key()).is_none();
        let new = later.lanes.iter().filter(is_new).count();
        let fits = |lane: &Lane| match self.position(lane.key()) {
            Some(mine) => self.lanes[mine].can_append(lane),
            None => self.new_lane(lane.separator(), options).can_append(lane),
        };
        let suspension_fits = |lane: &Lane| match (&self.suspension, self.lanes.first()) {
            (Suspension::Own(own), _) => own.can_append(lane),
            (Suspension::First, Some(first)) => first.can_append(lane),
            (Suspension::First, None) => self.new_lane(Separator::SUSPENSION, options).can_append(lane),
        };
        !later.capped
            && (new == 0 || self.lanes.len() + new <= MAX_SEPARATORS)
            && self.sleeps.can_append(&later.sleeps)
            && later.lanes.iter().all(fits)
            && (self.stays_shared(later) || later.all_sleeps().is_none_or(suspension_fits))
    }

    /// Appends lanes that [`Self::can_append`] accepts; returns how many jobs ended that the stretch could
    /// not know.
    pub fn append(&mut self, later: &Lanes, options: &Options) -> u64 {
        if matches!(self.suspension, Suspension::First) && !self.stays_shared(later) {
            self.split_suspension(options);
        }
        let mut ended = 0;
        let mut segments = std::mem::take(&mut self.segments);
        if let (Suspension::Own(own), Some(lane)) = (&mut self.suspension, later.all_sleeps()) {
            ended += own.append(lane, &self.sleeps, &mut segments, |activation| {
                activation.separator.call == Call::Suspension
            });
        }
        for lane in &later.lanes {
            let mine = self.lane(lane.separator(), options);
            ended += self.lanes[mine].append(lane, &self.sleeps, &mut segments, |_| true);
        }
        self.segments = segments;
        self.sleeps = self.sleeps.followed_by(&later.sleeps);
        self.last_seen = later.last_seen.or(self.last_seen);
        ended
    }

    /// Whether one separator still accounts for every sleep after appending `later`.
    fn stays_shared(&self, later: &Lanes) -> bool {
        let same = match (self.lanes.first(), later.lanes.first()) {
            (Some(mine), Some(theirs)) => mine.key() == theirs.key(),
            _ => true,
        };
        matches!((&self.suspension, &later.suspension), (Suspension::First, Suspension::First)) && same
    }

    /// The lane of the jobs between sleeps. As long as that is the first, there were no other activations.
    fn all_sleeps(&self) -> Option<&Lane> {
        self.own_suspension().or(self.lanes.first())
    }

    /// The streams for the file, and which of them explains the task best.
    pub fn to_model(&self) -> (Vec<model::Stream>, Option<(usize, String)>) {
        let choice = self.choice();
        let mut streams: Vec<_> =
            self.lanes.iter().map(|lane| lane.stream().to_model(lane.separator())).collect();
        match &self.suspension {
            Suspension::Own(lane) => streams.push(lane.stream().to_model(Separator::SUSPENSION)),
            Suspension::First => {
                if let Some(first) = streams.first().cloned() {
                    streams.push(model::Stream { separator: Separator::SUSPENSION, ..first });
                }
            }
        }
        streams.retain(|stream| stream.releases > 0);
        let primary = choice.and_then(|Choice { separator, reason }| {
            let place = streams.iter().position(|stream| stream.separator == separator)?;
            Some((place, reason))
        });
        (streams, primary)
    }

    /// Summaries of the streams that [`Lanes::to_model`] returned, for merging with other runs.
    pub fn summaries(&self, streams: &[model::Stream]) -> Vec<StreamSummary> {
        let all = self.lanes.iter().chain(self.all_sleeps());
        let used = all.filter(|lane| lane.stream().releases() > 0);
        (0..)
            .zip(streams.iter().zip(used))
            .map(|(place, (model, lane))| StreamSummary::new(place, model, lane.stream().close()))
            .collect()
    }

    /// The stream that explains the task best, alone.
    pub fn primary(&self) -> Option<(model::Stream, String)> {
        let Choice { separator, reason } = self.choice()?;
        let lane = self.lanes.iter().chain(self.own_suspension()).find(|it| it.separator() == separator)?;
        Some((lane.stream().to_model(separator), reason))
    }

    /// The key of the primary separator.
    pub fn primary_key(&self) -> Option<Separator> {
        Some(self.choice()?.separator.key())
    }

    fn choice(&self) -> Option<Choice> {
        primary::choose(&self.lanes, self.own_suspension(), self.sleeps.total())
    }

    fn own_suspension(&self) -> Option<&Lane> {
        match &self.suspension {
            Suspension::Own(lane) => Some(lane),
            Suspension::First => None,
        }
    }
}

/// Whether a signal stopped the thread outside of all separating calls: that suspends its job and does not
/// end it.
fn is_stop(activation: &Activation) -> bool {
    let by_signal = |resumed: &punctual_trace::Resumed| resumed.disturbance == Some(Disturbance::Signal);
    activation.separator.call == Call::Suspension && activation.resumed.as_ref().is_some_and(by_signal)
}
