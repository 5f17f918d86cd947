//! Jobs that do not end and releases that do not come: told while they last, and at the end of the records.

use crate::kept::check;
use crate::records::begins;
use proptest::prelude::*;
use punctual_conformance::{Checker, Contract, Term, Verdict, Violation};
use punctual_model::{Call, Duration, Instant, Object, Separator, Window};
use punctual_trace::{Activation, Glance, Record, Resumed};

const MS: u64 = 1_000_000;
const TID: u32 = 7;
/// From a release until the thread runs.
const WAKING: u64 = 10;

/// A thread that sleeps until each release and then works until the end, as it truly was.
struct Truth {
    /// Release and end.
    jobs: Vec<(u64, u64)>,
    until: u64,
}

impl Truth {
    /// A period of 10 ms, but for what `change` makes of a job's release and end.
    fn periodic(jobs: u64, until: u64, change: impl Fn(u64) -> (u64, u64)) -> Truth {
        let jobs = (1..=jobs).map(|job| {
            let (late, long) = change(job);
            let release = job * 10 * MS + late;
            (release, release + MS + long)
        });
        Truth { jobs: jobs.collect(), until }
    }

    /// The activation in which a job ended, and the next one was released if it was.
    fn activation(&self, job: usize, resumed: Option<Resumed>) -> Activation {
        let (stop, cpu) = match job.checked_sub(1) {
            Some(before) => (self.jobs[before].1, self.jobs[..job].iter().map(|(from, to)| to - from).sum()),
            None => (MS, 0),
        };
        Activation {
            tid: TID,
            sequence: job as u32 + 1,
            separator: Separator {
                call: Call::ClockNanosleep,
                object: Object::Clock { id: 1, absolute: true },
            },
            slept: true,
            stop: Instant::from_ns(stop),
            cpu: Duration::from_ns(cpu),
            arrival: None,
            resumed,
        }
    }

    /// When each record comes, and the record.
    fn records(&self) -> Vec<(u64, Record)> {
        let mut records = vec![(0, begins(TID, 0, 1_000))];
        for (job, (release, _)) in self.jobs.iter().enumerate() {
            let start = Instant::from_ns(release + WAKING);
            let resumed = Resumed::new(Some(Window::at(Instant::from_ns(*release))), start);
            records.push((start.ns(), Record::Activation(self.activation(job, Some(resumed)))));
        }
        records.retain(|(at, _)| *at <= self.until);
        records
    }

    fn glance(&self, at: u64) -> Option<Glance> {
        let started = self.jobs.iter().filter(|(release, _)| release + WAKING <= at).count();
        let cpu = self.jobs[..started].iter().map(|(from, to)| (*to).min(at) - from).sum();
        let has_ended = started.checked_sub(1).is_none_or(|last| self.jobs[last].1 <= at);
        let next = self.jobs.get(started).filter(|(release, _)| *release <= at);
        let resumed = next.map(|(release, _)| {
            Resumed::new(Some(Window::at(Instant::from_ns(*release))), Instant::from_ns(at))
        });
        Some(Glance {
            sequence: started as u32 + 1,
            at: Instant::from_ns(at),
            cpu: Duration::from_ns(cpu),
            stopped: has_ended.then(|| self.activation(started, resumed)),
            busy: None,
        })
    }

    /// What the observer adds at the end.
    fn last(&self) -> Vec<Record> {
        let Glance { mut sequence, at, stopped, .. } = self.glance(self.until).expect("it is known");
        let end = stopped.map(Record::Activation);
        sequence += u32::from(end.is_some());
        end.into_iter().chain([Record::Last { tid: TID, sequence, at }]).collect()
    }

    /// The whole recording.
    fn recorded(&self) -> Vec<Record> {
        self.records().into_iter().map(|(_, record)| record).chain(self.last()).collect()
    }

    /// A watch that looks for what is overdue at these times.
    fn watched(&self, contract: &Contract, ticks: &[u64]) -> (Vec<Violation>, Verdict) {
        let mut checker = Checker::new(contract);
        let mut told = Vec::new();
        let mut records = self.records().into_iter().peekable();
        for tick in ticks.iter().filter(|tick| **tick < self.until).chain([&self.until]) {
            while let Some((_, record)) = records.next_if(|(at, _)| at <= tick) {
                checker.record(&record, &mut |it| told.push(it.clone()));
            }
            let now = Instant::from_ns(*tick);
            checker.overdue(now, &mut |_| self.glance(*tick), &mut |it| told.push(it.clone()));
        }
        self.last().iter().for_each(|record| checker.record(record, &mut |it| told.push(it.clone())));
        let verdict = checker.finish(0, &mut |it| told.push(it.clone()));
        (told, verdict)
    }
}

fn contract(terms: &str) -> Contract {
    let text = format!("[[task]]\nname = \"thread 0\"\nseparator = \"clock_nanosleep*\"\n{terms}");
    Contract::parse(&text).unwrap_or_else(|faulty| panic!("{faulty:?}"))
}

fn every(step: u64, until: u64) -> Vec<u64> {
    (1..until / step).map(|tick| tick * step).collect()
}

/// Term, job, whether it was open, and until when it was known to be.
fn told(violations: &[Violation]) -> Vec<(Term, u64, bool, u64)> {
    let one = |it: &Violation| {
        let subject = it.subject.as_ref().expect("a job");
        (it.term, subject.job, subject.is_open, subject.end.ns() / MS)
    };
    violations.iter().map(one).collect()
}

