//! Releases of several periodic sources, bursts and modes, against the limits of how close and how far apart
//! they may be: a window of the last ones, in constant memory.
//!
//! With one mode, a row of releases that breaks a limit is a violation, and a new row begins after it. With
//! several, a row is in a mode for as long as it keeps to its limits. A release that breaks them may be the
//! first one of another mode: after ten more releases, it is either in that mode or a violation.

use super::beyond::Beyond;
use super::{Agreed, Findings};
use crate::contract::ContractTask;
use crate::spans::{MOST_GAPS, Spans};
use crate::violation::{Subject, Term, Violation};
use punctual_extract::JobSeen;
use punctual_model::{Disturbance, Duration, Window};
use std::collections::VecDeque;

/// The number of releases after which a change of mode is certain.
pub const LEAST_OF_MODE: u64 = 10;

/// What is agreed on of the sources of a task.
pub struct Sources {
    modes: Vec<Spans>,
    /// The longest time without a release.
    pub gap: Duration,
    /// The greatest jitter of a source.
    pub jitter: Duration,
}

/// The last releases of a thread, oldest first, and the modes that they may be in.
#[derive(Default)]
pub struct Row {
    releases: VecDeque<Window>,
    /// The number of the job that comes next.
    next_job: u64,
    /// Releases of the row so far, with those that are no longer kept.
    count: u64,
    /// Of each mode, from which release of the row on its limits are kept.
    since: Vec<u64>,
    /// The mode of the releases so far.
    mode: usize,
    /// How many of the first releases may belong to the mode before, since they keep to its limits, too.
    shared: u64,
    /// Whether a release is missing that may still come.
    may_have_extra: bool,
    pending: Option<Pending>,
}

/// A release that broke the limits of its mode, and may be of another one.
struct Pending {
    at: u64,
    broken: Broken,
    subject: Subject,
}

/// A limit that is broken.
#[derive(Clone, Copy)]
struct Broken {
    term: Term,
    value: Duration,
    limit: Duration,
}

impl Sources {
    /// `None` if there are none, or if a period binds no release.
    pub fn of(task: &ContractTask) -> Option<Sources> {
        let is_judged = !task.modes.is_empty() && task.has_jitter();
        let jitter = task.greatest_jitter().filter(|_| is_judged)?;
        let modes: Vec<Spans> = task.modes.iter().map(Spans::of).collect();
        let gap = longest_gap(&modes)?;
        Some(Sources { modes, gap, jitter })
    }

    /// The limits that any of them allows, of as many releases as possible: the least and the greatest time.
    pub fn widest(&self) -> (Option<Duration>, Option<Duration>) {
        let last = |of: &dyn Fn(&Spans) -> Option<Duration>| self.modes.iter().map(of).collect::<Vec<_>>();
        let least = last(&|mode| mode.least.last().copied()).into_iter().flatten().min();
        let most = last(&|mode| mode.most.last().copied()).into_iter().flatten().max();
        (least, most)
    }
}

/// The longest time to the next release: from one mode to another, as long as in each of the two.
pub fn longest_gap(modes: &[Spans]) -> Option<Duration> {
    let gap = modes.iter().filter_map(|mode| mode.most.first().copied()).max()?;
    Some(if modes.len() > 1 { gap + gap } else { gap })
}

impl Row {
    /// Takes a job. `is_overdue` if its release is a violation already.
    pub fn judge(
        &mut self,
        seen: &JobSeen<'_>,
        agreed: &Agreed,
        is_overdue: bool,
        beyond: &mut Beyond,
        findings: &mut Findings<'_>,
        subject: &dyn Fn() -> Subject,
    ) {
        let Some(sources) = &agreed.sources else { return };
        let is_last = seen.disturbance == Some(Disturbance::Ending);
        if seen.number != self.next_job || is_last || is_overdue {
            *self = Row::default();
        }
        self.next_job = seen.number + 1;
        if is_last {
            return;
        }
        let broken = self.take(seen.job.release.window, &sources.modes, findings);
        let found = match sources.modes.len() {
            1 => broken.map(|broken| (broken, subject())),
            _ => self.follow(broken, subject),
        };
        let Some((broken, subject)) = found else { return };
        let may_have_extra = broken.term == Term::GapOfSeveral;
        *self = Row { next_job: self.next_job, may_have_extra, ..Row::default() };
        let standings = &mut findings.tally.standings;
        let Some(place) = standings.iter().position(|it| it.term == broken.term) else { return };
        let (value, agreed_on) = (broken.value.ns(), broken.limit.ns());
        // With several modes, a violation is found only after so many jobs that are in none of them.
        let jobs = if sources.modes.len() > 1 { LEAST_OF_MODE + 1 } else { 1 };
        if beyond.all_break(jobs, place, &mut standings[place], value, &agreed.tolerance) {
            let (task, term) = (findings.tally.task.clone(), broken.term);
            findings.found(Violation { task, term, subject: Some(subject), value, agreed: agreed_on });
        }
    }

