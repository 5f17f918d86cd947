//! Where a timing model goes: a table, JSON, a file.

use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use crate::output::print;
use crate::terminal;
use punctual_model::TimingModel;
use punctual_report::{Rows, sections, shell_word, why};
use punctual_workflow::Destination;

/// Where a timing model goes, and which rows its table has.
pub struct Results {
    target: Target,
    rows: Rows,
}

enum Target {
    Table,
    Json,
    /// The table is printed too.
    File(Destination),
}

impl Results {
    pub fn new(arguments: &args::Results) -> Result<Results, Failure> {
        let target = match &arguments.output {
            Some(path) => match Destination::new(path, arguments.force)? {
                destination if destination.is_standard_output() => Target::Json,
                destination => Target::File(destination),
            },
            None if arguments.json => Target::Json,
            None => Target::Table,
        };
        Ok(Results { target, rows: Rows { all: false, phases: arguments.phases } })
    }

    /// Whether standard output is reserved for the model.
    pub fn is_json(&self) -> bool {
        matches!(self.target, Target::Json)
    }

    /// Writes and prints the model. With -o, a quiet console prints no table.
    pub fn deliver(&self, model: &TimingModel, quiet: bool, console: Console) -> Result<(), Failure> {
        let table = || -> Result<(), Failure> {
            print(&sections::text(model, &terminal::page(), self.rows))?;
            why::unexplained(model).iter().for_each(|advice| console.note(advice));
            Ok(())
        };
        match &self.target {
            Target::Json => print(&model.to_json()),
            Target::Table => {
                table()?;
                if model.tasks().is_empty() && model.dataflow.is_none() && model.latency.is_none() {
                    return Ok(());
                }
                let task = match model.threads.is_some() || model.dataflow.is_some() {
                    true => "; then punctual show FILE --task NAME shows everything about a task",
                    false => "",
                };
                let graph = if model.dataflow.is_some() { "; --graph FILE writes the graph" } else { "" };
                console.note(&format!("(-o FILE keeps the timing model{task}{graph})"));
                Ok(())
            }
            Target::File(destination) => {
                // Written first: a standard output that cannot be written must not cost the file.
                destination.write_or_rescue(model.to_json().as_bytes())?;
                if !quiet {
                    table()?;
                }
                let path = shell_word(destination.path());
                console.note(&format!("Wrote {path}; punctual show {path} shows it."));
                Ok(())
            }
        }
    }
}
