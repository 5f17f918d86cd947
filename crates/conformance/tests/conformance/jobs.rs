//! Each term, broken once by a known job.

use crate::kept::{check, model};
use crate::records::begins;
use punctual_conformance::{Answer, Checker, Contract, Term, Verdict, check_model};
use punctual_model::{Call, Duration, Instant, Object, ObjectName, Policy, Separator, Window};
use punctual_trace::{Activation, Record, Resumed};

pub const MS: u64 = 1_000_000;

/// A thread named `thread 0` that sleeps until releases; job i then takes its time.
pub struct Thread {
    pub records: Vec<Record>,
    cpu: u64,
    now: u64,
}

impl Thread {
    pub fn new() -> Thread {
        Thread { records: vec![begins(7, 0, 1_000)], cpu: 0, now: 10 * MS }
    }

    fn sequence(&self) -> u32 {
        self.records.len() as u32
    }

    /// Ends the job, sleeps until `release`, and then needs `cost`.
    fn sleep_at(&mut self, call: Call, release: u64, cost: u64) {
        let resumed =
            Resumed::new(Some(Window::at(Instant::from_ns(release))), Instant::from_ns(release + 10));
        let object = match call {
            Call::ClockNanosleep => Object::Clock { id: 1, absolute: true },
            _ => Object::None,
        };
        self.records.push(Record::Activation(Activation {
            tid: 7,
            sequence: self.sequence(),
            separator: Separator { call, object },
            slept: true,
            stop: Instant::from_ns(self.now),
            cpu: Duration::from_ns(self.cpu),
            arrival: None,
            resumed: Some(resumed),
        }));
        self.cpu += cost;
        self.now = release + cost;
    }

    pub fn sleep(&mut self, release: u64, cost: u64) {
        self.sleep_at(Call::ClockNanosleep, release, cost);
    }
}

pub fn contract(terms: &str) -> Contract {
    let text = format!("[[task]]\nname = \"thread 0\"\n{terms}");
    Contract::parse(&text).unwrap_or_else(|faulty| panic!("{faulty:?}"))
}

/// What is found: term, job, value.
pub fn found(contract: &Contract, thread: &Thread) -> Vec<(Term, u64, u64)> {
    let (found, _) = check(contract, &thread.records);
    found.iter().map(|it| (it.term, it.subject.as_ref().map_or(0, |it| it.job), it.value)).collect()
}

pub const SLEEP: &str = "separator = \"clock_nanosleep*\"\n";

#[test]
fn costs_and_responses() {
    let mut thread = Thread::new();
    for job in 1..20 {
        thread.sleep(job * 10 * MS, if job == 12 { 3 * MS } else { MS });
    }
    let is = |terms: &str| found(&contract(&format!("{SLEEP}{terms}")), &thread);
    assert_eq!(is("wcet = \"1ms\""), [(Term::Wcet, 11, 3 * MS)]);
    assert_eq!(is("wcet = \"3ms\""), []);
    assert_eq!(is("deadline = \"2ms\""), [(Term::Deadline, 11, 3 * MS)]);
    assert_eq!(is("response = \"999us\"").len(), 18);
    assert_eq!(is("period = \"10ms\"\njitter = \"0ms\""), []);
}

#[test]
fn sleeps_inside_jobs() {
    let mut thread = Thread::new();
    for job in 1..20 {
        thread.sleep(job * 10 * MS, MS);
        if job == 5 {
            let until = thread.now + 2 * MS;
            thread.sleep_at(Call::Suspension, until, MS);
        }
    }
    let is = |terms: &str| found(&contract(&format!("{SLEEP}{terms}")), &thread);
    assert_eq!(is("suspension = \"1ms\""), [(Term::Suspension, 4, 2 * MS)]);
    assert_eq!(is("suspension = \"2ms\""), []);
}

#[test]
fn releases() {
    let mut thread = Thread::new();
    for job in [1, 2, 3, 4, 7, 8, 9] {
        thread.sleep(job * 10 * MS, MS);
    }
    thread.sleep(96 * MS, MS);
    thread.sleep(100 * MS, MS);
    thread.sleep(114 * MS, MS);
    thread.sleep(124 * MS, MS);
    thread.sleep(134 * MS, MS);
    let terms = format!("{SLEEP}period = \"10ms\"\njitter = \"1ms\"\n");
    assert_eq!(
        found(&contract(&terms), &thread),
        [(Term::Skipped, 4, 2), (Term::Early, 7, 7 * MS), (Term::Late, 9, 4 * MS - 1)]
    );
    let skips = format!("{terms}skips = 2\n");
    assert_eq!(found(&contract(&skips), &thread).len(), 2);
    let separation = format!("{SLEEP}separation = \"5ms\"\n");
    assert_eq!(found(&contract(&separation), &thread), [(Term::Separation, 8, 4 * MS)]);
}

