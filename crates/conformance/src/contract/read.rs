//! Contracts from text: TOML.

use super::{
    Answer, Contract, ContractChain, ContractMode, ContractProcessor, ContractSource, ContractTask,
    MOST_MODES, MedianSeparation,
};
use crate::chance::GREATEST_SHARE;
use crate::threads::Pattern;
use punctual_model::arrival::Burst;
use punctual_model::table::{Clock, OnOverrun};
use punctual_model::{Duration, Percent, Policy, Reservation, processor_list};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::{Spanned, Value};

/// Nobody writes more by hand.
const MOST_BYTES: usize = 1 << 20;

/// Times for several jobs in a row.
const MOST_IN_A_ROW: usize = 64;

/// Periods of one task, or mode of it.
const MOST_SOURCES: usize = 8;

/// Jobs of one burst.
const MOST_OF_BURST: u64 = 10_000;

/// Threads of one task. A proof takes fewer.
const MOST_THREADS: u64 = 10_000;

/// What is wrong with a contract, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faulty {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawContract {
    #[serde(default)]
    slot: Option<Spanned<String>>,
    #[serde(default)]
    processors: Option<Spanned<Value>>,
    #[serde(default)]
    clock: Option<Clock>,
    #[serde(default)]
    migration: bool,
    #[serde(default)]
    unknown_threads: Option<Answer>,
    #[serde(default)]
    tasks_without_jobs: Option<Answer>,
    #[serde(default)]
    scheduling: Option<Answer>,
    #[serde(default)]
    task: Vec<RawTask>,
    #[serde(default)]
    chain: Vec<RawChain>,
    #[serde(default)]
    processor: Vec<RawProcessor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of a task")]
