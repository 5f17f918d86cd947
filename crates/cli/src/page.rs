//! `punctual report`: the page to look at.

use crate::args;
use crate::failure::{Code, Failure};
use crate::output::{Destination, print};
use crate::progress::Bar;
use crate::recording::Recording;
use crate::replay::{Primaries, each_job};
use crate::show::{is_standard_input, name, read_model};
use punctual_report::html::{Jobs, page};
use std::path::{Path, PathBuf};

/// Everything that was asked for, checked as far as it can be before reading recordings.
pub struct Plan {
    file: PathBuf,
    recording: Option<Recording>,
    /// None is standard output.
    destination: Option<Destination>,
    quiet: bool,
}

impl Plan {
    pub fn new(arguments: args::Report) -> Result<Plan, Failure> {
        let whole = args::Stretch { from: None, until: None };
        let destination = match &arguments.output {
            Some(path) if path.as_os_str() == "-" => None,
            Some(path) => Some(Destination::new(path, arguments.force)?),
            None if is_standard_input(&arguments.file) => None,
            None => Some(Destination::new(&beside(&arguments.file, ".timing.json", "html"), arguments.force)?),
        };
        Ok(Plan {
            recording: arguments.recording.as_deref().map(|path| Recording::open(path, &whole)).transpose()?,
            file: arguments.file,
            destination,
            quiet: arguments.quiet,
        })
    }
}

/// The name of a file that is made from another: with another ending, in the current directory.
pub fn beside(path: &Path, ending: &str, other: &str) -> PathBuf {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let stem = name.strip_suffix(ending).unwrap_or(&name);
    PathBuf::from(format!("{stem}.{other}"))
}

pub fn run(mut plan: Plan) -> Result<(), Failure> {
    let model = read_model(&plan.file)?;
    let mut jobs = None;
    if let Some(recording) = &mut plan.recording {
        let file = name(&plan.file);
        if model.tasks.iter().any(|task| task.recording.is_some()) {
            let why = "it is about several recordings; make a model of each to see its jobs, or leave the recording out";
            return Err(Failure::new(Code::Usage, format!("{file}: {why}")));
        }
        // A model of a stretch of it.
        recording.narrow(model.observation.from_ns, model.observation.until_ns)?;
        let bar = Bar::new(plan.quiet, "reading jobs", recording.activations(), "activations");
        let mut seen = Jobs::new(&model);
        let primaries = Primaries::of(&model);
        let merged = model.tasks.iter().any(|task| task.merged_transitions > 0);
        let mut known = 0_u64;
        each_job(
            recording,
            merged,
            &bar,
            |_| {},
            |job| {
                seen.job(job.tid, job.phase, &job.separator, job.number, job.job);
                known += u64::from(primaries.is_primary(job));
            },
        )?;
        drop(bar);
        recording.warn();
        if known == 0 {
            let recording = recording.path().display();
            return Err(Failure::new(
                Code::File,
                format!("{recording} has none of the jobs that {file} is about; are they of one observation?"),
            ));
        }
        jobs = Some(seen);
    }
    let title = plan.file.file_name().map_or("timing model".into(), |name| name.to_string_lossy().into_owned());
    let html = page(&model, jobs.as_ref(), &title);
    match &plan.destination {
        None => print(&html),
        Some(destination) => {
            destination.write_or_rescue(html.as_bytes())?;
            if !plan.quiet {
                eprintln!("Wrote {}; open it in a browser.", destination.path().display());
            }
            Ok(())
        }
    }
}
