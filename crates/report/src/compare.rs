//! Two or more runs of a program side by side: which policy, how many executors, which platform. (papers:
//! Jungmann et al., ERTS 2024, Section VII.)
//!
//! Runs of one configuration show how much a figure changes by itself: its spread, the range over them. A
//! difference between configurations is marked where the ranges do not overlap. A single run has no spread,
//! and no difference to it is marked.

mod arrivals;
mod axis;
mod boxes;
mod changes;
mod comparison;
mod configuration;
mod decisions;
mod document;
mod dots;
mod figures;
mod input;
mod json;
mod permutation;
mod range;
mod subjects;
mod table;
#[cfg(test)]
mod tests;
mod verdict;

pub use comparison::Comparison;
pub use configuration::By;
pub use input::{Input, NothingInCommon};
pub use verdict::Outcome;

use crate::Page;

impl Comparison {
    /// The verdict, tables, and what they say about each decision.
    pub fn text(&self, page: &Page) -> String {
        table::text(self, page)
    }

    /// A page of its own with pictures, which needs nothing else and no network.
    pub fn html(&self) -> String {
        document::page(self)
    }

    /// All of it for programs: `docs/compare.md`.
    pub fn json(&self) -> String {
        json::json(self)
    }
}
