//! `punctual replay`

use super::options;
use super::results::Results;
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use punctual_workflow::jobs::JobList;
use punctual_workflow::replay::{Options, processors, replay};

pub fn run(arguments: args::Replay) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let force = arguments.results.force;
    let results = Results::new(&arguments.results)?;
    let options = Options {
        range: options::range(&arguments.range),
        threads: options::threads(&arguments.threads)?,
        models: options::models(&arguments.models),
        workers: arguments.jobs.unwrap_or_else(processors),
        jobs: arguments.jobs_out.as_deref().map(|path| JobList::new(path, force)).transpose()?,
        recordings: arguments.recordings,
    };
    let model = replay(&options, &console)?;
    results.deliver(&model, arguments.quiet, console)
}
