//! The checker: records in, violations out, with constant memory for each thread. Live and replayed records
//! take the same way through it.
//!
//! What is not certain is no violation: where the time of a release is a window, the value nearest to what
//! was agreed on counts. Nothing is judged across a gap in the records.

mod beyond;
mod overdue;
mod several;
mod share;
mod sources;
mod thread;

pub use overdue::GRACE;
pub use sources::{LEAST_OF_MODE, Sources, longest_gap};

use crate::chance::Allowances;
use crate::contract::{Answer, Contract, ContractTask, Meant};
use crate::models::clock_set;
use crate::releases::Rule;
use crate::scheduling::Scheduling;
use crate::threads::{Match, Matcher};
use crate::tolerance::Tolerance;
use crate::verdict::{MAX_UNKNOWN, Note, Tally, Verdict};
use crate::violation::{Subject, Term, Violation};
use overdue::Overdue;
use punctual_extract::{Extractor, JobSeen, Options, StreamOptions, Sums};
use punctual_model::{Duration, Instant, Separator};
use punctual_trace::{Begin, Glance, Record, TaskRecord};
use rustc_hash::FxHashMap;
use several::Several;
use share::Share;
use std::collections::BTreeMap;
use std::sync::Arc;
use thread::{Closed, Thread};

/// The number of activations after which a watch first chooses the separator of a thread, if the contract
/// names none; and of jobs after which a thread without a task counts as unknown, since threads get their
/// names a little after they start.
const JOBS_TO_KNOW: u64 = 8;

/// Remarks on how threads are scheduled.
const MAX_NOTES: usize = 100;

/// Finds the control group of a process.
pub type Locate = Box<dyn FnMut(u32) -> Option<String> + Send>;

/// Checks records against a contract.
pub struct Checker {
    extractor: Extractor,
    judge: Judge,
    /// The threads that are judged; `None` if all are.
    share: Option<Share>,
    /// Whether violations are reported at once, before the separator of a thread is final.
    is_live: bool,
}

/// Where findings go.
struct Findings<'a> {
    tally: &'a mut Tally,
    /// The number of the current record.
    place: u64,
    /// Receives violations; `None` for jobs at a separator that is not the chosen one.
    tell: Option<&'a mut dyn FnMut(&Violation)>,
}

impl Findings<'_> {
    fn found(&mut self, violation: Violation) {
        if let Some(tell) = &mut self.tell {
            tell(&violation);
        }
        self.tally.add(violation, self.place);
    }
}

/// The threads of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskThreads<'a> {
    /// The task's name.
    pub name: &'a str,
    /// Threads that live.
    pub living: u64,
    /// Threads that it has had, and has.
    pub seen: u64,
    /// Whether it is a violation or a note if it never has any.
    pub is_missed: bool,
}

/// Everything but the extraction of jobs.
struct Judge {
    unknown_answer: Answer,
    idle_answer: Answer,
    scheduling_answer: Answer,
    notes: Notes,
    agreed: Vec<Agreed>,
    tallies: Vec<Tally>,
    threads: FxHashMap<u32, Thread>,
    unknown: BTreeMap<String, Unknown>,
    most_unknown: usize,
    unknown_violations: u64,
    locate: Option<Locate>,
    /// The number of the current record.
    place: u64,
    /// Gaps that other checkers found.
    gaps: u64,
    /// Violations that were reported for a separator that was not chosen in the end.
    withdrawn: u64,
    /// Whether some task of the contract names no separator.
    has_to_choose: bool,
}

/// Notes on how threads are scheduled, by task, each with the number of its first record.
struct Notes {
    all: BTreeMap<(Arc<str>, String), u64>,
    most: usize,
}

/// Real-time threads of a name that belong to no task.
struct Unknown {
    /// At which record the first was found.
    first: u64,
    threads: u64,
}

/// What is agreed on of a task, ready to be applied.
struct Agreed {
    threads: Matcher,
    separator: Option<Meant>,
    rule: Option<Rule>,
    several: Several,
    sources: Option<Sources>,
    tolerance: Tolerance,
    scheduling: Scheduling,
    /// The shortest time that a job may take, of any kind.
    shortest: Option<Duration>,
    /// How many terms there are.
    terms: usize,
    missing: Answer,
    /// Whether a thread may have belonged to it whose control group is not known.
    is_in_doubt: bool,
}

