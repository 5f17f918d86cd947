//! The timing-model file `*.timing.json`, version 2: the head and the list of sections.
//!
//! Each section is a module that implements [`Section`]. [`crate::read`] reads the file strictly,
//! [`crate::check`] checks streams of jobs against it.

use crate::causes::Causes;
use crate::dataflow::Dataflow;
use crate::error::ReadError;
use crate::latency::SchedulingLatency;
use crate::section::{Loss, MergeError, Section, Span, Valid};
use crate::table::Table;
use crate::threads::{Task, Threads};
use serde::{Deserialize, Serialize};

/// The value of the file's `format` field.
pub const FORMAT: &str = "punctual.timing-model";
/// The version of the format that this crate writes. It reads version 1 too.
pub const VERSION: u32 = 2;

/// Declares the sections: a field of the file, and the type that holds it.
macro_rules! sections {
    ($($(#[$attribute:meta])* $name:ident: $type:ty,)*) => {
        /// A timing model.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct TimingModel {
            /// Always [`FORMAT`].
            pub format: String,
            /// Always [`VERSION`].
            pub version: u32,
            /// The clock of every instant in the file.
            pub clock: String,
            /// The observed machine, if known.
            #[serde(skip_serializing_if = "Option::is_none", default)]
            pub platform: Option<Platform>,
            $(
                $(#[$attribute])*
                #[serde(skip_serializing_if = "Option::is_none", default)]
                pub $name: Option<$type>,
            )*
        }

        impl TimingModel {
            /// The names of all sections that a file can have.
            pub const SECTIONS: &[&str] = &[$(stringify!($name)),*];

            /// A model without sections.
            pub fn new(clock: impl Into<String>) -> TimingModel {
                TimingModel {
                    format: FORMAT.into(),
                    version: VERSION,
                    clock: clock.into(),
                    platform: None,
                    $($name: None,)*
                }
            }

            /// The names of its sections.
            pub fn sections(&self) -> Vec<&'static str> {
                let names = [$((stringify!($name), self.$name.is_some())),*];
                names.into_iter().filter_map(|(name, is_there)| is_there.then_some(name)).collect()
            }

            /// When its sections were observed, by name; those that were are listed.
            pub fn spans(&self) -> Vec<(&'static str, Span)> {
                let spans = [$((stringify!($name), self.$name.as_ref().and_then(Section::span))),*];
                spans.into_iter().filter_map(|(name, span)| Some((name, span?))).collect()
            }

            /// What the observations of its sections missed, by section.
            pub fn losses(&self) -> Vec<(&'static str, Loss)> {
                let losses = [$((stringify!($name), self.$name.as_ref().map(Section::losses))),*];
                let losses = losses.into_iter().filter_map(|(name, losses)| Some((name, losses?)));
                losses.flat_map(|(name, losses)| losses.into_iter().map(move |loss| (name, loss))).collect()
            }

            /// Merges another model into this one, section by section. Keeps this model's clock and platform;
            /// the caller decides whether the other's instants are comparable.
            ///
            /// # Errors
            /// If both have a section that cannot be merged.
            pub fn merge(self, other: TimingModel) -> Result<TimingModel, MergeError> {
                Ok(TimingModel {
                    platform: self.platform.or(other.platform),
                    $($name: merge(self.$name, other.$name)?,)*
                    ..TimingModel::new(self.clock)
                })
            }

            pub(crate) fn validate(&self) -> Valid {
                $(if let Some(section) = &self.$name {
                    section.validate(stringify!($name))?;
                })*
                match true $(&& self.$name.is_none())* {
                    true => Err(ReadError::value(
                        "",
                        format!("a section ({})", TimingModel::SECTIONS.join(", ")),
                        "none",
                    )),
                    false => Ok(()),
                }
            }
        }
    };
}

sections! {
    /// Threads: their tasks, with every model of them.
    threads: Threads,
    /// Which jobs of threads were late, and why.
    causes: Causes,
    /// A dataflow program: its graph, tasks and chains.
    dataflow: Dataflow,
    /// How late the kernel can make a thread, by processor.
    latency: SchedulingLatency,
    /// A time-triggered schedule.
    table: Table,
}

impl TimingModel {
    /// The tasks of all threads; empty without the section `threads`.
    pub fn tasks(&self) -> &[Task] {
        self.threads.as_ref().map_or(&[], |threads| &threads.tasks)
    }

    /// Where the section `latency` was measured, which names its kernel itself; `None` without the section,
    /// or if nothing is known.
    pub fn latency_platform(&self) -> Option<Platform> {
        let latency = self.latency.as_ref()?;
        let mut platform = self.platform.clone().unwrap_or_default();
        if !latency.kernel.is_empty() {
            platform.kernel.clone_from(&latency.kernel);
        }
        platform.known()
    }
}

fn merge<S: Section>(one: Option<S>, other: Option<S>) -> Result<Option<S>, MergeError> {
    match (one, other) {
        (Some(one), Some(other)) => one.merge(other).map(Some),
        (one, other) => Ok(one.or(other)),
    }
}

/// The machine that a model was observed on. Imported traces may not have all of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Platform {
    /// Kernel release (`uname -r`); empty if unknown.
    pub kernel: String,
    /// Machine (`uname -m`); empty if unknown.
    pub machine: String,
    /// Processors online; 0 if unknown.
    pub cpus: u32,
}

impl Platform {
    /// This platform; `None` if nothing is known of it.
    pub fn known(self) -> Option<Platform> {
        (self != Platform::default()).then_some(self)
    }

    /// In what it differs from another one, in words: `kernel 6.1.0, not 6.1.1`. `None` if in nothing that is
    /// known of both.
    pub fn differs_from(&self, other: &Platform) -> Option<String> {
        let mut differences = Vec::new();
        for (what, mine, its) in
            [("kernel ", &self.kernel, &other.kernel), ("", &self.machine, &other.machine)]
        {
            if !mine.is_empty() && !its.is_empty() && mine != its {
                differences.push(format!("{what}{mine}, not {its}"));
            }
        }
        if self.cpus > 0 && other.cpus > 0 && self.cpus != other.cpus {
            differences.push(format!("{} processors online, not {}", self.cpus, other.cpus));
        }
        (!differences.is_empty()).then(|| differences.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_differ_in_what_is_known_of_both() {
        let platform = |kernel: &str, machine: &str, cpus| Platform {
            kernel: kernel.into(),
            machine: machine.into(),
            cpus,
        };
        let here = platform("6.1.1", "x86_64", 2);
        for (other, differences) in [
            (here.clone(), None),
            (Platform::default(), None),
            (platform("", "", 4), Some("4 processors online, not 2")),
            (platform("6.1.0", "x86_64", 0), Some("kernel 6.1.0, not 6.1.1")),
            (platform("6.1.0", "aarch64", 2), Some("kernel 6.1.0, not 6.1.1; aarch64, not x86_64")),
        ] {
            assert_eq!(other.differs_from(&here).as_deref(), differences, "{other:?}");
        }
    }
}
