//! What is overdue: jobs that have not ended although they should have, and releases that have not come. A
//! timer of the caller looks for them, and so does the end of the records.
//!
//! A job whose thread is still at it is one; one that ended in a call that has not returned is judged by what
//! a [`Glance`] says of it. Either is told once: when its record comes, the violation is brought up to date.

use super::Agreed;
use super::thread::{Lane, Thread, overdue_at};
use crate::releases::Releases;
use crate::verdict::Tally;
use crate::violation::{Subject, Term, Violation};
use punctual_extract::OpenJob;
use punctual_model::{Disturbance, Duration, Instant, Separator};
use punctual_trace::{Activation, Glance};

/// How far beyond what was agreed on something is overdue. A thread may take so long to leave its last job.
pub const GRACE: Duration = Duration::from_ms(20);

/// Until a job is looked at again that goes on, or whose thread waits.
const AGAIN: Duration = Duration::from_ms(100);

/// What was told of the jobs of a lane before they ended.
#[derive(Default)]
pub struct Told {
    terms: Vec<(u64, Term)>,
    /// When it is looked at again.
    again: Option<Instant>,
}

/// What applies to a thread.
pub struct Overdue<'a> {
    pub tid: u32,
    pub agreed: &'a Agreed,
    pub tally: &'a mut Tally,
}

/// A job as it is at a moment.
struct Job {
    number: u64,
    release: Instant,
    at: Instant,
    response: Option<Duration>,
    cost: Option<Duration>,
    is_open: bool,
}

impl Told {
    pub fn has(&self, job: u64, term: Term) -> bool {
        !self.terms.is_empty() && self.terms.contains(&(job, term))
    }

    /// The job has ended.
    pub fn ended(&mut self, job: u64) {
        if !self.terms.is_empty() {
            self.terms.retain(|(number, _)| *number > job);
        }
        self.again = None;
    }
}

