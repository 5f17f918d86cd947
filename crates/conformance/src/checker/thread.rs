//! One thread of a task: which of its jobs are judged, and whether they keep to what was agreed on.

use super::beyond::Beyond;
use super::overdue::{GRACE, Told};
use super::several::Row;
use super::sources;
use super::{Agreed, Findings, JOBS_TO_KNOW};
use crate::releases::{Astray, Releases, Rule};
use crate::verdict::Tally;
use crate::violation::{Subject, Term, Violation};
use punctual_extract::JobSeen;
use punctual_model::{Disturbance, Duration, Instant, Policy, Separator, Window};
use punctual_trace::TaskRecord;
use std::sync::Arc;

/// Receives violations.
pub type Tell<'a> = &'a mut dyn FnMut(&Violation);

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
    /// The separator chosen so far, if the contract names none.
    pub chosen: Option<Separator>,
    /// Activations so far.
    activations: u64,
    /// The number of activations at which the separator is chosen next.
    choose_at: u64,
    /// Jobs while it belonged to no task.
    pub strays: u64,
}

/// The jobs of a thread at one separator, while it belongs to one task of the contract.
pub struct Lane {
    /// Its key.
    pub separator: Separator,
    pub task: usize,
    /// Whether the contract names it.
    pub is_named: bool,
    /// Whether it may be one that the contract names, but its address has no name.
    pub lacks_name: bool,
    pub jobs: Jobs,
    /// The separate account of these jobs, if the contract names no separator.
    pub ledger: Option<Box<Ledger>>,
}

/// An account of jobs at one separator. It counts only if that separator is the final one.
pub struct Ledger {
    pub tally: Tally,
    /// Differences in scheduling that are only noted, each with the number of its record.
    pub notes: Vec<(Violation, u64)>,
    /// Violations of records before this number have been reported.
    told_before: u64,
    /// Violations that have been reported.
    pub told: u64,
}

/// The account of the jobs at a separator when a task of the thread ends.
pub struct Closed {
    /// Whether that separator is the chosen one.
    pub counts: bool,
    /// The index of its task.
    pub task: usize,
    pub separator: Separator,
    /// From the first release to the last end.
    pub span: Option<(Instant, Instant)>,
    pub ledger: Ledger,
}

/// The state that judging a sequence of jobs needs.
#[derive(Default)]
pub struct Jobs {
    pub releases: Releases,
    last: Option<Window>,
    /// The number of the job that is judged next.
    pub next: u64,
    /// What was told of jobs before they ended.
    pub told: Told,
    row: Row,
    sources: Option<Box<sources::Row>>,
    beyond: Beyond,
    /// The first release.
    first: Option<Instant>,
    /// Number, release and end of the last job.
    latest: (u64, Instant, Instant),
}