impl Checker {
    /// A checker for a complete recording. If the contract names no separator, violations of a thread are
    /// handed out when its task ends, because only then is the separator final: the first ones of each term.
    /// All are counted.
    pub fn new(contract: &Contract) -> Checker {
        let judge = Judge::new(contract);
        let sums = if judge.has_to_choose { Sums::Choice } else { Sums::Nothing };
        Checker { extractor: extractor(sums), judge, share: None, is_live: false }
    }

    /// A checker for running threads: violations are handed out as soon as they are seen. If the contract
    /// names no separator, one is chosen after 8, 16, 32, … activations of a thread, and finally when its
    /// task ends. `locate` finds the control group of a process; recordings do not have it.
    pub fn live(contract: &Contract, locate: Locate) -> Checker {
        // The contract may be read again and then name no separator.
        let extractor = extractor(Sums::Choice);
        let mut checker = Checker { extractor, is_live: true, ..Checker::new(contract) };
        checker.judge.locate = Some(locate);
        checker
    }

    /// Takes one record, and hands out every violation that it shows.
    pub fn record(&mut self, record: &Record, each: &mut impl FnMut(&Violation)) {
        self.record_jobs(record, each, &mut |_, _| {});
    }

    /// Takes one record, and hands out every violation that it shows, and every job that was judged with the
    /// place of its task in the contract.
    pub fn record_jobs(
        &mut self,
        record: &Record,
        each: &mut impl FnMut(&Violation),
        each_job: &mut impl FnMut(usize, &JobSeen<'_>),
    ) {
        let Checker { extractor, judge, share, is_live } = self;
        judge.place += 1;
        if share.as_ref().is_some_and(|share| !share.has(record.tid())) {
            return;
        }
        match record {
            Record::Exit { tid, sequence, at } | Record::Last { tid, sequence, at } => {
                judge.end_of(*tid, *sequence, *at, extractor, each);
            }
            Record::Task(task) if task.begin != Begin::Seen && extractor.ends_task(record) => {
                judge.end_of(task.tid, task.sequence, task.at, extractor, each);
            }
            _ => {}
        }
        if judge.has_to_choose && extractor.ends_task(record) {
            judge.settle(record.tid(), extractor.primary_key(record.tid()), each);
        }
        judge.record(record);
        extractor.record_jobs(record, &mut |seen| judge.job(seen, each, each_job));
        match record {
            Record::Activation(activation) if *is_live && judge.has_to_choose => {
                judge.look(activation.tid, extractor, each)
            }
            _ => {}
        }
        if matches!(record, Record::Task(_) | Record::Exit { .. } | Record::Last { .. }) {
            extractor.forget_ended();
        }
    }

    /// Hands out what is overdue at `now`, once for each job and term: jobs that have not ended, and releases
    /// that have not come. All records until then must have been taken. `glance` tells what a thread is
    /// doing; it is asked of those threads only that may be overdue.
    ///
    /// What is handed out is what the job's record will show, or the end of the records: it is not handed out
    /// again then.
    pub fn overdue(
        &mut self,
        now: Instant,
        glance: &mut dyn FnMut(u32) -> Option<Glance>,
        each: &mut impl FnMut(&Violation),
    ) {
        self.judge.overdue(now, &self.extractor, glance, each);
    }

    /// Goes on with another contract: from now on it judges by that one. Returns what came of the old one.
    pub fn change_contract(&mut self, contract: &Contract) -> Verdict {
        let mut judge = Judge::new(contract);
        judge.locate = self.judge.locate.take();
        settle_all(std::slice::from_mut(self), &mut |_| {});
        for (tid, thread) in self.judge.threads.drain() {
            let thread = thread.anew();
            judge.threads.insert(tid, thread);
            judge.match_thread(tid);
        }
        std::mem::replace(&mut self.judge, judge).verdict(self.extractor.progress().gaps)
    }

    /// How all tasks stand so far.
    pub fn tallies(&self) -> Vec<Tally> {
        let mut tallies = self.judge.tallies.clone();
        for (task, tally) in self.judge.unsettled() {
            tallies[task].join(tally.clone(), self.judge.agreed[task].terms);
        }
        tallies
    }

    /// Jobs judged so far.
    pub fn jobs(&self) -> u64 {
        let unsettled = self.judge.unsettled().map(|(_, tally)| tally);
        self.judge.tallies.iter().chain(unsettled).map(|it| it.jobs).fold(0, u64::saturating_add)
    }

    /// The threads of each task, in the contract's order.
    pub fn task_threads(&self) -> Vec<TaskThreads<'_>> {
        let Judge { agreed, tallies, threads, .. } = &self.judge;
        let mut all: Vec<TaskThreads<'_>> = tallies
            .iter()
            .zip(agreed)
            .map(|(tally, agreed)| TaskThreads {
                name: &tally.task,
                living: 0,
                seen: tally.threads,
                is_missed: agreed.missing != Answer::Ignore,
            })
            .collect();
        threads.values().filter_map(|thread| thread.task).for_each(|task| all[task].living += 1);
        all
    }

