//! Admission, tables and slot shifting: against brute force, simulated schedules and the published analyses;
//! in one program so that they are linked once.

mod books;
mod kernel;
mod machine;
mod plugins;
mod simulation;
mod slot_shifting;
mod table;
