//! What Punctual's commands do, as a library: observe threads, keep recordings, replay them, follow data
//! through dataflow programs, and make pages and timelines of the results.
//!
//! Every operation takes a plain struct of options, checks all that can be checked before it starts, and
//! reports progress and warnings to a [`Monitor`]. Errors are one type, [`Error`], with a kind and a chain of
//! contexts.
//!
//! Not for parsing arguments, printing, or choosing exit codes: front ends (`cli`, tests, a live view) do
//! that.

mod accounts;
mod agreement;
mod bounds;
mod destination;
mod error;
mod filter;
mod folder;
mod inputs;
mod model_file;
mod models;
mod monitor;
mod recording;
mod watch;

pub mod chains;
pub mod check;
pub mod compare;
pub mod contract;
pub mod doctor;
pub mod extract;
pub mod guard;
pub mod import;
pub mod jobs;
pub mod latency;
pub mod live;
pub mod measure;
pub mod metrics;
pub mod page;
pub mod platform;
pub mod probes;
pub mod prove;
pub mod record;
pub mod replay;
mod spec_metrics;
pub mod specs;
pub mod summary;
pub mod table;
pub mod timeline;
pub mod top;
pub mod tt;
pub mod unit;
pub mod values;
pub mod why;

pub use agreement::{Agreement, read_agreement, read_contract};
pub use bounds::{Bounds, parse_bounds, read_bounds};
pub use destination::{Destination, Pending, derived_path, is_standard_stream};
pub use error::{Error, ErrorKind, Result, plain_reason};
pub use filter::ThreadFilter;
pub use folder::RecordingFolder;
pub use model_file::{Given, display_name, read_model, read_text};
pub use monitor::{Monitor, Progress, Seen, Silent, Unit, Watching};
pub use punctual_conformance::Quantile;
pub use recording::{Recording, TimeRange};
pub use spec_metrics::spec_metrics;
pub use watch::{Watch, watches_all_threads};
