//! `punctual show`

use super::options;
use crate::args::Show;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_model::TimingModel;
use punctual_report as report;
use punctual_workflow::{display_name, read_model, read_text};

pub fn run(arguments: &Show) -> Result<(), Failure> {
    let (file, page) = (&arguments.file, terminal::page());
    let mut model = read_model(file)?;
    options::threads(&arguments.threads)?.select(&mut model, &display_name(file))?;
    if let Some(truth) = &arguments.truth {
        let configured = report::configured(&read_text(truth)?).map_err(|error| {
            let message = format!("{} is not a list of configured threads: {error}", display_name(truth));
            Failure::new(Code::File, message)
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
    // A thread and a task of a dataflow program may share a name; then both are shown.
    let selection = report::Selection::new(wanted);
    let texts = [report::tasks(&model, &selection, &page), report::flow::task(&model, wanted, &page)];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    if texts.is_empty() {
        let task = if model.dataflow.is_some() { "no thread or dataflow task" } else { "no thread" };
        let message = format!(
            "{} has {task} named '{}', and no thread with this TID; punctual show --all lists them",
            display_name(file),
            wanted.escape_debug()
        );
        return Err(Failure::new(Code::Target, message));
    }
    if arguments.json {
        return print(&only(model, &selection, wanted).to_json());
    }
    print(&texts.join("\n"))
}

/// The part of a model about these threads and the dataflow task of this name. Channels and chains belong to
/// several tasks and are left out.
fn only(mut model: TimingModel, selection: &report::Selection, name: &str) -> TimingModel {
    model.latency = None;
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

/// Every section of the model.
pub fn overview(model: &TimingModel, page: &report::Page, rows: report::Rows) -> String {
    let threads = match model.threads {
        Some(_) => report::summary(model) + "\n" + &report::overview(model, page, rows),
        None => String::new(),
    };
    let latency = model.latency.as_ref().map(|latency| report::latency::latency(latency, page));
    let parts = [threads, report::flow::program(model, page), latency.unwrap_or_default()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}
