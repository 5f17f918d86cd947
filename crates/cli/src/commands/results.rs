//! Where a timing model goes: a table, JSON, a file.

use super::show::overview;
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use crate::output::print;
use crate::terminal;
use punctual_model::TimingModel;
use punctual_report::Rows;
use punctual_workflow::{Destination, is_standard_stream};

/// Where a timing model goes.
pub enum Results {
    Table,
    Json,
    /// The table is printed too.
    File(Destination),
}

impl Results {
    pub fn new(arguments: &args::Results) -> Result<Results, Failure> {
        Ok(match &arguments.output {
            Some(path) if is_standard_stream(path) => Results::Json,
            Some(path) => match Destination::new(path, arguments.force)? {
                destination if destination.is_standard_output() => Results::Json,
                destination => Results::File(destination),
            },
            None if arguments.json => Results::Json,
            None => Results::Table,
        })
    }

    /// Whether standard output is reserved for the model.
    pub fn is_json(&self) -> bool {
        matches!(self, Results::Json)
    }

    /// Writes and prints the model. With -o, a quiet console prints no table.
    pub fn deliver(&self, model: &TimingModel, quiet: bool, console: Console) -> Result<(), Failure> {
        match self {
            Results::Json => print(&model.to_json()),
            Results::Table => {
                print(&overview(model, &terminal::page(), Rows::default()))?;
                let graph = if model.dataflow.is_some() { "; --graph FILE writes the graph" } else { "" };
                console.note(&format!(
                    "(-o FILE keeps the timing model; then punctual show FILE --task NAME shows everything \
                     about a task{graph})"
                ));
                Ok(())
            }
            Results::File(destination) => {
                // Written first: a standard output that cannot be written must not cost the file.
                destination.write_or_rescue(model.to_json().as_bytes())?;
                if !quiet {
                    print(&overview(model, &terminal::page(), Rows::default()))?;
                }
                let path = destination.path().display();
                console.note(&format!("Wrote {path}; punctual show {path} shows it."));
                Ok(())
            }
        }
    }
}
