//! `punctual import`: another tool's trace becomes a recording.

use crate::args;
use crate::failure::{Code, Failure};
use crate::folder::Folder;
use crate::page::beside;
use crate::progress::Bar;
use crate::record::{Recording, written};
use crate::watch::Sink;
use punctual_trace::import::{Import, Options};
use std::path::PathBuf;

/// Everything that was asked for, checked as far as it can be before reading.
pub struct Plan {
    source: PathBuf,
    folder: Folder,
    options: Options,
    quiet: bool,
}

impl Plan {
    pub fn new(arguments: args::Import) -> Result<Plan, Failure> {
        let output = arguments.output.unwrap_or_else(|| beside(&arguments.source, ".data", "recording"));
        Ok(Plan {
            folder: Folder::new(&output, arguments.force)?,
            source: arguments.source,
            options: Options { include_best_effort: arguments.include_best_effort },
            quiet: arguments.quiet,
        })
    }
}

pub fn run(plan: &Plan) -> Result<(), Failure> {
    let import = Import::open(&plan.source, &plan.options).map_err(failed)?;
    let mut recording = Recording::start(&plan.folder, import.about(), None)?;
    let bar = Bar::new(plan.quiet, "importing", import.bytes(), "bytes");
    let mut broken = None;
    let mut keep = |record: &_| {
        broken = recording.record(record).err();
        broken.is_none()
    };
    let imported = import.run(&mut keep, &mut |done| bar.set(done)).map_err(failed)?;
    drop(bar);
    if let Some(failure) = broken {
        return Err(failure);
    }
    let recorded = recording.finish(imported.until, imported.totals)?;
    for note in &imported.notes {
        eprintln!("punctual: {}: {note}", plan.source.display());
    }
    if recorded.activations == 0 {
        eprintln!("punctual: {}: no job of a real-time thread is in it; --include-best-effort takes the others too", plan.source.display());
    }
    if !plan.quiet {
        eprintln!("{}", written(&plan.folder, &recorded));
    }
    Ok(())
}

fn failed(error: punctual_trace::import::Error) -> Failure {
    Failure::new(Code::File, error.to_string())
}
