//! Admission: against brute force, simulated schedules and the published analyses; in one program so that
//! they are linked once.

mod books;
mod kernel;
mod plugins;
mod simulation;
