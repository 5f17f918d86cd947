//! The programs' state machine, compiled for user space (`tests/machine`): against a thread whose true
//! processor time is known, from which time is stolen, whose account is stale and of which some events are
//! not seen; and against sleeps that signals disturb.

use super::records::{Entry, decode};
use proptest::prelude::*;
use punctual_extract::{Extractor, Options};
use punctual_model::{Call, Disturbance, Instant};
use punctual_trace::{Activation, Record};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

mod clock;
mod ready;

/// The state machine as a program; the folder goes when the tests have ended.
static MACHINE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let scratch = tempfile::tempdir().expect("a folder");
    let program = scratch.path().join("machine");
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/machine");
    let arch = if cfg!(target_arch = "x86_64") { "-D__TARGET_ARCH_x86" } else { "-D__TARGET_ARCH_arm64" };
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=gnu11", "-O1", "-w", arch, "-I"])
        .arg(&source)
        .args(["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/src/bpf"), "-I", env!("OUT_DIR")])
        .arg("-o")
        .arg(&program)
        .arg(source.join("machine.c"));
    assert!(compiler.status().expect("a C compiler").success(), "{compiler:?}");
    (scratch, program)
});

/// What the thread does, or what becomes of it. Spans are nanoseconds.
#[derive(Clone, Debug)]
enum Step {
    /// It runs, and then some time is taken from it.
    Runs { had: u64, stolen: u64 },
    /// The kernel brings its account up to date.
    Tick,
    /// Another thread gets the processor meanwhile.
    Preempted { away: u64, is_seen: bool },
    /// It waits for a spinlock that sleeps (PREEMPT_RT).
    Locked { asleep: u64 },
    /// A read that finds something there: a job ends and the next begins. Another thread may get the
    /// processor inside of it, which may hold a lock.
    Finds { inside: u64, away: Option<u64>, locked: bool },
    /// A read that waits.
    Waits { asleep: u64, seen: Seen },
    /// It sleeps elsewhere: a suspension inside of the job.
    Suspended { asleep: u64 },
}

/// What of a sleep is seen.
#[derive(Clone, Copy, Debug)]
enum Seen {
    All,
    /// Not the wake-up.
    Stop,
    /// Neither the wake-up nor that it got a processor.
    StopOnly,
    /// Nothing of it.
    Nothing,
}

fn step(all_is_seen: bool) -> impl Strategy<Value = Step> {
    let rarely = u32::from(!all_is_seen);
    let seen = prop_oneof![
        6 => Just(Seen::All),
        rarely => Just(Seen::Stop),
        rarely => Just(Seen::StopOnly),
        rarely => Just(Seen::Nothing),
    ];
    let stolen = prop_oneof![2 => Just(0), 1 => 1..3_000_u64, 1 => 1..2_000_000_u64];
    let is_seen = prop_oneof![4 => Just(true), rarely => Just(false)];
    prop_oneof![
        6 => (0..300_000_u64, stolen).prop_map(|(had, stolen)| Step::Runs { had, stolen }),
        1 => Just(Step::Tick),
        1 => (0..1_000_000_u64, is_seen).prop_map(|(away, is_seen)| Step::Preempted { away, is_seen }),
        1 => (1..1_000_000_u64).prop_map(|asleep| Step::Locked { asleep }),
        4 => (0..2_000_u64, prop::option::weighted(0.2, 0..1_000_000_u64), any::<bool>())
            .prop_map(|(inside, away, locked)| Step::Finds { inside, away, locked }),
        2 => (1..1_000_000_u64, seen).prop_map(|(asleep, seen)| Step::Waits { asleep, seen }),
        1 => (1..1_000_000_u64).prop_map(|asleep| Step::Suspended { asleep }),
    ]
}

/// Where one job ends and the next begins: when, what the thread has had by then, and how long it has been on
/// a processor.
#[derive(Clone, Copy)]
struct Border {
    had: u64,
    on_processor: u64,
}