/// The time between two releases, if it is not known exactly.
#[derive(Clone, Copy)]
struct Separation {
    at_least: Duration,
    at_most: Duration,
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
            activations: 0,
            choose_at: JOBS_TO_KNOW,
            strays: 0,
        }
    }

    /// The same thread, before it was matched.
    pub fn anew(mut self) -> Thread {
        self.forget_jobs();
        Thread { task: None, strays: 0, choose_at: JOBS_TO_KNOW, ..self }
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
        (self.chosen, self.activations, self.choose_at) = (None, 0, JOBS_TO_KNOW);
        self.is_scheduling_judged = false;
    }

    /// Assigns it to a task of the contract. Its earlier jobs stay with the earlier task.
    pub fn belongs_to(&mut self, task: Option<usize>) {
        self.task = task;
        self.lanes.retain(|lane| lane.ledger.is_some());
        self.is_scheduling_judged = false;
    }

    /// A job of this thread.
    pub fn subject(&self, seen: &JobSeen<'_>) -> Subject {
        subject(&self.name, self.pid, seen)
    }

    /// The thread is in this one of its tasks.
    pub fn enter(&mut self, phase: u32) {
        self.phase = phase;
        self.forget_jobs();
    }

    /// Nothing more comes of the jobs so far: judges the quartiles and medians of incomplete windows.
    pub fn close_windows(&mut self, tid: u32, tallies: &mut [Tally], at: u64, each: Tell<'_>) {
        let Thread { name, pid, phase, lanes, chosen, .. } = self;
        for Lane { separator, task, jobs, ledger, .. } in lanes {
            let (job, release, end) = jobs.latest;
            let subject = || Subject {
                name: name.clone(),
                pid: *pid,
                tid,
                phase: *phase,
                job,
                release,
                end,
                is_open: false,
            };
            let mut findings = Findings { tally: &mut tallies[*task], place: at, tell: Some(&mut *each) };
            let mut close = |findings: &mut Findings<'_>| jobs.beyond.close(findings, &subject);
            match ledger {
                Some(ledger) => ledger.take(*chosen == Some(*separator), &mut findings, close),
                None => close(&mut findings),
            }
        }
    }

    /// Judges a job; returns whether it counts by the separator chosen so far.
    pub fn job(
        &mut self,
        task: usize,
        seen: &JobSeen<'_>,
        agreed: &Agreed,
        mut findings: Findings<'_>,
    ) -> bool {
        let place = self.lane(seen.separator, task, agreed, findings.tally);
        let Thread { name, pid, lanes, chosen, .. } = self;
        let lane = &mut lanes[place];
        let subject = || subject(name, *pid, seen);
        let Some(ledger) = &mut lane.ledger else {
            findings.tally.has_others |= !lane.is_named;
            findings.tally.has_unnamed |= lane.lacks_name;
            if lane.is_named {
                lane.jobs.judge(seen, agreed, &mut findings, &subject);
            }
            return lane.is_named;
        };
        let counts = *chosen == Some(lane.separator);
        ledger.take(counts, &mut findings, |findings| lane.jobs.judge(seen, agreed, findings, &subject));
        counts
    }

    /// The place of the jobs at a separator.
    pub fn lane(&mut self, separator: Separator, task: usize, agreed: &Agreed, tally: &Tally) -> usize {
        let key = separator.key();
        if let Some(place) = self.place(key, task) {
            return place;
        }
        let meant = agreed.separator.as_ref();
        let is_named = meant.is_some_and(|meant| meant.has(separator));
        let lacks_name = meant.is_some_and(|meant| meant.lacks_name(separator));
        let ledger = agreed.separator.is_none().then(|| Box::new(Ledger::of(tally, agreed.terms)));
        let jobs = Jobs::default();
        self.lanes.push(Lane { separator: key, task, is_named, lacks_name, jobs, ledger });
        self.lanes.len() - 1
    }

    fn place(&self, key: Separator, task: usize) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.separator == key && lane.task == task)
    }

    /// Counts an activation; returns whether the separator should be chosen again.
    pub fn should_choose(&mut self) -> bool {
        self.activations += 1;
        if self.activations < self.choose_at {
            return false;
        }
        self.choose_at = self.activations.saturating_mul(2);
        true
    }

    /// Sets the separator. Violations at it that have not been reported yet are: the first ones of each term.
    pub fn choose(&mut self, separator: Option<Separator>, place: u64, each: &mut dyn FnMut(&Violation)) {
        if self.chosen == separator {
            return;
        }
        self.chosen = separator;
        for lane in &mut self.lanes {
            if let Some(ledger) = lane.ledger.as_mut().filter(|_| Some(lane.separator) == separator) {
                ledger.tell(place, each);
            }
        }
    }

    /// Takes all ledgers, because a task of the thread ends.
    pub fn close(&mut self) -> impl Iterator<Item = Closed> {
        let chosen = self.chosen.take();
        let (unnamed, named) =
            std::mem::take(&mut self.lanes).into_iter().partition(|it| it.ledger.is_some());
        self.lanes = named;
        let closed = move |lane: Lane| {
            let span = lane.jobs.first.map(|first| (first, lane.jobs.latest.2));
            let Lane { separator, task, ledger, .. } = lane;
            Some(Closed { counts: Some(separator) == chosen, task, separator, span, ledger: *ledger? })
        };
        Vec::into_iter(unnamed).filter_map(closed)
    }

    /// The index of the lane of a job, if the scheduling of the thread has to be compared for it.
    pub fn lane_to_compare(&mut self, separator: Separator, task: usize) -> Option<usize> {
        let place = self.place(separator, task)?;
        let lane = &self.lanes[place];
        let is_first = match &lane.ledger {
            Some(ledger) => ledger.tally.jobs == 1,
            None => lane.is_named && !self.is_scheduling_judged,
        };
        self.is_scheduling_judged |= lane.is_named;
        is_first.then_some(place)
    }

    /// Tallies at the separator chosen so far, each with the index of its task.
    pub fn counting(&self) -> impl Iterator<Item = (usize, &Tally)> {
        let counting = self.lanes.iter().filter(|lane| Some(lane.separator) == self.chosen);
        counting.filter_map(|lane| Some((lane.task, &lane.ledger.as_ref()?.tally)))
    }
}

