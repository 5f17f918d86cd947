//! Whether recordings, other tools' traces and timing models keep to a contract.

use crate::agreement::read_contract;
use crate::error::{Error, Result};
use crate::inputs::open_trace;
use crate::model_file::{display_name, read_model};
use crate::monitor::{Monitor, Unit};
use crate::recording::{Recording, TimeRange};
use punctual_conformance::{Checker, Contract, Note, Verdict, check_model};
use punctual_report::conformance::Checked;
use punctual_trace::import::{Import, Options as TraceOptions};
use punctual_trace::{ErrorKind, Record, ctf};
use std::path::{Path, PathBuf};

/// What is checked against what.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The contract, or a timing model.
    pub contract: PathBuf,
    /// Recordings, traces and timing models.
    pub inputs: Vec<PathBuf>,
    /// Which part of each recording.
    pub range: TimeRange,
}

/// An input, opened.
enum Input {
    Recording(Box<Recording>),
    Trace(Import),
    Model(Box<punctual_model::TimingModel>),
}

/// Checks all inputs, each for itself.
pub fn check(options: &Options, monitor: &dyn Monitor) -> Result<Vec<Checked>> {
    let contract = read_contract(&options.contract)?;
    let open = |path: &PathBuf| Ok((display_name(path).into_owned(), Input::open(path, options)?));
    let inputs = options.inputs.iter().map(open).collect::<Result<Vec<_>>>()?;
    let check = |(name, input): (String, Input)| {
        let verdict = input.check(&contract, &name, monitor)?;
        Ok(Checked { input: name, verdict })
    };
    inputs.into_iter().map(check).collect()
}

impl Input {
    fn open(path: &Path, options: &Options) -> Result<Input> {
        let input = Input::recognise(path, options)?;
        match &input {
            Input::Recording(recording) if recording.about().latency => {
                let path = path.display();
                Err(Error::file(format!("{path} is a measurement of scheduling latency")).advise(format!(
                    "punctual replay {path} -o FILE.timing.json makes a timing model, which can be checked"
                )))
            }
            Input::Trace(_) | Input::Model(_) if !options.range.is_everything() => Err(Error::usage(
                format!("--from and --until are for recordings; {} is none", path.display()),
            )),
            _ => Ok(input),
        }
    }

    fn recognise(path: &Path, options: &Options) -> Result<Input> {
        let trace_options = TraceOptions { include_best_effort: true };
        if path.is_dir() {
            if open_trace(path).is_ok() {
                let path = path.display();
                return Err(Error::file(format!("{path} is the trace of a dataflow program")).advise(format!(
                    "punctual chains {path} -o FILE.timing.json makes a timing model, which can be checked"
                )));
            }
            let is_other = ctf::Reader::open(path)
                .is_err_and(|error| matches!(error.kind(), ErrorKind::NotATrace | ErrorKind::NotFound));
            if is_other {
                if let Ok(import) = Import::open(path, &trace_options) {
                    return Ok(Input::Trace(import));
                }
            }
            return Ok(Input::Recording(Box::new(Recording::open(path, &options.range)?)));
        }
        if is_perf(path) {
            return Ok(Input::Trace(Import::open(path, &trace_options)?));
        }
        Ok(Input::Model(Box::new(read_model(path)?)))
    }

    fn check(self, contract: &Contract, name: &str, monitor: &dyn Monitor) -> Result<Verdict> {
        match self {
            Input::Model(model) => Ok(check_model(contract, &model)),
            Input::Recording(recording) => {
                let progress = monitor.begin("checking", recording.activations(), Unit::Activations);
                let mut checker = Checker::new(contract);
                let mut activations = 0_u64;
                recording.read_all(&mut |record| {
                    checker.record(record, &mut |_| {});
                    activations += u64::from(matches!(record, Record::Activation(_)));
                    if activations % 65_536 == 0 {
                        progress.set(activations);
                    }
                })?;
                drop(progress);
                recording.report_problems(monitor);
                let lost = recording.reader().totals().lost + recording.unreadable();
                Ok(finish(checker, contract, lost))
            }
            Input::Trace(import) => {
                let progress = monitor.begin("checking", import.bytes(), Unit::Bytes);
                let mut checker = Checker::new(contract);
                let mut each = |record: &Record| {
                    checker.record(record, &mut |_| {});
                    true
                };
                let imported = import.run(&mut each, &mut |done| progress.set(done))?;
                drop(progress);
                imported.notes.iter().for_each(|note| monitor.warn(&format!("{name}: {note}")));
                Ok(finish(checker, contract, imported.totals.lost))
            }
        }
    }
}

fn is_perf(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = std::fs::File::open(path).and_then(|mut it| std::io::Read::read_exact(&mut it, &mut magic));
    read.is_ok() && (&magic == b"PERFILE2" || &magic == b"2ELIFREP")
}

/// Records tell nothing of chains and of the kernel.
pub(crate) fn finish(checker: Checker, contract: &Contract, lost: u64) -> Verdict {
    let mut verdict = checker.finish(lost, &mut |_| {});
    verdict.notes.extend(unchecked(contract));
    verdict
}

/// What records cannot be checked against.
pub(crate) fn unchecked(contract: &Contract) -> Option<Note> {
    let has_times = contract.chains.iter().any(|chain| chain.has_times());
    let what = match (has_times, contract.latencies.is_empty()) {
        (false, true) => return None,
        (true, true) => "chains are",
        (false, false) => "scheduling latencies are",
        (true, false) => "chains and scheduling latencies are",
    };
    let text = format!("{what} not checked here, but with timing models that have them");
    Some(Note { task: "".into(), text })
}