/// Makes the events of the steps.
#[derive(Default)]
struct World {
    now: u64,
    had: u64,
    on_processor: u64,
    account: u64,
    events: String,
    borders: Vec<Border>,
}

impl World {
    fn tell(steps: &[Step]) -> World {
        let mut world = World { now: 1_000_000, ..World::default() };
        world.event("in", 0);
        for step in steps {
            world.step(step);
        }
        // The last job ends with a wait, so that all accounts are exact.
        world.step(&Step::Waits { asleep: 1_000, seen: Seen::All });
        world
    }

    fn event(&mut self, what: &str, last: i64) {
        let _ = writeln!(self.events, "{what} {} {} {last}", self.now, self.account);
    }

    fn run(&mut self, had: u64, stolen: u64) {
        self.had += had;
        self.now += had + stolen;
        self.on_processor += had + stolen;
    }

    fn border(&mut self) {
        self.borders.push(Border { had: self.had, on_processor: self.on_processor });
    }

    /// Inside of a job, in this state.
    fn sleep(&mut self, state: i64, asleep: u64) {
        self.account = self.had;
        self.event("out", state);
        self.now += asleep;
        self.event("wake", 0);
        self.event("in", 0);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Runs { had, stolen } => self.run(had, stolen),
            Step::Tick => self.account = self.had,
            Step::Preempted { away, is_seen } => {
                self.account = self.had;
                self.event("out", 0);
                self.now += away;
                if is_seen {
                    self.event("in", 0);
                }
            }
            Step::Finds { inside, away, locked } => {
                self.border();
                self.event("enter", 0);
                self.run(inside, 0);
                if let Some(away) = away {
                    self.step(&if locked {
                        Step::Locked { asleep: away }
                    } else {
                        Step::Preempted { away, is_seen: true }
                    });
                }
                self.event("exit", 1);
            }
            Step::Waits { asleep, seen } => {
                self.event("enter", 0);
                self.account = self.had;
                self.border();
                self.event(if matches!(seen, Seen::Nothing) { "sleep" } else { "out" }, 1);
                self.now += asleep;
                if matches!(seen, Seen::All) {
                    self.event("wake", 0);
                }
                if matches!(seen, Seen::All | Seen::Stop) {
                    self.event("in", 0);
                }
                self.event("exit", 1);
            }
            Step::Suspended { asleep } => self.sleep(2, asleep),
            Step::Locked { asleep } => self.sleep(0x1000, asleep),
        }
    }
}

/// What the state machine makes of these events.
fn records_of(events: &str) -> Vec<Record> {
    let mut machine =
        Command::new(&MACHINE.1).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the machine");
    let mut input = machine.stdin.take().expect("a pipe");
    let events = events.to_owned();
    let writer = std::thread::spawn(move || input.write_all(events.as_bytes()));
    let output = machine.wait_with_output().expect("its end");
    writer.join().expect("no panic").expect("all taken");
    assert!(output.status.success());
    let mut rest = &output.stdout[..];
    let mut records = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (record, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        match decode(record).expect("a record") {
            Entry::Record(record) => records.push(record),
            Entry::Task(entry) => records.push(Record::Task(Box::new(entry.record))),
            Entry::Blocked(raw) => panic!("{:?} without switches", raw.header),
            Entry::Command(entry) => {
                records.push(Record::Command {
                    tid: entry.tid,
                    sequence: entry.sequence,
                    command: entry.command,
                });
            }
        }
        rest = behind;
    }
    records
}

