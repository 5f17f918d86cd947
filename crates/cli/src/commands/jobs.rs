//! `punctual jobs`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use punctual_workflow::is_standard_stream;
use punctual_workflow::jobs::{Causes, Choice, JobFolder, JobList, Options, Output, jobs};
use punctual_workflow::replay::processors;

pub fn run(arguments: args::Jobs) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let output = match (&arguments.partitioned, &arguments.output) {
        (Some(folder), _) => Output::Folder(JobFolder::new(folder, arguments.force)?),
        (None, Some(file)) if !is_standard_stream(file) => Output::List(JobList::new(file, arguments.force)?),
        (None, _) => Output::List(JobList::printed()?),
    };
    let choice = Choice {
        range: options::range(&arguments.range),
        threads: options::threads(&arguments.threads)?,
        merge_transitions: arguments.merge_transitions,
        primary_only: arguments.primary,
        causes: match (arguments.worst, arguments.late, arguments.causes) {
            (Some(most), ..) => Some(Causes::OfWorst(most)),
            (None, true, _) => Some(Causes::OfLate),
            (None, false, true) => Some(Causes::OfAll),
            (None, false, false) => None,
        },
        workers: processors(),
    };
    let options = Options { recordings: arguments.recordings, choice, output };
    Ok(jobs(&options, &console)?)
}
