//! How late the kernel can make a thread: timing models with a section `latency`, merged.

use crate::compare::refuse_duplicates;
use crate::error::{Error, Result};
use crate::model_file::{display_name, read_model};
use punctual_model::{SchedulingLatency, TimingModel};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Which processors; all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processors(Option<BTreeSet<u32>>);

impl Processors {
    /// These.
    pub fn new(numbers: impl IntoIterator<Item = u32>) -> Processors {
        Processors(Some(numbers.into_iter().collect()))
    }

    /// Whether the processor is one of them.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.as_ref().is_none_or(|numbers| numbers.contains(&cpu))
    }

    /// Their numbers; none where it is all.
    pub fn numbers(&self) -> Option<&BTreeSet<u32>> {
        self.0.as_ref()
    }

    /// Leaves out of a section what is about other processors.
    ///
    /// # Errors
    /// If it knows nothing of one of these.
    pub fn select(&self, latency: &mut SchedulingLatency, file: &str) -> Result<()> {
        let known: BTreeSet<u32> = latency.processors.iter().map(|cpu| cpu.cpu).collect();
        if let Some(missing) = self.0.iter().flatten().find(|cpu| !known.contains(cpu)) {
            let known: Vec<String> = known.iter().map(u32::to_string).collect();
            return Err(Error::target(format!("{file} has no latency of processor {missing}"))
                .advise(format!("it has those of {}", known.join(", "))));
        }
        latency.processors.retain(|cpu| self.contains(cpu.cpu));
        Ok(())
    }
}

/// Timing models, and what to take of them.
pub struct Options {
    /// The files, at least one; `-` is standard input.
    pub files: Vec<PathBuf>,
    /// Which processors.
    pub processors: Processors,
}

/// The latency of all files in one model. It has no other sections.
pub fn read(options: &Options) -> Result<TimingModel> {
    refuse_duplicates(&options.files, "its interrupts and wake-ups would be counted twice")?;
    let mut files = options.files.iter();
    let Some(first) = files.next() else {
        return Err(Error::usage("there is no timing model to take the latency of"));
    };
    let mut model = latency_of(first)?;
    for file in files {
        let other = latency_of(file)?;
        let both = || format!("cannot merge {} into the files before", display_name(file));
        if other.clock != model.clock {
            let clocks = format!("its clock is {}, theirs {}", other.clock, model.clock);
            return Err(Error::usage(both()).because(clocks));
        }
        model = model.merge(other).map_err(|error| Error::usage(both()).because(error.to_string()))?;
    }
    let names: Vec<_> = options.files.iter().map(|file| display_name(file)).collect();
    if let Some(latency) = &mut model.latency {
        options.processors.select(latency, &names.join(" + "))?;
    }
    Ok(model)
}

fn latency_of(file: &Path) -> Result<TimingModel> {
    let model = read_model(file)?;
    match model.latency.is_some() {
        true => Ok(TimingModel { threads: None, dataflow: None, table: None, ..model }),
        false => Err(Error::file(format!("{} has no section `latency`", display_name(file)))
            .advise("punctual latency -o FILE makes a timing model with one")),
    }
}
