//! Standard output.

use crate::failure::Failure;
use punctual_workflow::Error;
use std::io::{self, ErrorKind, Write};

/// Prints to standard output. A reader that has gone (`| head`) is no failure.
pub fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// [`print`] for bytes.
pub fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::io("write", "standard output", &error).into())
        }
        _ => Ok(()),
    }
}
