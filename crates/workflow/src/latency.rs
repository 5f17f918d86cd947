//! How late the kernel can make a thread: timing models with a section `latency`, merged.

use crate::compare::refuse_duplicates;
use crate::error::{Error, Result};
use crate::model_file::{display_name, read_model};
use punctual_model::{Instant, SchedulingLatency, TimingModel};
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
    if options.files.is_empty() {
        return Err(Error::usage("there is no timing model to take the latency of"));
    }
    let mut all = Together::default();
    for file in &options.files {
        all.add(display_name(file).into_owned(), latency_of(file)?)?;
    }
    let mut model = all.model.unwrap_or_else(|| TimingModel::new(""));
    let names: Vec<_> = options.files.iter().map(|file| display_name(file)).collect();
    if let Some(latency) = &mut model.latency {
        options.processors.select(latency, &names.join(" + "))?;
    }
    Ok(model)
}

/// Observations that become one.
#[derive(Default)]
pub(crate) struct Together {
    /// What they have come to.
    pub model: Option<TimingModel>,
    /// Each by its name: when it was observed, and which processors.
    parts: Vec<(String, Instant, Instant, BTreeSet<u32>)>,
}

impl Together {
    /// Adds an observation of the same machine and clock.
    ///
    /// # Errors
    /// If it is of another one, or one that was added before under another name.
    pub fn add(&mut self, name: String, model: TimingModel) -> Result<()> {
        self.refuse_repeated(&name, &model)?;
        let Some(before) = self.model.take() else {
            self.model = Some(model);
            return Ok(());
        };
        let both = || Error::file(format!("cannot merge {name} into those before"));
        if model.clock != before.clock {
            return Err(both().because(format!("its clock is {}, theirs {}", model.clock, before.clock)));
        }
        let platforms = model.latency_platform().zip(before.latency_platform());
        if let Some(difference) = platforms.and_then(|(its, theirs)| its.differs_from(&theirs)) {
            return Err(both().because(format!("it is of another machine ({difference})")));
        }
        let merged = before.merge(model).map_err(|error| both().because(error.to_string()))?;
        self.model = Some(merged);
        Ok(())
    }

    /// Two observations of a processor neither begin nor end in the same nanosecond.
    fn refuse_repeated(&mut self, name: &str, model: &TimingModel) -> Result<()> {
        let Some(latency) = &model.latency else { return Ok(()) };
        let cpus: BTreeSet<u32> = latency.processors.iter().map(|cpu| cpu.cpu).collect();
        let is_it = |part: &&(String, Instant, Instant, BTreeSet<u32>)| {
            (part.1, part.2) == (latency.from_ns, latency.until_ns) && !part.3.is_disjoint(&cpus)
        };
        if let Some((other, ..)) = self.parts.iter().find(is_it) {
            return Err(Error::file(format!("{name} and {other} are the same observation"))
                .because("they began and ended at the same instants, on the same processors")
                .advise("its interrupts and wake-ups would be counted twice"));
        }
        self.parts.push((name.to_owned(), latency.from_ns, latency.until_ns, cpus));
        Ok(())
    }
}

fn latency_of(file: &Path) -> Result<TimingModel> {
    let model = read_model(file)?;
    match model.latency.is_some() {
        true => Ok(TimingModel { threads: None, dataflow: None, table: None, ..model }),
        false => Err(Error::file(format!("{} has no section `latency`", display_name(file)))
            .advise("punctual latency -o FILE makes a timing model with one")),
    }
}
