//! Soundness: kernels that obey the rules, simulated, seen by the state machine that runs in the kernel
//! (compiled for user space). No simulated latency is above the bound of the same run.

mod kernel;
mod parts;

use kernel::{Arrival, Case, Effect, Kernel, Latency, Random, Scheduler};
use punctual_latency::{
    HORIZON, Inside, InterruptModel, Occurrence, Outcome, Section, Tracker, Variables, Wait, WaitPart, bound,
};
use punctual_model::latency::{InterruptCurves, RanKind, Wakeup};
use punctual_model::{Duration, Instant};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What was measured in one run.
#[derive(Debug)]
struct Measured {
    variables: Variables,
    sources: BTreeMap<u32, InterruptCurves>,
    negative: u64,
    waits: Vec<Waited>,
}

/// What the state machine says of a latency.
#[derive(Clone, Debug)]
struct Waited {
    ready: u64,
    latency: u64,
    overhead: u64,
    /// Of each part: how much it is, where it begins, how long it was open before.
    parts: [[u64; 3]; parts::PARTS],
    /// The interrupts so far.
    interrupts: Vec<Inside>,
}

fn compiled() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("machine");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/latency/simulation/machine.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source);
    assert!(compiler.status().unwrap().success(), "{compiler:?}");
    (folder, program)
}

/// What the state machine makes of the events of all runs.
fn measure(events: String) -> Vec<Measured> {
    measure_with(events, &[])
}

/// The same with options of the program.
fn measure_with(events: String, options: &[&str]) -> Vec<Measured> {
    let (_folder, program) = compiled();
    let mut machine =
        Command::new(program).args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = machine.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(events.as_bytes()).unwrap());
    let output = machine.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    let mut runs = Vec::new();
    let mut trackers: BTreeMap<u32, Tracker> = BTreeMap::new();
    let (mut waits, mut interrupts) = (Vec::new(), Vec::new());
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let mut numbers = line[2..].split(' ').map(|word| word.parse::<u64>().unwrap());
        let mut number = || numbers.next().unwrap();
        if line.starts_with('i') {
            let source = u32::try_from(number()).unwrap();
            let (entry, exit) = (Instant::from_ns(number()), Instant::from_ns(number()));
            let execution = Duration::from_ns(number());
            let tracker = trackers.entry(source).or_insert_with(|| Tracker::new(HORIZON));
            tracker.add(Occurrence { entry, exit, execution });
            let (kind, name) = (RanKind::Interrupt, source.to_string());
            interrupts.push(Inside { kind, name, number: source, entry, exit, execution });
            continue;
        }
        if line.starts_with('w') {
            let [ready, latency, overhead] = [(); 3].map(|()| number());
            let parts = [(); parts::PARTS].map(|()| [(); 3].map(|()| number()));
            waits.push(Waited { ready, latency, overhead, parts, interrupts: interrupts.clone() });
            continue;
        }
        let [poid, psd, st, paie] = [(); 4].map(|()| Duration::from_ns(number()));
        let sources = std::mem::take(&mut trackers);
        interrupts.clear();
        runs.push(Measured {
            variables: Variables { poid, psd, st, paie },
            sources: sources.into_iter().map(|(name, it)| (name, it.curves().clone())).collect(),
            negative: number(),
            waits: std::mem::take(&mut waits),
        });
    }
    runs
}

fn bound_of(measured: &Measured, model: InterruptModel) -> Outcome {
    let sources: Vec<_> = measured.sources.iter().map(|(name, source)| (*name == 1, source)).collect();
    bound(&measured.variables, &sources, model, HORIZON).outcome
}

/// Interrupts of one to five sources, in bursts or apart; source 1 is the NMI.
fn random_arrivals(random: &mut Random, end: u64) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for source in 1..=1 + random.below(5) as u32 {
        let greatest = 1 + random.below(if source == 1 { 800 } else { 4_000 });
        let (gap, burst) = (2_000 + random.below(100_000), random.below(3));
        let wakes = random.below(3);
        let mut at = random.below(gap);
        while at < end {
            let effect = match (source, wakes, random.below(3)) {
                (1, ..) => Effect::Nothing,
                (_, 0, 0 | 1) => Effect::Wakes,
                (_, 1, 0) => Effect::WakesOther,
                _ => Effect::Nothing,
            };
            arrivals.push(Arrival { at, source, execution: random.span(greatest), effect });
            at += if random.below(4) < burst {
                1 + random.below(greatest * 2)
            } else {
                gap / 2 + random.below(gap)
            };
        }
    }
    arrivals
}

