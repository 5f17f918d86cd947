//! The laws of `punctual-model`, one file for each, in one program so that they are linked once.

mod causes;
mod checkers;
mod curves;
mod dataflow;
mod generate;
mod jobs;
mod latency;
mod modes;
mod periodic;
mod policy;
mod read;
mod request;
mod schema;
mod separator;
mod slips;
mod table;
mod time;
mod v1;
