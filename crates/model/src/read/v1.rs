//! Version 1 of the file, read as version 2.
//!
//! It had one observation: of threads or, if there were none, of a dataflow program alone, with an empty
//! platform and counters of zero.

use super::shape::{count_releases, shape};
use crate::dataflow::{Chain, Channel, Dataflow, FlowTask};
use crate::error::{ReadError, describe};
use crate::file::{Platform, TimingModel};
use crate::threads::{Task, Threads};
use crate::time::{Duration, Instant};
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    platform: Platform,
    observation: Observation,
    tasks: Vec<Task>,
    dataflow: Option<Program>,
}

#[derive(Deserialize)]
struct Observation {
    clock: String,
    from_ns: Instant,
    until_ns: Instant,
    records: u64,
    lost_records: u64,
    #[serde(default)]
    untracked_threads: u64,
    #[serde(default)]
    skipped_events: u64,
    #[serde(default)]
    stolen_ns: Duration,
    #[serde(default)]
    omitted_tasks: u64,
    dataflow: Option<Traced>,
}

#[derive(Clone, Copy, Deserialize)]
struct Traced {
    from_ns: Instant,
    until_ns: Instant,
}

#[derive(Deserialize)]
struct Program {
    program: Option<String>,
    platform: Option<String>,
    policy: Option<String>,
    executors: Option<u32>,
    events: u64,
    discarded_events: u64,
    #[serde(default)]
    missing_packets: u64,
    #[serde(default)]
    damaged_packets: u64,
    channels: Vec<Channel>,
    tasks: Vec<FlowTask>,
    chains: Vec<Chain>,
    #[serde(default)]
    chains_omitted: bool,
}

pub(super) fn read(text: &str, source: &serde_json::Value) -> Result<TimingModel, ReadError> {
    let File { platform, observation, tasks, dataflow } = shape(text)?;
    if dataflow.is_none() && observation.dataflow.is_some() {
        let found = source.pointer("/observation/dataflow").map_or_else(String::new, describe);
        return Err(ReadError::value(
            "observation.dataflow",
            "nothing (there is no dataflow program)",
            found,
        ));
    }
    let has_threads = dataflow.is_none() || !tasks.is_empty() || observation.dataflow.is_some();
    let Observation { from_ns, until_ns, .. } = observation;
    let traced = observation.dataflow.unwrap_or(Traced { from_ns, until_ns });
    let mut model = TimingModel {
        platform: platform.known(),
        dataflow: dataflow.map(|program| section(program, traced)),
        threads: has_threads.then_some(Threads {
            from_ns,
            until_ns,
            records: observation.records,
            lost_records: observation.lost_records,
            untracked_threads: observation.untracked_threads,
            skipped_events: observation.skipped_events,
            stolen_ns: observation.stolen_ns,
            clock_steps: Vec::new(),
            notes: Vec::new(),
            omitted_tasks: observation.omitted_tasks,
            tasks,
        }),
        ..TimingModel::new(observation.clock)
    };
    count_releases(&mut model, source.get("tasks"));
    let traced = if has_threads { "observation.dataflow" } else { "observation" };
    model.validate().map_err(|error| error.map_path(|path| place(path, traced)))?;
    Ok(model)
}

fn section(program: Program, traced: Traced) -> Dataflow {
    Dataflow {
        from_ns: traced.from_ns,
        until_ns: traced.until_ns,
        program: program.program,
        platform: program.platform,
        policy: program.policy,
        executors: program.executors,
        events: program.events,
        discarded_events: program.discarded_events,
        missing_packets: program.missing_packets,
        damaged_packets: program.damaged_packets,
        connections: None,
        openings: Vec::new(),
        channels: program.channels,
        tasks: program.tasks,
        chains: program.chains,
        chains_omitted: program.chains_omitted,
    }
}

/// The place in a file of version 1 for a place of version 2. `traced` is where the program's span is.
fn place(path: &str, traced: &str) -> String {
    match path.split_once('.') {
        Some(("threads", rest)) if rest.starts_with("tasks") => rest.to_owned(),
        Some(("threads", rest)) => format!("observation.{rest}"),
        Some(("dataflow", rest @ ("from_ns" | "until_ns"))) => format!("{traced}.{rest}"),
        _ => path.to_owned(),
    }
}