    /// Threads that live.
    pub fn threads(&self) -> usize {
        self.extractor.progress().threads
    }

    /// What came of it. `lost` is how many records are known to be lost.
    pub fn finish(self, lost: u64, each: &mut impl FnMut(&Violation)) -> Verdict {
        self.finish_with([], lost, each)
    }

    /// What came of it and of others that had the same records ([`Checker::shares`]).
    pub fn finish_with(
        self,
        others: impl IntoIterator<Item = Checker>,
        lost: u64,
        each: &mut impl FnMut(&Violation),
    ) -> Verdict {
        let mut all: Vec<Checker> = std::iter::once(self).chain(others).collect();
        settle_all(&mut all, each);
        let mut whole = all.remove(0);
        all.into_iter().for_each(|other| whole.join(other));
        whole.judge.keep_first();
        let notes = whole.judge.end(each);
        let gaps = whole.judge.gaps + whole.extractor.progress().gaps;
        let mut verdict = whole.judge.verdict(gaps);
        verdict.notes.extend(notes);
        verdict.lost = lost;
        verdict
    }
}

/// Settles all threads that are left at the end of the records, in the order in which one checker would.
fn settle_all(all: &mut [Checker], each: &mut impl FnMut(&Violation)) {
    let of = |(place, checker): (usize, &Checker)| {
        checker.judge.threads.keys().map(|tid| (*tid, place)).collect::<Vec<_>>()
    };
    let mut threads: Vec<(u32, usize)> = all.iter().enumerate().flat_map(of).collect();
    threads.sort_unstable();
    for (tid, place) in threads {
        let checker = &mut all[place];
        checker.judge.settle(tid, checker.extractor.primary_key(tid), each);
    }
}

/// When the next release of a task is due.
fn rule(task: &ContractTask, sources: Option<&Sources>) -> Option<Rule> {
    let periodic = task.period.zip(task.jitter);
    let periodic = periodic.map(|(period, jitter)| {
        let skips = task.skips.unwrap_or(0);
        Rule { period, jitter, skips, has_grid: true }
    });
    let of_sources = sources.map(|Sources { gap, jitter, .. }| Rule {
        period: gap.saturating_sub(*jitter),
        jitter: *jitter,
        skips: 0,
        has_grid: false,
    });
    periodic.or(of_sources)
}

fn extractor(sums: Sums) -> Extractor {
    let stream = StreamOptions { sums, ..StreamOptions::without_curves() };
    Extractor::new(Options { stream, merge_transitions: false })
}

impl Judge {
    fn new(contract: &Contract) -> Judge {
        let tallies: Vec<Tally> = contract.tasks.iter().map(Tally::of).collect();
        let mut allowances = Allowances::default();
        let agreed = contract.tasks.iter().zip(&tallies).map(|(task, tally)| {
            let pattern = task.pattern();
            let sources = Sources::of(task);
            Agreed {
                threads: Matcher::new(&pattern),
                separator: task.separator.as_deref().map(Meant::new),
                rule: rule(task, sources.as_ref()),
                shortest: [task.wcet, task.response, task.deadline, task.proven].into_iter().flatten().min(),
                several: Several::of(task),
                sources,
                tolerance: Tolerance::new(task, &mut allowances),
                scheduling: Scheduling::of(task),
                terms: tally.standings.len(),
                missing: task.missing.unwrap_or(Answer::Violation),
                is_in_doubt: false,
            }
        });
        Judge {
            unknown_answer: contract.unknown_threads.unwrap_or(Answer::Note),
            idle_answer: contract.tasks_without_jobs.unwrap_or(Answer::Note),
            scheduling_answer: contract.scheduling.unwrap_or(Answer::Note),
            notes: Notes { all: BTreeMap::new(), most: MAX_NOTES },
            agreed: agreed.collect(),
            tallies,
            threads: FxHashMap::default(),
            unknown: BTreeMap::new(),
            most_unknown: MAX_UNKNOWN,
            unknown_violations: 0,
            locate: None,
            place: 0,
            gaps: 0,
            withdrawn: 0,
            has_to_choose: contract.tasks.iter().any(|task| task.separator.is_none()),
        }
    }

