//! `punctual show`: a timing model as table, prose or JSON.

use crate::args::Show;
use crate::failure::{Code, Failure, reason};
use crate::given::trace;
use crate::output::print;
use crate::terminal;
use punctual_model::TimingModel;
use punctual_report as report;
use std::borrow::Cow;
use std::io::{self, Read};
use std::path::Path;

pub fn run(arguments: &Show) -> Result<(), Failure> {
    let (file, page) = (&arguments.file, terminal::page());
    let model = read_model(file)?;
    if let Some(truth) = &arguments.truth {
        let configured = report::configured(&read(truth)?).map_err(|error| {
            Failure::new(Code::File, format!("{} is no list of configured threads: {error}", name(truth)))
        })?;
        return print(&report::comparison(&model, &configured, &page));
    }
    let Some(wanted) = &arguments.task else {
        return match arguments.json {
            true => print(&model.to_json()),
            false => {
                let rows = report::Rows { all: arguments.all, phases: arguments.phases };
                print(&overview(&model, &page, rows))
            }
        };
    };
    // A thread and a task of a dataflow program may share a name; then both are meant.
    let selection = report::Selection::new(wanted);
    let texts = [report::tasks(&model, &selection, &page), report::flow::task(&model, wanted, &page)];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    if texts.is_empty() {
        let task = if model.dataflow.is_some() {
            "no thread and no task of its dataflow program"
        } else {
            "no thread"
        };
        let message = format!(
            "{} has {task} named {wanted}, and no thread with that TID; punctual show --all lists them",
            name(file)
        );
        return Err(Failure::new(Code::Target, message));
    }
    if arguments.json {
        return print(&only(model, &selection, wanted).to_json());
    }
    print(&texts.join("\n"))
}

/// What a model says of these threads, and of the task of this name; channels and chains are not of one task
/// alone.
fn only(mut model: TimingModel, selection: &report::Selection, name: &str) -> TimingModel {
    let tasks: Vec<_> = selection.tasks(&model).into_iter().cloned().collect();
    match &mut model.threads {
        Some(threads) if !tasks.is_empty() => threads.tasks = tasks,
        threads => *threads = None,
    }
    if let Some(flow) = &mut model.dataflow {
        flow.tasks.retain(|task| task.name == name);
        (flow.channels, flow.chains) = (Vec::new(), Vec::new());
    }
    if model.dataflow.as_ref().is_some_and(|flow| flow.tasks.is_empty()) {
        model.dataflow = None;
    }
    model
}

/// Threads, a dataflow program, or both.
pub fn overview(model: &TimingModel, page: &report::Page, rows: report::Rows) -> String {
    let flow = report::flow::program(model, page);
    if model.threads.is_none() {
        return flow;
    }
    let threads = report::summary(model) + "\n" + &report::overview(model, page, rows);
    if flow.is_empty() { threads } else { threads + "\n" + &flow }
}

pub fn read_model(path: &Path) -> Result<TimingModel, Failure> {
    TimingModel::from_json(&read(path)?).map_err(|error| {
        Failure::new(Code::File, format!("{} cannot be used as a timing model: {error}", name(path)))
    })
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if is_standard_input(path) {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| Failure::file("read", name(path), why(path, &error)))?;
    String::from_utf8(bytes).map_err(|_| Failure::file("read", name(path), "it is not text"))
}

/// A folder is mostly a recording or trace that was given where its model is expected.
fn why(path: &Path, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::IsADirectory {
        return reason(error);
    }
    let folder = path.display();
    if trace(path).is_ok() {
        return format!(
            "it is the trace of a dataflow program; punctual chains {folder} shows what is in it, and with -o FILE.timing.json makes its timing model, which is read here"
        );
    }
    format!(
        "it is a folder; if it is a recording, punctual replay {folder} -o FILE.timing.json makes its timing model, which is read here"
    )
}

pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

pub fn name(path: &Path) -> Cow<'_, str> {
    if is_standard_input(path) { "standard input".into() } else { path.to_string_lossy() }
}
