//! Tests of the cutting of jobs' times into parts.

mod collected;
mod laws;
mod parts;
mod script;
