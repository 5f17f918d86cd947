//! Models, from extraction to where they are wanted: a table, standard output, a file.

use crate::args;
use crate::failure::Failure;
use crate::output::{Destination, print};
use crate::show::overview;
use crate::terminal;
use punctual_extract::{Extractor, StreamOptions};
use punctual_model::{Instant, Platform, Threads, TimingModel};
use punctual_report as report;
use punctual_trace::Totals;
use std::path::Path;

/// Where the models go.
pub enum Results {
    Table,
    Json,
    File(Destination),
}

impl Results {
    pub fn new(arguments: &args::Results) -> Result<Results, Failure> {
        Ok(match &arguments.output {
            Some(path) if path.as_os_str() == "-" => Results::Json,
            Some(path) => Results::File(Destination::new(path, arguments.force)?),
            None if arguments.json => Results::Json,
            None => Results::Table,
        })
    }

    /// Whether standard output is for the models alone.
    pub fn are_printed(&self) -> bool {
        matches!(self, Results::Json)
    }

    pub fn hand_over(&self, model: &TimingModel, quiet: bool) -> Result<(), Failure> {
        match self {
            Results::Json => print(&model.to_json()),
            Results::Table => {
                print(&overview(model, &terminal::page(), report::Rows::default()))?;
                if !quiet {
                    let graph = if model.dataflow.is_some() {
                        "; --graph FILE writes the graph for Graphviz"
                    } else {
                        ""
                    };
                    eprintln!(
                        "(-o FILE writes the whole timing model; punctual show FILE --task NAME then tells all of a task{graph})"
                    );
                }
                Ok(())
            }
            Results::File(destination) => {
                destination.write_or_rescue(model.to_json().as_bytes())?;
                if !quiet {
                    eprint!("{}", report::summary(model));
                    eprint!("{}", report::flow::summary(model));
                    eprintln!("{}", written(destination.path()));
                }
                Ok(())
            }
        }
    }
}

fn written(path: &Path) -> String {
    format!("Wrote {}; punctual show {} shows it.", path.display(), path.display())
}

/// Which models to extract.
pub fn options(arguments: &args::Models) -> punctual_extract::Options {
    punctual_extract::Options {
        stream: StreamOptions {
            curve_horizon: arguments.curve_horizon as usize,
            wcet_horizon: arguments.wcet_horizon as usize,
        },
        merge_transitions: arguments.merge_transitions,
    }
}

/// What was observed, where, and how much of it was not seen.
pub struct Observed {
    pub platform: Platform,
    pub clock: String,
    pub from: Instant,
    pub until: Instant,
    pub records: u64,
    pub totals: Totals,
}

/// The whole timing model.
pub fn model(extractor: Extractor, observed: Observed) -> TimingModel {
    let omitted_tasks = extractor.progress().omitted;
    if omitted_tasks > 0 {
        let omitted = report::counted(omitted_tasks, "task");
        eprintln!(
            "punctual: {omitted} left out, there were too many; --merge-transitions keeps one task for each thread"
        );
    }
    TimingModel {
        platform: observed.platform.known(),
        threads: Some(Threads {
            from_ns: observed.from,
            until_ns: observed.until,
            records: observed.records,
            lost_records: observed.totals.lost,
            untracked_threads: observed.totals.untracked,
            skipped_events: observed.totals.skipped,
            stolen_ns: observed.totals.stolen,
            omitted_tasks,
            tasks: extractor.finish(observed.until),
        }),
        ..TimingModel::new(observed.clock)
    }
}
