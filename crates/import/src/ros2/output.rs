//! The second pass's product: a trace of a dataflow program.

use super::follow::{Follow, Producer, Step};
use super::graph::Graph;
use super::survey::Survey;
use super::{Trace, Variables, open, program};
use crate::error::{Error, ErrorKind};
use crate::notes::Notes;
use punctual_model::Instant;
use punctual_trace::account::Account;
use punctual_trace::flow::{About, Arming, Connection, Input, Kind, Opening, Writer};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Channels and tasks are numbered below this.
const MOST: usize = u16::MAX as usize;
/// Producers with a stream.
const MOST_PRODUCERS: usize = 4_096;
/// Bytes of all packets that are being filled, of one, and of the smallest.
const PACKETS: usize = 16 << 20;
const MOST_PACKET: usize = 64 << 10;
const LEAST_PACKET: usize = 4 << 10;

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Events of the dataflow trace.
    pub events: u64,
    /// Callbacks that ran.
    pub tasks: usize,
    /// Nodes, and topics and services with data.
    pub nodes: usize,
    /// Topics, services and variables with data.
    pub channels: usize,
    /// Threads that executed callbacks.
    pub executors: usize,
    /// Variables: the names of writer and reader.
    pub variables: Vec<(String, String)>,
    /// What was in the source, and what it lacks.
    pub account: Account,
    /// What was lost, and what could not be followed.
    pub notes: Vec<String>,
}

/// A trace that is written.
pub struct Output {
    writer: Writer,
    producers: FxHashMap<Producer, (usize, u64)>,
    topics: FxHashMap<usize, u16>,
    tasks: FxHashMap<usize, u16>,
    /// By task: the channel of its variables, and pushes there so far.
    variables: FxHashMap<usize, (u16, u64)>,
    /// Whether events are missing around here.
    is_in_gap: bool,
    /// Whether whole packets were missing the last time, rather than events that the tracer counted.
    lacks_packets: bool,
    written: Written,
}

/// Numbers and names of everything.
struct Plan {
    about: About,
    order: Vec<Producer>,
    topics: FxHashMap<usize, u16>,
    tasks: FxHashMap<usize, u16>,
    variables: FxHashMap<usize, (u16, u64)>,
    pairs: Vec<(String, String)>,
}

fn too_many(path: &Path, what: &str, most: usize) -> Error {
    Error::malformed(path, format!("it has more than {most} {what}, the most that a dataflow trace can have"))
}

impl Output {
    /// Makes the folder.
    pub fn create(
        folder: &Path,
        path: &Path,
        trace: &Trace,
        (graph, survey, follow): (&Graph, Survey, &Follow),
        variables: &Variables,
        discarded: u64,
        notes: &mut Notes,
    ) -> Result<Output, Error> {
        let mut plan = Plan::new(path, trace, (graph, survey, follow), variables, notes)?;
        plan.about.discarded = (discarded > 0).then_some(discarded);
        let share = (PACKETS / plan.order.len().max(1)).clamp(LEAST_PACKET, MOST_PACKET);
        // Whole events behind the header.
        let packet_bytes = share / 8 * 8;
        let writer = Writer::create(folder, &plan.about, plan.order.len(), packet_bytes).map_err(own)?;
        let written = Written {
            events: 0,
            tasks: plan.tasks.len(),
            nodes: graph.nodes.len(),
            channels: plan.about.channels.len(),
            executors: plan.about.executors.unwrap_or(0) as usize,
            variables: plan.pairs,
            account: Account::default(),
            notes: Vec::new(),
        };
        let producers = plan.order.into_iter().enumerate().map(|(place, producer)| (producer, (place, 0)));
        Ok(Output {
            writer,
            producers: producers.collect(),
            topics: plan.topics,
            tasks: plan.tasks,
            variables: plan.variables,
            is_in_gap: false,
            lacks_packets: false,
            written,
        })
    }

    /// Writes what happened.
    pub fn step(&mut self, at: Instant, producer: Producer, step: Step) -> Result<(), Error> {
        if let Step::Lost { events, packets, is_over } = step {
            self.is_in_gap = !is_over;
            if !is_over {
                self.lacks_packets = events == 0 && packets > 0;
            }
            return self.lose(events);
        }
        // What the first pass did not see is not there.
        let Some((place, last)) = self.producers.get_mut(&producer) else { return Ok(()) };
        *last = at.ns().max(*last);
        let (place, tick) = (*place, *last);
        match step {
            Step::Push { topic, number } => {
                let Some(channel) = self.topics.get(&topic) else { return Ok(()) };
                self.event(place, tick, Kind::Push, *channel, number)
            }
            Step::Activation { task, instance, takes } => {
                let takes = takes.and_then(|(topic, number)| Some((*self.topics.get(&topic)?, number)));
                if let Some((channel, number)) = takes {
                    self.writer.take(place, tick, channel, number).map_err(own)?;
                }
                self.of_task(place, tick, Kind::Activation, task, instance)
            }
            Step::Start { task, instance } => self.of_task(place, tick, Kind::Start, task, instance),
            Step::Stop { task, instance } => {
                if let Some((channel, number)) = self.variables.get_mut(&task) {
                    *number += 1 + u64::from(self.is_in_gap);
                    let (channel, number) = (*channel, *number - 1);
                    self.event(place, tick, Kind::Push, channel, number)?;
                }
                self.of_task(place, tick, Kind::Stop, task, instance)
            }
            Step::Lost { .. } => Ok(()),
        }
    }

