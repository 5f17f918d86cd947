//! Contracts: what someone agreed on rather than observed, in TOML. See `docs/table.md`.

use punctual_model::table::{Clock, OnOverrun, ThreadPattern};
use punctual_model::{Duration, processor_list};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;

/// Nobody writes more by hand.
const MOST_BYTES: usize = 1 << 20;

/// What a contract says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contract {
    /// Length of a slot.
    pub slot: Option<Duration>,
    /// The processors, ascending; empty if it says nothing of them.
    pub processors: Vec<u32>,
    /// The clock.
    pub clock: Option<Clock>,
    /// Whether a job may continue on another processor.
    pub migration: bool,
    /// The tasks.
    pub tasks: Vec<ContractTask>,
    /// Tasks that run one after the other.
    pub chains: Vec<Vec<String>>,
}

/// What a contract says of a task. What is absent is taken from a timing model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContractTask {
    /// Its name.
    pub name: String,
    /// From one activation to the next.
    pub period: Option<Duration>,
    /// The most that a job needs.
    pub wcet: Option<Duration>,
    /// From an activation until its job must have ended.
    pub deadline: Option<Duration>,
    /// The first activation.
    pub offset: Option<Duration>,
    /// Tasks that it must follow.
    pub after: Vec<String>,
    /// Processors that it may use, ascending; empty if all.
    pub processors: Vec<u32>,
    /// Whether it has its processor for itself.
    pub exclusive: bool,
    /// What happens when it has used its slots.
    pub on_overrun: Option<OnOverrun>,
    /// Which thread it is.
    pub thread: Option<ThreadPattern>,
}

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
    processors: Option<Spanned<String>>,
    #[serde(default)]
    clock: Option<Clock>,
    #[serde(default)]
    migration: bool,
    #[serde(default)]
    task: Vec<RawTask>,
    #[serde(default)]
    chain: Vec<RawChain>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTask {
    name: Spanned<String>,
    #[serde(default)]
    period: Option<Spanned<String>>,
    #[serde(default)]
    wcet: Option<Spanned<String>>,
    #[serde(default)]
    deadline: Option<Spanned<String>>,
    #[serde(default)]
    offset: Option<Spanned<String>>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    processors: Option<Spanned<String>>,
    #[serde(default)]
    exclusive: bool,
    #[serde(default)]
    on_overrun: Option<OnOverrun>,
    #[serde(default)]
    thread: Option<RawThread>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawThread {
    #[serde(default)]
    comm: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    cgroup: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawChain {
    tasks: Vec<String>,
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
        Ok(Contract {
            slot: self.slot.as_ref().map(time).transpose()?,
            processors: self.processors.as_ref().map(processors).transpose()?.unwrap_or_default(),
            clock: self.clock,
            migration: self.migration,
            tasks: self.task.into_iter().map(RawTask::read).collect::<Located<_>>()?,
            chains: self.chain.into_iter().map(|chain| chain.tasks).collect(),
        })
    }
}

impl RawTask {
    fn read(self) -> Located<ContractTask> {
        let duration = |value: &Option<Spanned<String>>| value.as_ref().map(time).transpose();
        Ok(ContractTask {
            period: duration(&self.period)?,
            wcet: duration(&self.wcet)?,
            deadline: duration(&self.deadline)?,
            offset: duration(&self.offset)?,
            processors: self.processors.as_ref().map(processors).transpose()?.unwrap_or_default(),
            name: self.name.into_inner(),
            after: self.after,
            exclusive: self.exclusive,
            on_overrun: self.on_overrun,
            thread: self.thread.map(|RawThread { comm, command, cgroup }| ThreadPattern {
                comm,
                command,
                cgroup,
            }),
        })
    }
}

fn time(value: &Spanned<String>) -> Located<Duration> {
    let problem = || format!("expected a time such as \"3ms\" or \"250us\", found {:?}", value.get_ref());
    let parsed = humantime::parse_duration(value.get_ref()).ok();
    let ns = parsed.and_then(|time| u64::try_from(time.as_nanos()).ok());
    ns.map(Duration::from_ns).ok_or_else(|| (value.span(), problem()))
}

/// As the kernel writes them: `0-1,4`.
fn processors(value: &Spanned<String>) -> Located<Vec<u32>> {
    processor_list(value.get_ref()).ok_or_else(|| {
        (value.span(), format!("expected processors such as \"0-1,4\", found {:?}", value.get_ref()))
    })
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
        assert_eq!(contract.chains, [["sense", "act"]]);
        let [sense, act] = &contract.tasks[..] else { panic!("two tasks") };
        assert_eq!(sense.wcet, Some(Duration::from_us(2_500)));
        assert_eq!(sense.thread.as_ref().and_then(|thread| thread.comm.as_deref()), Some("sense*"));
        assert_eq!((act.period, act.exclusive, act.on_overrun), (None, true, Some(OnOverrun::Stop)));
        assert_eq!((&act.after[..], &act.processors[..]), (&["sense".to_owned()][..], &[5][..]));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, problem) in [
            ("slot = \"3\"", 1, "expected a time such as \"3ms\" or \"250us\", found \"3\""),
            ("\nprocessors = \"2-1\"", 2, "expected processors such as \"0-1,4\", found \"2-1\""),
            ("speed = 3", 1, "unknown field `speed`"),
            ("[[task]]\nperiod = \"3ms\"", 1, "missing field `name`"),
            ("[[task]]\nname = \"a\"\n[[task]]\nname = \"a\"", 4, "expected a unique name, found \"a\""),
            ("[[task]]\nname = \"a\"\nwcet = \"much\"", 3, "expected a time such as"),
            ("[[task]]\nname = \"a\"\non_overrun = \"cry\"", 3, "unknown variant `cry`"),
            ("slot = ", 1, ""),
        ] {
            let faulty = Contract::parse(text).expect_err(text);
            assert_eq!(faulty.line, line, "{text}: {}", faulty.problem);
            assert!(faulty.problem.contains(problem), "{text}: {}", faulty.problem);
        }
    }
}