/// Every tenth job is long, and the contract lets as many exceed the limit; a deadline is for all, and nobody
/// may be more than a second late.
#[test]
fn some_jobs_may_exceed_a_limit() {
    let mut thread = Thread::new();
    for job in 1..200 {
        thread.sleep(job * 10 * MS, if job % 10 == 0 { 3 * MS } else { MS });
    }
    let of = |thread: &Thread, terms: &str| check(&contract(&format!("{SLEEP}{terms}")), &thread.records);
    let (found, verdict) = of(&thread, "wcet = \"1ms\"\nmay_exceed = \"10%\"");
    assert_eq!((found, verdict.tallies[0].standings[0].tolerated), (vec![], 19));
    assert_eq!(of(&thread, "wcet = \"1ms\"").0.len(), 19);
    // At any time, so many are more than chance explains from the sixth on.
    assert_eq!(of(&thread, "wcet = \"1ms\"\nmay_exceed = \"0.5%\"").0.len(), 14);
    assert_eq!(of(&thread, "deadline = \"2ms\"\nmay_exceed = \"50%\"").0.len(), 19);
    thread.sleep(2_000 * MS, 1_500 * MS);
    thread.sleep(4_000 * MS, MS);
    let (found, _) = of(&thread, "wcet = \"1ms\"\nmay_exceed = \"10%\"");
    assert_eq!(found.iter().map(|it| (it.term, it.value)).collect::<Vec<_>>(), [(Term::Wcet, 1_500 * MS)]);
}

/// A median or quartile is broken by most jobs of a window, and of the last one, which ends with the thread.
#[test]
fn most_jobs_are_judged_window_by_window() {
    let of = |jobs: std::ops::Range<u64>, slow: &dyn Fn(u64) -> bool| {
        let mut thread = Thread::new();
        for job in jobs.clone() {
            thread.sleep(job * 10 * MS, if slow(job) { 2 * MS } else { MS });
        }
        let (sequence, at) = (thread.sequence(), Instant::from_ns(jobs.end * 10 * MS));
        thread.records.push(Record::Exit { tid: 7, sequence, at });
        found(&contract(&format!("{SLEEP}quartile_cost = \"1500us\"")), &thread)
    };
    assert_eq!(of(1..2_002, &|_| false), []);
    assert_eq!(of(1..2_002, &|job| job % 4 != 0), []);
    // The first jobs of a program are slow.
    assert_eq!(of(1..2_002, &|job| job < 500), []);
    assert_eq!(of(1..2_002, &|job| job > 1_000), [(Term::QuartileCost, 1_999, 2 * MS)]);
    assert_eq!(of(1..202, &|job| job > 10), [(Term::QuartileCost, 199, 2 * MS)]);
    assert_eq!(of(1..49, &|_| true), []);
}

/// Releases at another period, sooner or later; and one that is early or late now and then.
#[test]
fn most_releases_are_judged() {
    let of = |period: u64, moved: u64| {
        let mut thread = Thread::new();
        for job in 2..200 {
            thread.sleep(job * period + if job % 3 == 0 { moved } else { 0 }, MS);
        }
        let (sequence, at) = (thread.sequence(), Instant::from_ns(200 * period));
        thread.records.push(Record::Exit { tid: 7, sequence, at });
        let range = "median_separation = { least = \"9ms\", most = \"11ms\" }";
        found(&contract(&format!("{SLEEP}{range}")), &thread)
            .iter()
            .map(|it| (it.0, it.2))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(10 * MS, 0), []);
    assert_eq!(of(12 * MS, 0), [(Term::Rare, 12 * MS)]);
    assert_eq!(of(8 * MS, 0), [(Term::Frequent, 8 * MS)]);
    // A third of them is too soon, another third too late.
    assert_eq!(of(10 * MS, 4 * MS), []);
}

