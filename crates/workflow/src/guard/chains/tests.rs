//! A watch says of a program's events what `check` says of the trace that is made of the same events.

use super::{Judge, Live, MOST_PRODUCERS, ON_ITS_WAY};
use crate::check::{Options, check};
use crate::probes::{Recorder, Sink, Source, about};
use crate::recording::TimeRange;
use crate::{Given, Silent};
use proptest::prelude::*;
use punctual_conformance::{Contract, Tally, Verdict, Violation};
use punctual_model::Instant;
use punctual_observe::flow::{Counted, Function, Located, ProbeFile, Seen};
use punctual_trace::flow::Kind;
use std::num::NonZeroUsize;
use std::path::Path;

const CONTRACT: &str = "
[[chain]]
tasks = [\"sense\", \"plan\", \"act\"]
reaction_time = \"90us\"
data_age = \"120us\"
[[chain]]
tasks = [\"sense\", \"act\"]
data_age = \"60us\"
[[chain]]
tasks = [\"sense\", \"dream\"]
data_age = \"60us\"
";

/// Four kinds of events, and connections.
const PROBES: &str = "
[[probe]]
event = \"push\"
symbol = \"push\"
id = \"arg0\"
[[probe]]
event = \"activation\"
symbol = \"activate\"
id = \"arg0\"
[[probe]]
event = \"start\"
symbol = \"start\"
id = \"arg0\"
[[probe]]
event = \"stop\"
symbol = \"stop\"
id = \"arg0\"
[[probe]]
event = \"connection\"
symbol = \"notify\"
channel = \"arg0\"
task = \"arg1\"
synchronised = \"u8 at arg1+8\"
threshold = \"u32 at arg1+12\"
unsynchronised = \"newest\"
";

const TASKS: [&str; 3] = ["sense", "plan", "act"];
/// By channel: its reader, and whether that keeps all of it.
const READERS: [(u64, bool); 4] = [(0, true), (1, true), (2, true), (2, false)];

/// A program of three tasks on two executors, with a timer: sense makes data for plan and for act, of which
/// the latter reads the newest; plan makes some for act. Threads have numbers from 100.
struct Program {
    seen: Vec<Seen>,
    seed: u64,
    now: u64,
    numbers: [[u32; 4]; 2],
    is_connected: [bool; 4],
    is_named: [[bool; 4]; 2],
}

impl Program {
    fn below(&mut self, end: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % end
    }

    /// An event within so many nanoseconds.
    fn event(&mut self, most: u64, thread: u32, kind: Kind, id: u64) {
        self.now += 1 + self.below(most);
        let is_push = kind == Kind::Push;
        let which = usize::from(!is_push);
        if !std::mem::replace(&mut self.is_named[which][id as usize], true) {
            let text = if is_push { format!("channel {id}") } else { TASKS[id as usize].to_owned() };
            self.seen.push(Seen::Named { channel: is_push, id, text });
        }
        let next = &mut self.numbers[which][id as usize];
        // Start and stop are of the instance that was activated last.
        let number = if matches!(kind, Kind::Push | Kind::Activation) { *next } else { *next - 1 };
        *next += u32::from(matches!(kind, Kind::Push | Kind::Activation));
        let (at, probe) = (Instant::from_ns(self.now), kind as u32);
        self.seen.push(Seen::Event { at, thread, kind, probe, id, place: 0, number });
    }

    fn push(&mut self, most: u64, thread: u32, channel: u64) {
        self.event(most, thread, Kind::Push, channel);
        if !std::mem::replace(&mut self.is_connected[channel as usize], true) {
            let (task, synchronised) = READERS[channel as usize];
            self.seen.push(Seen::Connection {
                probe: 4,
                channel,
                task,
                synchronised,
                threshold: 1,
                is_final: false,
            });
        }
    }

    /// One datum of the timer through the program.
    fn round(&mut self) {
        self.push(5_000, 102, 0);
        self.event(100, 102, Kind::Activation, 0);
        self.event(20_000, 100, Kind::Start, 0);
        // The newest value is read by act whenever it starts.
        self.push(20_000, 100, 3);
        let has_plan = self.below(10) > 0;
        if has_plan {
            self.push(10_000, 100, 1);
            self.event(100, 100, Kind::Activation, 1);
        }
        self.event(20_000, 100, Kind::Stop, 0);
        if has_plan {
            self.event(30_000, 101, Kind::Start, 1);
            self.push(30_000, 101, 2);
            self.event(100, 101, Kind::Activation, 2);
            self.event(5_000, 101, Kind::Stop, 1);
            self.event(20_000, 100, Kind::Start, 2);
            self.event(20_000, 100, Kind::Stop, 2);
        }
    }

    fn run(seed: u64, rounds: usize) -> Vec<Seen> {
        let mut program = Program {
            seen: Vec::new(),
            seed,
            now: 1_000_000,
            numbers: Default::default(),
            is_connected: [false; 4],
            is_named: Default::default(),
        };
        (0..rounds).for_each(|_| program.round());
        program.seen
    }
}

fn located(file: &ProbeFile) -> Vec<Located> {
    let function = |probe: usize| {
        let function = Function { file: "program".into(), offset: 0, first: None };
        Located { probe, symbol: file.probes[probe].symbols[0].clone(), function: Some(function) }
    };
    (0..file.probes.len()).map(function).collect()
}

fn take<S: crate::probes::Sink>(recorder: &mut Recorder<'_, S>, seen: &Seen) {
    let mut failure = None;
    recorder.take(seen.clone(), &mut failure);
    assert!(failure.is_none(), "{failure:?}");
}

fn replayed(source: &Source<'_>, seen: &[Seen]) -> Vec<Tally> {
    let directory = tempfile::tempdir().expect("a directory");
    let (trace, contract) = (directory.path().join("trace"), directory.path().join("run.toml"));
    std::fs::write(&contract, CONTRACT).expect("a contract");
    let mut recorder = Recorder::create(&trace, source).expect("a trace");
    seen.iter().for_each(|seen| take(&mut recorder, seen));
    recorder.finish(Counted::default()).expect("a trace");
    let options = Options {
        contract: Given::File(contract),
        inputs: vec![Given::File(trace)],
        range: TimeRange::default(),
        bounds: Default::default(),
        workers: NonZeroUsize::MIN,
    };
    let mut checked = check(&options, &Silent).expect("a verdict");
    checked.remove(0).verdict.tallies
}

/// A watch of a program that was not observed.
struct Watch<'a> {
    recorder: Recorder<'a, Live>,
    judge: Judge,
    counted: Counted,
    now: u64,
    told: Vec<Violation>,
}

impl<'a> Watch<'a> {
    fn new(source: &Source<'a>) -> Watch<'a> {
        let about = about(source);
        Watch {
            recorder: Recorder::new(source, about.clone(), Live::new(about)),
            judge: Judge::new(&Contract::parse(CONTRACT).expect("a contract")),
            counted: Counted::default(),
            now: 0,
            told: Vec::new(),
        }
    }

    /// Takes events in such batches; `losses` are those in which some are lost.
    fn take(&mut self, seen: &[Seen], batch: usize, losses: &[usize]) {
        for (number, seen) in seen.chunks(batch).enumerate() {
            for seen in seen {
                if let Seen::Event { at, .. } = seen {
                    self.now = at.ns();
                }
                take(&mut self.recorder, seen);
            }
            self.counted.lost += u64::from(losses.contains(&number));
            self.recorder.tick(self.counted).expect("a sink in memory");
            // What is on its way comes later.
            self.until(self.now.saturating_sub(40_000), self.now);
        }
    }

    fn until(&mut self, until: u64, now: u64) {
        let Watch { recorder, judge, told, .. } = self;
        let (until, now) = (Instant::from_ns(until), Instant::from_ns(now));
        judge.until(until, now, recorder.sink(), &mut |it| told.push(it.clone()));
    }

    fn finish(mut self) -> (Verdict, Vec<Violation>) {
        self.until(u64::MAX, u64::MAX);
        let mut verdict = Verdict::default();
        self.judge.finish(&mut verdict);
        (verdict, self.told)
    }
}

/// What a watch says.
fn live(source: &Source<'_>, seen: &[Seen], batch: usize, losses: &[usize]) -> (Verdict, Vec<Violation>) {
    let mut watch = Watch::new(source);
    watch.take(seen, batch, losses);
    watch.finish()
}

fn with_source<T>(then: impl FnOnce(&Source<'_>) -> T) -> T {
    let file = ProbeFile::parse(PROBES.as_bytes()).expect("a probes file");
    let located = located(&file);
    then(&Source { file: &file, located: &located, program: Path::new("program"), is_late: false })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn live_is_what_is_replayed(seed: u64, rounds in 1_usize..150, batch in 1_usize..100) {
        let seen = Program::run(seed, rounds);
        with_source(|source| {
            let (verdict, told) = live(source, &seen, batch, &[]);
            prop_assert_eq!(&verdict.tallies, &replayed(source, &seen));
            prop_assert_eq!(told.len() as u64, verdict.violations());
            prop_assert_eq!((verdict.gaps, verdict.lost), (0, 0));
            Ok(())
        })?;
    }
}

#[test]
fn violations_are_found_and_a_chain_that_is_none_is_said() {
    let seen = Program::run(7, 200);
    let (verdict, told) = with_source(|source| live(source, &seen, 50, &[]));
    let violations: Vec<u64> = verdict.tallies.iter().map(Tally::violations).collect();
    assert!(violations[0] > 50 && violations[1] > 20 && violations[2] == 0, "{violations:?}");
    assert!(told.iter().all(|it| it.value > it.agreed && it.subject.is_some()));
    let notes: Vec<&str> = verdict.notes.iter().map(|note| note.text.as_str()).collect();
    assert!(notes.len() == 1 && notes[0].contains("there is no task dream"), "{notes:?}");
}

/// What is lost is counted, and what is told although is among what would have been told.
#[test]
fn nothing_is_judged_across_losses() {
    let seen = Program::run(11, 300);
    let (whole, all) = with_source(|source| live(source, &seen, 40, &[]));
    let (verdict, told) = with_source(|source| live(source, &seen, 40, &[20, 21, 60]));
    assert_eq!((verdict.lost, verdict.gaps >= 3), (3, true), "{verdict:?}");
    let judged = |verdict: &Verdict| verdict.tallies.iter().map(|tally| tally.jobs).sum::<u64>();
    assert!(judged(&verdict) < judged(&whole) && !told.is_empty());
    let key = |it: &Violation| {
        let subject = it.subject.as_ref().expect("a datum");
        (it.task.clone(), it.term, it.value, subject.release, subject.end)
    };
    let all: Vec<_> = all.iter().map(key).collect();
    told.iter().for_each(|it| assert!(all.contains(&key(it)), "{it}"));
}

/// An event whose place has passed counts as lost.
#[test]
fn an_event_that_comes_too_late_is_lost() {
    let mut seen = Program::run(3, 100);
    let is_late = |it: &Seen| matches!(it, Seen::Event { number: 20, kind: Kind::Push, id: 2, .. });
    let place = seen.iter().position(is_late).expect("a push");
    let event = seen.remove(place);
    seen.insert(place + 300, event);
    let (verdict, _) = with_source(|source| live(source, &seen, 10, &[]));
    assert!(verdict.lost == 1 && verdict.gaps >= 1, "{verdict:?}");
}

/// Memory is that of a graph: after more events than are kept, a part of the program that is new begins anew.
#[test]
fn a_program_that_grows_late_is_said() {
    let mut seen = Program::run(5, 6_000);
    let end = seen.iter().rev().find_map(|it| match it {
        Seen::Event { at, .. } => Some(at.ns()),
        _ => None,
    });
    // Another channel to plan, which it does not wait for.
    let at = end.expect("an event") + 1_000_000;
    let number = 0;
    seen.push(Seen::Named { channel: true, id: 9, text: "late".into() });
    seen.push(Seen::Event {
        at: Instant::from_ns(at),
        thread: 102,
        kind: Kind::Push,
        probe: 0,
        id: 9,
        place: 0,
        number,
    });
    let (channel, task, probe) = (9, 1, 4);
    seen.push(Seen::Connection { probe, channel, task, synchronised: false, threshold: 1, is_final: false });
    let (verdict, _) = with_source(|source| live(source, &seen, 1_000, &[]));
    assert!(verdict.notes.iter().any(|note| note.text.contains("appeared 1 time;")), "{:?}", verdict.notes);
    assert!(verdict.violations() > 1_000);
}

/// What was agreed on first counts until then, and data on their way belong to neither.
#[test]
fn another_contract_begins_anew() {
    let seen = Program::run(9, 400);
    let (before, after) = seen.split_at(seen.len() / 2);
    let text = "[[chain]]\ntasks = [\"plan\", \"act\"]\nreaction_time = \"1ns\"\n";
    let contract = Contract::parse(text).expect("a contract");
    with_source(|source| {
        let mut watch = Watch::new(source);
        watch.take(before, 30, &[]);
        let (mut first, told) = (Verdict::default(), watch.told.len() as u64);
        watch.judge.change(&contract, &mut first);
        assert_eq!((first.tallies.len(), first.violations()), (3, told));
        watch.take(after, 30, &[]);
        let (second, all) = watch.finish();
        let [tally] = &second.tallies[..] else { panic!("{second:?}") };
        assert!(tally.jobs > 100 && tally.violations() == tally.jobs, "{tally:?}");
        assert_eq!(all.len() as u64, told + tally.jobs);
    });
}

/// Behind the newest event of those that were read, nothing is missing even if more is in the buffer.
#[test]
fn what_is_still_in_the_buffer_is_awaited() {
    let mut live = Live::new(Default::default());
    let producer = live.add_producer().expect("room");
    live.event(producer, 3 * ON_ITS_WAY, Kind::Push, 1, 0).expect("a sink in memory");
    let now = Instant::from_ns(9 * ON_ITS_WAY);
    assert_eq!(live.complete(true, now).ns(), 8 * ON_ITS_WAY);
    assert_eq!(live.complete(false, now).ns(), 2 * ON_ITS_WAY);
}

/// Events of threads beyond those that are followed are lost, which is told once.
#[test]
fn threads_that_are_too_many_are_told_once() {
    let mut live = Live::new(Default::default());
    (0..MOST_PRODUCERS).for_each(|_| _ = live.add_producer().expect("room"));
    assert_eq!((live.overflow(), live.lost), (None, 0));
    for at in 1..=2 {
        let more = live.add_producer().expect("no failure");
        live.event(more, at, Kind::Push, 1, 0).expect("a sink in memory");
    }
    assert!(live.overflow().is_some_and(|text| text.contains("4,096 threads")));
    assert_eq!((live.overflow(), live.lost), (None, 2));
}
