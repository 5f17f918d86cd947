//! Contracts as text; records against contracts made of them; streams cut anywhere.

#[path = "../../../extract/tests/common/records.rs"]
mod records;

mod jobs;
mod kept;
mod text;
