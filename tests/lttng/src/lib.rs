//! Traces in the formats that LTTng writes (CTF 1.8 and CTF 2, one stream for each processor), made by
//! programs that keep their own books: what a reader must find is known without reading.

pub mod ctf;
pub mod ctf2;
pub mod kernel;
pub mod random;
pub mod ros2;
pub mod services;
pub mod system;