/// What a thread does next: sections with preemption or interrupts disabled in every order, a wake-up, sleep.
fn run_section(kernel: &mut Kernel, kind: u64, [first, second, third]: [u64; 3]) {
    match kind {
        0 => {
            kernel.disable_preemption();
            kernel.run(first);
            kernel.enable_preemption();
        }
        1 => {
            kernel.disable_interrupts();
            kernel.run(first);
            kernel.enable_interrupts();
        }
        2 => {
            kernel.disable_interrupts();
            kernel.run(first);
            kernel.disable_preemption();
            kernel.run(second);
            kernel.enable_interrupts();
            kernel.run(third);
            kernel.enable_preemption();
        }
        3 => {
            kernel.disable_preemption();
            kernel.run(first);
            kernel.disable_interrupts();
            kernel.run(second);
            kernel.enable_preemption();
            kernel.run(third);
            kernel.enable_interrupts();
        }
        4 => kernel.wake_from_thread(first / 2, second / 2),
        5 => kernel.sleep(first * 4),
        6 => kernel.exception(first),
        _ => kernel.run(first * 2),
    }
}

/// A random schedule: how busy with interrupts, how long sections and the scheduler are, differs from run to
/// run.
fn random_schedule(seed: u64) -> Kernel {
    let mut random = Random(seed);
    let end = 400_000 + random.below(400_000);
    let arrivals = random_arrivals(&mut random, end);
    let stretch = 1 + random.below(4_000);
    let enabled = 1 + random.below(1_000);
    let mut timing = Random(random.next());
    let scheduler = move || Scheduler {
        stretches: [(); 6].map(|()| timing.span(stretch)),
        enabled: timing.span(enabled),
    };
    let mut kernel = Kernel::new(arrivals, Box::new(scheduler));
    let section = 1 + random.below(15_000);
    while kernel.now < end {
        let (first, second, third) = (random.span(section), random.span(section), random.span(section));
        let kind = random.below(8);
        run_section(&mut kernel, kind, [first, second, third]);
    }
    kernel.events.push_str(". 0 0 0 0\n");
    kernel
}

#[test]
fn no_latency_is_above_the_bound() {
    let seeds = 0..4_000_u64;
    let mut events = String::new();
    let mut latencies: Vec<Vec<Latency>> = Vec::new();
    for seed in seeds.clone() {
        let kernel = random_schedule(seed);
        events.push_str(&kernel.events);
        latencies.push(kernel.latencies);
    }
    let runs = measure(events);
    assert_eq!(runs.len(), latencies.len());
    let mut cases: BTreeMap<Case, u64> = BTreeMap::new();
    let (mut bounded, mut closest) = (0_u64, 0.0_f64);
    for (seed, (measured, latencies)) in seeds.zip(runs.iter().zip(&latencies)) {
        assert_eq!(measured.negative, 0, "seed {seed}");
        for latency in latencies {
            *cases.entry(latency.case).or_default() += 1;
        }
        let Outcome::Converged(limit) = bound_of(measured, InterruptModel::SlidingWindow) else { continue };
        bounded += 1;
        // The other sliding window, with worst execution times, is never below.
        let wcet = bound_of(measured, InterruptModel::SlidingWindowWcet);
        assert!(!matches!(wcet, Outcome::Converged(wcet) if wcet < limit), "seed {seed}: {wcet:?}");
        for latency in latencies {
            assert!(latency.from_ready <= limit.ns(), "seed {seed}: {latency:?} above {limit}");
            assert!(latency.from_arrival <= limit.ns(), "seed {seed}: {latency:?} above {limit}");
            closest = closest.max(latency.from_arrival as f64 / limit.ns() as f64);
        }
    }
    for case in [Case::Ia, Case::Ib, Case::Ic, Case::Iia, Case::Iib, Case::Idle] {
        assert!(cases.get(&case).is_some_and(|&count| count >= 100), "{case:?} hardly occurs: {cases:?}");
    }
    assert!(bounded >= 3_000, "only {bounded} runs have a bound");
    println!("{bounded} runs with a bound, {cases:?}, at most {closest:.3} of the bound");
}

/// Noting a culprit takes long and is interrupted, and a clock such as HPET masks interrupts, which is told
/// like any other masking: nothing of that may show in a variable.
#[test]
fn what_the_observer_does_is_nobodys_time() {
    let seeds = 0..1_000_u64;
    let events: String = seeds.map(|seed| random_schedule(seed).events).collect();
    let undisturbed = measure(events.clone());
    let disturbed = measure_with(events, &["10000"]);
    assert_eq!(undisturbed.len(), disturbed.len());
    for (seed, (expected, found)) in undisturbed.iter().zip(&disturbed).enumerate() {
        assert_eq!(found.negative, 0, "seed {seed}");
        assert_eq!(found.variables, expected.variables, "seed {seed}");
    }
}