/// Two jobs of 3 ms may follow each other, three not; and three releases need 15 ms.
#[test]
fn several_in_a_row() {
    let mut thread = Thread::new();
    for job in 1..20 {
        thread.sleep(job * 10 * MS, if (12..15).contains(&job) { 3 * MS } else { MS });
    }
    thread.sleep(194 * MS, MS);
    thread.sleep(198 * MS, MS);
    thread.sleep(220 * MS, MS);
    thread.sleep(230 * MS, MS);
    let is = |terms: &str| found(&contract(&format!("{SLEEP}{terms}")), &thread);
    assert_eq!(is("wcet = [\"3ms\", \"6ms\", \"8ms\"]"), [(Term::WcetOfSeveral, 13, 9 * MS)]);
    assert_eq!(is("wcet = [\"3ms\", \"6ms\", \"9ms\"]"), []);
    // Job 20 comes 8 ms after job 18.
    assert_eq!(is("separation = [\"0ms\", \"9ms\"]"), [(Term::SeparationOfSeveral, 20, 8 * MS)]);
    assert_eq!(is("separation = [\"4ms\", \"8ms\"]"), []);
}

/// What a contract from a model says of several jobs is what the model says.
#[test]
fn bursts_are_agreed_on() {
    let mut thread = Thread::new();
    for burst in 1..60 {
        let at = burst * 100 * MS + burst % 7 * burst % 5 * 9 * MS;
        thread.sleep(at, 2 * MS);
        thread.sleep(at + 3 * MS, MS);
    }
    let model = model(&thread.records);
    let contract = Contract::from(&model);
    let task = &contract.tasks[0];
    assert_eq!(task.separation, Some(Duration::from_ms(3)), "{task:#?}");
    assert!(
        task.more_separations.len() == 7 && task.more_separations[0] > Duration::from_ms(60),
        "{task:#?}"
    );
    assert_eq!(task.more_wcets[..2], [Duration::from_ms(3), Duration::from_ms(5)]);
    assert_eq!(found(&contract, &thread), []);
    let mut tighter = contract.clone();
    tighter.tasks[0].more_wcets[0] = Duration::from_ns(3 * MS - 1);
    assert!(found(&tighter, &thread).iter().all(|it| it.0 == Term::WcetOfSeveral));
    assert_eq!(check_model(&contract, &model).violations(), 0);
    assert_eq!(check_model(&tighter, &model).violations(), 1);
    assert_eq!(Contract::parse(&contract.to_toml()), Ok(contract));
}

/// One late job makes no other contract: the period is agreed on, and a faster program is found.
#[test]
fn one_late_job_leaves_the_period() {
    let at = |job: u64, period: u64| job * period + if job == 70 { 25 * MS } else { 0 };
    let running = |period: u64| {
        let mut thread = Thread::new();
        (1..70).for_each(|job| thread.sleep(at(job, period), MS));
        // While it is late, it does not wait.
        (73..400).for_each(|job| thread.sleep(at(job, period), MS));
        thread.sleep(at(400, period) + 25 * MS, MS);
        (404..500).for_each(|job| thread.sleep(at(job, period), MS));
        thread
    };
    let (same, faster) = (running(10 * MS), running(8 * MS));
    let contract = Contract::from(&model(&same.records));
    let task = &contract.tasks[0];
    assert_eq!((task.period, task.separation), (Some(Duration::from_ms(10)), None), "{task:#?}");
    assert_eq!(found(&contract, &same), []);
    assert!(found(&contract, &faster).len() > 10);
}

/// The same where the kernel tells when each job was due, and one is late by several periods: those after it
/// are late, too, until it has caught up.
#[test]
fn a_job_late_by_several_periods_leaves_the_period() {
    let running = |period: u64| {
        let mut thread = Thread::new();
        let mut until = 0;
        for job in 1..400 {
            let (due, cost) = (job * period, if job == 70 { 55 * MS } else { MS });
            thread.sleep(until.max(due), cost);
            until = until.max(due) + cost;
            if let Some(Record::Activation(activation)) = thread.records.last_mut() {
                activation.arrival = Some(Instant::from_ns(due));
                activation.slept = activation.stop.ns() < due;
            }
        }
        thread
    };
    let (same, slower) = (running(10 * MS), running(12 * MS));
    let contract = Contract::from(&model(&same.records));
    let task = &contract.tasks[0];
    assert_eq!((task.period, task.separation), (Some(Duration::from_ms(10)), None), "{task:#?}");
    assert!(task.jitter > task.period, "{task:#?}");
    assert_eq!(found(&contract, &same), []);
    assert!(!found(&contract, &slower).is_empty(), "{task:#?}");
}