impl Overdue<'_> {
    /// Looks at a thread whose records go on.
    pub fn at(
        mut self,
        thread: &mut Thread,
        now: Instant,
        open: impl Iterator<Item = OpenJob>,
        glance: &mut dyn FnMut() -> Option<Glance>,
        each: &mut impl FnMut(&Violation),
    ) {
        let mut seen = None;
        for open in open {
            let Some(place) = self.judged(thread, open.separator) else { continue };
            self.came_late(thread, place, &open, each);
            let ahead = self.ahead(&thread.lanes[place], &open);
            let is_long = self.agreed.shortest.is_some_and(|it| now.since(activation(&open)) > it);
            let is_late =
                self.agreed.rule.as_ref().is_some_and(|rule| overdue_at(&ahead, now, rule).is_some());
            if !(is_long || is_late) || thread.lanes[place].told.again.is_some_and(|again| now < again) {
                continue;
            }
            thread.lanes[place].told.again = Some(now + AGAIN);
            let Some(glance) = *seen.get_or_insert_with(&mut *glance) else { return };
            self.look(thread, place, &open, &ahead, &glance, each);
        }
    }

    /// Looks at a thread whose records end here, with every one of them taken. What the last job needed so
    /// far they do not say.
    pub fn at_end(
        mut self,
        thread: &mut Thread,
        at: Instant,
        open: impl Iterator<Item = OpenJob>,
        each: &mut impl FnMut(&Violation),
    ) {
        let mut places: Vec<usize> = (0..thread.lanes.len()).collect();
        for open in open {
            let Some(place) = self.judged(thread, open.separator) else { continue };
            places.retain(|other| *other != place);
            self.came_late(thread, place, &open, each);
            let response = Some(at.since(activation(&open)));
            let job = Job { response, cost: None, is_open: true, ..Job::of(&open, at) };
            self.tell(thread, place, &job, each);
        }
        for place in places {
            if self.judged(thread, thread.lanes[place].separator).is_some() {
                let Lane { releases, next, .. } = thread.lanes[place];
                self.release(thread, place, next, &releases, at, each);
            }
        }
    }

    /// The place of a separator whose jobs are judged.
    fn judged(&self, thread: &mut Thread, separator: Separator) -> Option<usize> {
        if self.agreed.separator.is_none() {
            return thread
                .lanes
                .iter()
                .position(|it| it.separator == separator && thread.chosen == Some(separator));
        }
        let place = thread.lane(separator, self.agreed);
        thread.lanes[place].is_named.then_some(place)
    }

    /// The release of the open job may have been overdue when it came.
    fn came_late(
        &mut self,
        thread: &mut Thread,
        place: usize,
        open: &OpenJob,
        each: &mut impl FnMut(&Violation),
    ) {
        let lane = &thread.lanes[place];
        if open.number == lane.next {
            let releases = lane.releases;
            self.release(thread, place, open.number, &releases, open.release.window.earliest(), each);
        }
    }

    /// The releases, with that of the open job.
    fn ahead(&self, lane: &Lane, open: &OpenJob) -> Releases {
        let mut releases = if open.number == lane.next { lane.releases } else { Releases::default() };
        match (open.disturbance, &self.agreed.rule) {
            (Some(Disturbance::Ending), _) => return Releases::default(),
            (_, Some(rule)) => _ = releases.next(open.release.window, rule),
            _ => {}
        }
        releases
    }

    fn look(
        &mut self,
        thread: &mut Thread,
        place: usize,
        open: &OpenJob,
        ahead: &Releases,
        glance: &Glance,
        each: &mut impl FnMut(&Violation),
    ) {
        let Some(stop) = glance.stopped.filter(|it| ends(it, open.separator)) else {
            let response = Some(glance.at.since(activation(open)));
            let cost = Some(glance.cpu.saturating_sub(open.cpu));
            self.tell(thread, place, &Job { response, cost, ..Job::of(open, glance.at) }, each);
            return;
        };
        let end = stop.stop.max(open.start);
        let response = Some(end.since(activation(open)));
        let cost = Some(stop.cpu.saturating_sub(open.cpu));
        self.tell(thread, place, &Job { response, cost, is_open: false, ..Job::of(open, end) }, each);
        let next = open.number + 1;
        match stop.resumed.and_then(|resumed| resumed.release) {
            None => self.release(thread, place, next, ahead, glance.at, each),
            Some(release) => {
                let release = stop.arrival.unwrap_or(release.latest());
                let response = Some(glance.at.since(release));
                let job = Job { number: next, release, at: glance.at, response, cost: None, is_open: true };
                self.tell(thread, place, &job, each);
            }
        }
    }

    /// The release of a job has not come before `at`.
    fn release(
        &mut self,
        thread: &mut Thread,
        place: usize,
        number: u64,
        releases: &Releases,
        at: Instant,
        each: &mut impl FnMut(&Violation),
    ) {
        let late = self.agreed.rule.as_ref().and_then(|rule| overdue_at(releases, at, rule));
        if let Some(late) = late {
            let job = Job { number, release: at, at, response: None, cost: None, is_open: true };
            self.term(thread, place, &job, Term::Overdue, late, Duration::ZERO, each);
        }
    }

    fn tell(&mut self, thread: &mut Thread, place: usize, job: &Job, each: &mut impl FnMut(&Violation)) {
        let grace = if job.is_open { GRACE } else { Duration::ZERO };
        for (term, value, grace) in [
            (Term::Wcet, job.cost, Duration::ZERO),
            (Term::Response, job.response, grace),
            (Term::Deadline, job.response, grace),
            (Term::Bound, job.response, grace),
        ] {
            if let Some(value) = value {
                self.term(thread, place, job, term, value, grace, each);
            }
        }
    }

    /// One term of one job.
    #[expect(clippy::too_many_arguments, reason = "whose, which, what, and to whom")]
    fn term(
        &mut self,
        thread: &mut Thread,
        place: usize,
        job: &Job,
        term: Term,
        value: Duration,
        grace: Duration,
        each: &mut impl FnMut(&Violation),
    ) {
        let Overdue { tid, tally, .. } = self;
        let task = tally.task.clone();
        let Some(standing) = tally.standings.iter_mut().find(|it| it.term == term) else { return };
        let (value, least) = (value.ns(), standing.agreed.saturating_add(grace.ns()));
        if value <= least {
            return;
        }
        standing.see(value);
        let lane = &mut thread.lanes[place];
        let subject = Subject {
            name: thread.name.clone(),
            pid: thread.pid,
            tid: *tid,
            phase: thread.phase,
            job: job.number,
            release: job.release,
            end: job.at,
            is_open: job.is_open,
        };
        let violation = Violation { task, term, subject: Some(subject), value, agreed: standing.agreed };
        if lane.told.has(job.number, term) {
            standing.amend(violation);
            return;
        }
        lane.told.terms.push((job.number, term));
        each(&violation);
        standing.count(violation);
    }
}

impl Job {
    fn of(open: &OpenJob, at: Instant) -> Job {
        let release = open.release.window.latest();
        Job { number: open.number, release, at, response: None, cost: None, is_open: true }
    }
}

/// The least that a job's response is counted from.
fn activation(open: &OpenJob) -> Instant {
    open.release.arrival.unwrap_or(open.release.window.latest())
}

/// Whether a stop ends the jobs at a separator.
fn ends(stop: &Activation, separator: Separator) -> bool {
    stop.separator.key() == separator || (separator == Separator::SUSPENSION && stop.slept)
}
