//! Tables and slot shifting: against brute force and simulated schedules; in one program so that they are
//! linked once.

mod machine;
mod making;
mod slot_shifting;
