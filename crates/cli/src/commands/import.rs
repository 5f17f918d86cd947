//! `punctual import`

use super::{options, record};
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use punctual_workflow::import::{Options, import};
use punctual_workflow::{RecordingFolder, derived_path};

pub fn run(arguments: args::Import) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let output = arguments.output.unwrap_or_else(|| derived_path(&arguments.source, ".data", "recording"));
    let options = Options {
        folder: RecordingFolder::new(&output, arguments.force)?,
        threads: options::threads(&arguments.threads)?,
        include_best_effort: arguments.include_best_effort,
        source: arguments.source,
    };
    let recorded = import(&options, &console)?;
    console.note(&record::summary(&recorded));
    Ok(())
}