/// What is certain of a response to a window breaks a contract, and what is not is mentioned.
#[test]
fn models_break_contracts_by_what_is_certain() {
    let mut thread = Thread::new();
    (1..60).for_each(|job| thread.sleep(job * 10 * MS, if job == 20 { 7 * MS } else { MS }));
    let window = |records: &mut [Record], place: usize| {
        let Record::Activation(activation) = &mut records[place] else { panic!("no activation") };
        let release = place as u64 * 10 * MS;
        let window = Window::new(Instant::from_ns(release - 4 * MS), Instant::from_ns(release));
        activation.resumed = Some(Resumed::new(window, Instant::from_ns(release + 10)));
    };
    window(&mut thread.records, 20);
    window(&mut thread.records, 30);
    let model = model(&thread.records);
    let judged = |deadline: &str| {
        let terms = format!("{SLEEP}deadline = \"{deadline}\"");
        let verdict = check_model(&contract(&terms), &model);
        let worst = verdict.tallies[0].standings.iter().find(|it| it.term == Term::Deadline);
        (verdict.violations(), worst.and_then(|it| it.worst), verdict.notes.len())
    };
    assert_eq!(judged("6ms"), (1, Some(7 * MS), 0));
    assert_eq!((judged("8ms").0, judged("8ms").2), (0, 1));
    assert_eq!((judged("11ms").0, judged("11ms").2), (0, 0));
}

fn notes(contract: &Contract, records: &[Record]) -> Vec<String> {
    check(contract, records).1.notes.into_iter().map(|note| note.text).collect()
}

/// A thread is judged where most of its jobs end. What was otherwise before or after is mentioned.
#[test]
fn jobs_at_another_separator_before_are_mentioned() {
    let mut thread = Thread::new();
    let cost = |job: u64| if job == 20 { 5 * MS } else { MS };
    (1..40).for_each(|job| thread.sleep_at(Call::FutexWait, job * 10 * MS, cost(job)));
    (40..140).for_each(|job| thread.sleep(job * 10 * MS, MS));
    let (found, verdict) = check(&contract("deadline = \"2ms\""), &thread.records);
    assert_eq!((found.len(), verdict.violations()), (0, 0));
    let [note] = &verdict.notes[..] else { panic!("{:?}", verdict.notes) };
    let words = "38 jobs that end at futex_wait were not judged (violations: 1): ";
    assert!(note.text.starts_with(words), "{}", note.text);
    assert_eq!(notes(&contract("deadline = \"6ms\""), &thread.records), [""; 0]);
    // Within jobs, they are part of them.
    let mut thread = Thread::new();
    for job in 1..100 {
        thread.sleep(job * 10 * MS, MS);
        thread.sleep_at(Call::FutexWait, job * 10 * MS + 2 * MS, 5 * MS);
    }
    assert_eq!(notes(&contract("wcet = \"20ms\"\nseparation = \"8.5ms\""), &thread.records), [""; 0]);
}

#[test]
fn a_thread_that_never_waits_is_called_so() {
    let cpu = Duration::from_ms(1_900);
    let records = [
        begins(7, 0, 1_000),
        Record::Busy { tid: 7, sequence: 1, cpu },
        Record::Last { tid: 7, sequence: 2, at: Instant::from_ns(2_000 * MS) },
    ];
    let terms = contract("deadline = \"8ms\"");
    let expected = ["no job was judged: it never waits, and used 1.9 s of processor time"];
    assert_eq!(notes(&terms, &records), expected);
    let of_model: Vec<String> =
        check_model(&terms, &model(&records)).notes.into_iter().map(|note| note.text).collect();
    assert_eq!(of_model, expected);
}

#[test]
fn a_clock_that_is_set_is_mentioned() {
    let mut thread = Thread::new();
    (1..20).for_each(|job| thread.sleep(job * 10 * MS, MS));
    let at = Instant::from_ns(100 * MS);
    thread.records.insert(5, Record::ClockSet { at, by_ns: -5_000_000_000 });
    let expected = ["CLOCK_REALTIME was set by -5 s: what was due in between is counted from then"];
    let terms = contract("deadline = \"8ms\"");
    assert_eq!(notes(&terms, &thread.records), expected);
    let of_model = check_model(&terms, &model(&thread.records)).notes;
    assert_eq!(of_model.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(), expected);
}

