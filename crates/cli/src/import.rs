//! `punctual import`: another tool's trace becomes a recording.

use crate::args;
use crate::failure::{Code, Failure};
use crate::folder::Folder;
use crate::page::beside;
use crate::progress::Bar;
use crate::record::{Recording, written};
use crate::watch::Sink;
use punctual_trace::import::{Import, Options};
use punctual_trace::{About, Record};
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
    let (about, source) = (import.about().clone(), plan.source.display());
    let bar = Bar::new(plan.quiet, "importing", import.bytes(), "bytes");
    // Begun with the first record, so that a source without any leaves nothing behind.
    let mut recording = None;
    let mut broken = None;
    let mut keep = |record: &_| {
        broken = take(&mut recording, plan, &about, record).err();
        broken.is_none()
    };
    let imported = import.run(&mut keep, &mut |done| bar.set(done)).map_err(failed)?;
    drop(bar);
    for note in &imported.notes {
        eprintln!("punctual: {source}: {note}");
    }
    if let Some(failure) = broken {
        return Err(failure);
    }
    let Some(recording) = recording else {
        let advice = if plan.options.include_best_effort {
            ""
        } else {
            "; --include-best-effort takes the others too"
        };
        return Err(Failure::new(
            Code::File,
            format!("{source}: there is no real-time thread in it that could be imported{advice}"),
        ));
    };
    let recorded = recording.finish(imported.until, imported.totals)?;
    if !plan.quiet {
        eprintln!("{}", written(&plan.folder, &recorded));
    }
    Ok(())
}

fn take(
    recording: &mut Option<Recording>,
    plan: &Plan,
    about: &About,
    record: &Record,
) -> Result<(), Failure> {
    match recording {
        Some(recording) => recording.record(record),
        None => recording.insert(Recording::start(&plan.folder, about, None)?).record(record),
    }
}

fn failed(error: punctual_trace::import::Error) -> Failure {
    Failure::new(Code::File, error.to_string())
}