/// As above, and interrupts come in the middle of the parser's own work, too, and make threads ready: the
/// thread's time goes on where it stopped, never before.
#[test]
fn no_duration_is_negative_when_the_parser_is_interrupted() {
    let events: String = (0..1_000_u64).map(|seed| random_schedule(seed).events).collect();
    for (seed, found) in measure_with(events, &["10000", "wakes"]).iter().enumerate() {
        assert_eq!(found.negative, 0, "seed {seed}");
    }
}

const KINDS: [RanKind; 4] = [RanKind::Poid, RanKind::Psd, RanKind::St, RanKind::Paie];

/// As a measurement makes it.
fn explained(waited: &Waited) -> Wakeup {
    let part = |(index, &[spent, from, before]): (usize, &[u64; 3])| WaitPart {
        section: KINDS.get(index).map(|&kind| Section {
            kind,
            name: String::new(),
            tid: 0,
            opened: None,
            before: Duration::from_ns(before),
        }),
        from: Duration::from_ns(from),
        spent: Duration::from_ns(spent),
    };
    let parts = waited.parts.iter().enumerate().filter(|(_, part)| part[0] > 0).map(part);
    let wait = Wait {
        ready: Instant::from_ns(waited.ready),
        latency: Duration::from_ns(waited.latency),
        overhead: Duration::from_ns(waited.overhead),
        parts: Some(parts.collect()),
    };
    wait.explain(waited.interrupts.iter().cloned())
}

/// What a latency was made of is what brute force finds; the parts are all of it, once.
#[test]
fn the_parts_of_a_latency_are_exact() {
    let seeds = 0..2_000_u64;
    let schedules: Vec<Kernel> = seeds.clone().map(random_schedule).collect();
    let runs = measure(schedules.iter().map(|kernel| kernel.events.as_str()).collect());
    let mut waits = 0;
    let mut sections = [0_u64; 4];
    for ((seed, run), kernel) in seeds.zip(&runs).zip(&schedules) {
        let expected = parts::expected(&kernel.events);
        assert_eq!(run.waits.len(), expected.len(), "seed {seed}");
        for (waited, expected) in run.waits.iter().zip(&expected) {
            waits += 1;
            let said = || format!("seed {seed}: {expected:?}, but {waited:?}");
            assert_eq!((waited.ready, waited.latency), (expected.ready, expected.end - expected.ready));
            assert_eq!(waited.parts.map(|part| part[0]), expected.parts, "{}", said());
            let without_interrupts = Duration::from_ns(waited.parts.iter().map(|part| part[0]).sum());
            assert!(without_interrupts <= run.variables.interference_free(), "Lemma 7: {}", said());
            let wakeup = explained(waited);
            let split = wakeup.split.expect("parts");
            assert_eq!(split.total().ns(), waited.latency, "{}", said());
            let ran: u64 = wakeup.ran.iter().map(|ran| ran.duration_ns.ns()).sum();
            assert_eq!(ran + split.rest_ns.ns(), waited.latency, "{}", said());
            let mut interrupts: BTreeMap<u32, u64> = BTreeMap::new();
            for ran in wakeup.ran.iter().filter(|ran| ran.kind == RanKind::Interrupt) {
                *interrupts.entry(ran.number).or_default() += ran.duration_ns.ns();
            }
            assert_eq!(interrupts, expected.interrupts, "{}", said());
            for ran in &wakeup.ran {
                let Some(part) = KINDS.iter().position(|kind| *kind == ran.kind) else { continue };
                sections[part] += 1;
                assert_eq!(Some(ran.from_ns.ns()), expected.first[part], "{ran:?}: {}", said());
                let before = ran.before_ns.unwrap_or_default().ns();
                assert!(expected.before[part].is_none_or(|it| it == before), "{ran:?}: {}", said());
            }
        }
    }
    assert!(waits > 10_000 && sections.iter().all(|&count| count > 100), "{waits} waits, {sections:?}");
    println!("{waits} latencies, with {sections:?} of D_POID, D_PSD, D_ST, D_PAIE");
}

