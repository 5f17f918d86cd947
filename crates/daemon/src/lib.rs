//! `punctuald`: access rules, admission, setting of kernel policies, and how all of it is undone.

pub mod access;
mod books;
mod bus;
pub mod config;
pub mod daemon;
mod demand;
mod dispatched;
pub mod enforce;
pub mod error;
pub mod journal;
pub mod log;
pub mod machine;
pub mod polkit;
pub mod poll;
pub mod protocol;
pub mod realtimekit;
pub mod record;
pub mod registry;
pub mod rules;
pub mod server;
pub mod shared;
pub mod socket;
mod supply;
pub mod text;
mod told;
