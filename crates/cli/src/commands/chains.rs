//! `punctual chains`

use super::options;
use super::results::Results;
use crate::args;
use crate::console::Console;
use crate::failure::{Code, Failure};
use punctual_model::Dataflow;
use punctual_workflow::chains::{Analyser, Options};
use punctual_workflow::{Destination, Error};

pub fn run(arguments: args::Chains) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let results = Results::new(&arguments.results)?;
    let force = arguments.results.force;
    let graph = arguments.graph.as_deref().map(|path| Destination::new(path, force)).transpose()?;
    if results.is_json() && graph.as_ref().is_some_and(Destination::is_standard_output) {
        let message = "--graph - and --json both write to standard output; name a file for one of them";
        return Err(Failure::new(Code::Usage, message));
    }
    let options = Options {
        trace: arguments.trace,
        chains: arguments.chains,
        curve_horizon: arguments.curve_horizon as usize,
        kernel: arguments.kernel,
        model: arguments.model,
        threads: options::threads(&arguments.threads)?,
    };
    let model = Analyser::open(&options, &console)?.run(&console)?;
    if let (Some(destination), Some(flow)) = (&graph, &model.dataflow) {
        write_graph(destination, flow, console)?;
    }
    results.deliver(&model, arguments.quiet, console)
}

fn write_graph(destination: &Destination, flow: &Dataflow, console: Console) -> Result<(), Failure> {
    let name = destination.path().display();
    destination
        .write(punctual_report::flow::dot(flow).as_bytes())
        .map_err(|error| Error::io("write", &name, &error))?;
    if destination.is_standard_output() {
        return Ok(());
    }
    console.note(&format!("Wrote {name}: the graph; dot -Tsvg {name} draws it."));
    Ok(())
}
