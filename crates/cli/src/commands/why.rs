//! `punctual why`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::{stop, terminal};
use punctual_extract::StreamOptions;
use punctual_observe::{Output, Switches};
use punctual_report::{shell_word, why as report};
use punctual_workflow::record::{BUFFER_BYTES, Options as RecordOptions, record};
use punctual_workflow::replay::processors;
use punctual_workflow::why::{Choice, Jobs, Options, can_watch, why};
use punctual_workflow::{Destination, Error, RecordingFolder, Watch, is_standard_stream, read_contract};
use std::path::Path;

pub fn run(arguments: args::Why) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let jobs = which(&arguments)?;
    let file = arguments.output.as_deref().map(|path| Destination::new(path, arguments.force)).transpose()?;
    if arguments.json && file.as_ref().is_some_and(Destination::is_standard_output) {
        return Err(Failure::new(Code::Usage, "--json and -o - both write to standard output"));
    }
    // Without a file, curves are not shown.
    let stream = match file {
        Some(_) => StreamOptions::default(),
        None => StreamOptions::without_curves(),
    };
    let range = options::range(&arguments.range);
    let threads = options::threads(&arguments.threads)?;
    let choice = Choice { threads, jobs, worst: arguments.worst, stream, workers: processors() };
    let explain = |recording| why(&Options { recording, range, choice: choice.clone() }, &console);
    let mut kept = arguments.target.recording.as_ref().or(arguments.keep.as_ref());
    let explained = match &arguments.target.recording {
        Some(recording) => explain(recording.clone())?,
        None if arguments.keep.is_none() && can_watch(&choice) => {
            let (watch, console) = observed(&arguments)?;
            punctual_workflow::why::watch(watch, &choice, &*stop::on_signals()?, &console)?
        }
        None => {
            let place = tempfile::Builder::new().prefix("punctual-why-").tempdir();
            let place = place.map_err(|error| Error::io("make", "a temporary folder", &error))?;
            let folder = arguments.keep.clone().unwrap_or_else(|| place.path().join("recording"));
            observe(&arguments, &folder)?;
            explain(folder)?
        }
    };
    match &file {
        Some(file) if file.is_standard_output() => return print(&explained.to_json()),
        // Written first: a standard output that cannot be written must not cost the file.
        Some(file) => file.write_or_rescue(explained.to_json().as_bytes())?,
        None => {}
    }
    let causes = explained.causes.unwrap_or_default();
    print(&if arguments.json { report::json(&causes) } else { report::text(&causes, &terminal::page()) })?;
    if let Some(file) = &file {
        let path = shell_word(file.path());
        console.note(&format!("Wrote {path}; punctual show {path} shows it."));
    }
    // Of other tools' traces there are no timelines.
    kept = kept.filter(|kept| !arguments.json && kept.join("stream_0").exists());
    if let (Some(kept), Some((thread, job))) = (kept, report::worst(&causes)) {
        let kept = shell_word(kept);
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

/// What is observed.
fn observed(arguments: &args::Why) -> Result<(Watch, Console), Failure> {
    if arguments.range.from.is_some() || arguments.range.until.is_some() {
        let message = "--from and --until are for recordings; --for ends an observation";
        return Err(Failure::new(Code::Usage, message));
    }
    let watched = arguments.watch();
    let console = Console::new(watched.quiet).beside(&watched.target.command);
    let mut watch = options::watch(&watched, BUFFER_BYTES)?;
    let is_taken = arguments.json || arguments.output.as_deref().is_some_and(is_standard_stream);
    watch.observe.command_output = Output::or_stderr(is_taken);
    Ok((watch, console))
}

/// Records the target and what all other threads do meanwhile.
fn observe(arguments: &args::Why, folder: &Path) -> Result<(), Failure> {
    let (mut watch, console) = observed(arguments)?;
    watch.observe.switches = Switches::All;
    let threads = options::threads(&arguments.threads)?;
    let folder = RecordingFolder::new(folder, false)?;
    record(RecordOptions { watch, threads, folder, limit: None }, &*stop::on_signals()?, &console)?;
    Ok(())
}
