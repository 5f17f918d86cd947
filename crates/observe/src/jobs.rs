//! One record per separation of jobs, of every observed real-time thread.

mod blocked;
mod calls;
mod load;
#[cfg(test)]
mod machine;
mod moments;
mod names;
mod namespace;
mod observer;
mod records;

pub use load::{Attach, Switches};
pub(crate) use load::{Settings, load, try_fentry};
pub use moments::{LastMoments, Moments};
pub use names::Names;
pub use observer::{Observer, Options, Statistics, Summary, Target};
pub(crate) use records::{AFFINITY_WORDS, command_line};

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/jobs.skel.rs"));
}
