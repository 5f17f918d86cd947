//! What is overdue: jobs that have not ended although they should have, and releases that have not come. A
//! timer of the caller looks for them, and so does the end of the records.
//!
//! A job whose thread is still at it is one; one that ended in a call that has not returned is judged by what
//! a [`Glance`] says of it. Either is told once: when its record comes, the violation is brought up to date.

use super::thread::{Jobs, Lane, Thread, overdue_at};
use super::{Agreed, Findings};
use crate::releases::Releases;
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
    /// The place of its task.
    pub task: usize,
    pub agreed: &'a Agreed,
    pub findings: Findings<'a>,
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
    ) {
        let mut seen = None;
        for open in open {
            let Some(place) = self.judged(thread, open.separator) else { continue };
            if !counts(thread, place) {
                continue;
            }
            self.came_late(thread, place, &open);
            let ahead = self.ahead(&thread.lanes[place].jobs, &open);
            let is_long = self.agreed.shortest.is_some_and(|it| now.since(activation(&open)) > it);
            let is_late =
                self.agreed.rule.as_ref().is_some_and(|rule| overdue_at(&ahead, now, rule).is_some());
            if !(is_long || is_late) || thread.lanes[place].jobs.told.again.is_some_and(|again| now < again) {
                continue;
            }
            thread.lanes[place].jobs.told.again = Some(now + AGAIN);
            let Some(glance) = *seen.get_or_insert_with(&mut *glance) else { return };
            self.look(thread, place, &open, &ahead, &glance);
        }
    }

    /// Looks at a thread whose records end here, with every one of them taken. What the last job needed so
    /// far they do not say.
    pub fn at_end(mut self, thread: &mut Thread, at: Instant, open: impl Iterator<Item = OpenJob>) {
        let is_its = |place: &usize| {
            let lane = &thread.lanes[*place];
            lane.task == self.task && (lane.is_named || lane.ledger.is_some())
        };
        let mut places: Vec<usize> = (0..thread.lanes.len()).filter(is_its).collect();
        for open in open {
            let Some(place) = self.judged(thread, open.separator) else { continue };
            places.retain(|other| *other != place);
            self.came_late(thread, place, &open);
            let response = Some(at.since(activation(&open)));
            let job = Job { response, cost: None, is_open: true, ..Job::of(&open, at) };
            self.tell(thread, place, &job);
        }
        for place in places {
            let Jobs { releases, next, .. } = thread.lanes[place].jobs;
            self.release(thread, place, next, &releases, at);
        }
    }

    /// The place of a separator whose jobs are judged.
    fn judged(&self, thread: &mut Thread, separator: Separator) -> Option<usize> {
        let place = thread.lane(separator, self.task, self.agreed, self.findings.tally);
        let lane = &thread.lanes[place];
        (lane.is_named || lane.ledger.is_some()).then_some(place)
    }

    /// The release of the open job may have been overdue when it came.
    fn came_late(&mut self, thread: &mut Thread, place: usize, open: &OpenJob) {
        let Jobs { releases, next, .. } = thread.lanes[place].jobs;
        if open.number == next {
            self.release(thread, place, open.number, &releases, open.release.window.earliest());
        }
    }

    /// The releases, with that of the open job.
    fn ahead(&self, jobs: &Jobs, open: &OpenJob) -> Releases {
        let mut releases = if open.number == jobs.next { jobs.releases } else { Releases::default() };
        match (open.disturbance, &self.agreed.rule) {
            (Some(Disturbance::Ending), _) => return Releases::default(),
            (_, Some(rule)) => _ = releases.next(open.release.window, rule),
            _ => {}
        }
        releases
    }

    fn look(&mut self, thread: &mut Thread, place: usize, open: &OpenJob, ahead: &Releases, glance: &Glance) {
        let Some(stop) = glance.stopped.filter(|it| ends(it, open.separator)) else {
            let response = Some(glance.at.since(activation(open)));
            let cost = Some(glance.cpu.saturating_sub(open.cpu));
            self.tell(thread, place, &Job { response, cost, ..Job::of(open, glance.at) });
            return;
        };
        let end = stop.stop.max(open.start);
        let response = Some(end.since(activation(open)));
        let cost = Some(stop.cpu.saturating_sub(open.cpu));
        self.tell(thread, place, &Job { response, cost, is_open: false, ..Job::of(open, end) });
        let next = open.number + 1;
        match stop.resumed.and_then(|resumed| resumed.release) {
            None => self.release(thread, place, next, ahead, glance.at),
            Some(release) => {
                let release = stop.arrival.unwrap_or(release.latest());
                let response = Some(glance.at.since(release));
                let job = Job { number: next, release, at: glance.at, response, cost: None, is_open: true };
                self.tell(thread, place, &job);
            }
        }
    }

    /// The release of a job has not come before `at`.
    fn release(&mut self, thread: &mut Thread, place: usize, number: u64, releases: &Releases, at: Instant) {
        let late = self.agreed.rule.as_ref().and_then(|rule| overdue_at(releases, at, rule));
        if let Some(late) = late {
            let job = Job { number, release: at, at, response: None, cost: None, is_open: true };
            self.term(thread, place, &job, Term::Overdue, late, Duration::ZERO);
        }
    }

    fn tell(&mut self, thread: &mut Thread, place: usize, job: &Job) {
        let grace = if job.is_open { GRACE } else { Duration::ZERO };
        for (term, value, grace) in [
            (Term::Wcet, job.cost, Duration::ZERO),
            (Term::Response, job.response, grace),
            (Term::Deadline, job.response, grace),
            (Term::Bound, job.response, grace),
        ] {
            if let Some(value) = value {
                self.term(thread, place, job, term, value, grace);
            }
        }
    }

    /// One term of one job.
    fn term(
        &mut self,
        thread: &mut Thread,
        place: usize,
        job: &Job,
        term: Term,
        value: Duration,
        grace: Duration,
    ) {
        let counts = counts(thread, place);
        let tolerance = &self.agreed.tolerance;
        let subject = || Subject {
            name: thread.name.clone(),
            pid: thread.pid,
            tid: self.tid,
            phase: thread.phase,
            job: job.number,
            release: job.release,
            end: job.at,
            is_open: job.is_open,
        };
        let Lane { jobs, ledger, .. } = &mut thread.lanes[place];
        let mut judge = |findings: &mut Findings<'_>| {
            let task = findings.tally.task.clone();
            let standing = findings.tally.standings.iter_mut().find(|it| it.term == term);
            let Some(standing) = standing else { return };
            let is_beyond = value.ns() > standing.agreed.saturating_add(grace.ns());
            if !is_beyond || !tolerance.is_certain(term, value.ns(), standing.agreed) {
                return;
            }
            standing.see(value.ns());
            let (value, agreed) = (value.ns(), standing.agreed);
            let violation = Violation { task, term, subject: Some(subject()), value, agreed };
            if jobs.told.has(job.number, term) {
                standing.amend(violation);
                return;
            }
            jobs.told.terms.push((job.number, term));
            findings.found(violation);
        };
        match ledger {
            Some(ledger) => ledger.take(counts, &mut self.findings, judge),
            None => judge(&mut self.findings),
        }
    }
}

/// Whether the jobs of a lane count by the separator chosen so far.
fn counts(thread: &Thread, place: usize) -> bool {
    let lane = &thread.lanes[place];
    lane.ledger.is_none() || thread.chosen == Some(lane.separator)
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
    stop.separator.key() == separator.key() || (separator == Separator::SUSPENSION && stop.slept)
}
