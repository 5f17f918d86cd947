//! `punctual top`

use super::options;
use crate::args::Top;
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::screen::Screen;
use crate::{screen, stop, terminal};
use punctual_observe::Output;
use punctual_workflow::live::{Agreement, Contracted, NoAgreement};
use punctual_workflow::top::{Options, top};
use punctual_workflow::{Destination, Error, ErrorKind, extract, read_bounds, read_contract, record};

pub fn run(arguments: Top) -> Result<(), Failure> {
    screen::require()?;
    let buffer_bytes = if arguments.causes { record::BUFFER_BYTES } else { extract::BUFFER_BYTES };
    let mut watch = options::watch(&arguments.watch, buffer_bytes)?;
    watch.observe.command_output = Output::Nowhere;
    let output = arguments.output.map(|path| Destination::new(&path, arguments.force)).transpose()?;
    if output.as_ref().is_some_and(Destination::is_standard_output) {
        let message = "-o needs a file: the display is on standard output; punctual extract can write there";
        return Err(Failure::new(Code::Usage, message));
    }
    let agreement: Box<dyn Agreement> = match &arguments.contract {
        Some(path) => Box::new(Contracted::new(&read_contract(path)?)),
        None => Box::new(NoAgreement),
    };
    let options = Options {
        watch,
        threads: options::threads(&arguments.watch.threads)?,
        models: options::models(&arguments.models),
        causes: arguments.causes,
        agreement,
        bounds: arguments.bounds.map(|path| read_bounds(&path)).transpose()?.unwrap_or_default(),
        interval: arguments.interval,
        output,
        colour: terminal::page().colour,
    };
    let open = || {
        Screen::open().map_err(|error| {
            Error::new(ErrorKind::Other, "cannot use the terminal").because(error.to_string())
        })
    };
    Ok(top(options, &*stop::on_signals()?, &Console::new(arguments.watch.quiet), open)?)
}