#[test]
fn a_job_that_never_ends_is_told_once() {
    let truth = Truth::periodic(20, 2_000 * MS, |job| (0, if job == 20 { 10_000 * MS } else { 0 }));
    let contract = contract("period = \"10ms\"\njitter = \"1ms\"\nresponse = \"5ms\"\nwcet = \"3s\"");
    let (watched, verdict) = truth.watched(&contract, &every(50 * MS, 2_000 * MS));
    // Released at 200 ms, so overdue at 225 ms.
    assert_eq!(told(&watched), [(Term::Response, 19, true, 250)]);
    let (checked, of_check) = check(&contract, &truth.recorded());
    assert_eq!(told(&checked), [(Term::Response, 19, true, 2_000)]);
    assert_eq!(verdict, of_check);
    assert_eq!(verdict.tallies[0].standing(Term::Response).and_then(|it| it.worst), Some(1_800 * MS));
}

#[test]
fn a_job_that_works_for_too_long_is_told_while_it_does() {
    let truth = Truth::periodic(20, 2_000 * MS, |job| (0, if job == 12 { 10_000 * MS } else { 0 }));
    let truth = Truth { jobs: truth.jobs[..12].to_vec(), ..truth };
    let (watched, _) = truth.watched(&contract("wcet = \"100ms\""), &every(50 * MS, 2_000 * MS));
    assert_eq!(told(&watched), [(Term::Wcet, 11, true, 250)]);
}

#[test]
fn a_release_that_never_comes_is_told_once() {
    let truth = Truth::periodic(20, 2_000 * MS, |_| (0, 0));
    for (skips, at) in [(0, 250), (20, 450)] {
        let terms = format!("period = \"10ms\"\njitter = \"1ms\"\nskips = {skips}");
        let (watched, verdict) = truth.watched(&contract(&terms), &every(50 * MS, 2_000 * MS));
        assert_eq!(told(&watched), [(Term::Overdue, 20, true, at)]);
        let (checked, of_check) = check(&contract(&terms), &truth.recorded());
        assert_eq!(told(&checked), [(Term::Overdue, 20, true, 2_000)]);
        assert_eq!(verdict, of_check);
    }
    assert_eq!(told(&truth.watched(&contract("response = \"5ms\""), &every(50 * MS, 2_000 * MS)).0), []);
}

/// The end of a job is known before its thread comes back from waiting for the next.
#[test]
fn a_job_that_took_too_long_is_told_before_the_next_one() {
    let truth = Truth::periodic(1, 5_000 * MS, |_| (0, 40 * MS));
    let contract = contract("response = \"5ms\"\nwcet = \"5ms\"");
    let (watched, _) = truth.watched(&contract, &[60 * MS, 200 * MS, 400 * MS]);
    assert_eq!(told(&watched), [(Term::Wcet, 0, false, 51), (Term::Response, 0, false, 51)]);
}

/// A thread that is ready and gets no processor.
#[test]
fn a_job_that_does_not_begin_is_told() {
    let mut truth = Truth::periodic(5, 1_000 * MS, |_| (0, 0));
    truth.jobs.push((60 * MS, 5_000 * MS));
    let mut checker = Checker::new(&contract("response = \"5ms\""));
    let mut all = Vec::new();
    for (_, record) in &truth.records()[..6] {
        checker.record(record, &mut |it| all.push(it.clone()));
    }
    for tick in [70, 100, 300] {
        let now = Instant::from_ns(tick * MS);
        let waiting = Truth { jobs: truth.jobs[..5].to_vec(), ..truth };
        let glance = waiting.glance(tick * MS).map(|it| {
            let release = Some(Window::at(Instant::from_ns(60 * MS)));
            let stopped =
                it.stopped.map(|stop| Activation { resumed: Some(Resumed::new(release, now)), ..stop });
            Glance { stopped, ..it }
        });
        checker.overdue(now, &mut |_| glance, &mut |it| all.push(it.clone()));
    }
    assert_eq!(told(&all), [(Term::Response, 5, true, 300)]);
}

proptest! {
    /// However often a watch looks, what it finds in the end is what a check of the recording finds.
    #[test]
    fn a_watch_finds_what_a_check_finds(
        changes in prop::collection::vec((0..20_u64, 0..120_u64, 0..20_u64, 0..200_u64), 1..40),
        steps in prop::collection::vec(1..150_u64, 0..60),
        (cut, skips) in (0..900_u64, 0..4_u64),
    ) {
        let mut at = 0;
        let mut jobs = Vec::new();
        for (place, (is_late, late, is_long, long)) in changes.into_iter().enumerate() {
            let late = if is_late == 0 { late * MS } else { 0 };
            let release = (at + 1).max((place as u64 + 1) * 10 * MS) + late;
            at = release + MS + if is_long == 0 { long * MS } else { 0 };
            jobs.push((release, at));
        }
        let truth = Truth { jobs, until: cut * MS };
        let ticks: Vec<u64> = steps.iter().scan(0, |at, step| { *at += step * MS; Some(*at) }).collect();
        let terms = format!(
            "period = \"10ms\"\njitter = \"1ms\"\nskips = {skips}\n\
             response = \"5ms\"\ndeadline = \"30ms\""
        );
        let contract = contract(&terms);
        let (told, watched) = truth.watched(&contract, &ticks);
        let (_, checked) = check(&contract, &truth.recorded());
        prop_assert_eq!(&watched, &checked);
        prop_assert_eq!(told.len() as u64, watched.violations());
    }
}