struct RawTask {
    name: Spanned<String>,
    #[serde(default)]
    period: Option<Spanned<Value>>,
    #[serde(default)]
    burst: Option<Spanned<u64>>,
    #[serde(default)]
    within: Option<Spanned<String>>,
    #[serde(default)]
    mode: Vec<Spanned<RawMode>>,
    #[serde(default)]
    wcet: Option<Spanned<Value>>,
    #[serde(default)]
    deadline: Option<Spanned<String>>,
    #[serde(default)]
    offset: Option<Spanned<String>>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    processors: Option<Spanned<Value>>,
    #[serde(default)]
    exclusive: bool,
    #[serde(default)]
    on_overrun: Option<OnOverrun>,
    #[serde(default)]
    thread: Option<Spanned<RawThread>>,
    #[serde(default)]
    threads: Option<Spanned<u64>>,
    #[serde(default)]
    separator: Option<Spanned<String>>,
    #[serde(default)]
    jitter: Option<Spanned<Value>>,
    #[serde(default)]
    skips: Option<Spanned<u64>>,
    #[serde(default)]
    separation: Option<Spanned<Value>>,
    #[serde(default)]
    response: Option<Spanned<String>>,
    #[serde(default)]
    suspension: Option<Spanned<String>>,
    #[serde(default)]
    suspensions: Option<u64>,
    #[serde(default)]
    may_exceed: Option<Spanned<String>>,
    #[serde(default)]
    quartile_cost: Option<Spanned<String>>,
    #[serde(default)]
    median_separation: Option<Spanned<RawRange>>,
    #[serde(default)]
    policy: Option<Spanned<String>>,
    #[serde(default)]
    priority: Option<Spanned<u32>>,
    #[serde(default)]
    reservation: Option<Spanned<RawReservation>>,
    #[serde(default)]
    missing: Option<Answer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of a mode")]
struct RawMode {
    period: Option<Spanned<Value>>,
    #[serde(default)]
    jitter: Option<Spanned<Value>>,
    #[serde(default)]
    burst: Option<Spanned<u64>>,
    #[serde(default)]
    within: Option<Spanned<String>>,
    #[serde(default)]
    skips: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, such as { comm = \"control*\" }")]
struct RawThread {
    #[serde(default)]
    comm: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    cgroup: Option<String>,
    #[serde(default)]
    unit: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with least and most")]
struct RawRange {
    least: Spanned<String>,
    most: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with runtime, deadline and period")]
struct RawReservation {
    runtime: Spanned<String>,
    deadline: Spanned<String>,
    period: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of a chain")]
struct RawChain {
    tasks: Spanned<Vec<String>>,
    #[serde(default)]
    reaction_time: Option<Spanned<String>>,
    #[serde(default)]
    data_age: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of a processor")]
struct RawProcessor {
    cpu: Spanned<u32>,
    latency: Spanned<String>,
}

/// A problem at a byte of the text.
type Located<T> = Result<T, (Range<usize>, String)>;

impl Contract {
    /// Reads the text of a contract.
    ///
    /// # Errors
    /// Where it is not one: the first line that is wrong.
    pub fn parse(text: &str) -> Result<Contract, Faulty> {
        if text.len() > MOST_BYTES {
            return Err(Faulty { line: 1, problem: format!("longer than {MOST_BYTES} bytes") });
        }
        let line = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        let raw: RawContract = toml::from_str(text).map_err(|error| Faulty {
            line: error.span().map_or(1, |span| line(span.start)),
            problem: error.message().trim_end().replace('\n', " "),
        })?;
        raw.read().map_err(|(span, problem)| Faulty { line: line(span.start), problem })
    }
}

impl RawContract {
    fn read(self) -> Located<Contract> {
        let mut names = BTreeSet::new();
        for task in &self.task {
            let name = task.name.get_ref();
            if name.is_empty() || !names.insert(name.clone()) {
                let problem = format!("expected a unique name, found {name:?}");
                return Err((task.name.span(), problem));
            }
        }
        let mut cpus = BTreeSet::new();
        for processor in &self.processor {
            if !cpus.insert(*processor.cpu.get_ref()) {
                return Err((processor.cpu.span(), "this processor is declared twice".into()));
            }
        }
        Ok(Contract {
            slot: positive(&self.slot)?,
            processors: self.processors.as_ref().map(processors).transpose()?.unwrap_or_default(),
            clock: self.clock,
            migration: self.migration,
            unknown_threads: self.unknown_threads,
            tasks_without_jobs: self.tasks_without_jobs,
            scheduling: self.scheduling,
            tasks: self.task.into_iter().map(RawTask::read).collect::<Located<_>>()?,
            chains: self.chain.into_iter().map(RawChain::read).collect::<Located<_>>()?,
            latencies: self.processor.into_iter().map(RawProcessor::read).collect::<Located<_>>()?,
        })
    }
}

impl RawTask {
    fn read(self) -> Located<ContractTask> {
        let RawTask { period, jitter, burst, within, skips, .. } = self;
        let modes = releases(RawMode { period, jitter, burst, within, skips }, self.mode)?;
        let (plain, modes) = match &modes[..] {
            [mode] if mode.plain().is_some() => (mode.plain(), Vec::new()),
            _ => (None, modes),
        };
        if let Some(span) = self.separation.as_ref().filter(|_| !modes.is_empty()) {
            return Err((
                span.span(),
                "a task with several periods, bursts or modes has no separation".into(),
            ));
        }
        let policy = self.policy.as_ref().map(policy).transpose()?;
        if let Some(reservation) = &self.reservation {
            if policy.is_some_and(|policy| policy != Policy::Deadline) {
                let problem = "a reservation needs policy = \"SCHED_DEADLINE\"";
                return Err((reservation.span(), problem.into()));
            }
        }
        let (wcet, more_wcets) = times(&self.wcet)?;
        let (separation, more_separations) = times(&self.separation)?;
        if let Some(span) = &self.separation {
            if separation.into_iter().chain(more_separations.last().copied()).all(|it| it.is_zero()) {
                return Err((span.span(), "expected a time greater than zero".into()));
            }
        }
        Ok(ContractTask {
            period: plain.map(|(source, _)| source.period),
            jitter: plain.and_then(|(source, _)| source.jitter),
            skips: plain.and_then(|(_, skips)| skips),
            modes,
            threads: self.threads.as_ref().map(threads).transpose()?,
            separation,
            more_separations,
            wcet,
            more_wcets,
            response: duration(&self.response)?,
            deadline: duration(&self.deadline)?,
            proven: None,
            suspension: duration(&self.suspension)?,
            suspensions: self.suspensions,
            may_exceed: self.may_exceed.as_ref().map(share).transpose()?,
            quartile_cost: duration(&self.quartile_cost)?,
            median_separation: self.median_separation.map(range).transpose()?,
            policy,
            priority: self.priority.as_ref().map(priority).transpose()?,
            reservation: self.reservation.map(|it| it.into_inner().read()).transpose()?,
            missing: self.missing,
            offset: duration(&self.offset)?,
            processors: self.processors.as_ref().map(processors).transpose()?.unwrap_or_default(),
            separator: self.separator.as_ref().map(glob).transpose()?,
            name: self.name.into_inner(),
            after: self.after,
            exclusive: self.exclusive,
            on_overrun: self.on_overrun,
            thread: self.thread.map(thread).transpose()?,
        })
    }
}

/// What releases the jobs of a task: its own keys, or those of its modes.
fn releases(own: RawMode, modes: Vec<Spanned<RawMode>>) -> Located<Vec<ContractMode>> {
    let Some(first) = modes.first() else { return Ok(own.read()?.into_iter().collect()) };
    if let Some(span) = own.keys().next() {
        return Err((span, "in a task with modes, this belongs to each [[task.mode]]".into()));
    }
    if modes.len() > MOST_MODES {
        return Err((first.span(), format!("expected at most {MOST_MODES} modes")));
    }
    let read = |mode: Spanned<RawMode>| {
        let span = mode.span();
        mode.into_inner().read()?.ok_or((span, "a mode needs a period".to_owned()))
    };
    modes.into_iter().map(read).collect()
}

impl RawMode {
    /// Where its keys are.
    fn keys(&self) -> impl Iterator<Item = Range<usize>> {
        let Self { period, jitter, burst, within, skips } = self;
        let period = period.as_ref().map(Spanned::span);
        let others = [
            jitter.as_ref().map(Spanned::span),
            burst.as_ref().map(Spanned::span),
            within.as_ref().map(Spanned::span),
            skips.as_ref().map(Spanned::span),
        ];
        std::iter::once(period).chain(others).flatten()
    }

