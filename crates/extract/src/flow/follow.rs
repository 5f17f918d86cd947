//! Follows chains of a program that runs, in constant memory: what two passes over its trace find, with the
//! graph as it is known so far.
//!
//! While all events are still kept, a graph that has grown is followed from the first of them again, and only
//! what has not been handed out is. Later, and where events were lost, it begins anew, as if the program had
//! been traced from there on only: data on their way are not followed to their end.

use super::chains::{ChainError, Chains};
use super::clip::{Before, Clip};
use super::graph::{Graph, GraphBuilder};
use super::{Analysis, EndToEnd, Options};
use punctual_model::Instant;
use punctual_trace::flow::{About, Arming, Barrier, Connection, Item};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Most items that are kept to be followed again.
const MOST_KEPT: usize = 1 << 16;

/// End of a part that has none.
const NEVER: Instant = Instant::from_ns(u64::MAX);

/// Follows chains. Items come in order, in batches that end between two times.
pub struct Follower {
    chains: Vec<Followed>,
    builder: GraphBuilder,
    /// Of the graph that was looked at last.
    extent: usize,
    /// What came before the batch, since the program began.
    before: Before,
    part: Part,
    analysis: Option<Running>,
    /// Items that are missing by their numbers: as of the batch before, and of those that are accounted for.
    missing: u64,
    accounted: u64,
    /// When the last item was.
    last: Instant,
    losses: u64,
    restarts: u64,
}

/// A chain that is asked for.
struct Followed {
    tasks: Vec<String>,
    /// Why it is not there, as long as it has never been.
    absent: Option<ChainError>,
    /// Latencies that ended by then have been handed out.
    until: Option<Instant>,
}

/// The part of the trace that is followed.
struct Part {
    /// Where it begins, and what came before; `None` if it is all.
    begin: Option<(Instant, Before)>,
    /// Its items, as long as there is room.
    kept: Option<Vec<Item>>,
}

struct Running {
    analysis: Analysis<'static>,
    clip: Option<Clip>,
    shape: Shape,
    /// By chain of the analysis: those that are asked for.
    numbers: Vec<Vec<usize>>,
}

/// What of a graph decides how data go along chains.
#[derive(Debug, PartialEq)]
struct Shape {
    chains: Vec<Vec<u16>>,
    /// By pair of tasks.
    between: BTreeMap<(u16, u16), Vec<u16>>,
    /// By input of a task of the chains.
    inputs: BTreeMap<Connection, (Vec<Arming>, Option<Barrier>)>,
}

impl Part {
    fn new(begin: Option<(Instant, Before)>) -> Part {
        Part { begin, kept: Some(Vec::new()) }
    }

    fn clip(&self) -> Option<Clip> {
        self.begin.as_ref().map(|(from, before)| Clip::behind(*from, NEVER, before.clone()))
    }
}

impl Follower {
    /// Follows chains, each by the names of its tasks.
    pub fn new(chains: impl IntoIterator<Item = Vec<String>>) -> Follower {
        let followed = |tasks: Vec<String>| Followed { tasks, absent: None, until: None };
        Follower {
            chains: chains.into_iter().map(followed).collect(),
            builder: GraphBuilder::new(),
            extent: 0,
            before: Before::default(),
            part: Part::new(None),
            analysis: None,
            missing: 0,
            accounted: 0,
            last: Instant::from_ns(0),
            losses: 0,
            restarts: 0,
        }
    }

    /// Takes a batch of items, before which everything has come. `about` is what is known of the program by
    /// now, and `is_new` whether that has changed. Hands out latencies with the numbers of their chains.
    pub fn batch(
        &mut self,
        items: &[Item],
        about: &About,
        is_new: bool,
        each: &mut dyn FnMut(usize, &EndToEnd),
    ) {
        items.iter().for_each(|item| self.builder.item(item));
        self.before.know(about);
        let first = items.first().map(Item::at);
        if is_new || self.extent != self.builder.extent() {
            self.extent = self.builder.extent();
            self.look(about, first, each);
        }
        if let Some(kept) = &mut self.part.kept {
            match kept.len() + items.len() <= MOST_KEPT {
                true => kept.extend_from_slice(items),
                false => self.part.kept = None,
            }
        }
        self.last = items.last().map_or(self.last, Item::at);
        if let Some(running) = &mut self.analysis {
            running.follow(items, &mut |chain, latency| each(chain, latency));
            let followed = running.numbers.iter().flatten();
            followed.for_each(|chain| self.chains[*chain].until = Some(self.last));
        }
        items.iter().for_each(|item| self.before.item(item));
        self.count_missing(items);
    }

    /// Events until then are missing, and not told of. What is on its way then is not followed.
    pub fn lose(&mut self, until: Instant) {
        self.losses += 1;
        self.builder.doubt();
        self.before.is_incomplete = true;
        self.begin_anew(Instant::from_ns(until.ns().saturating_add(1)));
    }

    /// Follows other chains, by what comes from now on.
    pub fn change(&mut self, chains: impl IntoIterator<Item = Vec<String>>) {
        let next = Instant::from_ns(self.last.ns().saturating_add(1));
        self.chains = Follower::new(chains).chains;
        self.begin_anew(next);
    }