    fn of_task(
        &mut self,
        place: usize,
        tick: u64,
        kind: Kind,
        task: usize,
        number: u64,
    ) -> Result<(), Error> {
        let Some(task) = self.tasks.get(&task) else { return Ok(()) };
        self.event(place, tick, kind, *task, number)
    }

    fn event(&mut self, place: usize, tick: u64, kind: Kind, object: u16, number: u64) -> Result<(), Error> {
        self.written.events += 1;
        self.writer.event(place, tick, kind, object, number).map_err(own)
    }

    /// Events are missing, nobody knows of which thread: so of each at least one.
    fn lose(&mut self, events: u64) -> Result<(), Error> {
        let share = events / self.producers.len().max(1) as u64;
        let share = u32::try_from(share.max(1)).unwrap_or(u32::MAX);
        let lacks_packets = self.lacks_packets;
        let mut lose = |place| match lacks_packets {
            true => self.writer.skip_packet(place),
            false => self.writer.discard(place, share),
        };
        (0..self.producers.len()).try_for_each(&mut lose).map_err(own)?;
        self.variables.values_mut().for_each(|(_, number)| *number += 1);
        Ok(())
    }

    /// Ends the trace.
    pub fn finish(self, notes: Notes) -> Result<Written, Error> {
        self.writer.finish().map_err(own)?;
        Ok(Written { notes: notes.into_list(), ..self.written })
    }
}

/// An error of the writer.
fn own(error: punctual_trace::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string())
}

impl Plan {
    fn new(
        path: &Path,
        trace: &Trace,
        (graph, survey, follow): (&Graph, Survey, &Follow),
        variables: &Variables,
        notes: &mut Notes,
    ) -> Result<Plan, Error> {
        let names = graph.task_names();
        if names.is_empty() {
            return Err(Error::malformed(path, "no callback ran in it"));
        }
        if names.len() > MOST || survey.topics.len() > MOST {
            return Err(too_many(path, "callbacks or topics", MOST));
        }
        if survey.producers.len() > MOST_PRODUCERS {
            return Err(too_many(path, "threads that execute callbacks or publish", MOST_PRODUCERS));
        }
        let tasks: FxHashMap<usize, u16> = names.keys().copied().zip(0..).collect();
        let topics: FxHashMap<usize, u16> = survey.topics.iter().copied().zip(0..).collect();
        let mut about = about(trace, graph, &survey);
        about.channels = survey.topics.iter().map(|it| (topics[it], graph.topics[*it].clone())).collect();
        about.tasks = names.iter().map(|(task, name)| (tasks[task], name.clone())).collect();
        for (task, number) in &tasks {
            let channel = graph.input(*task).and_then(|topic| topics.get(&topic));
            let input = channel.map(|channel| input(*channel, *number, Arming::default()));
            about.inputs.extend(input);
            let is_assumed = follow.assumed.contains(task);
            about.assumed.extend(input.filter(|_| is_assumed).map(|input| input.connection));
        }
        let within = (*variables == Variables::Assumed).then(|| open::within_nodes(graph, &names)).flatten();
        for ends in follow.open.ends(graph, &follow.unknown, &names).into_iter().chain(within) {
            let numbers = |found: BTreeSet<usize>| found.iter().map(|task| tasks[task]).collect();
            let (before, behind) = (numbers(ends.before), numbers(ends.behind));
            about.openings.push(Opening { before, behind, why: ends.why.to_owned() });
        }
        let pairs = pairs(graph, &names, variables, notes)?;
        let mut plan = Plan {
            about,
            order: order(&survey),
            topics,
            tasks,
            variables: FxHashMap::default(),
            pairs: Vec::new(),
        };
        plan.add_variables(path, &names, &pairs, *variables == Variables::Assumed)?;
        plan.about.inputs.sort_unstable();
        Ok(plan)
    }

