//! The results of an analysis, as the timing-model file has them.

use super::analysis::Analysis;
use super::graph::Maker;
use super::lineage::{Carried, Way};
use super::sources::{ChainState, Latencies};
use super::tasks::TaskState;
use punctual_model::dataflow::{
    Activates, ByKernel, Chain, Channel, Count, Dataflow, Distance, FlowTask, Keeps, Latency, Opening,
    PathStep, PushedBy, WorstPath,
};
use punctual_model::{Duration, Instant};
use punctual_trace::flow::{self, About, Arming, Connection, Totals};
use std::collections::BTreeSet;

impl Analysis<'_> {
    /// Ends the analysis. `totals` are what the trace's reader counted.
    pub fn finish(mut self, about: &About, totals: &Totals) -> Dataflow {
        for task in 0..self.tasks.states.len() {
            while let Some(instance) = self.tasks.states[task].live.remove_any() {
                // It may have ended while events were missing.
                let may_have_ended = instance.activation.is_none_or(|at| self.losses.reach(at));
                self.abandon(task, &instance, !may_have_ended, self.graph.until());
            }
        }
        self.paths.chains.iter_mut().for_each(ChainState::finish);
        Dataflow {
            from_ns: self.graph.from(),
            until_ns: self.graph.until(),
            program: about.program.clone(),
            platform: about.platform.clone(),
            policy: about.policy.clone(),
            executors: about.executors,
            events: totals.events,
            discarded_events: totals.discarded,
            missing_packets: totals.missing_packets,
            damaged_packets: totals.damaged_packets,
            connections: Some(self.graph.connections),
            openings: self.graph.openings.iter().map(|opening| self.opening(opening)).collect(),
            channels: self
                .graph
                .channel_names
                .iter()
                .map(|(number, name)| self.channel(*number, name))
                .collect(),
            tasks: self.tasks.states.iter().map(|task| self.task(task)).collect(),
            chains: self
                .chains
                .chains
                .iter()
                .zip(&self.paths.chains)
                .map(|(tasks, state)| self.chain(tasks, state))
                .collect(),
            chains_omitted: self.chains.is_too_many,
        }
    }

    fn opening(&self, opening: &flow::Opening) -> Opening {
        let names = |tasks: &BTreeSet<u16>| {
            tasks.iter().filter_map(|task| self.graph.task_names.get(task).cloned()).collect()
        };
        Opening { why: opening.why.clone(), before: names(&opening.before), behind: names(&opening.behind) }
    }

    fn channel(&self, number: u16, name: &str) -> Channel {
        let graph = &*self.graph;
        let pushes = graph.pushes.get(&number).into_iter().flatten();
        let by = |maker: Maker| {
            graph.pushes.get(&number).and_then(|pushes| pushes.get(&maker)).copied().unwrap_or(0)
        };
        let pushed_by = pushes.clone().filter_map(|(maker, pushes)| match maker {
            Maker::Task(task) => {
                Some(PushedBy { task: graph.task_names.get(task)?.clone(), pushes: *pushes })
            }
            Maker::Outside | Maker::Unknown => None,
        });
        let activates =
            graph.activates.get(&number).into_iter().flatten().filter_map(|(task, activations)| {
                let declared = graph.declared.contains(&Connection { channel: number, task: *task });
                let assumed = graph.assumed.contains(&Connection { channel: number, task: *task });
                let armings = graph
                    .armings
                    .get(&Connection { channel: number, task: *task })
                    .filter(|armings| !armings.is_empty());
                let keeps = |armings: &Vec<Arming>| {
                    if armings.iter().any(|arming| arming.synchronised) {
                        Keeps::Queue
                    } else {
                        Keeps::Newest
                    }
                };
                let task = graph.task_names.get(task)?.clone();
                Some(Activates {
                    task,
                    activations: *activations,
                    declared,
                    assumed,
                    keeps: armings.map(keeps),
                })
            });
        Channel {
            name: name.to_owned(),
            id: number.into(),
            pushes: pushes.clone().map(|(_, pushes)| *pushes).sum(),
            missing_pushes: graph.missing_pushes.get(&number).copied().unwrap_or(0),
            from_outside: by(Maker::Outside),
            from_unknown: by(Maker::Unknown),
            pushed_by: pushed_by.collect(),
            activates: activates.collect(),
            barrier: graph.barriers.contains_key(&number),
        }
    }

    fn task(&self, task: &TaskState) -> FlowTask {
        let arrival = task.activations.finish();
        FlowTask {
            name: self.graph.task_names[&task.number].clone(),
            id: task.number.into(),
            activations: task.activations.count,
            executions: task.execution.count(),
            in_flight: task.in_flight,
            incomplete: task.incomplete,
            unexplained: task.unexplained,
            missing_activations: self.graph.missing_activations.get(&task.number).copied().unwrap_or(0),
            execution: task.execution.finish(),
            queuing: task.queuing.finish(),
            by_kernel: by_kernel(task),
            distances: arrival.curve.as_ref().map(Distance::samples).unwrap_or_default(),
            counts: arrival.curve.as_ref().map(Count::samples).unwrap_or_default(),
            arrival,
        }
    }

    fn chain(&self, tasks: &[u16], state: &ChainState) -> Chain {
        let names: Vec<String> = tasks.iter().map(|task| self.graph.task_names[task].clone()).collect();
        Chain {
            end_to_end: Some(self.ends.is_end_to_end(tasks)),
            sources: state.sources,
            overwritten: state.overwritten,
            overtaken: state.overtaken,
            lost: state.lost,
            incomplete: state.incomplete,
            in_flight: state.in_flight,
            sinks: state.sinks,
            sinks_lost: state.sinks_lost,
            sinks_incomplete: state.sinks_incomplete,
            sinks_in_flight: state.sinks_in_flight,
            reaction: self.latency(&names, &state.reaction),
            age: self.latency(&names, &state.age),
            tasks: names,
        }
    }

    fn latency(&self, names: &[String], latencies: &Latencies) -> Option<Latency> {
        let worst = self.path(names, latencies.worst.as_ref()?);
        let distribution = latencies.histogram.distribution()?;
        let series = latencies.series.finish(self.graph.from());
        Some(Latency { distribution, worst, series, alternatives: Vec::new() })
    }

    /// A way step by step, with the sums of its parts.
    fn path(&self, names: &[String], way: &Way) -> WorstPath {
        let step = |carried: &Carried, start: Instant, until: Instant, channel: Option<u16>| PathStep {
            task: String::new(),
            instance: carried.instance,
            activation_ns: carried.activation,
            start_ns: start,
            until_ns: until,
            busy_ns: carried.busy.filter(|busy| *busy > Duration::ZERO),
            channel: channel.and_then(|channel| self.graph.channel_names.get(&channel).cloned()),
        };
        let mut path = vec![step(&way.sink, way.start, way.stop, None)];
        let mut at = &way.sink;
        while let Some(via) = &at.via {
            path.push(step(&via.from, via.start, via.pushed_at, Some(via.channel)));
            at = &via.from;
        }
        path.reverse();
        path.iter_mut().zip(names).for_each(|(step, name)| step.task.clone_from(name));
        let mut worst = WorstPath {
            source_instance: way.source,
            from_ns: way.from,
            until_ns: way.stop,
            queuing_ns: Duration::ZERO,
            execution_ns: Duration::ZERO,
            waiting_ns: Duration::ZERO,
            path,
        };
        [worst.queuing_ns, worst.execution_ns, worst.waiting_ns] = worst.parts();
        worst
    }
}

fn by_kernel(task: &TaskState) -> Option<ByKernel> {
    let [running, preempted, suspended] = &task.by_kernel;
    Some(ByKernel {
        executions: running.count(),
        running: running.distribution()?,
        preempted: preempted.distribution()?,
        suspended: suspended.distribution()?,
    })
}
