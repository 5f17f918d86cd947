//! Lists of a dataflow program: its instances, and the data that passed its chains.

use super::column::{Kind, Schema, Value};
use super::row::Error;
use super::{Format, List};
use punctual_model::Instant;
use std::io::Write;

/// An instance of a task.
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// The task's name.
    pub task: &'a str,
    /// Its number among the task's instances, from 0.
    pub number: u64,
    /// When it was activated, started and stopped.
    pub activation: Instant,
    /// Start.
    pub start: Instant,
    /// Stop.
    pub stop: Instant,
    /// The number of the executor in the trace.
    pub executor: u32,
}

/// A latency of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    /// The chain's tasks.
    pub chain: &'a str,
    /// `reaction` or `age`.
    pub latency: &'static str,
    /// The instance of the first task, and its activation.
    pub source: u64,
    /// Its activation.
    pub from: Instant,
    /// The instance of the last task, and its stop.
    pub sink: u64,
    /// Its stop.
    pub until: Instant,
}

const INSTANCES: [(&str, Kind); 8] = [
    ("task", Kind::Text),
    ("instance", Kind::Number),
    ("executor", Kind::Number),
    ("activation_ns", Kind::Number),
    ("start_ns", Kind::Number),
    ("stop_ns", Kind::Number),
    ("queuing_ns", Kind::Number),
    ("execution_ns", Kind::Number),
];

const PASSAGES: [(&str, Kind); 7] = [
    ("chain", Kind::Text),
    ("latency", Kind::Text),
    ("source_instance", Kind::Number),
    ("from_ns", Kind::Number),
    ("sink_instance", Kind::Number),
    ("until_ns", Kind::Number),
    ("latency_ns", Kind::Number),
];

/// Writes a list of instances.
pub struct InstanceWriter<W: Write + Send>(List<W>);

impl<W: Write + Send> InstanceWriter<W> {
    /// A list without rows; all its instants are on `clock`.
    pub fn new(out: W, format: Format, clock: &str) -> Result<Self, Error> {
        let schema = Schema { name: "instances", columns: INSTANCES.to_vec() };
        Ok(Self(List::new(out, format, clock, schema)?))
    }

    /// Adds one instance.
    pub fn row(&mut self, row: &Instance<'_>) -> Result<(), Error> {
        // In the order of `INSTANCES`.
        let values: [Value<'_>; INSTANCES.len()] = [
            Value::Text(row.task.into()),
            Value::Number(row.number),
            Value::Number(row.executor.into()),
            Value::Number(row.activation.ns()),
            Value::Number(row.start.ns()),
            Value::Number(row.stop.ns()),
            Value::Number(row.start.since(row.activation).ns()),
            Value::Number(row.stop.since(row.start).ns()),
        ];
        self.0.row(&values, &|| format!("instance {} of {}", row.number, row.task))
    }

    /// Writes what is still to be written.
    pub fn finish(self) -> Result<W, Error> {
        self.0.finish()
    }
}

/// Writes a list of latencies of chains.
pub struct PassageWriter<W: Write + Send>(List<W>);

impl<W: Write + Send> PassageWriter<W> {
    /// A list without rows; all its instants are on `clock`.
    pub fn new(out: W, format: Format, clock: &str) -> Result<Self, Error> {
        let schema = Schema { name: "passages", columns: PASSAGES.to_vec() };
        Ok(Self(List::new(out, format, clock, schema)?))
    }

    /// Adds one latency.
    pub fn row(&mut self, row: &Passage<'_>) -> Result<(), Error> {
        // In the order of `PASSAGES`.
        let values: [Value<'_>; PASSAGES.len()] = [
            Value::Text(row.chain.into()),
            Value::Text(row.latency.into()),
            Value::Number(row.source),
            Value::Number(row.from.ns()),
            Value::Number(row.sink),
            Value::Number(row.until.ns()),
            Value::Number(row.until.since(row.from).ns()),
        ];
        self.0.row(&values, &|| format!("datum {} of {}", row.source, row.chain))
    }

    /// Writes what is still to be written.
    pub fn finish(self) -> Result<W, Error> {
        self.0.finish()
    }
}