    fn add_variables(
        &mut self,
        path: &Path,
        names: &BTreeMap<usize, String>,
        pairs: &BTreeSet<(usize, usize)>,
        are_assumed: bool,
    ) -> Result<(), Error> {
        let newest = Arming { synchronised: false, optional: true, ..Arming::default() };
        for (writer, reader) in pairs {
            let next = self.topics.len() + self.variables.len();
            let channel = match self.variables.get(writer) {
                Some((channel, _)) => *channel,
                None if next >= MOST => return Err(too_many(path, "topics and variables", MOST)),
                None => next as u16,
            };
            self.variables.entry(*writer).or_insert((channel, 0));
            self.about.channels.insert(channel, format!("variable of {}", names[writer]));
            let variable = input(channel, self.tasks[reader], newest);
            self.about.inputs.push(variable);
            self.about.assumed.extend(are_assumed.then_some(variable.connection));
            self.pairs.push((names[writer].clone(), names[reader].clone()));
        }
        Ok(())
    }
}

fn input(channel: u16, task: u16, arming: Arming) -> Input {
    Input { connection: Connection { channel, task }, arming: Some(arming) }
}

/// Executors first.
fn order(survey: &Survey) -> Vec<Producer> {
    let of = |executes: bool| {
        survey.producers.iter().filter(move |(_, it)| *it == executes).map(|(producer, _)| *producer)
    };
    of(true).chain(of(false)).collect()
}

fn about(trace: &Trace, graph: &Graph, survey: &Survey) -> About {
    let (clock, zero) = trace.reader.clock();
    let order = order(survey);
    let name = |(thread, depth): &Producer| {
        let name = survey.names.get(thread).map_or("thread", String::as_str);
        let within = if *depth > 0 { format!(", within {depth} callbacks") } else { String::new() };
        format!("{name} {}{within}", thread.tid)
    };
    let executors = survey.producers.iter().filter(|(_, executes)| *executes).count();
    About {
        clock: if clock == "monotonic" { "CLOCK_MONOTONIC".into() } else { format!("LTTng's clock {clock}") },
        clock_zero: u64::try_from(zero).ok().filter(|zero| *zero > 0),
        program: Some(program::name(&graph.nodes)),
        platform: program::platform(&trace.reader),
        executors: Some(executors as u32),
        producers: (0..).zip(&order).map(|(number, producer)| (number, name(producer))).collect(),
        threads: (0..).zip(&order).map(|(number, (thread, _))| (number, thread.tid)).collect(),
        has_all_inputs: true,
        has_told_takes: true,
        ..About::default()
    }
}

/// Writers and readers of variables.
fn pairs(
    graph: &Graph,
    names: &BTreeMap<usize, String>,
    variables: &Variables,
    notes: &mut Notes,
) -> Result<BTreeSet<(usize, usize)>, Error> {
    let declared = match variables {
        Variables::Assumed => {
            let pairs: BTreeSet<_> = graph.default_variables().into_iter().collect();
            if !pairs.is_empty() {
                notes.say(format!(
                    "variables within nodes are assumed ({}): callbacks that publish nothing write for those \
                     of the same node that publish; --variable WRITER,READER declares them instead",
                    pairs.len()
                ));
            }
            return Ok(pairs);
        }
        Variables::Declared(declared) => declared,
    };
    let find = |wanted: &String| {
        let found = names.iter().find(|(_, name)| *name == wanted).map(|(task, _)| *task);
        found.ok_or_else(|| {
            let known: Vec<&str> = names.values().take(20).map(String::as_str).collect();
            let message = format!("no callback {wanted} ran; there are {}", known.join(", "));
            Error::new(ErrorKind::NotFound, message)
        })
    };
    let pair = |(writer, reader): &(String, String)| {
        let pair = (find(writer)?, find(reader)?);
        match refusal(graph, pair) {
            Some(why) => {
                let message = format!("--variable {writer},{reader}: {why}");
                Err(Error::new(ErrorKind::Usage, message))
            }
            None => Ok(pair),
        }
    };
    declared.iter().map(pair).collect()
}

/// Why two callbacks cannot share a variable; nothing is known of those whose node is not in the trace.
fn refusal(graph: &Graph, (writer, reader): (usize, usize)) -> Option<String> {
    let node = |task: usize| graph.tasks[task].node;
    if writer == reader {
        return Some("a callback is no variable's writer and reader at once; name two callbacks".into());
    }
    let (from, to) = (node(writer)?, node(reader)?);
    (from != to).then(|| {
        let [from, to] = [from, to].map(|node| graph.nodes[node].as_str());
        format!(
            "the writer is of node {from} and the reader of {to}; callbacks of different nodes share no \
             variable: data between them are on topics, which need not be declared"
        )
    })
}
