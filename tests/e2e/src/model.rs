//! Access to written models.

use crate::{Result, ensure, fail};
use jsonschema::Validator;
use punctual_model::{Stream, Task, Threads, TimingModel};
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;

const SCHEMA: &str = include_str!("../../../docs/timing-model.schema.json");

fn schema() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| {
        let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
        jsonschema::validator_for(&schema).expect("the schema is a schema")
    })
}

/// Reads a file that Punctual wrote, and checks it by the schema, the strict reader, and its own consistency.
pub fn read(path: &Path) -> Result<TimingModel> {
    parse(&std::fs::read_to_string(path)?)
}

/// The same of a text.
pub fn parse(text: &str) -> Result<TimingModel> {
    let value =
        serde_json::from_str(text).or_else(|error| fail(format!("what was written is no JSON: {error}")))?;
    let errors: Vec<String> =
        schema().iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    ensure!(errors.is_empty(), "what was written breaks the schema: {}", errors.join("; "));
    let model = TimingModel::from_json(text)
        .or_else(|error| fail(format!("what was written cannot be read: {error}")))?;
    coherent(&model)?;
    Ok(model)
}

/// The tasks of a thread follow each other, and lie within the observation.
fn coherent(model: &TimingModel) -> Result {
    let Some(seen) = &model.threads else { return Ok(()) };
    for task in &seen.tasks {
        let within = seen.from_ns <= task.from_ns && task.until_ns <= seen.until_ns;
        let (from, until) = (task.from_ns, task.until_ns);
        ensure!(
            within,
            "{} is a task from {from:?} to {until:?}, the observation from {:?} to {:?}",
            task.name,
            seen.from_ns,
            seen.until_ns
        );
    }
    for (index, task) in model.tasks().iter().enumerate() {
        let next =
            model.tasks()[index + 1..].iter().find(|other| other.tid == task.tid && other.pid == task.pid);
        if let Some(next) = next {
            let ordered = task.phase < next.phase && task.until_ns <= next.from_ns;
            let describe_phase = |task: &Task| {
                format!(
                    "phase {} from {:?} to {:?} ({:?})",
                    task.phase, task.from_ns, task.until_ns, task.ended_by
                )
            };
            ensure!(
                ordered,
                "tasks of {} overlap or are out of order: {}; {}",
                task.name,
                describe_phase(task),
                describe_phase(next)
            );
        }
    }
    Ok(())
}

/// The threads section; an empty one if there is none.
pub fn threads(model: &TimingModel) -> Cow<'_, Threads> {
    model.threads.as_ref().map_or_else(Cow::default, Cow::Borrowed)
}

/// All tasks of threads with this name, in the order of the file.
pub fn tasks<'a>(model: &'a TimingModel, name: &str) -> Vec<&'a Task> {
    model.tasks().iter().filter(|task| task.name == name).collect()
}

/// The only task of the only thread with this name.
pub fn only_task<'a>(model: &'a TimingModel, name: &str) -> Result<&'a Task> {
    match tasks(model, name)[..] {
        [task] => Ok(task),
        [] => fail(format!("no task of a thread {name}")),
        ref more => fail(format!("{} tasks of a thread {name}, expected one", more.len())),
    }
}

/// The primary stream, which users see first.
pub fn primary(task: &Task) -> Result<&Stream> {
    match task.primary.and_then(|index| task.streams.get(index)) {
        Some(stream) => Ok(stream),
        None => fail(format!("{} has no primary separator", task.name)),
    }
}

/// A short description of a model, for messages.
pub fn describe(model: &TimingModel) -> String {
    let (records, lost) = (threads(model).records, threads(model).lost_records);
    let mut text = format!("--- found: {records} records, {lost} lost\n");
    for task in model.tasks() {
        let _ = writeln!(
            text,
            "{} (pid {}, tid {}, phase {}) {:?} {} on {}, ended by {:?}",
            task.name,
            task.pid,
            task.tid,
            task.phase,
            task.policy,
            task.priority,
            task.affinity,
            task.ended_by
        );
        for (index, stream) in task.streams.iter().enumerate() {
            let _ = writeln!(
                text,
                "  {}{}: {} jobs, {} releases ({} uncertain, {} back to back), WCET {}, {}",
                if task.primary == Some(index) { "* " } else { "  " },
                stream.separator,
                stream.jobs,
                stream.releases,
                stream.uncertain_releases,
                stream.back_to_back,
                stream
                    .execution
                    .as_ref()
                    .and_then(|execution| execution.wcet_ns.first())
                    .map_or("none".into(), |wcet| wcet.to_string()),
                stream.arrival.periodic.as_ref().map_or("no period".into(), |periodic| format!(
                    "period {} ({:?}, on {:?}) with jitter {}",
                    periodic.period_ns, periodic.choice, periodic.on, periodic.jitter_ns
                )),
            );
        }
    }
    text
}
