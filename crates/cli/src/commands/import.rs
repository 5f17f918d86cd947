//! `punctual import`

use super::{options, record};
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_report::{account, account_json};
use punctual_workflow::import::{Imported, Machine, Options, Threads, Variables, Written, import};
use punctual_workflow::{Error, RecordingFolder, derived_path, is_standard_stream};
use serde_json::{Value, json};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use tempfile::TempDir;

pub fn run(arguments: args::Import) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let source = arguments.source.display().to_string();
    let is_input = is_standard_stream(&arguments.source);
    if is_input && arguments.output.is_none() {
        let why = "standard input has no name that the recording could have: give it one with -o DIR";
        return Err(Failure::new(Code::Usage, why));
    }
    let input = is_input.then(StandardInput::keep).transpose()?;
    let output = arguments.output.unwrap_or_else(|| derived_path(&arguments.source, ".data", "recording"));
    let options = Options {
        folder: RecordingFolder::new(&output, arguments.force)?,
        threads: options::threads(&arguments.threads)?,
        include_best_effort: arguments.include_best_effort,
        machine: arguments.machine.as_deref().and_then(Machine::from_name),
        variables: variables(&arguments.variables)?,
        source: input.as_ref().map_or(arguments.source, |input| input.path.clone()),
    };
    let (traces, summary) = match import(&options, &console)? {
        Imported::Threads(Threads { recorded, account, notes }) => {
            (vec![(account, notes)], record::summary(&recorded, true))
        }
        Imported::Dataflow(dataflow) => {
            let summary = dataflow.summary();
            let kernel = dataflow.kernel.map(|kernel| (kernel.account, kernel.notes));
            let Written { account, notes, .. } = dataflow.written;
            (std::iter::once((account, notes)).chain(kernel).collect(), summary)
        }
    };
    if arguments.json {
        let all: Vec<Value> = traces.iter().map(|(it, notes)| with_notes(account_json(it), notes)).collect();
        print(&format!("{:#}\n", json!({ "source": source, "recording": output, "traces": all })))?;
    } else if !arguments.quiet {
        let page = terminal::page();
        print(&traces.iter().map(|(it, _)| account(it, &page)).collect::<Vec<_>>().join("\n"))?;
    }
    console.note(&summary);
    Ok(())
}

/// What came from standard input, in a file: traces are read in several passes.
struct StandardInput {
    _place: TempDir,
    path: PathBuf,
}

impl StandardInput {
    fn keep() -> Result<StandardInput, Error> {
        let failed = |error: io::Error| Error::io("keep", "standard input in a temporary file", &error);
        let place = tempfile::Builder::new().prefix("punctual-import-").tempdir().map_err(failed)?;
        let path = place.path().join("stdin");
        let mut file = File::create(&path).map_err(failed)?;
        io::copy(&mut io::stdin().lock(), &mut file).map_err(failed)?;
        Ok(StandardInput { _place: place, path })
    }
}

fn with_notes(mut trace: Value, notes: &[String]) -> Value {
    trace["notes"] = json!(notes);
    trace
}

fn variables(given: &[String]) -> Result<Variables, Failure> {
    if given.is_empty() {
        return Ok(Variables::Assumed);
    }
    let none = ["none".to_owned()];
    let pairs = if given == none.as_slice() { &[] } else { given };
    let pair = |text: &String| {
        let pair = text.split_once(',').map(|(writer, reader)| (writer.trim().into(), reader.trim().into()));
        pair.ok_or_else(|| {
            Failure::new(Code::Usage, format!("--variable {text:?} is not WRITER,READER, nor none"))
        })
    };
    Ok(Variables::Declared(pairs.iter().map(pair).collect::<Result<_, _>>()?))
}
