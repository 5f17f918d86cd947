//! `punctual latency`

use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::{stop, terminal};
use punctual_model::{SchedulingLatency, TimingModel};
use punctual_report::latency::{self as report, Analysed, Threshold};
use punctual_report::shell_word;
use punctual_workflow::latency::{self, Options, Processors};
use punctual_workflow::{Destination, RecordingFolder, measure};

pub fn run(arguments: args::Latency) -> Result<(), Failure> {
    let output = Output::new(&arguments)?;
    let model = match arguments.files.is_empty() {
        true => return measured(arguments, &output),
        false => {
            let processors = arguments.cpus.map_or_else(Processors::default, |cpus| Processors::new(cpus.0));
            latency::read(&Options { files: arguments.files, processors })?
        }
    };
    output.deliver(&model, None)
}

/// The latency of this machine, now.
fn measured(arguments: args::Latency, output: &Output) -> Result<(), Failure> {
    let force = arguments.force;
    let record = arguments.record.as_deref().map(|path| RecordingFolder::new(path, force)).transpose()?;
    let options = measure::Options {
        limit: arguments.duration,
        cpus: arguments.cpus.map_or_else(Vec::new, |cpus| cpus.0.into_iter().collect()),
        measure: arguments.measure.0,
        threshold: arguments.threshold,
        verify: arguments.verify,
        command: arguments.command,
        command_to_stderr: output.is_for_programs(),
        record,
    };
    let console = Console::new(output.quiet).beside(&options.command);
    let outcome = measure::measure(&options, &*stop::on_signals()?, &console)?;
    // Before the tables, whose last lines are the ones that are seen.
    let observed = outcome.model.latency.as_ref().map(|latency| (latency.from_ns, latency.until_ns));
    let (begin, end) = observed.unwrap_or_default();
    let reached = outcome.threshold.as_ref().map(|threshold| threshold.text(begin, end));
    let reached = reached.map(|it| punctual_report::paragraph(&it, &terminal::page()));
    for text in reached.into_iter().chain(outcome.flight) {
        match output.is_for_programs() {
            true => console.note(text.trim_end()),
            false => print(&(text + "\n"))?,
        }
    }
    let delivered = output.deliver(&outcome.model, outcome.threshold.as_ref());
    if let Some(recorded) = &outcome.recorded {
        let path = shell_word(recorded.path());
        console.note(&format!(
            "{recorded} punctual replay {path} gives the same, punctual timeline {path} shows it."
        ));
    }
    match outcome.failure {
        // A latency above its bound is what the exit code must say first.
        Some(failure) if delivered.is_ok() => Err(failure.into()),
        _ => delivered,
    }
}

/// Where the result goes.
struct Output {
    destination: Option<Destination>,
    json: bool,
    quiet: bool,
}

impl Output {
    fn new(arguments: &args::Latency) -> Result<Output, Failure> {
        let destination = arguments.output.as_deref();
        let destination = destination.map(|path| Destination::new(path, arguments.force)).transpose()?;
        if destination.as_ref().is_some_and(Destination::is_standard_output) && arguments.json {
            let message = "-o - and --json both write to standard output; name a file for the timing model";
            return Err(Failure::new(Code::Usage, message));
        }
        Ok(Output { destination, json: arguments.json, quiet: arguments.quiet })
    }

    /// Whether standard output is reserved for JSON.
    fn is_for_programs(&self) -> bool {
        self.json || self.destination.as_ref().is_some_and(Destination::is_standard_output)
    }

    /// Writes the model, prints the bounds, and fails if a measured latency is above its bound, or the bound
    /// is not to be relied on.
    fn deliver(&self, model: &TimingModel, threshold: Option<&Threshold>) -> Result<(), Failure> {
        let Some(section) = &model.latency else {
            return Err(Failure::new(Code::Other, "there is no latency to show"));
        };
        match &self.destination {
            Some(destination) if destination.is_standard_output() => print(&model.to_json())?,
            Some(destination) => {
                destination.write_or_rescue(model.to_json().as_bytes())?;
                if !self.quiet || self.json {
                    self.print(section, threshold)?;
                }
                let path = shell_word(destination.path());
                Console::new(self.quiet).note(&format!("Wrote {path}; punctual latency {path} shows it."));
            }
            None => self.print(section, threshold)?,
        }
        let processors = Analysed::all(section);
        let problems = [report::unreliable(&processors), report::exceeded(&processors)];
        let problems: Vec<String> = problems.into_iter().filter(|it| !it.is_empty()).collect();
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::new(Code::Exceeded, problems.join(" "))),
        }
    }

    fn print(&self, section: &SchedulingLatency, threshold: Option<&Threshold>) -> Result<(), Failure> {
        print(&match self.json {
            true => report::json(section, threshold),
            false => report::latency(section, &terminal::page()),
        })
    }
}