/// Another processor makes the thread ready, and this one notices only when it calls the scheduler. If an
/// interrupt has just begun, the other one does not know yet that it is one; this one notices when it ends.
fn woken_elsewhere(events: &str) -> String {
    let mut lines = events.lines().peekable();
    let mut changed = String::new();
    let (mut is_unknown, mut is_noticed) = (false, false);
    while let Some(line) = lines.next() {
        let (what, rest) = line.split_at(1);
        let wakes = lines.peek().and_then(|next| next.strip_prefix('w'));
        match (what, wakes) {
            ("i", Some(wake)) => {
                changed += &format!("I{rest}\ng{wake}\nS{rest}\n");
                is_unknown = true;
                lines.next();
            }
            ("w", _) => changed += &format!("g{rest}\n"),
            ("o", _) if is_unknown => {
                changed += &format!("{line}\nl{rest}\n");
                (is_unknown, is_noticed) = (false, true);
            }
            ("c", _) if !is_noticed => changed += &format!("l{rest}\n{line}\n"),
            ("c", _) => {
                changed += &format!("{line}\n");
                is_noticed = false;
            }
            _ => changed += &format!("{line}\n"),
        }
    }
    changed
}

/// Even if it is noticed late, the parts are all of it, and no interrupt is missing.
#[test]
fn the_parts_are_all_of_a_latency_that_is_noticed_late() {
    let schedules: Vec<Kernel> = (0..2_000_u64).map(random_schedule).collect();
    let runs = measure(schedules.iter().map(|kernel| woken_elsewhere(&kernel.events)).collect());
    let (mut waits, mut in_interrupts) = (0, 0);
    for (seed, (run, kernel)) in runs.iter().zip(&schedules).enumerate() {
        let expected = parts::expected_elsewhere(&kernel.events);
        assert_eq!(run.waits.len(), expected.len(), "seed {seed}");
        for (waited, expected) in run.waits.iter().zip(&expected) {
            waits += 1;
            in_interrupts += u64::from(expected.interrupts.keys().any(|source| *source > 1));
            let said = || format!("seed {seed}: {expected:?}, but {waited:?}");
            assert_eq!((waited.ready, waited.latency), (expected.ready, expected.end - expected.ready));
            let spent: u64 = waited.parts.iter().map(|part| part[0]).sum();
            assert_eq!(spent, expected.parts.iter().sum::<u64>(), "{}", said());
            let wakeup = explained(waited);
            assert_eq!(wakeup.split.map(|split| split.total().ns()), Some(waited.latency), "{}", said());
            let interrupts = wakeup.ran.iter().filter(|ran| ran.kind == RanKind::Interrupt);
            let taken: u64 = interrupts.map(|ran| ran.duration_ns.ns()).sum();
            assert_eq!(taken, expected.interrupts.values().sum::<u64>(), "{}", said());
        }
    }
    assert!(waits > 10_000 && in_interrupts > 1_000, "{waits} waits, {in_interrupts} with interrupts");
}

/// Noting culprits meanwhile, and a clock that masks interrupts, change no part.
#[test]
fn the_parts_are_nobodys_overhead() {
    let events: String = (0..1_000_u64).map(|seed| random_schedule(seed).events).collect();
    let (undisturbed, disturbed) = (measure(events.clone()), measure_with(events, &["10000"]));
    for (seed, (expected, found)) in undisturbed.iter().zip(&disturbed).enumerate() {
        assert_eq!(expected.waits.len(), found.waits.len());
        for (expected, found) in expected.waits.iter().zip(&found.waits) {
            let spent = |waited: &Waited| waited.parts.map(|part| part[0]);
            assert_eq!(spent(expected), spent(found), "seed {seed}: {expected:?}, but {found:?}");
            let split = explained(found).split.expect("parts");
            assert_eq!(split.total().ns(), found.latency, "seed {seed}");
        }
    }
}

/// An interrupt makes a thread ready after preemption was disabled, but before that is told: the section has
/// lasted since the interrupt. Nothing of a latency may be in no variable.
#[test]
fn a_section_that_is_told_late_is_whole() {
    let began = "i 1000 0 0 40\no 1100 0 1 0\nD 1500 0 1 0\nE 3000 0 1 0\n";
    let again = "D 3020 0 1 0\nE 3030 0 1 0\n";
    let called =
        "D 3050 0 1 0\ns 3100 0 1 0\nd 3150 0 1 0\nx 3300 0 0 0\ne 3350 0 0 0\nE 3400 0 0 0\n. 0 0 0 0\n";
    let ns = Duration::from_ns;
    let runs = measure(format!("{began}{called}{began}{again}{called}"));
    let found: Vec<_> =
        runs.iter().map(|run| (run.variables.poid, run.variables.paie, run.negative)).collect();
    assert_eq!(found, [(ns(1_900), ns(50), 0), (ns(1_930), ns(20), 0)]);
}

