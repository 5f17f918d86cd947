//! How long data may take through chains: `cam1..ter1: reaction<50ms, age<80ms`, or the chains of a contract.

use crate::agreement::read_contract;
use crate::error::{Error, Result};
use punctual_conformance::{ChainChecker, Contract, ContractChain};
use punctual_extract::flow::{ChainError, Chains, Graph};
use punctual_model::Duration;
use std::path::Path;

/// What was agreed on.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    given: Vec<Deadline>,
    contract: Option<Contract>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Deadline {
    chain: Ends,
    reaction: Option<Duration>,
    age: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Ends {
    /// All paths between two tasks.
    Between(String, String),
    /// One chain, task by task.
    Tasks(Vec<String>),
}

impl Deadlines {
    /// Reads lines, and a contract's file.
    pub fn new(lines: &[String], contract: Option<&Path>) -> Result<Deadlines> {
        let given = lines.iter().map(|line| parse(line)).collect::<Result<_>>()?;
        let contract = contract.map(read_contract).transpose()?;
        if contract.as_ref().is_some_and(|contract| !contract.chains.iter().any(ContractChain::has_times)) {
            return Err(Error::usage("the contract says of no chain how long data may take")
                .advise("give a chain reaction_time or data_age"));
        }
        Ok(Deadlines { given, contract })
    }

    /// A checker of the chains of a program; `None` if nothing was agreed on.
    pub(super) fn checker(&self, graph: &Graph) -> Result<Option<ChainChecker>> {
        let mut chains: Vec<ContractChain> =
            self.contract.iter().flat_map(|contract| contract.chains.clone()).collect();
        for deadline in &self.given {
            let found = match &deadline.chain {
                Ends::Between(first, last) => Chains::between(graph, first, last).map_err(refuse)?,
                Ends::Tasks(tasks) => {
                    Chains::given(graph, std::slice::from_ref(tasks)).map_err(refuse)?;
                    vec![tasks.clone()]
                }
            };
            chains.extend(found.into_iter().map(|tasks| ContractChain {
                tasks,
                reaction_time: deadline.reaction,
                data_age: deadline.age,
            }));
        }
        Ok(ChainChecker::new(&Contract { chains, ..Contract::default() }))
    }
}

fn refuse(error: ChainError) -> Error {
    Error::target(format!("--deadline: {error}"))
}

fn parse(line: &str) -> Result<Deadline> {
    let wrong = |what: String| {
        Err(Error::usage(format!("--deadline {line:?}: {what}"))
            .advise("it looks like 'cam1..ter1: reaction<50ms, age<80ms'"))
    };
    let Some((chain, terms)) = line.rsplit_once(':') else {
        return wrong("there is no colon behind the chain".into());
    };
    let chain = match chain.split_once("..") {
        Some((first, last)) => Ends::Between(first.trim().to_owned(), last.trim().to_owned()),
        None => Ends::Tasks(chain.split(',').map(|task| task.trim().to_owned()).collect()),
    };
    let is_named = match &chain {
        Ends::Between(first, last) => !first.is_empty() && !last.is_empty(),
        Ends::Tasks(tasks) => tasks.iter().all(|task| !task.is_empty()),
    };
    if !is_named {
        return wrong("a task has no name".into());
    }
    let mut deadline = Deadline { chain, reaction: None, age: None };
    for term in terms.split(',') {
        let Some((what, time)) = term.split_once('<') else {
            return wrong(format!("{:?} has no '<' and a time", term.trim()));
        };
        let place = match what.trim() {
            "reaction" => &mut deadline.reaction,
            "age" => &mut deadline.age,
            other => return wrong(format!("there is no {other:?}, but reaction and age")),
        };
        // `<=` says the same: a latency of just that time is not a miss.
        let time = time.trim_start_matches('=').trim();
        let time = match humantime::parse_duration(time) {
            Ok(time) if !time.is_zero() => time,
            Ok(_) => return wrong(format!("{time} is no time at all")),
            Err(_) => return wrong(format!("{time:?} is not a time, such as 50ms or 2s")),
        };
        let time = Duration::from_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        if place.replace(time).is_some() {
            return wrong(format!("{} is there twice", what.trim()));
        }
    }
    Ok(deadline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_chain_and_how_long_data_may_take() {
        let found = parse("cam1..ter1: reaction<50ms, age<80ms").expect("a deadline");
        assert_eq!(found.chain, Ends::Between("cam1".into(), "ter1".into()));
        let ms = |ms: u64| Some(Duration::from_us(1_000 * ms));
        assert_eq!((found.reaction, found.age), (ms(50), ms(80)));
        let found = parse("a, b: c,d : age <= 1s").expect("a deadline");
        assert_eq!(found.chain, Ends::Tasks(vec!["a".into(), "b: c".into(), "d".into()]));
        assert_eq!((found.reaction, found.age), (None, ms(1_000)));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_said() {
        for (line, expected) in [
            ("a..b reaction<1s", "no colon"),
            ("a..: reaction<1s", "no name"),
            ("a,,b: reaction<1s", "no name"),
            ("a..b: reaction 1s", "no '<'"),
            ("a..b: latency<1s", "reaction and age"),
            ("a..b: age<fast", "not a time"),
            ("a..b: age<0s", "no time at all"),
            ("a..b: age<1s, age<2s", "twice"),
        ] {
            let error = format!("{:#}", parse(line).expect_err(line));
            assert!(error.contains(expected) && error.contains("it looks like"), "{line}: {error}");
        }
    }
}