    /// `None` without a period.
    fn read(self) -> Located<Option<ContractMode>> {
        let Some(raw) = &self.period else { return self.without_period() };
        let (periods, jitters) = (list(raw)?, self.jitter.as_ref().map(list).transpose()?);
        if periods.iter().any(|period| period.is_zero()) {
            return Err((raw.span(), "expected a time greater than zero".into()));
        }
        if periods.len() > MOST_SOURCES {
            return Err((raw.span(), format!("expected at most {MOST_SOURCES} periods")));
        }
        let jitter_of = |place: usize| match &jitters.as_deref() {
            Some([one]) => Some(*one),
            Some(all) => all.get(place).copied(),
            None => None,
        };
        let fits = |all: &Vec<Duration>| [1, periods.len()].contains(&all.len());
        if let Some(jitter) = self.jitter.as_ref().filter(|_| !jitters.as_ref().is_none_or(fits)) {
            return Err((jitter.span(), "expected one jitter, or as many as periods".into()));
        }
        let burst = self.burst(periods.len())?;
        let source = |(place, period): (usize, &Duration)| ContractSource {
            period: *period,
            jitter: jitter_of(place),
            burst,
        };
        let sources = periods.iter().enumerate().map(source).collect();
        let skips = self.skips.map(Spanned::into_inner);
        Ok(Some(ContractMode { sources, skips }))
    }

    fn burst(&self, periods: usize) -> Located<Option<Burst>> {
        let problem = match (&self.burst, &self.within) {
            (None, None) => return Ok(None),
            (None, Some(within)) => (within.span(), "within is of a burst, and there is none"),
            (Some(burst), _) if !(2..=MOST_OF_BURST).contains(burst.get_ref()) => {
                return Err((burst.span(), format!("expected 2 to {MOST_OF_BURST} jobs of a burst")));
            }
            (Some(burst), _) if periods > 1 => (burst.span(), "a burst needs one period"),
            (Some(burst), None) => (burst.span(), "a burst needs within, from its first release to its last"),
            (Some(burst), Some(within)) => {
                return Ok(Some(Burst { jobs: *burst.get_ref(), within_ns: time(within)? }));
            }
        };
        Err((problem.0, problem.1.into()))
    }

