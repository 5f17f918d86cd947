//! Time-triggered tables: made of timing models and contracts, or made elsewhere and checked.

mod declared;

use crate::agreement::{Agreement, read_agreement};
use crate::error::{Error, ErrorKind, Result};
use crate::filter::ThreadFilter;
use crate::model_file::{display_name, read_model};
use crate::monitor::Monitor;
use declared::Declared;
use punctual_model::check::{self, TableViolation};
use punctual_model::table::{Clock, Table, ThreadPattern};
use punctual_model::{Duration, Percent, Platform, TimingModel};
use punctual_tables::making::{Request, make as make_table};
use std::path::{Path, PathBuf};

/// What a table is made of, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Timing models, and contracts (`*.toml`). What a contract says replaces what was observed.
    pub inputs: Vec<PathBuf>,
    /// Length of a slot; if absent, a contract must say it.
    pub slot: Option<Duration>,
    /// The processors, ascending; if empty, a contract must name them.
    pub processors: Vec<u32>,
    /// Whether a job may continue on another processor; a contract may say so too.
    pub migration: bool,
    /// Percent added to observed costs. What a contract says is taken as it is.
    pub margin: Percent,
    /// Whether a period that is not a whole number of slots becomes the next shorter one.
    pub shorten: bool,
    /// The clock; if absent, that of a contract, or CLOCK_MONOTONIC.
    pub clock: Option<Clock>,
    /// Which threads of the timing models. Tasks of contracts are always taken.
    pub threads: ThreadFilter,
}

/// Makes a table. The model has no other sections: they are in the files that it was made of.
///
/// # Errors
/// [`ErrorKind::Refused`] if the tasks cannot be scheduled, or no table was found.
pub fn make(options: &Options, monitor: &dyn Monitor) -> Result<TimingModel> {
    let mut declared = Declared::default();
    for path in &options.inputs {
        match read_agreement(path)? {
            Agreement::Contract(contract) => declared.add_contract(contract, &display_name(path))?,
            Agreement::Model(model) => {
                declared.add_model(&model, &display_name(path), options, monitor)?;
            }
        }
    }
    declared.check_patterns(&options.threads)?;
    let slot = options.slot.or(declared.slot).ok_or_else(|| {
        Error::usage("the length of a slot is unknown").advise("--slot 3ms, or slot = \"3ms\" in a contract")
    })?;
    let processors = match options.processors.is_empty() {
        true => declared.processors.clone(),
        false => options.processors.clone(),
    };
    if processors.is_empty() {
        return Err(Error::usage("the processors of the table are unknown")
            .advise("--cpus 1-3, or processors = \"1-3\" in a contract"));
    }
    let clock = options.clock.or(declared.clock).unwrap_or_default();
    let tasks = declared.tasks(slot, options.shorten, monitor)?;
    for task in &tasks {
        if let Some(other) = task.processors.iter().find(|processor| !processors.contains(processor)) {
            let listed: Vec<String> = processors.iter().map(u32::to_string).collect();
            let problem =
                format!("{} may run on processor {other}, which is not one of the table's", task.name);
            return Err(Error::usage(problem).because(format!("those are {}", listed.join(","))));
        }
    }
    let migration = options.migration || declared.migration;
    let request = Request { slot, clock, processors, migration, tasks };
    let table = make_table(&request).map_err(|refusal| {
        Error::new(ErrorKind::Refused, "no table found for these tasks").because(refusal.to_string())
    })?;
    let found = check::table(&table);
    if let Some(violation) = found.first() {
        let defect = format!("the table is wrong; this is a bug in Punctual: {violation}");
        return Err(Error::new(ErrorKind::Other, defect));
    }
    declared.warn_of_times(&table, monitor);
    let platform = declared.platform.and_then(Platform::known);
    Ok(TimingModel { platform, table: Some(table), ..TimingModel::new(clock.name()) })
}

/// Reads a table, made by Punctual or elsewhere, and checks it.
pub fn read(path: &Path) -> Result<(TimingModel, Vec<TableViolation>)> {
    let model = read_model(path)?;
    let found = table_of(&model, path).map(check::table)?;
    Ok((model, found))
}

/// The table of a model.
pub fn table_of<'a>(model: &'a TimingModel, path: &Path) -> Result<&'a Table> {
    model.table.as_ref().ok_or_else(|| {
        Error::file(format!("{} has no section `table`", display_name(path)))
            .advise("make one with punctual table MODEL -o FILE.table.json")
    })
}