/// The costs of the jobs at the reads, in order, and whether each is longer than there was time between its
/// start and its end.
fn costs_of(records: &[Record]) -> Vec<(u64, bool)> {
    let mut extractor = Extractor::new(Options::default());
    let mut costs = Vec::new();
    for record in records {
        extractor.record_jobs(record, &mut |seen| {
            if seen.separator.call == Call::Read {
                let sum: u64 = seen.segments.iter().map(|segment| segment.cost.ns()).sum();
                assert_eq!(sum, seen.job.cost.ns(), "the segments are the job");
                costs.push((seen.job.cost.ns(), seen.job.cost > seen.job.end.since(seen.job.start)));
            }
        });
    }
    costs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_job_costs_too_little_and_all_no_more_than_there_was(
        steps in prop::collection::vec(step(true), 1..80)
    ) {
        let world = World::tell(&steps);
        let costs = costs_of(&records_of(&world.events));
        prop_assert_eq!(costs.len() + 1, world.borders.len());
        for ((cost, is_too_long), pair) in costs.iter().zip(world.borders.windows(2)) {
            prop_assert!(*cost >= pair[1].had - pair[0].had, "{cost} for {}", pair[1].had - pair[0].had);
            prop_assert!(!is_too_long);
        }
        let sum: u64 = costs.iter().map(|(cost, _)| cost).sum();
        let (first, last) = (world.borders[0], world.borders[world.borders.len() - 1]);
        let on_processor = last.on_processor - first.on_processor;
        prop_assert!(sum <= on_processor, "{sum} in {on_processor}");
    }

    #[test]
    fn no_job_costs_too_little_whatever_is_not_seen(steps in prop::collection::vec(step(false), 1..80)) {
        let world = World::tell(&steps);
        let costs = costs_of(&records_of(&world.events));
        prop_assert_eq!(costs.len() + 1, world.borders.len());
        for ((cost, _), pair) in costs.iter().zip(world.borders.windows(2)) {
            prop_assert!(*cost >= pair[1].had - pair[0].had, "{cost} for {}", pair[1].had - pair[0].had);
        }
    }
}