    /// Takes a release; returns the limit of the row's mode that it breaks.
    fn take(&mut self, release: Window, modes: &[Spans], findings: &mut Findings<'_>) -> Option<Broken> {
        self.since.resize(modes.len(), 0);
        let mut of_mode = None;
        for (place, mode) in modes.iter().enumerate() {
            let known = usize::try_from(self.count - self.since[place]).unwrap_or(MOST_GAPS);
            let earlier = self.releases.iter().rev().take(known);
            // With one release too many, n + 1 may be as close to each other as n otherwise.
            let extra = [Duration::ZERO].iter().take(usize::from(self.may_have_extra));
            let limits = extra.chain(&mode.least).zip(&mode.most);
            let mut broken = earlier.zip(limits).enumerate().filter_map(|(gaps, (before, limits))| {
                Some((gaps as u64, broken(*before, release, limits)?))
            });
            if let Some((gaps, broken)) = broken.next() {
                self.since[place] = self.count - gaps;
                let is_of_mode = place == self.mode && self.since[place] > self.shared;
                of_mode = of_mode.or(is_of_mode.then_some(broken));
            }
        }
        if let ([_], Some(first)) =
            (modes, self.releases.front().filter(|_| self.releases.len() == MOST_GAPS))
        {
            let whole = [
                (Term::SeparationOfSeveral, release.latest().since(first.earliest())),
                (Term::GapOfSeveral, release.earliest().since(first.latest())),
            ];
            for (term, value) in whole.into_iter().filter(|_| of_mode.is_none()) {
                if let Some(standing) = findings.tally.standings.iter_mut().find(|it| it.term == term) {
                    standing.see(value.ns());
                }
            }
        }
        if self.releases.len() == MOST_GAPS {
            self.releases.pop_front();
            self.may_have_extra = false;
        }
        self.releases.push_back(release);
        self.count += 1;
        of_mode
    }

    /// Finds the mode of the row; returns a broken limit that no mode explains.
    fn follow(&mut self, broken: Option<Broken>, subject: &dyn Fn() -> Subject) -> Option<(Broken, Subject)> {
        let now = self.count - 1;
        if let (Some(broken), None) = (broken, &self.pending) {
            // Until now it may have been in another mode all the time.
            match self.since.iter().position(|since| *since == 0) {
                Some(mode) => self.mode = mode,
                None => self.pending = Some(Pending { at: now, broken, subject: subject() }),
            }
        }
        let pending = self.pending.take()?;
        let explains = |mode: usize, since: u64| {
            mode != self.mode && since <= pending.at && now - since + 1 >= LEAST_OF_MODE
        };
        if let Some(mode) = (0..self.since.len()).find(|mode| explains(*mode, self.since[*mode])) {
            self.begin(mode, pending.at);
            return None;
        }
        if now - pending.at >= LEAST_OF_MODE {
            return Some((pending.broken, pending.subject));
        }
        self.pending = Some(pending);
        None
    }

    /// From here on, the row is what has been in this mode. Those before `at` may be in the mode before.
    fn begin(&mut self, mode: usize, at: u64) {
        let from = self.since[mode];
        self.shared = at - from;
        self.mode = mode;
        self.count -= from;
        let kept = usize::try_from(self.count).unwrap_or(MOST_GAPS);
        self.releases.drain(..self.releases.len().saturating_sub(kept));
        self.since.iter_mut().for_each(|since| *since = since.saturating_sub(from));
    }
}

/// The limit of one mode that two releases break, for certain.
fn broken(before: Window, release: Window, (least, most): (&Duration, &Duration)) -> Option<Broken> {
    let close = release.latest().since(before.earliest());
    let apart = release.earliest().since(before.latest());
    if close < *least {
        return Some(Broken { term: Term::SeparationOfSeveral, value: close, limit: *least });
    }
    (apart > *most).then_some(Broken { term: Term::GapOfSeveral, value: apart, limit: *most })
}
