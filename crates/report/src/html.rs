//! The page for people who would rather look than read: one HTML file with everything in it, which fetches
//! nothing.
//!
//! Words and tables are HTML, made here, so that they are there without a script. What is drawn, and
//! everything that can be sorted, zoomed and pointed at, is a script's: readable files beside this one in
//! `html/assets/`, as they are sent.

mod captions;
pub(crate) mod causes;
pub(crate) mod cell;
mod data;
pub(crate) mod dispatched;
mod document;
pub(crate) mod drawn;
pub(crate) mod flow;
mod grid;
mod head;
mod histogram;
mod jobs;
pub(crate) mod latency;
mod overview;
mod raster;
pub(crate) mod scale;
mod segments;
mod stack;
mod task;
mod thin;
pub(crate) mod threads;
mod time;
pub(crate) mod time_table;

pub use document::{dispatched_page, page};
pub use flow::States;
pub(crate) use head::{THEME, head, theme};
pub use jobs::Jobs;
