//! `punctual check`

use super::options;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_report::{conformance as report, counted};
use punctual_workflow::check::{Options, check};
use punctual_workflow::replay::processors;
use punctual_workflow::{Destination, Given, read_bounds};

pub fn run(arguments: args::Check) -> Result<(), Failure> {
    let junit = arguments.junit.as_deref();
    let junit = junit.map(|path| Destination::new(path, arguments.force)).transpose()?;
    let is_printed = junit.as_ref().is_some_and(Destination::is_standard_output);
    let options = Options {
        contract: Given::File(arguments.contract),
        inputs: arguments.inputs.into_iter().map(Given::File).collect(),
        range: options::range(&arguments.range),
        bounds: arguments.bounds.map(|path| read_bounds(&path)).transpose()?.unwrap_or_default(),
        workers: arguments.jobs.unwrap_or_else(processors),
    };
    let checked = check(&options, &Console::new(arguments.quiet))?;
    if let Some(destination) = &junit {
        let xml = report::junit(&checked).map_err(|error| Failure::new(Code::Other, error))?;
        match is_printed {
            true => print(&xml)?,
            false => destination.write_or_rescue(xml.as_bytes())?,
        }
    }
    if !is_printed {
        print(&match arguments.json {
            true => report::json(&checked),
            false => report::text(&checked, arguments.all, &terminal::page()),
        })?;
    }
    match report::violations(&checked) {
        0 => Ok(()),
        number => {
            let message = format!("the contract is not kept: {}", counted(number, "violation"));
            Err(Failure::new(Code::Exceeded, message))
        }
    }
}
