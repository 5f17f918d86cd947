//! `punctual why`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::{stop, terminal};
use punctual_observe::Output;
use punctual_workflow::record::{BUFFER_BYTES, Options as RecordOptions, record};
use punctual_workflow::replay::processors;
use punctual_workflow::why::{Jobs, Options, why};
use punctual_workflow::{Error, RecordingFolder, read_contract};
use std::path::{Path, PathBuf};

pub fn run(arguments: args::Why) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let jobs = which(&arguments)?;
    let options = |recording: PathBuf| -> Result<Options, Failure> {
        Ok(Options {
            recording,
            range: options::range(&arguments.range),
            threads: options::threads(&arguments.threads)?,
            jobs: jobs.clone(),
            worst: arguments.worst,
            workers: processors(),
        })
    };
    let mut kept = arguments.target.recording.as_ref().or(arguments.keep.as_ref());
    let explained = match &arguments.target.recording {
        Some(recording) => why(&options(recording.clone())?, &console)?,
        None => {
            let place = tempfile::Builder::new().prefix("punctual-why-").tempdir();
            let place = place.map_err(|error| Error::io("make", "a temporary folder", &error))?;
            let folder = arguments.keep.clone().unwrap_or_else(|| place.path().join("recording"));
            observe(&arguments, &folder)?;
            why(&options(folder)?, &console)?
        }
    };
    print(&if arguments.json { explained.json() } else { explained.text(&terminal::page()) })?;
    // Of other tools' traces there are no timelines.
    kept = kept.filter(|kept| !arguments.json && kept.join("stream_0").exists());
    if let (Some(kept), Some((thread, job))) = (kept, explained.worst()) {
        let kept = kept.display();
        console.note(&format!(
            "next: punctual timeline {kept} --around {thread}:{job}    when every thread ran"
        ));
    }
    Ok(())
}

/// Which jobs to explain.
fn which(arguments: &args::Why) -> Result<Jobs, Failure> {
    let args::Why { longer_than, contract, job, all, .. } = arguments;
    Ok(match (longer_than, contract, job) {
        (Some(time), _, _) => Jobs::LongerThan(*time),
        (_, Some(contract), _) => Jobs::Agreed(Box::new(read_contract(contract)?)),
        (_, _, Some(number)) => Jobs::Numbered(*number),
        _ if *all => Jobs::All,
        _ => Jobs::Late,
    })
}

/// Records the target and what all other threads do meanwhile.
fn observe(arguments: &args::Why, folder: &Path) -> Result<(), Failure> {
    if arguments.range.from.is_some() || arguments.range.until.is_some() {
        let message = "--from and --until are for recordings; --for ends an observation";
        return Err(Failure::new(Code::Usage, message));
    }
    let watched = arguments.watch();
    let console = Console::new(watched.quiet).beside(&watched.target.command);
    let mut watch = options::watch(&watched, BUFFER_BYTES)?;
    watch.observe.command_output = Output::or_stderr(arguments.json);
    watch.observe.switches = true;
    watch.observe.all_threads = true;
    let threads = options::threads(&watched.threads)?;
    let folder = RecordingFolder::new(folder, false)?;
    record(RecordOptions { watch, threads, folder, limit: None }, &*stop::on_signals()?, &console)?;
    Ok(())
}
