//! Whether programs of 32 bits are to be observed: their system calls have functions of their own, which are
//! not traced, but the tracepoints show them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Whether this file is a program of 32 bits; `false` where it cannot be read.
fn is_narrow(program: &Path) -> bool {
    let mut head = [0; 5];
    File::open(program).and_then(|mut file| file.read_exact(&mut head)).is_ok() && is_narrow_elf(&head)
}

/// The magic number, then the class: 1 is 32 bits.
fn is_narrow_elf(head: &[u8; 5]) -> bool {
    head == b"\x7fELF\x01"
}

/// Whether this process runs one.
pub fn is_run_by(pid: u32) -> bool {
    is_narrow(Path::new(&format!("/proc/{pid}/exe")))
}

/// Whether any process of the machine does.
pub fn any() -> bool {
    punctual_linux::proc::processes().any(is_run_by)
}

/// Whether the command that begins with this word is one. What a script starts is not known yet.
pub fn is_command(word: &OsStr) -> bool {
    if word.as_encoded_bytes().contains(&b'/') {
        return is_narrow(Path::new(word));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found: Option<PathBuf> =
        std::env::split_paths(&path).map(|folder| folder.join(word)).find(|program| program.is_file());
    found.is_some_and(|program| is_narrow(&program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_is_in_the_fifth_byte() {
        assert!(is_narrow_elf(b"\x7fELF\x01"));
        assert!(!is_narrow_elf(b"\x7fELF\x02"));
        assert!(!is_narrow_elf(b"#!/bi"));
    }

    #[test]
    fn this_program_has_64_bits() {
        let own = std::env::current_exe().expect("a path");
        assert!(!is_command(own.as_os_str()) && !is_run_by(std::process::id()));
    }
}