/// An interrupt makes a thread ready in the middle of the parser's own work: all of the latency that begins
/// there is in a variable, whatever the parser was about to note.
#[test]
fn a_wake_up_in_the_middle_of_the_parser_is_whole() {
    let called = "D 2000 0 1 0\ns 2100 0 1 0\nd 2150 0 1 0\nc 2250 0 0 0\nx 2300 0 0 0\ne 2350 0 0 0\n\
        E 2400 0 0 0\nr 2400 0 0 0\n. 0 0 0 0\n";
    let told_in = |armed: &str| {
        let runs: String = (1..=12)
            .map(|question| {
                let resched = |line: &str| line.replace('Q', &question.to_string());
                format!("{}{called}", resched(armed))
            })
            .collect();
        measure(runs)
    };
    let mut waits = 0;
    for (armed, of) in [
        ("j 900 0 0 Q\nD 1000 0 0 0\nE 1500 0 1 0\n", "disabling of preemption"),
        ("D 1000 0 0 0\nj 1100 0 0 Q\nE 1500 0 0 0\n", "enabling of preemption"),
        ("D 1000 0 0 0\nj 1100 0 0 Q\nE 1500 0 0 0\nD 1600 0 1 0\nE 1700 0 1 0\n", "sections in a row"),
        ("i 1000 0 0 50\nj 1050 0 0 Q\no 1100 0 1 0\nD 1500 0 1 0\nE 1700 0 1 0\n", "two interrupts"),
    ] {
        for (index, run) in told_in(armed).iter().enumerate() {
            let said = || format!("{of}, question {}: {run:?}", index + 1);
            assert_eq!(run.negative, 0, "{}", said());
            for waited in &run.waits {
                waits += 1;
                let rest = waited.parts[4][0];
                assert_eq!(rest, 0, "{}", said());
                let without_interrupts = Duration::from_ns(waited.parts.iter().map(|part| part[0]).sum());
                assert!(without_interrupts <= run.variables.interference_free(), "{}", said());
            }
        }
    }
    assert!(waits > 5, "{waits}");
}

/// The way out of idle is D_POID, and nothing of it is D_PAIE, also in the first idle time that is seen.
#[test]
fn the_way_out_of_idle_counts_once() {
    let events = "i 1000 1 0 40\no 1100 1 1 0\nd 1200 1 1 0\ne 1300 1 1 0\ni 1400 1 1 50\no 1500 1 1 0\n\
        s 2100 1 1 0\nd 2150 1 1 0\nx 2300 0 0 0\ne 2350 0 0 0\nE 2400 0 0 0\n. 0 0 0 0\n";
    let masked = events.replace("i 1000 1 0 40\no 1100 1 1 0\n", "");
    for (events, poid) in [(events, 900), (&masked, 800)] {
        let run = &measure(events.to_owned())[0];
        let found = (run.variables.poid, run.variables.paie, run.negative);
        assert_eq!(found, (Duration::from_ns(poid), Duration::ZERO, 0), "{events}");
    }
}

/// A thread makes the other ready as soon as it has disabled preemption for the longest time; an interrupt
/// comes; then the scheduler takes its longest.
#[test]
fn the_bound_is_reached() {
    let arrival = Arrival { at: 30_000, source: 40, execution: 3_000, effect: Effect::Nothing };
    let scheduler = || Scheduler { stretches: [500, 700, 900, 1_100, 1_300, 1_500], enabled: 250 };
    let mut kernel = Kernel::new(vec![arrival], Box::new(scheduler));
    kernel.run(20_000);
    kernel.wake_from_thread(0, 25_000);
    kernel.run(10_000);
    kernel.events.push_str(". 0 0 0 0\n");
    let latency = kernel.latencies[0];
    assert_eq!(latency.case, Case::Iib);
    let measured = &measure(kernel.events)[0];
    assert_eq!(measured.variables.poid.ns(), 25_000);
    assert_eq!(measured.variables.psd.ns(), 500 + 700 + 900 + 1_100 + 1_300 + 1_500);
    assert_eq!(measured.variables.st.ns(), 900 + 1_100 + 1_300 + 1_500);
    assert_eq!(measured.variables.paie.ns(), 250);
    let limit = bound_of(measured, InterruptModel::SlidingWindow);
    assert_eq!(limit, Outcome::Converged(Duration::from_ns(25_000 + 250 + 6_000 + 3_000)));
    assert_eq!(limit, Outcome::Converged(Duration::from_ns(latency.from_ready)));
}
