//! One thread of a task: which of its jobs are judged, and whether they keep to what was agreed on.

use super::overdue::{GRACE, Told};
use super::several::Row;
use super::{Agreed, JOBS_TO_KNOW, PERIODS_TO_KNOW};
use crate::releases::{Astray, Releases, Rule};
use crate::verdict::Tally;
use crate::violation::{Subject, Term, Violation};
use punctual_extract::JobSeen;
use punctual_model::{Disturbance, Duration, Instant, Policy, Separator, Window};
use punctual_trace::TaskRecord;
use std::sync::Arc;

/// A thread that lives.
pub struct Thread {
    pub name: Arc<str>,
    pub pid: u32,
    pub command: String,
    pub cgroup: Option<String>,
    pub is_real_time: bool,
    pub policy: Policy,
    pub priority: u32,
    pub affinity: String,
    /// Whether these were compared with what was agreed on.
    pub is_scheduling_judged: bool,
    /// The task of the contract that it belongs to.
    pub task: Option<usize>,
    pub phase: u32,
    pub lanes: Vec<Lane>,
    /// Where its jobs end, once that has been found out.
    pub chosen: Option<Separator>,
    /// The first release, until then.
    first: Option<Window>,
    /// Jobs while it belonged to no task.
    pub strays: u64,
}

/// The jobs of a thread at one separator.
pub struct Lane {
    pub separator: Separator,
    /// Whether the contract names it.
    pub is_named: bool,
    pub releases: Releases,
    last: Option<Window>,
    /// The number of the job that is judged next.
    pub next: u64,
    /// Until it is known where jobs end: all jobs; those since the first of them that may be eight of the
    /// task's, and its release; and the longest time that eight took that were too frequent.
    all: u64,
    jobs: u64,
    first: Option<Window>,
    frequent: Option<Duration>,
    /// What was told of jobs before they ended.
    pub told: Told,
    row: Row,
}

impl Thread {
    /// A thread of no task yet.
    pub fn new(record: &TaskRecord, cgroup: Option<String>) -> Thread {
        Thread {
            name: record.name.as_str().into(),
            pid: record.pid,
            command: record.command.clone(),
            cgroup,
            is_real_time: record.policy.is_real_time(),
            policy: record.policy,
            priority: record.priority,
            affinity: record.affinity.clone(),
            is_scheduling_judged: false,
            task: None,
            phase: 0,
            lanes: Vec::new(),
            chosen: None,
            first: None,
            strays: 0,
        }
    }

    /// The same thread, before it was matched.
    pub fn anew(mut self) -> Thread {
        self.forget_jobs();
        Thread { task: None, strays: 0, ..self }
    }

    /// It is scheduled in this way from now on.
    pub fn scheduled(&mut self, record: &TaskRecord) {
        self.is_real_time = record.policy.is_real_time();
        (self.policy, self.priority) = (record.policy, record.priority);
        self.affinity.clone_from(&record.affinity);
        self.is_scheduling_judged = false;
    }

    /// Nothing is judged across this.
    pub fn forget_jobs(&mut self) {
        self.lanes.clear();
        (self.chosen, self.first) = (None, None);
        self.is_scheduling_judged = false;
    }

    /// A job of this thread.
    pub fn subject(&self, seen: &JobSeen<'_>) -> Subject {
        subject(&self.name, self.pid, seen)
    }

    /// The thread is in this one of its tasks.
    pub fn enter(&mut self, phase: u32) {
        if self.phase != phase {
            self.phase = phase;
            self.forget_jobs();
        }
    }

    /// Takes a job; returns whether it was judged.
    pub fn job(
        &mut self,
        seen: &JobSeen<'_>,
        agreed: &Agreed,
        tally: &mut Tally,
        each: &mut impl FnMut(&Violation),
    ) -> bool {
        let lane = self.lane(seen.separator.key(), agreed);
        if !self.is_judged(lane, seen, agreed, tally) {
            return false;
        }
        let Thread { name, pid, lanes, .. } = self;
        let subject = || subject(name, *pid, seen);
        lanes[lane].judge(seen, agreed, tally, &subject, each);
        true
    }

    /// The place of the jobs at a separator.
    pub fn lane(&mut self, separator: Separator, agreed: &Agreed) -> usize {
        if let Some(lane) = self.lanes.iter().position(|lane| lane.separator == separator) {
            return lane;
        }
        self.lanes.push(Lane {
            separator,
            is_named: agreed.separator.as_ref().is_some_and(|is_meant| is_meant(separator)),
            releases: Releases::default(),
            last: None,
            next: 0,
            all: 0,
            jobs: 0,
            first: None,
            frequent: None,
            told: Told::default(),
            row: Row::default(),
        });
        self.lanes.len() - 1
    }

