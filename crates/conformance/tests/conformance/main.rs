//! Contracts as text; records against contracts made of them; streams cut anywhere.

#[allow(dead_code, reason = "made for the tests of extraction")]
#[path = "../../../extract/tests/extract/common/records.rs"]
mod records;

mod jobs;
mod kept;
mod latencies;
mod overdue;
mod sources;
mod text;
mod typical;