/// A thread that waits for two locks, with jobs of 10 ms at the first.
fn with_two_locks(locks: [Object; 2]) -> Thread {
    let mut thread = Thread::new();
    for job in 1..60 {
        for (lock, until) in locks.into_iter().zip([job * 10 * MS, job * 10 * MS + 3 * MS]) {
            let place = thread.records.len();
            thread.sleep_at(Call::FutexWait, until, MS);
            if let Record::Activation(activation) = &mut thread.records[place] {
                activation.separator.object = lock;
            }
        }
    }
    thread
}

/// Locks have other addresses in the next run, so a contract cannot tell the one where jobs end from others:
/// extraction does.
#[test]
fn of_several_locks_without_names_none_is_named() {
    let thread = with_two_locks([0x10, 0x20].map(Object::address));
    let contract = Contract::from(&model(&thread.records));
    let task = &contract.tasks[0];
    assert_eq!((task.separator.as_deref(), task.period), (None, Some(Duration::from_ms(10))), "{task:#?}");
    let (found, verdict) = check(&contract, &thread.records);
    assert_eq!((found, verdict.tallies[0].jobs), (vec![], 58));
}

#[test]
fn a_lock_with_a_name_is_named() {
    let lock = |address, name| Object::Address { address, name: ObjectName::new(name) };
    let first = with_two_locks([lock(0x10, "robot:[a]"), lock(0x20, "robot+0x20")]);
    let contract = Contract::from(&model(&first.records));
    let task = &contract.tasks[0];
    assert_eq!(task.separator.as_deref(), Some("futex_wait robot:[[]a[]]"));
    let judged = |thread: &Thread, contract: &Contract| {
        let (found, verdict) = check(contract, &thread.records);
        let notes: Vec<String> = verdict.notes.iter().map(|note| note.text.clone()).collect();
        (found, verdict.tallies[0].jobs, notes)
    };
    // In the next run they are elsewhere.
    let next = with_two_locks([lock(0x5010, "robot:[a]"), lock(0x5020, "robot+0x20")]);
    assert_eq!(judged(&next, &contract), (vec![], 58, vec![]));
    assert_eq!(check_model(&contract, &model(&next.records)).tallies[0].jobs, 58);
    let other = with_two_locks([lock(0x10, "robot:b"), lock(0x20, "robot+0x20")]);
    assert_eq!(judged(&other, &contract).1, 0);
    assert_eq!(judged(&other, &contract).2, ["no job that ends at its separator"]);
    let unnamed = with_two_locks([0x10, 0x20].map(Object::address));
    assert_eq!(
        judged(&unnamed, &contract).2,
        ["no job that ends at its separator; the records have no names of the addresses waited on"]
    );
    // By address, and of both locks.
    for (text, jobs) in [("futex_wait 0x10", 58), ("futex_wait robot*", 116), ("futex_wait *", 116)] {
        let text = format!("[[task]]\nname = \"thread 0\"\nseparator = \"{text}\"\n");
        let contract = Contract::parse(&text).expect("a contract");
        assert_eq!(judged(&first, &contract).1, jobs, "{text}");
    }
}

/// Of threads that wait for a lock each, a name would be that of one.
#[test]
fn threads_with_locks_of_their_own_have_no_name_for_them_all() {
    let worker = |tid: u32, address: u64| {
        let name = ObjectName::new(&format!("pool:locks+{address:#x}"));
        let mut thread = with_two_locks([Object::Address { address, name }; 2]);
        for record in &mut thread.records {
            match record {
                Record::Task(task) => (task.tid, task.name) = (tid, "worker".into()),
                Record::Activation(activation) => activation.tid = tid,
                _ => {}
            }
        }
        thread.records
    };
    let records = [worker(1, 0x10), worker(2, 0x38)].concat();
    let contract = Contract::from(&model(&records));
    assert_eq!(contract.tasks[0].separator.as_deref(), Some("futex_wait *"));
    assert!(check(&contract, &records).1.tallies[0].jobs > 200);
}