    /// Follows what comes from then on only; the graph is known already.
    fn begin_anew(&mut self, from: Instant) {
        self.part = Part::new(Some((from, self.before.clone())));
        self.analysis = None;
        // It is looked at again.
        self.extent = 0;
    }

    /// Numbers that are missing for longer than a batch were not sent.
    fn count_missing(&mut self, items: &[Item]) {
        let missing = self.builder.missing();
        if !items.is_empty() && missing.min(self.missing) > self.accounted {
            self.accounted = missing;
            self.lose(self.last);
        }
        self.missing = missing;
    }

    /// Looks whether the chains are still what they were; `first` is when the batch begins.
    fn look(&mut self, about: &About, first: Option<Instant>, each: &mut dyn FnMut(usize, &EndToEnd)) {
        let Some((graph, chains, numbers)) = self.graph(about) else {
            self.analysis = None;
            return;
        };
        let shape = Shape::of(&graph, &chains);
        if self.analysis.as_ref().is_some_and(|running| running.shape == shape) {
            return;
        }
        if self.part.kept.is_none() {
            self.restarts += 1;
            self.begin_anew(first.unwrap_or(self.last));
            self.extent = self.builder.extent();
            return self.look(about, first, each);
        }
        let analysis = Analysis::of(Cow::Owned(graph), Cow::Owned(chains), &Options { curve_horizon: 1 });
        let analysis = analysis.with_latencies();
        let mut running = Running { analysis, clip: self.part.clip(), shape, numbers };
        let known: Vec<Option<Instant>> = self.chains.iter().map(|chain| chain.until).collect();
        let kept = self.part.kept.as_deref().unwrap_or_default();
        running.follow(kept, &mut |chain, latency| {
            if known[chain].is_none_or(|until| latency.until > until) {
                each(chain, latency);
            }
        });
        self.analysis = Some(running);
    }

    /// The graph so far, and the chains that are in it; `None` if none is.
    fn graph(&mut self, about: &About) -> Option<(Graph, Chains, Vec<Vec<usize>>)> {
        let about = self.part.clip().map_or(Cow::Borrowed(about), |clip| Cow::Owned(clip.about(about)));
        let graph = self.builder.clone().finish(&about).of_whole_part();
        // By chain of the program: those that are asked for, which may have one twice.
        let (mut known, mut numbers): (Vec<Vec<String>>, Vec<Vec<usize>>) = (Vec::new(), Vec::new());
        for (number, chain) in self.chains.iter_mut().enumerate() {
            if let Err(error) = Chains::given(&graph, std::slice::from_ref(&chain.tasks)) {
                chain.absent = Some(error);
                continue;
            }
            match known.iter().position(|it| *it == chain.tasks) {
                Some(place) => numbers[place].push(number),
                None => {
                    known.push(chain.tasks.clone());
                    numbers.push(vec![number]);
                }
            }
        }
        let chains = Chains::given(&graph, &known).ok().filter(|chains| !chains.is_empty())?;
        Some((graph, chains, numbers))
    }

    /// The chains that have never been there, and why.
    pub fn absent(&self) -> impl Iterator<Item = (usize, String)> {
        let absent = self.chains.iter().enumerate().filter(|(_, chain)| chain.until.is_none());
        absent.map(|(number, chain)| {
            let why = chain.absent.as_ref().map_or("there were no events".to_owned(), ToString::to_string);
            (number, why)
        })
    }

    /// How often events were missing, and nothing was followed across.
    pub fn losses(&self) -> u64 {
        self.losses
    }

    /// How often the graph changed when it could not be followed from the beginning any more.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }
}

impl Running {
    fn follow(&mut self, items: &[Item], each: &mut dyn FnMut(usize, &EndToEnd)) {
        let Running { analysis, clip, numbers, .. } = self;
        for item in items {
            match clip {
                None => analysis.item(item),
                Some(clip) => clip.item(item).iter().for_each(|item| analysis.clipped(item)),
            }
            for latency in analysis.ended() {
                numbers[latency.chain].iter().for_each(|chain| each(*chain, &latency));
            }
        }
    }
}

impl Shape {
    fn of(graph: &Graph, chains: &Chains) -> Shape {
        let mut shape =
            Shape { chains: chains.numbers().to_vec(), between: BTreeMap::new(), inputs: BTreeMap::new() };
        for pair in shape.chains.iter().flat_map(|chain| chain.windows(2)) {
            shape.between.insert((pair[0], pair[1]), graph.channels_between(pair[0], pair[1]).to_vec());
        }
        let is_followed = |task: &u16| shape.chains.iter().any(|chain| chain.contains(task));
        for (channel, tasks) in &graph.activates {
            for task in tasks.keys().filter(|task| is_followed(task)) {
                let connection = Connection { channel: *channel, task: *task };
                let armings = graph.armings.get(&connection).cloned().unwrap_or_default();
                shape.inputs.insert(connection, (armings, graph.barriers.get(channel).copied()));
            }
        }
        shape
    }
}
