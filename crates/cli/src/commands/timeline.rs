//! `punctual timeline`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use punctual_workflow::timeline::{Options, TimelineMaker, around};
use punctual_workflow::{Destination, Error, derived_path};
use std::io::BufWriter;

pub fn run(arguments: args::Timeline) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let first = &arguments.recordings[0];
    let ending = if first.to_string_lossy().ends_with(".table.json") { ".json" } else { ".recording" };
    let default = || derived_path(first, ending, "perfetto-trace");
    let destination = Destination::new(&arguments.output.unwrap_or_else(default), arguments.force)?;
    let job = arguments.around.as_ref().map(|name| around(first, name, &console)).transpose()?;
    let maker = TimelineMaker::open(&Options {
        inputs: arguments.recordings,
        range: options::range(&arguments.range),
        window: job.as_ref().map(|job| job.window),
        threads: options::threads(&arguments.threads)?,
    })?;
    let name = destination.path().display().to_string();
    let is_printed = destination.is_standard_output();
    let unwritten = |error: &std::io::Error| Error::io("write", &name, error);
    let mut out = BufWriter::new(destination.begin().map_err(|error| unwritten(&error))?);
    let shown = maker.write(&mut out, &name, &console)?;
    let pending = out.into_inner().map_err(|error| unwritten(error.error()))?;
    pending.finish().map_err(|error| unwritten(&error))?;
    let what = if is_printed { "Wrote the timeline".into() } else { format!("Wrote {name}") };
    console.note(&format!(
        "{what}: {}. Open it at https://ui.perfetto.dev (it stays in your browser).",
        shown.contents.join("; ")
    ));
    if let Some(job) = job {
        let (begin, end) = (job.begin.ns(), job.end.ns());
        console.note(&format!(
            "It shows the time around job {} of {}. With the file open, \
             https://ui.perfetto.dev/#!/?visStart={begin}&visEnd={end} shows that job alone.",
            job.number, job.thread
        ));
    }
    match shown.switches {
        Some(true) if shown.all_threads => {}
        Some(true) => console.note(
            "(Only watched threads are shown, so a processor that looks idle may not be; a recording made \
             with --all-threads shows the others too.)",
        ),
        Some(false) => console.note(
            "(It shows jobs only; a recording made with --detail switches also shows which thread ran when.)",
        ),
        None => {}
    }
    Ok(())
}