/// By 20 µs with each release: no two are far apart, but three hundred are.
#[test]
fn a_model_tells_of_releases_that_drift() {
    for (period, term) in [(10_020_000, Some(Term::Late)), (9_980_000, Some(Term::Early)), (10_000_000, None)]
    {
        let mut thread = Thread::new();
        (1..300).for_each(|job| thread.sleep(job * period, MS));
        let text = "[[task]]\nname = \"thread 0\"\nperiod = \"10ms\"\njitter = \"400us\"\n";
        let contract = Contract::parse(text).expect("a contract");
        let verdict = check_model(&contract, &model(&thread.records));
        let broken: Vec<Term> =
            verdict.tallies[0].standings.iter().filter(|it| it.violations > 0).map(|it| it.term).collect();
        assert_eq!(broken, term.into_iter().collect::<Vec<_>>(), "{period}");
        assert_eq!(found(&contract, &thread).is_empty(), term.is_none(), "{period}");
    }
}

#[test]
fn how_threads_are_scheduled() {
    let mut thread = Thread::new();
    for job in 1..5 {
        thread.sleep(job * 10 * MS, MS);
    }
    let Some(Record::Task(task)) = thread.records.first().cloned() else { panic!("introduced") };
    let other = match task.policy {
        Policy::Rr => "SCHED_FIFO",
        _ => "SCHED_RR",
    };
    let terms = format!("{SLEEP}policy = \"{other}\"\nprocessors = \"70\"");
    let is = |answer: &str| {
        let contract = Contract::parse(&format!("{answer}\n[[task]]\nname = \"thread 0\"\n{terms}"));
        check(&contract.expect("a contract"), &thread.records)
    };
    let (told, verdict) = is("");
    assert_eq!((told.len(), verdict.notes.len(), verdict.violations()), (0, 2, 0), "{:?}", verdict.notes);
    let (told, verdict) = is("scheduling = \"violation\"");
    let told: Vec<Term> = told.iter().map(|it| it.term).collect();
    assert_eq!((told, verdict.violations()), (vec![Term::Policy, Term::Processors], 2));
    assert_eq!(is("scheduling = \"ignore\"").1.notes, []);
}

/// Between two sleeps nobody sleeps: that goes without saying.
#[test]
fn no_suspension_is_agreed_on_between_sleeps() {
    let mut thread = Thread::new();
    for job in 1..40 {
        thread.sleep_at(Call::Suspension, job * 10 * MS, MS);
    }
    let task = Contract::from(&model(&thread.records)).tasks.remove(0);
    assert_eq!((task.separator.as_deref(), task.suspension), (Some("suspension"), None));
    let mut thread = Thread::new();
    for job in 1..40 {
        thread.sleep(job * 10 * MS, MS);
    }
    let task = Contract::from(&model(&thread.records)).tasks.remove(0);
    assert_eq!(task.suspension, Some(Duration::ZERO));
}

/// Without a separator in the contract, jobs end where the model says, from the first on.
#[test]
fn jobs_end_where_the_model_says() {
    let mut thread = Thread::new();
    for job in 1..40 {
        thread.sleep(job * 10 * MS, MS);
        let until = thread.now + MS;
        thread.sleep_at(Call::FutexWait, until, MS);
        let until = thread.now + MS;
        thread.sleep_at(Call::FutexWait, until, MS);
        let until = thread.now + MS;
        thread.sleep_at(Call::FutexWait, until, if job == 1 || job == 30 { 3 * MS } else { MS });
    }
    let (found, verdict) = check(&contract("period = \"10ms\"\nwcet = \"4ms\""), &thread.records);
    let found: Vec<_> = found.iter().map(|it| (it.term, it.value)).collect();
    assert_eq!(found, [(Term::Wcet, 6 * MS), (Term::Wcet, 6 * MS)]);
    assert_eq!((verdict.tallies[0].threads, verdict.tallies[0].jobs), (1, 38));
}