    fn without_period(self) -> Located<Option<ContractMode>> {
        let problem = match (&self.jitter, &self.skips) {
            (Some(_), _) => "jitter needs a period; without one, declare a separation",
            (None, Some(_)) => "skips are of a period, and there is none",
            (None, None) => "a burst needs a period",
        };
        self.keys().next().map_or(Ok(None), |span| Err((span, problem.into())))
    }
}

impl RawReservation {
    fn read(self) -> Located<Reservation> {
        let [runtime_ns, deadline_ns, period_ns] = [self.runtime, self.deadline, self.period]
            .map(|value| time(&value).and_then(|time| not_zero(time, &value)));
        Ok(Reservation { runtime_ns: runtime_ns?, deadline_ns: deadline_ns?, period_ns: period_ns? })
    }
}

impl RawChain {
    fn read(self) -> Located<ContractChain> {
        if self.tasks.get_ref().is_empty() {
            return Err((self.tasks.span(), "expected the names of tasks".into()));
        }
        Ok(ContractChain {
            tasks: self.tasks.into_inner(),
            reaction_time: duration(&self.reaction_time)?,
            data_age: duration(&self.data_age)?,
        })
    }
}

impl RawProcessor {
    fn read(self) -> Located<ContractProcessor> {
        Ok(ContractProcessor { cpu: *self.cpu.get_ref(), latency: time(&self.latency)? })
    }
}

fn thread(raw: Spanned<RawThread>) -> Located<Pattern> {
    let span = raw.span();
    let RawThread { comm, command, cgroup, unit } = raw.into_inner();
    let pattern = Pattern { comm, command, cgroup, unit };
    if pattern == Pattern::default() {
        return Err((span, "expected comm, command, cgroup or unit".into()));
    }
    for text in [&pattern.comm, &pattern.command, &pattern.cgroup].into_iter().flatten() {
        glob::Pattern::new(text).map_err(|error| (span.clone(), format!("{text:?}: {}", error.msg)))?;
    }
    Ok(pattern)
}

fn glob(value: &Spanned<String>) -> Located<String> {
    glob::Pattern::new(value.get_ref())
        .map_err(|error| (value.span(), format!("{:?}: {}", value.get_ref(), error.msg)))?;
    Ok(value.get_ref().clone())
}

fn share(value: &Spanned<String>) -> Located<Percent> {
    let text = value.get_ref();
    let share = text.ends_with('%').then(|| text.parse().ok()).flatten();
    let share = share.filter(|share| *share <= GREATEST_SHARE);
    let problem = || format!("expected a share from \"0%\" to \"{GREATEST_SHARE}%\", found {text:?}");
    share.ok_or_else(|| (value.span(), problem()))
}

fn range(value: Spanned<RawRange>) -> Located<MedianSeparation> {
    let span = value.span();
    let RawRange { least, most } = value.into_inner();
    let (least, most) = (time(&least)?, time(&most)?);
    match least <= most {
        true => Ok(MedianSeparation { least, most }),
        false => Err((span, "expected a least time that is not above the most".into())),
    }
}

fn threads(value: &Spanned<u64>) -> Located<u64> {
    let number = *value.get_ref();
    let is_some = (1..=MOST_THREADS).contains(&number);
    is_some.then_some(number).ok_or_else(|| (value.span(), format!("expected 1 to {MOST_THREADS} threads")))
}

/// As the kernel calls it, or as tables print it: `SCHED_FIFO`, `FIFO`.
fn policy(value: &Spanned<String>) -> Located<Policy> {
    let name = value.get_ref();
    let found = Policy::ALL.into_iter().find(|it| [it.name(), it.short_name()].contains(&name.as_str()));
    found.ok_or_else(|| {
        let known = Policy::ALL.map(Policy::short_name).join(", ");
        let problem =
            format!("expected a scheduling policy ({known}, with or without SCHED_), found {name:?}");
        (value.span(), problem)
    })
}

fn priority(value: &Spanned<u32>) -> Located<u32> {
    let priority = *value.get_ref();
    let is_one = (1..=99).contains(&priority);
    is_one.then_some(priority).ok_or_else(|| (value.span(), "expected a priority from 1 to 99".into()))
}

fn duration(value: &Option<Spanned<String>>) -> Located<Option<Duration>> {
    value.as_ref().map(time).transpose()
}

fn positive(value: &Option<Spanned<String>>) -> Located<Option<Duration>> {
    value.as_ref().map(|value| not_zero(time(value)?, value)).transpose()
}

fn not_zero(time: Duration, value: &Spanned<String>) -> Located<Duration> {
    match time.is_zero() {
        true => Err((value.span(), "expected a time greater than zero".into())),
        false => Ok(time),
    }
}

fn time(value: &Spanned<String>) -> Located<Duration> {
    time_of(value.get_ref()).map_err(|problem| (value.span(), problem))
}

fn time_of(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text).ok();
    let ns = parsed.and_then(|time| u64::try_from(time.as_nanos()).ok());
    let problem = || format!("expected a time such as \"3ms\" or \"250us\", found {text:?}");
    ns.map(Duration::from_ns).ok_or_else(problem)
}

/// One time, or those for one, two, … in a row: the first, and the rest.
fn times(value: &Option<Spanned<Value>>) -> Located<(Option<Duration>, Vec<Duration>)> {
    let Some(value) = value else { return Ok((None, Vec::new())) };
    let all = list(value)?;
    if all.len() > MOST_IN_A_ROW || !all.is_sorted() {
        let problem = format!("expected at most {MOST_IN_A_ROW} times, none less than the one before");
        return Err((value.span(), problem));
    }
    Ok((all.first().copied(), all.get(1..).unwrap_or_default().to_vec()))
}

/// One time, or several: at least one.
fn list(value: &Spanned<Value>) -> Located<Vec<Duration>> {
    let parse = |value: &Value| match value {
        Value::String(text) => time_of(text),
        other => Err(format!("expected a time such as \"3ms\", found {}", other.type_str())),
    };
    let all: Result<Vec<Duration>, String> = match value.get_ref() {
        Value::Array(all) => all.iter().map(parse).collect(),
        one => parse(one).map(|one| vec![one]),
    };
    match all {
        Ok(all) if all.is_empty() => Err((value.span(), "expected a time".into())),
        all => all.map_err(|problem| (value.span(), problem)),
    }
}

/// As the kernel writes them, `"0-1,4"`, or a list of numbers.
fn processors(value: &Spanned<Value>) -> Located<Vec<u32>> {
    let number = |it: &Value| it.as_integer().map_or_else(|| it.type_str().to_owned(), |it| it.to_string());
    let text = match value.get_ref() {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(number).collect::<Vec<_>>().join(","),
        other => other.type_str().to_owned(),
    };
    let problem = || format!("expected processors such as \"0-1,4\" or [0, 1, 4], found {text:?}");
    processor_list(&text).ok_or_else(|| (value.span(), problem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
slot = "3ms"
processors = "1-2,5"
clock = "CLOCK_TAI"
migration = true

[[task]]
name = "sense"
period = "30ms"
wcet = "2500us"
deadline = "20ms"
offset = "3ms"
thread = { comm = "sense*", cgroup = "/robot.slice" }

[[task]]
name = "act"
after = ["sense"]
processors = "5"
exclusive = true
on_overrun = "stop"

[[chain]]
tasks = ["sense", "act"]
"#;

    #[test]
    fn a_contract_is_read() {
        let contract = Contract::parse(WHOLE).expect("a contract");
        assert_eq!(contract.slot, Some(Duration::from_ms(3)));
        assert_eq!(
            (contract.processors, contract.clock, contract.migration),
            (vec![1, 2, 5], Some(Clock::Tai), true)
        );
        assert_eq!(contract.chains[0].tasks, ["sense", "act"]);
        let [sense, act] = &contract.tasks[..] else { panic!("two tasks") };
        assert_eq!(sense.wcet, Some(Duration::from_us(2_500)));
        assert_eq!(sense.thread.as_ref().and_then(|thread| thread.comm.as_deref()), Some("sense*"));
        assert_eq!((act.period, act.exclusive, act.on_overrun), (None, true, Some(OnOverrun::Stop)));
        assert_eq!((&act.after[..], &act.processors[..]), (&["sense".to_owned()][..], &[5][..]));
    }

    /// Whoever copies from a table writes what is in it.
    #[test]
    fn scheduling_is_read_as_tables_print_it() {
        let read = |policy: &str, processors: &str| {
            let text = format!(
                "[[task]]\nname = \"a\"\npolicy = {policy:?}\npriority = 80\nprocessors = {processors}"
            );
            Contract::parse(&text).expect("a contract").tasks.remove(0)
        };
        let expected = read("SCHED_FIFO", "\"0-1,4\"");
        assert_eq!((expected.policy, expected.priority), (Some(Policy::Fifo), Some(80)));
        assert_eq!(read("FIFO", "[4, 0, 1, 1]"), expected);
        assert_eq!(read("DEADLINE", "[0]").processors, [0]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, problem) in [
            ("slot = \"3\"", 1, "expected a time such as \"3ms\" or \"250us\", found \"3\""),
            (
                "\nprocessors = \"2-1\"",
                2,
                "expected processors such as \"0-1,4\" or [0, 1, 4], found \"2-1\"",
            ),
            ("processors = [-1]", 1, "expected processors such as \"0-1,4\" or [0, 1, 4], found \"-1\""),
            ("processors = []", 1, "expected processors"),
            ("processors = [\"0-1\"]", 1, "expected processors"),
            ("processors = 1", 1, "expected processors"),
            ("speed = 3", 1, "unknown field `speed`"),
            ("[[task]]\nperiod = \"3ms\"", 1, "missing field `name`"),
            ("[[task]]\nname = \"a\"\n[[task]]\nname = \"a\"", 4, "expected a unique name, found \"a\""),
            ("[[task]]\nname = \"a\"\nwcet = \"much\"", 3, "expected a time such as"),
            ("[[task]]\nname = \"a\"\non_overrun = \"cry\"", 3, "unknown variant `cry`"),
            ("slot = ", 1, ""),
            ("slot = \"0s\"", 1, "expected a time greater than zero"),
            ("[[task]]\nname = \"a\"\njitter = \"1ms\"", 3, "jitter needs a period"),
            ("[[task]]\nname = \"a\"\nskips = 2", 3, "skips are of a period"),
            (
                "[[task]]\nname = \"a\"\npolicy = \"SCHED_FIFO\"\n\
                 reservation = { runtime = \"1ms\", deadline = \"5ms\", period = \"5ms\" }",
                4,
                "a reservation needs policy",
            ),
            ("[[task]]\nname = \"a\"\npriority = 100", 3, "expected a priority from 1 to 99"),
            ("[[task]]\nname = \"a\"\npolicy = \"fifo\"", 3, "expected a scheduling policy (OTHER, FIFO, RR"),
            ("[[task]]\nname = \"a\"\nmissing = \"no\"", 3, "unknown variant `no`"),
            ("[[task]]\nname = \"a\"\nthread = { comm = \"[\" }", 3, "\"[\": "),
            ("[[task]]\nname = \"a\"\nthread = {}", 3, "expected comm"),
            ("[[task]]\nname = \"a\"\nthreads = 0", 3, "expected 1 to 10000 threads"),
            ("[[task]]\nname = \"a\"\nthreads = 1000000000000", 3, "expected 1 to 10000 threads"),
            ("[[chain]]\ntasks = []", 2, "expected the names of tasks"),
            ("[[task]]\nname = \"a\"\nseparator = \"[\"", 3, "\"[\": "),
            ("[[task]]\nname = \"a\"\nwcet = [\"2ms\", \"1ms\"]", 3, "none less than the one before"),
            ("[[task]]\nname = \"a\"\nwcet = []", 3, "expected a time"),
            ("[[task]]\nname = \"a\"\nwcet = 3", 3, "expected a time such as \"3ms\", found integer"),
            ("[[task]]\nname = \"a\"\nseparation = [\"0s\", \"0s\"]", 3, "greater than zero"),
            ("[[task]]\nname = \"a\"\nseparation = \"0s\"", 3, "greater than zero"),
            ("[[task]]\nname = \"a\"\nmay_exceed = \"51%\"", 3, "expected a share from \"0%\" to \"50%\""),
            ("[[task]]\nname = \"a\"\nmay_exceed = \"1\"", 3, "expected a share"),
            (
                "[[task]]\nname = \"a\"\nmedian_separation = { least = \"2ms\", most = \"1ms\" }",
                3,
                "expected a least time",
            ),
            ("[[processor]]\ncpu = 1\nlatency = \"1\"", 3, "expected a time such as"),
            ("processor = [{ cpu = 1, latency = \"1s\" }, { cpu = 1, latency = \"1s\" }]", 1, "twice"),
        ] {
            let faulty = Contract::parse(text).expect_err(text);
            assert_eq!(faulty.line, line, "{text}: {}", faulty.problem);
            assert!(faulty.problem.contains(problem), "{text}: {}", faulty.problem);
        }
    }
}
