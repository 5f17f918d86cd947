//! The daemon, from programs: in Rust, and in C through `libpunctual`.
