//! `punctual contract`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use crate::output::print;
use punctual_report::shell_word;
use punctual_workflow::Destination;
use punctual_workflow::contract::{Options, contract};

pub fn run(arguments: args::Contract) -> Result<(), Failure> {
    let destination = arguments.output.as_deref();
    let destination = destination.map(|path| Destination::new(path, arguments.force)).transpose()?;
    let console = Console::new(arguments.quiet);
    let options = Options {
        threads: options::threads(&arguments.threads)?,
        margin: arguments.margin,
        quantile: arguments.quantile,
        inputs: arguments.inputs,
    };
    let text = contract(&options, &console)?.to_toml();
    match destination.filter(|destination| !destination.is_standard_output()) {
        None => print(&text),
        Some(destination) => {
            destination.write_or_rescue(text.as_bytes())?;
            let path = shell_word(destination.path());
            console.note(&format!("Wrote {path}; edit it, then punctual check {path} RECORDING."));
            Ok(())
        }
    }
}
