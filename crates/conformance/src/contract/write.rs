//! Contracts as text that people edit.

use super::{Contract, ContractChain, ContractMode, ContractProcessor, ContractSource, ContractTask};
use crate::threads::Pattern;
use punctual_model::table::OnOverrun;
use punctual_model::{Duration, Policy};
use std::fmt::{Display, Write as _};

const HEAD: &str = "\
# A contract: the timing that was agreed on (docs/contracts.md).
# Times are in ns, us, ms, s. What is left out is not agreed on, and not checked.
";

const TASK_HINT: &str = "\
# Each [[task]] is every thread that matches `thread` (comm, command, cgroup, unit), else those of its name.
# Worth adding: deadline = \"8ms\" (from activation to end), missing = \"note\" (if it need not run).
";

impl Contract {
    /// The contract as TOML, with comments for those who edit it. Reading it gives the same contract.
    pub fn to_toml(&self) -> String {
        let mut text = HEAD.to_owned();
        let mut lines = Lines(&mut text);
        lines.time("slot", self.slot, "length of a slot of a table");
        lines.list("processors", &self.processors, "of a table");
        lines.text("clock", self.clock.map(|clock| clock.name()), "of a table");
        lines.flag("migration", self.migration, "whether jobs of a table may migrate");
        let answer = |answer: Option<super::Answer>| answer.map(super::Answer::name);
        lines.text("unknown_threads", answer(self.unknown_threads), "real-time threads of no task");
        lines.text("tasks_without_jobs", answer(self.tasks_without_jobs), "threads that had no job");
        lines.text("scheduling", answer(self.scheduling), "threads scheduled in another way than agreed");
        if !self.tasks.is_empty() {
            text.push('\n');
            text.push_str(TASK_HINT);
        }
        self.tasks.iter().for_each(|task| write_task(task, &mut text));
        self.chains.iter().for_each(|chain| write_chain(chain, &mut text));
        self.latencies.iter().for_each(|it| write_processor(it, &mut text));
        text
    }
}

fn write_task(task: &ContractTask, text: &mut String) {
    text.push_str("\n[[task]]\n");
    let mut lines = Lines(text);
    lines.text("name", Some(&task.name), "");
    if let Some(thread) = &task.thread {
        lines.line("thread", pattern(thread), "");
    }
    lines.number("threads", task.threads, "how many those are at once, for proofs");
    lines.text("separator", task.separator.as_deref(), "where its jobs end");
    lines.time("period", task.period, "");
    lines.time("jitter", task.jitter, "latest release after its activation");
    lines.number("skips", task.skips, "activations that may be left out in a row");
    if let [mode] = &task.modes[..] {
        write_mode(mode, &mut lines);
    }
    let meaning = ("least time between two releases", "from a release to the next, the second, …");
    lines.times("separation", task.separation, &task.more_separations, meaning);
    let meaning = ("most processor time of a job", "of one job, of two in a row, …");
    lines.times("wcet", task.wcet, &task.more_wcets, meaning);
    lines.time("response", task.response, "longest time to the end of a job");
    lines.time("deadline", task.deadline, "");
    lines.time("suspension", task.suspension, "most time asleep inside a job");
    lines.number("suspensions", task.suspensions, "sleeps inside a job");
    let share = task.may_exceed.map(|share| format!("{share}%"));
    lines.text("may_exceed", share.as_deref(), "share of the jobs that may exceed each limit but deadline");
    lines.time(
        "quartile_cost",
        task.quartile_cost,
        "at least a quarter of the jobs need no more processor time",
    );
    if let Some(it) = task.median_separation {
        let range = format!("{{ least = {}, most = {} }}", time(it.least), time(it.most));
        lines.line("median_separation", range, "median time from a release to the next");
    }
    lines.text("policy", task.policy.map(Policy::name), "");
    lines.number("priority", task.priority.map(u64::from), "");
    if let Some(it) = task.reservation {
        let [runtime, deadline, period] = [it.runtime_ns, it.deadline_ns, it.period_ns].map(time);
        let all = format!("{{ runtime = {runtime}, deadline = {deadline}, period = {period} }}");
        lines.line("reservation", all, "");
    }
    lines.text("missing", task.missing.map(super::Answer::name), "if no thread belongs to it");
    lines.time("offset", task.offset, "first activation in a table");
    if !task.after.is_empty() {
        lines.line("after", strings(&task.after), "");
    }
    lines.list("processors", &task.processors, "");
    lines.flag("exclusive", task.exclusive, "");
    let on_overrun = task.on_overrun.map(|it| match it {
        OnOverrun::Continue => "continue",
        OnOverrun::Skip => "skip",
        OnOverrun::Stop => "stop",
        OnOverrun::Tell => "tell",
    });
    lines.text("on_overrun", on_overrun, "");
    if task.modes.len() > 1 {
        for mode in &task.modes {
            text.push_str("\n[[task.mode]]\n");
            write_mode(mode, &mut Lines(text));
        }
    }
}

/// The keys of a mode; a task with one mode has them itself.
fn write_mode(mode: &ContractMode, lines: &mut Lines<'_>) {
    let sources = &mode.sources;
    let periods: Vec<Duration> = sources.iter().map(|source| source.period).collect();
    let jitters: Option<Vec<Duration>> = sources.iter().map(|source| source.jitter).collect();
    let jitters = jitters.unwrap_or_default();
    let is_one = jitters.windows(2).all(|two| two[0] == two[1]);
    lines.one_or_all("period", &periods, "");
    lines.one_or_all(
        "jitter",
        if is_one { jitters.get(..1).unwrap_or_default() } else { &jitters },
        "latest release after its activation",
    );
    if let [ContractSource { burst: Some(burst), .. }] = &sources[..] {
        lines.number("burst", Some(burst.jobs), "most jobs of an activation");
        lines.time("within", Some(burst.within_ns), "from its first release to its last");
    }
    lines.number("skips", mode.skips, "activations that may be left out in a row");
}

