//! `punctual show`: a timing model as table, prose or JSON.

use crate::args::Show;
use crate::failure::{Code, Failure, reason};
use crate::output::print;
use crate::terminal;
use punctual_model::TimingModel;
use punctual_report as report;
use std::borrow::Cow;
use std::io::{self, Read};
use std::path::Path;

pub fn run(arguments: &Show) -> Result<(), Failure> {
    let (file, page) = (&arguments.file, terminal::page());
    let mut model = read_model(file)?;
    if let Some(truth) = &arguments.truth {
        let configured = report::configured(&read(truth)?)
            .map_err(|error| Failure::new(Code::File, format!("{} is no list of configured threads: {error}", name(truth))))?;
        return print(&report::comparison(&model, &configured, &page));
    }
    let Some(wanted) = &arguments.task else {
        return match arguments.json {
            true => print(&model.to_json()),
            false => print(&overview(&model, &page, arguments.all)),
        };
    };
    let selection = report::Selection::new(wanted);
    let Some(text) = report::tasks(&model, &selection, &page) else {
        return Err(Failure::new(
            Code::Target,
            format!("{} has no thread named {wanted} and none with that TID; punctual show --all lists them", name(file)),
        ));
    };
    if arguments.json {
        model.tasks = selection.tasks(&model).into_iter().cloned().collect();
        return print(&model.to_json());
    }
    print(&text)
}

/// Threads, a dataflow program, or both.
fn overview(model: &TimingModel, page: &report::Page, all: bool) -> String {
    let flow = report::flow::program(model, page);
    if !flow.is_empty() && model.tasks.is_empty() {
        return flow;
    }
    let threads = report::summary(model) + "\n" + &report::overview(model, page, all);
    if flow.is_empty() { threads } else { threads + "\n" + &flow }
}

pub fn read_model(path: &Path) -> Result<TimingModel, Failure> {
    TimingModel::from_json(&read(path)?)
        .map_err(|error| Failure::new(Code::File, format!("{} cannot be used as a timing model: {error}", name(path))))
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

/// A folder is mostly a recording that was given where its model is expected.
fn why(path: &Path, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::IsADirectory {
        return reason(error);
    }
    let folder = path.display();
    format!("it is a folder; if it is a recording, punctual replay {folder} -o FILE.timing.json makes its timing model, which is read here")
}

pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

pub fn name(path: &Path) -> Cow<'_, str> {
    if is_standard_input(path) { "standard input".into() } else { path.to_string_lossy() }
}
