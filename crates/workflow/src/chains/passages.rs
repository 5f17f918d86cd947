//! The ways of data through a dataflow program, as they end.

use super::{Program, Trace};
use crate::error::Result;
use crate::monitor::Monitor;
use punctual_extract::flow::{Analysis, Chains, Clip, Clipped, EndToEndKind, Graph, Options};
use punctual_report::jobs::Passage;
use punctual_trace::flow::Item;

/// A program and its chains, after a first pass over its trace.
pub(crate) struct Followed {
    program: Program,
    chains: Chains,
    options: Options,
}

impl Trace {
    /// Makes the first pass.
    pub(crate) fn followed(&self, monitor: &dyn Monitor) -> Result<Followed> {
        let program = self.program(monitor)?;
        let chains = self.chains(&program.graph)?;
        Ok(Followed { program, chains, options: self.options })
    }
}

impl Followed {
    /// The part that was followed, for a second pass; `None` if it is everything.
    pub(crate) fn clip(&self, trace: &Trace) -> Option<Clip> {
        self.program.span.map(|(from, until)| Clip::new(from, until, trace.reader().about()))
    }

    /// Those of a second pass.
    pub(crate) fn passages(&self) -> Passages<'_> {
        let analysis = Analysis::new(&self.program.graph, &self.chains, &self.options).with_latencies();
        Passages { names: names(&self.program.graph, &self.chains), analysis }
    }
}

/// Follows data.
pub(crate) struct Passages<'a> {
    names: Vec<String>,
    analysis: Analysis<'a>,
}

impl Passages<'_> {
    /// Takes what is not of the part, with which nothing ends.
    pub(crate) fn before(&mut self, clipped: &Clipped) {
        self.analysis.clipped(clipped);
    }

    /// Takes the next item of the trace, and hands on what ended with it, until that fails.
    pub(crate) fn item<E>(
        &mut self,
        item: &Item,
        each: impl FnMut(Passage<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.analysis.item(item);
        ended(&mut self.analysis, &self.names).try_for_each(each)
    }
}

/// The names of chains, by their numbers.
pub(super) fn names(graph: &Graph, chains: &Chains) -> Vec<String> {
    let name =
        |chain: &Vec<u16>| chain.iter().map(|task| graph.task_name(*task)).collect::<Vec<_>>().join(" → ");
    chains.numbers().iter().map(name).collect()
}

/// What ended since the last call; `names` are those of the chains.
pub(super) fn ended<'a>(
    analysis: &'a mut Analysis<'_>,
    names: &'a [String],
) -> impl Iterator<Item = Passage<'a>> {
    analysis.ended().map(|it| Passage {
        chain: &names[it.chain],
        latency: match it.kind {
            EndToEndKind::Reaction => "reaction",
            EndToEndKind::Age => "age",
        },
        source: it.source,
        from: it.from,
        sink: it.sink,
        until: it.until,
    })
}
