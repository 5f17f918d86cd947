//! `punctual extract`

use super::options;
use super::results::Results;
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use crate::stop;
use punctual_observe::Output;
use punctual_workflow::extract::{BUFFER_BYTES, Options, extract};
use punctual_workflow::{RecordingFolder, record};

pub fn run(arguments: &args::Extract) -> Result<(), Failure> {
    let (quiet, force) = (arguments.watch.quiet, arguments.results.force);
    let console = Console::new(quiet).beside(&arguments.watch.target.command);
    let results = Results::new(&arguments.results)?;
    let buffer_bytes = if arguments.record.is_some() { record::BUFFER_BYTES } else { BUFFER_BYTES };
    let mut watch = options::watch(&arguments.watch, buffer_bytes)?;
    watch.observe.command_output = Output::or_stderr(results.is_json());
    let folder = arguments.record.as_deref().map(|path| RecordingFolder::new(path, force)).transpose()?;
    let options = Options {
        watch,
        threads: options::threads(&arguments.watch.threads)?,
        models: options::models(&arguments.models),
        record: folder,
    };
    let extracted = extract(options, &*stop::on_signals()?, &console)?;
    results.deliver(&extracted.model, quiet, console)?;
    if let Some(recorded) = &extracted.recorded {
        console.note(&super::record::summary(recorded, false));
    }
    extracted.failure.map_or(Ok(()), |error| Err(error.into()))
}
