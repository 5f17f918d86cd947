//! `punctual show`

use super::options;
use crate::args::Show;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_model::{Threads, TimingModel};
use punctual_report as report;
use punctual_workflow::{display_name, read_model, read_text};

pub fn run(arguments: &Show) -> Result<(), Failure> {
    let (file, page) = (&arguments.file, terminal::page());
    let mut model = read_model(file)?;
    let threads = options::threads(&arguments.threads)?;
    threads.select(&mut model, &display_name(file))?;
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
                print(&report::sections::text(&model, &page, rows))?;
                let advice = report::why::unexplained(&model);
                advice.iter().for_each(|advice| Console::new(false).note(advice));
                Ok(())
            }
        };
    };
    // A thread and a task of a dataflow program may share a name; then both are shown.
    let selection = report::Selection::new(wanted);
    let texts = [report::tasks(&model, &selection, &page), report::flow::task(&model, wanted, &page)];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    if texts.is_empty() && !threads.is_empty() {
        let (file, task) = (display_name(file), wanted.escape_debug());
        let message = format!("no thread '{task}' in {file} is among those that --thread chooses");
        return Err(Failure::new(Code::Target, message));
    }
    if texts.is_empty() {
        let task = if model.dataflow.is_some() { "no thread or dataflow task" } else { "no thread" };
        let message = format!(
            "{} has {task} named '{}', and no thread with this TID; punctual show {} --all lists them",
            display_name(file),
            wanted.escape_debug(),
            file.display()
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
fn only(model: TimingModel, selection: &report::Selection, name: &str) -> TimingModel {
    let tasks: Vec<_> = selection.tasks(&model).into_iter().cloned().collect();
    let threads = model.threads.filter(|_| !tasks.is_empty()).map(|threads| Threads { tasks, ..threads });
    let dataflow = model.dataflow.map(|mut flow| {
        flow.tasks.retain(|task| task.name == name);
        (flow.channels, flow.chains) = (Vec::new(), Vec::new());
        flow
    });
    let dataflow = dataflow.filter(|flow| !flow.tasks.is_empty());
    TimingModel { platform: model.platform, threads, dataflow, ..TimingModel::new(model.clock) }
}
