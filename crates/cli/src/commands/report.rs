//! `punctual report`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::Failure;
use crate::output::print;
use crate::values;
use punctual_workflow::page::{Options, PageMaker};
use punctual_workflow::{Destination, derived_path, is_standard_stream};
use std::iter;

pub fn run(arguments: args::Report) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let inputs = iter::once(arguments.file).chain(arguments.recordings).collect();
    let maker = PageMaker::open(Options { inputs, threads: options::threads(&arguments.threads)? })?;
    let output = match arguments.output {
        Some(path) => Some(path).filter(|path| !is_standard_stream(path)),
        None if is_standard_stream(maker.subject()) => None,
        None => Some(derived_path(maker.subject(), values::model_ending(maker.subject()), "html")),
    };
    let destination = output.map(|path| Destination::new(&path, arguments.force)).transpose()?;
    let html = maker.run(&console)?;
    match destination {
        None => print(&html),
        Some(destination) => {
            destination.write_or_rescue(html.as_bytes())?;
            console.note(&format!("Wrote {}; open it in a browser.", destination.path().display()));
            Ok(())
        }
    }
}