/// Not even in a read that finds something there: it has not slept.
#[test]
fn a_spinlock_that_sleeps_ends_no_job() {
    let locked = Step::Locked { asleep: 1_000 };
    let read = Step::Finds { inside: 500, away: Some(1_000), locked: true };
    let records = records_of(&World::tell(&[locked, read]).events);
    let ends = records.iter().filter_map(|record| match record {
        Record::Activation(activation) => Some((activation.separator.call, activation.slept)),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [(Call::Read, false), (Call::Read, true)]);
}

const STOPPED: i64 = 4;
const ERESTARTNOHAND: i64 = -514;

/// The activations of a thread that sleeps until 10 ms after its beginning, and then until 20 ms.
fn sleeps(events: &[(&str, u64, i64)]) -> Vec<Activation> {
    let mut text = "in 1000 0 0\nuntil 2000 0 10000000\nout 3000 0 1\n".to_owned();
    let rest = [("until", 15_000_000, 20_000_000), ("out", 15_001_000, 1), ("wake", 20_001_000, 0)];
    let end = [("in", 20_002_000, 0), ("exit", 20_003_000, 0)];
    for (event, at, argument) in events.iter().chain(&rest).chain(&end) {
        let _ = writeln!(text, "{event} {at} 0 {argument}");
    }
    let records = records_of(&text);
    let activations = records.iter().filter_map(|record| match record {
        Record::Activation(activation) => Some(*activation),
        _ => None,
    });
    activations.filter(|activation| activation.separator.call == Call::ClockNanosleep).collect()
}

/// One activation for each sleep, with its arrival, the first released between these instants.
fn expect_release(events: &[(&str, u64, i64)], earliest: u64, latest: u64) {
    let activations = sleeps(events);
    let arrivals: Vec<_> = activations.iter().map(|activation| activation.arrival).collect();
    let expected = [10_000_000, 20_000_000].map(|at| Some(Instant::from_ns(at)));
    assert_eq!(arrivals, expected, "{activations:#?}");
    let release = activations[0].resumed.and_then(|resumed| resumed.release).expect("a release");
    assert_eq!((release.earliest().ns(), release.latest().ns()), (earliest, latest), "{activations:#?}");
}

#[test]
fn a_stop_and_a_restart_are_one_sleep() {
    expect_release(
        &[
            ("wake", 5_000_000, 0),
            ("in", 5_001_000, 0),
            ("exit", 5_002_000, ERESTARTNOHAND),
            ("out", 5_003_000, STOPPED),
            ("wake", 6_000_000, 0),
            ("in", 6_001_000, 0),
            ("again", 6_002_000, 0),
            ("out", 6_003_000, 1),
            ("wake", 10_001_000, 0),
            ("in", 10_002_000, 0),
            ("exit", 10_003_000, 0),
        ],
        10_001_000,
        10_001_000,
    );
}

/// A second stop hits the thread when it has just been continued.
#[test]
fn two_stops_in_a_sleep_are_one_sleep() {
    expect_release(
        &[
            ("wake", 5_000_000, 0),
            ("in", 5_001_000, 0),
            ("exit", 5_002_000, ERESTARTNOHAND),
            ("out", 5_003_000, STOPPED),
            ("wake", 6_000_000, 0),
            ("in", 6_001_000, 0),
            ("again", 6_002_000, 0),
            ("exit", 6_003_000, ERESTARTNOHAND),
            ("out", 6_004_000, STOPPED),
            ("wake", 7_000_000, 0),
            ("in", 7_001_000, 0),
            ("again", 7_002_000, 0),
            ("out", 7_003_000, 1),
            ("wake", 10_001_000, 0),
            ("in", 10_002_000, 0),
            ("exit", 10_003_000, 0),
        ],
        10_001_000,
        10_001_000,
    );
}

/// The signal wakes the thread, and the timer goes off before it has a processor: the call has slept until
/// its time, but the only wake-up is the signal's.
#[test]
fn a_signal_just_before_the_time_leaves_the_arrival() {
    expect_release(
        &[
            ("wake", 9_900_000, 0),
            ("in", 10_200_000, 0),
            ("exit", 10_201_000, 0),
            ("out", 10_202_000, STOPPED),
        ]
        .iter()
        .chain(&[("wake", 11_000_000, 0), ("in", 11_001_000, 0)])
        .copied()
        .collect::<Vec<_>>(),
        10_000_000,
        10_200_000,
    );
}

/// As before, but the thread has a processor again before the timer goes off.
#[test]
fn a_timer_that_goes_off_while_the_thread_runs_leaves_the_arrival() {
    expect_release(
        &[("wake", 9_900_000, 0), ("in", 9_990_000, 0), ("exit", 10_010_000, 0)],
        10_000_000,
        10_010_000,
    );
}

#[test]
fn an_interruption_that_is_not_seen_leaves_the_arrival() {
    expect_release(
        &[
            ("wake", 5_000_000, 0),
            ("in", 5_001_000, 0),
            ("leave", 5_002_000, ERESTARTNOHAND),
            ("out", 5_003_000, STOPPED),
            ("wake", 6_000_000, 0),
            ("in", 6_001_000, 0),
            ("again", 6_002_000, 0),
            ("out", 6_003_000, 1),
            ("wake", 10_001_000, 0),
            ("in", 10_002_000, 0),
            ("exit", 10_003_000, 0),
        ],
        10_001_000,
        10_001_000,
    );
}

/// Stopped beyond the time; the restart, which returns at once, is not seen.
#[test]
fn a_restart_that_is_not_seen_leaves_the_arrival() {
    let activations = sleeps(&[
        ("wake", 5_000_000, 0),
        ("in", 5_001_000, 0),
        ("exit", 5_002_000, ERESTARTNOHAND),
        ("out", 5_003_000, STOPPED),
        ("wake", 12_000_000, 0),
        ("in", 12_001_000, 0),
        ("exit", 12_002_000, 0),
    ]);
    let arrivals: Vec<_> = activations.iter().map(|activation| activation.arrival).collect();
    assert_eq!(arrivals, [10_000_000, 20_000_000].map(|at| Some(Instant::from_ns(at))));
}

/// A handler ends the sleep before its time: its arrival is of no job.
#[test]
fn a_sleep_that_is_cut_short_has_no_arrival() {
    let activations = sleeps(&[("wake", 5_000_000, 0), ("in", 5_001_000, 0), ("exit", 5_002_000, -4)]);
    assert_eq!(activations[0].arrival, None);
}

/// The arrival of a sleep until 10 ms behind this time of CLOCK_REALTIME, which is set by so much meanwhile.
fn arrival_of_sleep_on_realtime(set_by: i64) -> Option<u64> {
    const AHEAD: i64 = 1_700_000_000_000_000_000;
    let (until, set) = (AHEAD + 10_000_000, AHEAD + set_by);
    let text = format!(
        "in 1000 0 0\nahead 1500 0 {AHEAD}\nuntil 2000 0 {until}\nout 3000 0 1\nahead 4000 0 {set}
         wake 12000000 0 0\nin 12001000 0 0\nexit 12002000 0 0\n"
    );
    let records = records_of(&text);
    let mut arrivals = records.iter().filter_map(|record| match record {
        Record::Activation(activation) => Some(activation.arrival),
        _ => None,
    });
    arrivals.next().expect("it returned").map(Instant::ns)
}

#[test]
fn a_sleep_on_another_clock_has_an_arrival_on_ours() {
    assert_eq!(arrival_of_sleep_on_realtime(0), Some(10_000_000));
    assert_eq!(arrival_of_sleep_on_realtime(-2_000_000), Some(12_000_000));
    assert_eq!(arrival_of_sleep_on_realtime(1_000_000), Some(9_000_000));
}

/// What moved the release of a sleep until 10 ms, whose timer comes 2 ms late, if so much was taken from the
/// processor before the thread stopped and by the time that it was woken.
fn disturbance_if_stolen(before: i64, by_then: i64) -> Option<Disturbance> {
    let text = format!(
        "in 1000 0 0\nstolen 1500 0 {before}\nuntil 2000 0 10000000\nout 3000 0 1\nstolen 4000 0 {by_then}
         wake 12000000 0 0\nin 12001000 0 0\nexit 12002000 0 0\n"
    );
    let records = records_of(&text);
    let mut resumed = records.iter().filter_map(|record| match record {
        Record::Activation(activation) => activation.resumed,
        _ => None,
    });
    resumed.next().expect("it returned").disturbance
}

#[test]
fn a_timer_is_late_because_of_a_stall_if_its_processor_was_taken() {
    assert_eq!(disturbance_if_stolen(5_000_000, 6_900_000), Some(Disturbance::Stall));
    assert_eq!(disturbance_if_stolen(5_000_000, 5_900_000), None);
    assert_eq!(disturbance_if_stolen(0, 0), None);
}

/// A wait for a timer that expires each millisecond, and what its record says.
#[derive(Debug, PartialEq)]
struct TimerWait {
    slept: bool,
    expirations: u64,
    arrival: Option<u64>,
    /// Earliest and latest instant of the release; absent where the call did not sleep.
    release: Option<(u64, u64)>,
}

/// What comes of these events, which begin 10 ms after the clock's zero: the same for reads of a timerfd and
/// for the signals of a POSIX timer.
fn timer_wait(events: &[(&str, u64, i64)]) -> TimerWait {
    let read = timer_wait_by(Call::Read, "timer", 8, events);
    assert_eq!(read, timer_wait_by(Call::RtSigtimedwait, "signal", 34, events));
    read
}

fn timer_wait_by(call: Call, enter: &str, result: i64, events: &[(&str, u64, i64)]) -> TimerWait {
    let mut text = "in 10000000 0 0\n".to_owned();
    for (event, after, argument) in events {
        let (event, argument) = match *event {
            "wait" => (enter, 0),
            "exit" => ("exit", result),
            other => (other, *argument),
        };
        let _ = writeln!(text, "{event} {} 0 {argument}", 10_000_000 + after);
    }
    let records = records_of(&text);
    let mut waits = records.iter().filter_map(|record| match record {
        Record::Activation(activation) if activation.separator.call == call => Some(activation),
        _ => None,
    });
    let (Some(wait), None) = (waits.next(), waits.next()) else { panic!("not one wait: {records:#?}") };
    let resumed = wait.resumed.expect("it returned");
    TimerWait {
        slept: wait.slept,
        expirations: resumed.expirations,
        arrival: wait.arrival.map(Instant::ns),
        release: resumed.release.map(|release| (release.earliest().ns(), release.latest().ns())),
    }
}

/// The thread is woken by the first expiration; two more pass before it has a processor.
#[test]
fn a_wait_that_slept_was_due_at_the_first_expiration() {
    let wait = timer_wait(&[
        ("wait", 1_000, 0),
        ("out", 2_000, 1),
        ("wake", 503_000, 0),
        ("in", 2_600_000, 0),
        ("next", 2_601_000, 13_500_000),
        ("taken", 2_601_000, 3),
        ("exit", 2_602_000, 0),
    ]);
    let release = Some((10_503_000, 10_503_000));
    assert_eq!(wait, TimerWait { slept: true, expirations: 3, arrival: Some(10_500_000), release });
}

/// A thread that is late finds what has expired meanwhile: the last of it is its arrival.
#[test]
fn a_call_that_did_not_wait_was_due_at_the_last_expiration() {
    let wait = timer_wait(&[
        ("wait", 2_600_000, 0),
        ("next", 2_601_000, 13_500_000),
        ("taken", 2_601_000, 3),
        ("exit", 2_602_000, 0),
    ]);
    assert_eq!(wait, TimerWait { slept: false, expirations: 3, arrival: Some(12_500_000), release: None });
}

#[test]
fn a_timer_that_expires_inside_of_the_call_ends_the_job_before() {
    let wait = timer_wait(&[
        ("wait", 499_000, 0),
        ("next", 501_000, 11_500_000),
        ("taken", 501_000, 1),
        ("exit", 502_000, 0),
    ]);
    let release = Some((10_500_000, 10_500_000));
    assert_eq!(wait, TimerWait { slept: true, expirations: 1, arrival: Some(10_500_000), release });
}

/// The wake-up was not seen: the thread was released between its arrival and when it ran.
#[test]
fn an_arrival_narrows_the_window_of_a_release() {
    let wait = timer_wait(&[
        ("wait", 1_000, 0),
        ("out", 2_000, 1),
        ("in", 600_000, 0),
        ("next", 601_000, 11_500_000),
        ("taken", 601_000, 1),
        ("exit", 602_000, 0),
    ]);
    let release = Some((10_500_000, 10_600_000));
    assert_eq!(wait, TimerWait { slept: true, expirations: 1, arrival: Some(10_500_000), release });
}

/// A signal wakes the thread, and the timer expires before it has a processor.
#[test]
fn a_timer_that_expires_after_the_wake_up_releases() {
    let wait = timer_wait(&[
        ("wait", 1_000, 0),
        ("out", 2_000, 1),
        ("wake", 400_000, 0),
        ("in", 600_000, 0),
        ("next", 601_000, 11_500_000),
        ("taken", 601_000, 1),
        ("exit", 602_000, 0),
    ]);
    let release = Some((10_500_000, 10_600_000));
    assert_eq!(wait, TimerWait { slept: true, expirations: 1, arrival: Some(10_500_000), release });
}

#[test]
fn a_timer_on_another_clock_says_when_it_was_on_ours() {
    let wait = timer_wait(&[
        ("ahead", 0, 1_700_000_000_000_000_000),
        ("wait", 2_600_000, 0),
        ("next", 2_601_000, 1_700_000_000_013_500_000),
        ("taken", 2_601_000, 1),
        ("exit", 2_602_000, 0),
    ]);
    assert_eq!(wait.arrival, Some(12_500_000));
}

/// Another thread has set the timer since: what it says is of no expiration that the call took.
#[test]
fn a_timer_that_was_set_anew_says_nothing() {
    let wait = timer_wait(&[
        ("wait", 2_600_000, 0),
        ("next", 2_601_000, 93_500_000),
        ("taken", 2_601_000, 2),
        ("exit", 2_602_000, 0),
    ]);
    assert_eq!(wait, TimerWait { slept: false, expirations: 2, arrival: None, release: None });
}
