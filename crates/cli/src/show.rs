//! `punctual show`: a timing model as table, prose or JSON.

use crate::args::Show;
use crate::failure::{Code, Failure, reason};
use crate::output::print;
use crate::terminal;
use punctual_model::TimingModel;
use punctual_report as report;
use std::io::Read;
use std::path::Path;

pub fn run(arguments: &Show) -> Result<(), Failure> {
    let (file, page) = (&arguments.file, terminal::page());
    let mut model = read_model(file)?;
    if let Some(truth) = &arguments.truth {
        let configured = report::configured(&read(truth)?)
            .map_err(|error| Failure::new(Code::File, format!("{} is no list of configured threads: {error}", truth.display())))?;
        return print(&(report::summary(&model) + "\n" + &report::comparison(&model, &configured, &page)));
    }
    let Some(name) = &arguments.task else {
        return match arguments.json {
            true => print(&model.to_json()),
            false => print(&(report::summary(&model) + "\n" + &report::overview(&model, &page, arguments.all))),
        };
    };
    let selection = report::Selection::new(name);
    let Some(text) = report::tasks(&model, &selection, &page) else {
        return Err(Failure::new(
            Code::Target,
            format!(
                "{} has no thread named {name} and none with that TID; punctual show --all {} lists all",
                file.display(),
                file.display()
            ),
        ));
    };
    if arguments.json {
        model.tasks = selection.tasks(&model).into_iter().cloned().collect();
        return print(&model.to_json());
    }
    print(&text)
}

fn read_model(path: &Path) -> Result<TimingModel, Failure> {
    TimingModel::from_json(&read(path)?)
        .map_err(|error| Failure::new(Code::File, format!("{} cannot be used as a timing model: {error}", path.display())))
}

fn read(path: &Path) -> Result<String, Failure> {
    let (name, text) = match path.as_os_str() == "-" {
        true => {
            let mut text = Vec::new();
            ("standard input".to_string(), std::io::stdin().read_to_end(&mut text).map(|_| text))
        }
        false => (path.display().to_string(), std::fs::read(path)),
    };
    let bytes = text.map_err(|error| Failure::file("read", &name, reason(&error)))?;
    String::from_utf8(bytes).map_err(|_| Failure::file("read", &name, "it is not text"))
}