/// A thread that runs far more often than agreed is judged by all that it does, told at once.
#[test]
fn a_thread_that_is_far_too_fast_is_early() {
    let mut thread = Thread::new();
    for job in 2..402 {
        thread.sleep(job * 5 * MS, MS);
        let until = thread.now + MS;
        thread.sleep_at(Call::FutexWait, until, MS);
        let until = thread.now;
        thread.sleep_at(Call::FutexWait, until, 0);
    }
    let contract_of = |separator: &str| {
        contract(&format!("{separator}period = \"50ms\"\njitter = \"1ms\"\nwcet = \"1us\""))
    };
    let verdict = check(&contract_of(""), &thread.records).1;
    let tally = &verdict.tallies[0];
    let count = |term: Term| tally.standing(term).map_or(0, |it| it.violations);
    assert_eq!((tally.jobs, count(Term::Wcet)), (399, 399));
    // One in ten is where an activation may be.
    assert_eq!(count(Term::Early), 359);
    let named = check(&contract_of(SLEEP), &thread.records).1;
    assert_eq!((named.tallies[0].jobs, named.violations()), (399, verdict.violations()));
    let other = contract("separator = \"read *\"\nwcet = \"1us\"");
    assert_eq!(check(&other, &thread.records).1.notes[0].text, "no job that ends at its separator");
}

/// Waits for a disk in the first jobs, which make the sleeps of any kind the likeliest; then one wait a job,
/// and a lock in some. Live, the first violations are told by what turns out to be wrong, and do not count.
#[test]
fn a_separator_that_is_rejected_later_is_of_no_account() {
    let mut thread = Thread::new();
    for job in 1..200_u64 {
        if job > 12 {
            thread.sleep(job * 10 * MS, 100_000);
        } else {
            thread.sleep_at(Call::Suspension, job * 10 * MS, 100_000);
        }
        let blocked = if job % 7 == 0 { 4 * MS } else { 1 };
        let until = thread.now + blocked;
        thread.sleep_at(Call::Suspension, until, 100_000);
    }
    let terms = "response = \"3ms\"\nwcet = \"150us\"";
    let mut live = Checker::live(&contract(terms), Box::new(|_| None));
    let mut told = Vec::new();
    thread.records.iter().for_each(|record| live.record(record, &mut |it| told.push(it.term)));
    let verdict = live.finish(0, &mut |it| told.push(it.term));
    let named = check(&contract(&format!("{SLEEP}{terms}")), &thread.records).1;
    let counts = |verdict: &Verdict| {
        let tally = &verdict.tallies[0];
        (tally.jobs, tally.standings.iter().map(|it| it.violations).collect::<Vec<_>>())
    };
    assert_eq!(counts(&verdict), counts(&named));
    assert!(counts(&named).1.iter().all(|it| *it > 20), "{:?}", counts(&named));
    assert!(told.len() as u64 <= verdict.violations() + verdict.withdrawn);
}

#[test]
fn gaps_are_counted_and_not_judged() {
    let mut thread = Thread::new();
    for job in 1..20 {
        thread.sleep(job * 10 * MS, MS);
    }
    thread.records.drain(8..12);
    let contract = contract(&format!("{SLEEP}period = \"10ms\"\njitter = \"0ms\"\nwcet = \"1ms\""));
    let (found, verdict) = check(&contract, &thread.records);
    assert_eq!(found, []);
    assert_eq!((verdict.gaps, verdict.violations()), (1, 0));
    assert_eq!(verdict.tallies[0].jobs, 18 - 5);
}

#[test]
fn who_is_missing_idle_or_unknown() {
    let mut thread = Thread::new();
    let introduced = thread.records.clone();
    for job in 1..20 {
        thread.sleep(job * 10 * MS, MS);
    }
    let text = |head: &str, more: &str| {
        let text = format!("{head}\n[[task]]\nname = \"other\"\n{more}");
        Contract::parse(&text).unwrap_or_else(|faulty| panic!("{faulty:?}"))
    };
    let terms = |contract: &Contract, records: &[Record]| {
        let (found, verdict) = check(contract, records);
        assert_eq!(verdict.violations(), found.len() as u64);
        found.iter().map(|it| it.term).collect::<Vec<_>>()
    };
    assert_eq!(terms(&text("", ""), &thread.records), [Term::Missing]);
    assert_eq!(terms(&text("", "missing = \"note\""), &thread.records), []);
    let strict = text("unknown_threads = \"violation\"", "missing = \"ignore\"");
    assert_eq!(terms(&strict, &thread.records), [Term::Unknown]);
    let mut idle = contract("");
    assert_eq!(terms(&idle, &introduced), []);
    idle.tasks_without_jobs = Some(Answer::Violation);
    assert_eq!(terms(&idle, &introduced), [Term::NoJobs]);
    let (_, verdict) = check(&text("", "missing = \"note\""), &thread.records);
    assert_eq!(verdict.unknown.get("thread 0"), Some(&1));
    assert_eq!(verdict.notes.len(), 1);
}