impl Ledger {
    fn of(tally: &Tally, terms: usize) -> Ledger {
        let terms = tally.standings[..terms].iter().map(|it| (it.term, Some(it.agreed)));
        Ledger { tally: Tally::new(&tally.task, terms), notes: Vec::new(), told_before: 0, told: 0 }
    }

    /// Judges into this ledger instead of the tally of `findings`. Violations are reported only if it
    /// `counts`.
    pub fn take(&mut self, counts: bool, findings: &mut Findings<'_>, judge: impl FnOnce(&mut Findings<'_>)) {
        let Ledger { tally, told_before, told, .. } = self;
        let place = findings.place;
        let mut tell = findings.tell.as_deref_mut().filter(|_| counts).map(|each| {
            move |violation: &Violation| {
                (*told_before, *told) = (place + 1, *told + 1);
                each(violation);
            }
        });
        let tell = tell.as_mut().map(|it| it as &mut dyn FnMut(&Violation));
        judge(&mut Findings { tally, place, tell });
    }

    fn tell(&mut self, place: u64, each: &mut dyn FnMut(&Violation)) {
        let all = self.tally.standings.iter().flat_map(|it| it.places.0.iter().zip(&it.examples));
        let mut untold: Vec<_> = all.filter(|(at, _)| **at >= self.told_before).collect();
        untold.sort_by_key(|(at, _)| **at);
        self.told += untold.len() as u64;
        self.told_before = place + 1;
        untold.iter().for_each(|(_, violation)| each(violation));
    }
}

impl Jobs {
    fn judge(
        &mut self,
        seen: &JobSeen<'_>,
        agreed: &Agreed,
        findings: &mut Findings<'_>,
        subject: &dyn Fn() -> Subject,
    ) {
        let Findings { tally, place: at, tell } = findings;
        tally.jobs += 1;
        let job = seen.job;
        let response = job.least_response().ns();
        let (separation, astray) = self.release(seen, agreed);
        self.beyond.next_job();
        for (place, standing) in tally.standings.iter_mut().enumerate() {
            let term = standing.term;
            let value = match term {
                Term::Wcet | Term::QuartileCost => job.cost.ns(),
                Term::Response | Term::Deadline | Term::Bound => response,
                Term::Suspension => job.suspended.ns(),
                Term::Separation | Term::Frequent | Term::Rare => match separation {
                    Some(separation) if term == Term::Rare => separation.at_least.ns(),
                    Some(separation) => separation.at_most.ns(),
                    None => continue,
                },
                _ => match astray {
                    Some((its, value)) if its == term => value,
                    _ => continue,
                },
            };
            if term.of_most().is_some() {
                if standing.is_beyond(value) {
                    self.beyond.count(term, value);
                }
                continue;
            }
            if !standing.see(value) {
                continue;
            }
            let is_told = self.told.has(seen.number, term);
            if !is_told && !self.beyond.breaks(place, standing, value, &agreed.tolerance) {
                continue;
            }
            let violation = Violation {
                task: tally.task.clone(),
                term,
                subject: Some(subject()),
                value,
                agreed: standing.agreed,
            };
            if is_told {
                standing.amend(violation);
            } else {
                if let Some(tell) = tell {
                    tell(&violation);
                }
                standing.count(violation, *at);
            }
        }
        if !agreed.several.is_empty() {
            self.row.judge(seen, agreed, &mut self.beyond, findings, subject);
        }
        if agreed.sources.is_some() {
            let is_overdue = astray.is_some();
            let row = self.sources.get_or_insert_default();
            row.judge(seen, agreed, is_overdue, &mut self.beyond, findings, subject);
        }
        self.told.ended(seen.number);
        self.first.get_or_insert(job.release.window.latest());
        self.latest = (seen.number, job.release.window.latest(), job.end);
        if self.beyond.is_full() {
            self.beyond.close(findings, subject);
        }
    }

    /// The time since the release before, and how the release is astray.
    fn release(&mut self, seen: &JobSeen<'_>, agreed: &Agreed) -> (Option<Separation>, Option<(Term, u64)>) {
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
        let since = last.map(|last| Separation {
            at_least: window.earliest().since(last.latest()),
            at_most: window.latest().since(last.earliest()),
        });
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