    /// Follows which threads there are, and what they are called.
    fn record(&mut self, record: &Record) {
        match record {
            Record::Task(task) => self.task(task),
            Record::Known(task) if !self.threads.contains_key(&task.tid) => self.introduce(task),
            Record::Renamed { tid, name, .. } => self.rename(*tid, name),
            Record::Command { tid, command, .. } => {
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.command.clone_from(command);
                    self.match_thread(*tid);
                }
            }
            Record::Exit { tid, .. } | Record::Last { tid, .. } => _ = self.threads.remove(tid),
            Record::Busy { tid, cpu, .. } => {
                let task = self.threads.get(tid).and_then(|thread| thread.task);
                if let Some(task) = task {
                    let tally = &mut self.tallies[task];
                    tally.busy = tally.busy.max(Some(*cpu));
                }
            }
            Record::ClockSet { by_ns, .. } => self.notes.add(clock_set(*by_ns), self.place),
            _ => {}
        }
    }

    fn task(&mut self, record: &TaskRecord) {
        match self.threads.get_mut(&record.tid) {
            Some(thread) if record.begin != Begin::Seen => {
                thread.scheduled(record);
                if record.begin == Begin::Exec {
                    thread.command.clone_from(&record.command);
                    thread.name = record.name.as_str().into();
                    self.match_thread(record.tid);
                }
            }
            _ => self.introduce(record),
        }
    }

    fn introduce(&mut self, record: &TaskRecord) {
        let asks_for_group = self.agreed.iter().any(|agreed| agreed.threads.asks_for_group());
        let locate = self.locate.as_mut().filter(|_| asks_for_group);
        let cgroup = locate.and_then(|locate| locate(record.pid));
        self.threads.insert(record.tid, Thread::new(record, cgroup));
        self.match_thread(record.tid);
    }

    fn rename(&mut self, tid: u32, name: &str) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            if *thread.name != *name {
                thread.name = name.into();
                self.match_thread(tid);
            }
        }
    }

    /// Finds the task of a thread: the first that it matches.
    fn match_thread(&mut self, tid: u32) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let mut found = None;
        for (index, agreed) in self.agreed.iter_mut().enumerate() {
            match agreed.threads.matches(&thread.name, &thread.command, thread.cgroup.as_deref()) {
                Match::Yes => found = Some(index),
                Match::Unknown => agreed.is_in_doubt = true,
                Match::No => {}
            }
            if found.is_some() {
                break;
            }
        }
        if found != thread.task {
            thread.close_windows(tid, &mut self.tallies, self.place, &mut |_| {});
            thread.belongs_to(found);
            if let Some(task) = found {
                self.tallies[task].threads += 1;
            }
        }
    }

    fn job(
        &mut self,
        seen: &JobSeen<'_>,
        each: &mut impl FnMut(&Violation),
        each_job: &mut impl FnMut(usize, &JobSeen<'_>),
    ) {
        let Some(mut thread) = self.threads.get_mut(&seen.tid) else { return };
        if *thread.name != *seen.name {
            self.rename(seen.tid, seen.name);
            let Some(renamed) = self.threads.get_mut(&seen.tid) else { return };
            thread = renamed;
        }
        if thread.phase != seen.phase {
            thread.close_windows(seen.tid, &mut self.tallies, self.place, each);
            thread.enter(seen.phase);
        }
        let Some(task) = thread.task else {
            if thread.is_real_time {
                thread.strays += 1;
                if thread.strays == JOBS_TO_KNOW {
                    self.stray(seen, each);
                }
            }
            return;
        };
        let agreed = &self.agreed[task];
        let findings = Findings { tally: &mut self.tallies[task], place: self.place, tell: Some(each) };
        if thread.job(task, seen, agreed, findings) {
            each_job(task, seen);
        }
        self.scheduling(seen, task, each);
    }

    /// Compares how a thread is scheduled with the contract: once per task of the thread, or once per
    /// separator while the separator is not final.
    fn scheduling(&mut self, seen: &JobSeen<'_>, task: usize, each: &mut impl FnMut(&Violation)) {
        let Some(thread) = self.threads.get_mut(&seen.tid) else { return };
        let Some(lane) = thread.lane_to_compare(seen.separator.key(), task) else { return };
        let scheduling = &self.agreed[task].scheduling;
        let broken = scheduling.broken(thread.policy, thread.priority, &thread.affinity);
        let counts = thread.chosen == Some(seen.separator.key());
        let subject = thread.subject(seen);
        let mut findings = Findings { tally: &mut self.tallies[task], place: self.place, tell: Some(each) };
        for (term, value, agreed) in broken {
            let task = findings.tally.task.clone();
            let violation = Violation { task, term, subject: Some(subject.clone()), value, agreed };
            let ledger = thread.lanes[lane].ledger.as_deref_mut();
            match (self.scheduling_answer, ledger) {
                (Answer::Ignore, _) => {}
                (Answer::Violation, None) => findings.found(violation),
                (Answer::Violation, Some(ledger)) => {
                    ledger.take(counts, &mut findings, |findings| findings.found(violation));
                }
                (Answer::Note, None) => self.notes.note(&violation, self.place),
                (Answer::Note, Some(ledger)) => ledger.notes.push((violation, self.place)),
            }
        }
    }

    /// A task of a thread ends, so its separator is final: only jobs that end there count.
    fn settle(&mut self, tid: u32, separator: Option<Separator>, each: &mut impl FnMut(&Violation)) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.close_windows(tid, &mut self.tallies, self.place, each);
        thread.choose(separator, self.place, each);
        let closed: Vec<Closed> = thread.close().collect();
        let judged: Vec<(Instant, Instant)> =
            closed.iter().filter(|it| it.counts).filter_map(|it| it.span).collect();
        for Closed { counts, task, separator, span, ledger } in closed {
            if counts {
                self.tallies[task].join(ledger.tally, self.agreed[task].terms);
                ledger.notes.iter().for_each(|(violation, place)| self.notes.note(violation, *place));
                continue;
            }
            self.withdrawn += ledger.told;
            let is_apart = |(from, until)| judged.iter().all(|it| until <= it.0 || it.1 <= from);
            let violations = ledger.tally.violations();
            if violations > 0 && span.is_some_and(is_apart) {
                let jobs = ledger.tally.jobs;
                let text = format!(
                    "{jobs} jobs that end at {separator} were not judged (violations: {violations}): a \
                     thread is judged at one separator, and these come before or after the jobs there"
                );
                self.notes.add(Note { task: ledger.tally.task.clone(), text }, self.place);
            }
        }
    }

    /// Chooses the separator of a running thread again, if it is time to.
    fn look(&mut self, tid: u32, extractor: &Extractor, each: &mut impl FnMut(&Violation)) {
        if let Some(thread) = self.threads.get_mut(&tid).filter(|thread| thread.task.is_some()) {
            if thread.should_choose() {
                thread.choose(extractor.primary_key(tid), self.place, each);
            }
        }
    }

    /// Tallies of separators that are chosen but not final, each with the index of its task.
    fn unsettled(&self) -> impl Iterator<Item = (usize, &Tally)> {
        self.threads.values().flat_map(Thread::counting)
    }

    /// Judges what is open when the records of a thread end, if none is missing.
    fn end_of(
        &mut self,
        tid: u32,
        sequence: u32,
        at: Instant,
        extractor: &Extractor,
        each: &mut impl FnMut(&Violation),
    ) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.close_windows(tid, &mut self.tallies, self.place, each);
        let (Some(task), Some((next, open))) = (thread.task, extractor.open_jobs(tid)) else { return };
        if next == sequence {
            let findings = Findings { tally: &mut self.tallies[task], place: self.place, tell: Some(each) };
            let overdue = Overdue { tid, task, agreed: &self.agreed[task], findings };
            overdue.at_end(thread, at, open);
        }
    }

    fn overdue(
        &mut self,
        now: Instant,
        extractor: &Extractor,
        glance: &mut dyn FnMut(u32) -> Option<Glance>,
        each: &mut impl FnMut(&Violation),
    ) {
        for (&tid, thread) in &mut self.threads {
            let (Some(task), Some((next, open))) = (thread.task, extractor.open_jobs(tid)) else { continue };
            let Some((phase, _)) = extractor.about(tid) else { continue };
            if thread.phase != phase {
                thread.close_windows(tid, &mut self.tallies, self.place, each);
                thread.enter(phase);
            }
            let findings =
                Findings { tally: &mut self.tallies[task], place: self.place, tell: Some(&mut *each) };
            let overdue = Overdue { tid, task, agreed: &self.agreed[task], findings };
            overdue.at(thread, now, open, &mut || glance(tid).filter(|it| it.sequence == next));
        }
    }

    /// A real-time thread that belongs to no task.
    fn stray(&mut self, seen: &JobSeen<'_>, each: &mut impl FnMut(&Violation)) {
        if self.unknown_answer == Answer::Ignore {
            return;
        }
        if self.unknown.len() < self.most_unknown || self.unknown.contains_key(seen.name) {
            let none = Unknown { first: self.place, threads: 0 };
            self.unknown.entry(seen.name.to_owned()).or_insert(none).threads += 1;
        }
        if self.unknown_answer == Answer::Violation {
            self.unknown_violations += 1;
            let subject = Subject {
                name: seen.name.into(),
                pid: seen.pid,
                tid: seen.tid,
                phase: seen.phase,
                job: seen.number,
                release: seen.job.release.window.latest(),
                end: seen.job.end,
                is_open: false,
            };
            each(&Violation {
                task: seen.name.into(),
                term: Term::Unknown,
                subject: Some(subject),
                value: 1,
                agreed: 0,
            });
        }
    }

    /// What can be said at the end only.
    fn end(&mut self, each: &mut impl FnMut(&Violation)) -> Vec<Note> {
        let noted = std::mem::take(&mut self.notes.all).into_iter();
        let mut notes: Vec<Note> = noted.map(|((task, text), _)| Note { task, text }).collect();
        for (tally, agreed) in self.tallies.iter_mut().zip(&self.agreed) {
            let violation = if tally.threads == 0 && agreed.is_in_doubt {
                let text = "not known whether it was there: a recording has no control groups";
                tally.answer(Answer::Note, Term::Missing, text, &mut notes)
            } else if tally.threads == 0 {
                tally.answer(agreed.missing, Term::Missing, "not there", &mut notes)
            } else if tally.jobs == 0 {
                let why = tally.why_no_jobs();
                tally.answer(self.idle_answer, Term::NoJobs, &why, &mut notes)
            } else {
                None
            };
            violation.iter().for_each(&mut *each);
            notes.extend(tally.not_judged());
        }
        notes
    }

    fn verdict(self, gaps: u64) -> Verdict {
        Verdict {
            tallies: self.tallies,
            unknown: self.unknown.into_iter().map(|(name, unknown)| (name, unknown.threads)).collect(),
            unknown_violations: self.unknown_violations,
            notes: Vec::new(),
            gaps,
            lost: 0,
            withdrawn: self.withdrawn,
        }
    }
}

impl Notes {
    fn note(&mut self, violation: &Violation, place: u64) {
        let text = Violation { subject: None, ..violation.clone() }.to_string();
        let text = text.strip_prefix(&format!("{}: ", violation.task)).unwrap_or(&text).to_owned();
        self.add(Note { task: violation.task.clone(), text }, place);
    }

    fn add(&mut self, note: Note, place: u64) {
        let first = self.all.entry((note.task, note.text)).or_insert(place);
        *first = place.min(*first);
        if self.all.len() > self.most {
            // Notes do not arrive in the order of their records.
            let last = self.all.iter().max_by_key(|(_, place)| **place).map(|(note, _)| note.clone());
            last.map(|note| self.all.remove(&note));
        }
    }
}
