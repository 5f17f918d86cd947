//! Chains of a dataflow program against a contract: the end-to-end latencies in its trace, one by one.

use crate::contract::{Contract, ContractChain};
use crate::verdict::{Note, Tally, Verdict};
use crate::violation::{Subject, Term, Violation};
use punctual_extract::flow::{EndToEnd, EndToEndKind};
use punctual_model::Duration;
use std::sync::Arc;

/// Checks end-to-end latencies against a contract.
pub struct ChainChecker {
    chains: Vec<Judged>,
}

struct Judged {
    tasks: Vec<String>,
    /// The name of the last task.
    last: Arc<str>,
    tally: Tally,
    /// Why the trace has no such chain.
    absent: Option<String>,
}

impl ChainChecker {
    /// A checker of the chains of a contract that say how long data takes; `None` if there is none.
    pub fn new(contract: &Contract) -> Option<ChainChecker> {
        let chains: Vec<Judged> =
            contract.chains.iter().filter(|it| it.has_times()).map(Judged::new).collect();
        (!chains.is_empty()).then_some(ChainChecker { chains })
    }

    /// The names of each chain's tasks.
    pub fn tasks(&self) -> impl Iterator<Item = &[String]> {
        self.chains.iter().map(|it| &it.tasks[..])
    }

    /// How all chains stand.
    pub fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.chains.iter().map(|it| &it.tally)
    }

    /// The program has no such chain.
    pub fn is_absent(&mut self, chain: usize, why: String) {
        if let Some(chain) = self.chains.get_mut(chain) {
            chain.absent = Some(why);
        }
    }

    /// Takes a latency of a chain, and hands out a violation if it is one.
    pub fn latency(&mut self, chain: usize, latency: &EndToEnd, each: &mut impl FnMut(&Violation)) {
        if let Some(chain) = self.chains.get_mut(chain) {
            chain.latency(latency, each);
        }
    }

    /// Adds what came of it to a verdict.
    pub fn finish(self, verdict: &mut Verdict) {
        for Judged { tally, absent, .. } in self.chains {
            if let Some(why) = absent {
                let text = format!("the chain was not observed: {why}");
                verdict.notes.push(Note { task: tally.task.clone(), text });
            } else if tally.standings.iter().all(|it| it.worst.is_none()) {
                let text = "no datum came to its end".to_owned();
                verdict.notes.push(Note { task: tally.task.clone(), text });
            }
            verdict.tallies.push(tally);
        }
    }
}

impl Judged {
    fn new(agreed: &ContractChain) -> Judged {
        Judged {
            tasks: agreed.tasks.clone(),
            last: agreed.tasks.last().map_or("", String::as_str).into(),
            tally: tally_of(agreed),
            absent: None,
        }
    }

    fn latency(&mut self, latency: &EndToEnd, each: &mut impl FnMut(&Violation)) {
        let EndToEnd { kind, from, until, sink, .. } = *latency;
        let term = match kind {
            EndToEndKind::Reaction => Term::ReactionTime,
            EndToEndKind::Age => Term::DataAge,
        };
        self.tally.jobs += u64::from(kind == EndToEndKind::Reaction);
        let task = &self.tally.task;
        let Some(standing) = self.tally.standings.iter_mut().find(|it| it.term == term) else { return };
        let value = until.since(from).ns();
        if !standing.see(value) {
            return;
        }
        let subject = Subject {
            name: Arc::clone(&self.last),
            pid: 0,
            tid: 0,
            phase: 0,
            job: sink,
            release: from,
            end: until,
            is_open: false,
        };
        let (task, agreed) = (Arc::clone(task), standing.agreed);
        let violation = Violation { task, term, subject: Some(subject), value, agreed };
        each(&violation);
        standing.count(violation, 0);
    }
}

/// A chain of a contract, of which nothing has been seen.
pub(crate) fn tally_of(agreed: &ContractChain) -> Tally {
    let times = [(Term::ReactionTime, agreed.reaction_time), (Term::DataAge, agreed.data_age)];
    Tally::new(&agreed.tasks.join(" → "), times.map(|(term, time)| (term, time.map(Duration::ns))))
}