    /// Whether a job is one of the task's. If the contract does not say where those end, they do at the first
    /// separator with enough jobs that are not far too frequent; if there is none for long, at the one with
    /// the least frequent ones.
    fn is_judged(&mut self, place: usize, seen: &JobSeen<'_>, agreed: &Agreed, tally: &mut Tally) -> bool {
        let lane = &mut self.lanes[place];
        if agreed.separator.is_some() {
            tally.has_others |= !lane.is_named;
            return lane.is_named;
        }
        if self.chosen.is_some() {
            return self.chosen == Some(lane.separator);
        }
        tally.has_others = true;
        let window = seen.job.release.window;
        let begin = self.first.get_or_insert(window).earliest();
        lane.all += 1;
        let found = lane.is_enough(window, agreed.period).then_some(place);
        let is_long = |period: Duration| {
            u128::from(window.latest().since(begin).ns())
                > u128::from(period.ns()) * u128::from(PERIODS_TO_KNOW)
        };
        let found = found.or_else(|| agreed.period.filter(|it| is_long(*it)).and_then(|_| self.slowest()));
        if let Some(found) = found {
            self.chosen = Some(self.lanes[found].separator);
            tally.unjudged += self.lanes[found].all;
        }
        false
    }

    /// The separator with the least frequent jobs of those that are too frequent; of several, the first.
    fn slowest(&self) -> Option<usize> {
        let known = self.lanes.iter().enumerate().filter_map(|(place, lane)| Some((place, lane.frequent?)));
        known.rev().max_by_key(|(_, span)| *span).map(|(place, _)| place)
    }
}

impl Lane {
    /// Another job, released in `window`: whether there are enough by now that are not far too frequent.
    fn is_enough(&mut self, window: Window, period: Option<Duration>) -> bool {
        let first = *self.first.get_or_insert(window);
        self.jobs += 1;
        if self.jobs < JOBS_TO_KNOW {
            return false;
        }
        let span = window.latest().since(first.earliest());
        let is_too_frequent = period.is_some_and(|period| {
            u128::from(span.ns()) * 2 < u128::from(period.ns()) * u128::from(JOBS_TO_KNOW - 1)
        });
        if is_too_frequent {
            (self.jobs, self.first) = (0, None);
            self.frequent = self.frequent.max(Some(span));
        }
        !is_too_frequent
    }

    fn judge(
        &mut self,
        seen: &JobSeen<'_>,
        agreed: &Agreed,
        tally: &mut Tally,
        subject: &dyn Fn() -> Subject,
        each: &mut impl FnMut(&Violation),
    ) {
        tally.jobs += 1;
        let job = seen.job;
        let response = job.least_response().ns();
        let (separation, astray) = self.release(seen, agreed);
        for standing in &mut tally.standings {
            let term = standing.term;
            let value = match term {
                Term::Wcet => job.cost.ns(),
                Term::Response | Term::Deadline | Term::Bound => response,
                Term::Suspension => job.suspended.ns(),
                Term::Separation => match separation {
                    Some(separation) => separation.ns(),
                    None => continue,
                },
                _ => match astray {
                    Some((its, value)) if its == term => value,
                    _ => continue,
                },
            };
            if standing.see(value) {
                let violation = Violation {
                    task: tally.task.clone(),
                    term,
                    subject: Some(subject()),
                    value,
                    agreed: standing.agreed,
                };
                if self.told.has(seen.number, term) {
                    standing.amend(violation);
                } else {
                    each(&violation);
                    standing.count(violation);
                }
            }
        }
        if !agreed.several.is_empty() {
            self.row.judge(seen, &agreed.several, tally, subject, each);
        }
        self.told.ended(seen.number);
    }

    /// The time since the release before, and how the release is astray.
    fn release(&mut self, seen: &JobSeen<'_>, agreed: &Agreed) -> (Option<Duration>, Option<(Term, u64)>) {
        let window = seen.job.release.window;
        if seen.number != self.next {
            (self.releases, self.last) = (Releases::default(), None);
        }
        self.next = seen.number + 1;
        let overdue =
            agreed.rule.as_ref().and_then(|rule| overdue_at(&self.releases, window.earliest(), rule));
        let overdue = overdue.map(|late| (Term::Overdue, late.ns()));
        if seen.disturbance == Some(Disturbance::Ending) {
            // The thread was woken to end, not to work.
            (self.releases, self.last) = (Releases::default(), None);
            return (None, overdue);
        }
        let last = self.last.replace(window);
        let since = last.map(|last| window.latest().since(last.earliest()));
        let astray = agreed.rule.as_ref().and_then(|rule| {
            let late = || {
                let late = window.earliest().since(seen.job.release.arrival?);
                (late > rule.jitter).then_some(Astray::Late(late))
            };
            self.releases.next(window, rule).or_else(late)
        });
        let astray = astray.map(|astray| match astray {
            Astray::Early(since) => (Term::Early, since.ns()),
            Astray::Late(late) => (Term::Late, late.ns()),
            Astray::Skipped(skipped) => (Term::Skipped, skipped),
        });
        (since, overdue.or(astray))
    }
}

fn subject(name: &Arc<str>, pid: u32, seen: &JobSeen<'_>) -> Subject {
    Subject {
        name: name.clone(),
        pid,
        tid: seen.tid,
        phase: seen.phase,
        job: seen.number,
        release: seen.job.release.window.latest(),
        end: seen.job.end,
        is_open: false,
    }
}

/// How late a release is that has not come before `at`, if that is long beyond what was agreed on.
pub fn overdue_at(releases: &Releases, at: Instant, rule: &Rule) -> Option<Duration> {
    let late = at.since(releases.due(rule)?);
    (late > rule.jitter + GRACE).then_some(late)
}
