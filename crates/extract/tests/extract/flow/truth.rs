//! What a chain's latencies really were, from the simulator's books: slowly, and from the definitions alone.

use super::simulator::{History, Program};
use std::collections::HashMap;

/// A datum's way: instances and the pushes between them.
pub type Way = Vec<(usize, Option<usize>)>;

/// Latencies of a chain: of each source's instance by number, and of each sink's.
#[derive(Debug, Default)]
pub struct Truth {
    /// Instances of the source that pushed on the chain, and what became of them.
    pub reactions: HashMap<u64, Fate>,
    /// Instances of the sink that had read a datum of the chain: source's instance, age if it has ended, and
    /// way.
    pub ages: HashMap<u64, (u64, Option<u64>, Way)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// From activation to the end of the sink's instance, which had read the datum of that instance of the
    /// source.
    Reacted {
        latency: u64,
        read: u64,
    },
    Overtaken,
    InFlight,
}

/// The newest instance of the source whose datum an instance has read, as the chain goes.
fn carry(
    history: &History,
    program: &Program,
    chain: &[usize],
    instance: usize,
    memo: &mut HashMap<(usize, usize), Option<(u64, Way)>>,
) -> Option<(u64, Way)> {
    let key = (instance, chain.len());
    if let Some(known) = memo.get(&key) {
        return known.clone();
    }
    let this = &history.instances[instance];
    let found = match chain {
        [_] => Some((this.number, vec![(instance, None)])),
        [before @ .., _] => {
            let from = before[before.len() - 1];
            let mut newest: Option<(u64, Way)> = None;
            for push in &this.reads {
                let Some(maker) =
                    history.pushes[*push].maker.filter(|maker| history.instances[*maker].task == from)
                else {
                    continue;
                };
                let is_connected = program.tasks[this.task]
                    .inputs
                    .iter()
                    .any(|input| input.channel == history.pushes[*push].channel);
                assert!(is_connected);
                if let Some((source, mut way)) = carry(history, program, before, maker, memo) {
                    if newest.as_ref().is_none_or(|(newest, _)| *newest <= source) {
                        way.last_mut().unwrap().1 = Some(*push);
                        way.push((instance, None));
                        newest = Some((source, way));
                    }
                }
            }
            newest
        }
        [] => None,
    };
    memo.insert(key, found.clone());
    found
}

pub fn truth(history: &History, program: &Program, chain: &[usize]) -> Truth {
    let mut truth = Truth::default();
    let mut memo = HashMap::new();
    let (source, second, sink) = (chain[0], chain[1], chain[chain.len() - 1]);
    // In the order in which they read: what each instance of the sink has read.
    let mut reads: Vec<(usize, u64)> = Vec::new();
    let read = history
        .instances
        .iter()
        .enumerate()
        .filter(|(_, instance)| instance.task == sink && instance.read.is_some());
    let mut read: Vec<_> = read.collect();
    read.sort_by_key(|(_, instance)| instance.read);
    for (index, instance) in read {
        if let Some((newest, way)) = carry(history, program, chain, index, &mut memo) {
            let began = history.instances[way[0].0].activation;
            truth.ages.insert(instance.number, (newest, instance.stop.map(|stop| stop - began), way));
            reads.push((index, newest));
        }
    }
    for (index, instance) in
        history.instances.iter().enumerate().filter(|(_, instance)| instance.task == source)
    {
        let leads =
            |channel: usize| program.tasks[second].inputs.iter().any(|input| input.channel == channel);
        let Some(first) = history.pushes.iter().find(|push| push.maker == Some(index) && leads(push.channel))
        else {
            continue;
        };
        let fate = match reads.iter().find(|(_, read)| *read >= instance.number) {
            None => Fate::InFlight,
            Some((sink, _)) if history.instances[*sink].read.is_some_and(|read| read < first.at) => {
                Fate::Overtaken
            }
            Some((sink, read)) => match history.instances[*sink].stop {
                Some(stop) => Fate::Reacted { latency: stop - instance.activation, read: *read },
                None => Fate::InFlight,
            },
        };
        truth.reactions.insert(instance.number, fate);
    }
    truth
}
