//! One plugin of the configuration, and how it comes to be.

use std::path::PathBuf;

/// What a plugin is configured to be.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfig {
    /// What rules, clients and messages call it.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The kernel's priorities that it may give out, least and greatest; without meaning to EDF.
    pub priorities: (u32, u32),
    /// The processors that it may pin threads to, ascending.
    pub processors: Vec<u32>,
    /// How much of each processor it gives out at most, in 10⁻⁹.
    pub utilization_ppb: u32,
    /// How it decides.
    pub admission: Admission,
}

/// Built in, or from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SCHED_DEADLINE, partitioned.
    Edf,
    /// SCHED_FIFO, priorities inversely to periods.
    Rm,
    /// SCHED_FIFO at declared priorities.
    Fp,
    /// SCHED_RR at declared priorities.
    Rr,
    /// A shared object (`punctual-plugin.h`).
    Object(PathBuf),
}

/// Which admission test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Response-time analysis, or processor demand: yes exactly where deadlines hold.
    Exact,
    /// The sum of utilizations against the threshold, as in the paper.
    Utilization,
}

impl PluginConfig {
    /// The kind as the configuration and `ListPlugins` write it.
    pub fn kind_name(&self) -> &str {
        match &self.kind {
            Kind::Edf => "EDF",
            Kind::Rm => "RM",
            Kind::Fp => "FP",
            Kind::Rr => "RR",
            Kind::Object(path) => path.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or("object"),
        }
    }

    /// The threshold as a share of a processor.
    pub fn threshold(&self) -> f64 {
        f64::from(self.utilization_ppb) / 1e9
    }
}

impl Admission {
    /// As the configuration and `ListPlugins` write it.
    pub fn name(self) -> &'static str {
        match self {
            Admission::Exact => "exact",
            Admission::Utilization => "utilization",
        }
    }
}
