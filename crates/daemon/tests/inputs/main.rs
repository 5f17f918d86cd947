//! What the daemon is given: its configuration, rules, requests, plugins and units. Needs no kernel, unlike
//! the program `daemon` beside it, whose harness is its own.

mod config;
mod fuzz;
mod protocol;
mod rules;
mod shared;
mod units;