fn write_chain(chain: &ContractChain, text: &mut String) {
    text.push_str("\n[[chain]]\n");
    let mut lines = Lines(text);
    lines.line("tasks", strings(&chain.tasks), "");
    lines.time("reaction_time", chain.reaction_time, "activation of the first to the end of the last");
    lines.time("data_age", chain.data_age, "age of what the last has read, at its end");
}

fn write_processor(processor: &ContractProcessor, text: &mut String) {
    text.push_str("\n[[processor]]\n");
    let mut lines = Lines(text);
    lines.line("cpu", processor.cpu, "");
    lines.time("latency", Some(processor.latency), "longest scheduling latency");
}

/// Lines `key = value  # meaning`.
struct Lines<'a>(&'a mut String);

impl Lines<'_> {
    fn line(&mut self, key: &str, value: impl Display, meaning: &str) {
        let line = format!("{key} = {value}");
        let _ = match meaning {
            "" => writeln!(self.0, "{line}"),
            meaning => writeln!(self.0, "{line:<34} # {meaning}"),
        };
    }

    fn time(&mut self, key: &str, value: Option<Duration>, meaning: &str) {
        if let Some(value) = value {
            self.line(key, time(value), meaning);
        }
    }

    fn times(&mut self, key: &str, first: Option<Duration>, more: &[Duration], meaning: (&str, &str)) {
        match first {
            Some(first) if !more.is_empty() => {
                let all: Vec<Duration> = std::iter::once(first).chain(more.iter().copied()).collect();
                self.one_or_all(key, &all, meaning.1);
            }
            first => self.time(key, first, meaning.0),
        }
    }

    fn one_or_all(&mut self, key: &str, all: &[Duration], meaning: &str) {
        match all {
            [] => {}
            [one] => self.time(key, Some(*one), meaning),
            all => {
                let all: Vec<String> = all.iter().copied().map(time).collect();
                self.line(key, format!("[{}]", all.join(", ")), meaning);
            }
        }
    }

    fn text(&mut self, key: &str, value: Option<&str>, meaning: &str) {
        if let Some(value) = value {
            self.line(key, quoted(value), meaning);
        }
    }

    fn number(&mut self, key: &str, value: Option<u64>, meaning: &str) {
        if let Some(value) = value {
            self.line(key, value, meaning);
        }
    }

    fn flag(&mut self, key: &str, value: bool, meaning: &str) {
        if value {
            self.line(key, value, meaning);
        }
    }

    fn list(&mut self, key: &str, processors: &[u32], meaning: &str) {
        if !processors.is_empty() {
            let ranges = processors.chunk_by(|one, other| one.checked_add(1) == Some(*other));
            let ranges = ranges.map(|range| match range {
                [first, .., last] => format!("{first}-{last}"),
                range => range.iter().map(u32::to_string).collect(),
            });
            self.line(key, quoted(&ranges.collect::<Vec<_>>().join(",")), meaning);
        }
    }
}

/// In the largest unit that needs no more than three decimals: `"2.5ms"`.
fn time(time: Duration) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let fits = |(unit, _): &(u64, &str)| time.ns() >= *unit && time.ns() % (unit / 1_000).max(1) == 0;
    let (unit, name) = match time.is_zero() {
        true => (1, "s"),
        false => units.into_iter().find(fits).unwrap_or((1, "ns")),
    };
    let (whole, part) = (time.ns() / unit, time.ns() % unit / (unit / 1_000).max(1));
    let decimals = if part == 0 { String::new() } else { format!(".{part:03}") };
    quoted(&format!("{whole}{}{name}", decimals.trim_end_matches('0')))
}

fn pattern(pattern: &Pattern) -> String {
    let Pattern { comm, command, cgroup, unit } = pattern;
    let parts = [("comm", comm), ("command", command), ("cgroup", cgroup), ("unit", unit)];
    let parts = parts.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?)));
    let parts: Vec<String> = parts.map(|(key, value)| format!("{key} = {}", quoted(value))).collect();
    format!("{{ {} }}", parts.join(", "))
}

fn strings(all: &[String]) -> String {
    format!("[{}]", all.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => _ = write!(quoted, "\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_read_as_they_were() {
        let texts = [0, 999, 1_000, 1_680_000, 39_200_000, 2_500, 1_500_000_000, 1_000_001, 10_050_000];
        let shown = texts.map(|ns| time(Duration::from_ns(ns)));
        let expected = ["0s", "999ns", "1us", "1.68ms", "39.2ms", "2.5us", "1.5s", "1000.001us", "10.05ms"];
        assert_eq!(shown, expected.map(quoted));
        for ns in (0..3_000).chain((0..3_000).map(|it| it * 1_000)).chain((0..3_000).map(|it| it * 1_000_000))
        {
            let text = time(Duration::from_ns(ns));
            let read = humantime::parse_duration(text.trim_matches('"')).expect("a time");
            assert_eq!(read.as_nanos(), u128::from(ns), "{text}");
        }
    }
}
