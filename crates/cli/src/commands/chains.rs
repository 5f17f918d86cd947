//! `punctual chains`

use super::options;
use super::results::Results;
use crate::args;
use crate::console::{self, Console};
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use punctual_conformance::Verdict;
use punctual_model::{Dataflow, Instant};
use punctual_report::conformance::{self as report, Checked};
use punctual_report::counted;
use punctual_report::flow::misses;
use punctual_workflow::chains::{Analysed, Analyser, Deadlines, List, Lists, Options};
use punctual_workflow::{Destination, Error};
use std::path::PathBuf;

pub fn run(arguments: args::Chains) -> Result<(), Failure> {
    let console = Console::new(arguments.quiet);
    let results = Results::new(&arguments.results)?;
    let force = arguments.results.force;
    let graph = arguments.graph.as_deref().map(|path| Destination::new(path, force)).transpose()?;
    if results.is_json() && graph.as_ref().is_some_and(Destination::is_standard_output) {
        let message = "--graph - and --json both write to standard output; name a file for one of them";
        return Err(Failure::new(Code::Usage, message));
    }
    let list = |path: &Option<PathBuf>| path.as_deref().map(|path| List::new(path, force)).transpose();
    let options = Options {
        range: options::range(&arguments.range),
        deadlines: Deadlines::new(&arguments.deadlines, arguments.contract.as_deref())?,
        lists: Lists { instances: list(&arguments.jobs_out)?, passages: list(&arguments.passages_out)? },
        trace: arguments.trace,
        chains: arguments.chains,
        curve_horizon: arguments.curve_horizon as usize,
        kernel: arguments.kernel,
        model: arguments.model,
        threads: options::threads(&arguments.threads)?,
    };
    let trace = options.trace.display().to_string();
    let Analysed { model, verdict } = Analyser::open(options, &console)?.run(&console)?;
    if let (Some(destination), Some(flow)) = (&graph, &model.dataflow) {
        write_graph(destination, flow, console)?;
    }
    results.deliver(&model, arguments.quiet, console)?;
    let begin = model.dataflow.as_ref().map_or(Instant::from_ns(0), |flow| flow.from_ns);
    verdict.map_or(Ok(()), |verdict| judge(verdict, trace, begin, results.is_json()))
}

/// Prints which deadlines were missed, how often and when; to standard error where the model is JSON.
fn judge(verdict: Verdict, input: String, begin: Instant, is_json: bool) -> Result<(), Failure> {
    let checked = Checked { input, verdict, causes: None };
    let page = terminal::page();
    let text = report::text_since(&checked, begin, &page) + &misses(&checked.verdict, begin, &page);
    if is_json {
        console::line(text.trim_end());
    } else {
        print(&format!("\n{text}"))?;
    }
    match report::violations(&[checked]) {
        0 => Ok(()),
        number => {
            let times = counted(number, "time");
            Err(Failure::new(Code::Exceeded, format!("deadlines were missed: {times}")))
        }
    }
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
