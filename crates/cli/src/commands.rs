//! One module per command: arguments become options of a `workflow` operation, its outcome becomes output.

pub mod chains;
pub mod check;
pub mod compare;
pub mod contract;
pub mod doctor;
pub mod extract;
pub mod flow_probes;
pub mod import;
pub mod jobs;
pub mod latency;
mod options;
pub mod prove;
pub mod record;
pub mod replay;
pub mod report;
mod results;
pub mod show;
pub mod summary;
pub mod table;
pub mod timeline;
pub mod top;
pub mod tt;
pub mod watch;
pub mod why;
