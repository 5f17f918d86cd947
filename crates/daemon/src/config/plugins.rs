//! One plugin of the configuration, and how it comes to be.

use crate::dispatched::Dispatched;
use crate::shared::Shared;
use punctual_linux::scheduling::Clamps;
use punctual_schedule::{Limits, Platform, Plugin, Reserve, Settings, Test};
use std::fmt;
use std::path::PathBuf;

/// What a plugin is configured to be.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginConfig {
    /// What rules, clients and messages call it.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The range of kernel priorities that it may assign, lowest and highest; EDF ignores it.
    pub priorities: (u32, u32),
    /// The processors that it may pin threads to, ascending.
    pub processors: Vec<u32>,
    /// The share of each processor that it may assign: above 0, at most 1.
    pub threshold: f64,
    /// How it decides.
    pub test: Test,
    /// What the kernel takes from threads on each of the processors, read from a timing model. Compared at a
    /// reload, as everything else.
    pub platforms: Vec<Platform>,
    /// Why that may not be true of this machine, in words.
    pub doubt: Option<String>,
    /// What it keeps of them for ordinary threads.
    pub reserves: Vec<Reserve>,
    /// The highest priority of specs without a runtime or a period, if some are reserved for them.
    pub without_runtime_up_to: Option<u32>,
    /// The utilization clamps of its threads.
    pub clamps: Clamps,
}

/// Built in, or from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of `punctual_schedule`.
    BuiltIn(punctual_schedule::Kind),
    /// The slack of time-triggered tables ([`Dispatched`]).
    Table,
    /// A shared object (`punctual-plugin.h`).
    Object(PathBuf),
}

impl Kind {
    /// Whether others decide than the tests of `punctual_schedule`.
    pub fn is_external(&self) -> bool {
        !matches!(self, Kind::BuiltIn(_))
    }

    /// Whether it schedules by SCHED_DEADLINE.
    pub fn is_deadline(&self) -> bool {
        matches!(self, Kind::BuiltIn(kind) if kind.is_deadline())
    }

    /// Whether its threads run on all of its processors.
    pub fn is_global(&self) -> bool {
        *self == Kind::BuiltIn(punctual_schedule::Kind::Gedf)
    }

    /// Whether it schedules by SCHED_DEADLINE on one processor each.
    pub fn is_edf(&self) -> bool {
        *self == Kind::BuiltIn(punctual_schedule::Kind::Edf)
    }
}

/// As `ListPlugins` shows it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::BuiltIn(kind) => kind.fmt(f),
            Kind::Table => f.write_str("TT"),
            Kind::Object(path) => path.display().fmt(f),
        }
    }
}

impl PluginConfig {
    /// The plugin, with empty books. An error is a sentence without the plugin's name.
    pub fn plugin(&self, limits: Limits) -> Result<Box<dyn Plugin>, String> {
        let settings = Settings {
            name: self.name.clone(),
            processors: self.processors.clone(),
            priorities: self.priorities,
            threshold: self.threshold,
            test: self.test,
            limits,
            platforms: self.platforms.clone(),
            reserves: self.reserves.clone(),
            without_runtime_up_to: self.without_runtime_up_to,
        };
        match &self.kind {
            Kind::BuiltIn(kind) => punctual_schedule::plugin(*kind, settings),
            Kind::Table => Ok(Box::new(Dispatched::new(self.name.clone()))),
            Kind::Object(path) => {
                Shared::load(path, settings).map(|plugin| Box::new(plugin) as Box<dyn Plugin>)
            }
        }
    }
}
