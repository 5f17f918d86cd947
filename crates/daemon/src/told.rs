//! Memory in which a program counts the jobs of its periodic loop. The daemon makes it, so that nothing that
//! the program does with it can harm the daemon: its size is sealed. What it says is for people, and decides
//! nothing.

use memmap2::{MmapOptions, MmapRaw};
use punctual_protocol::{LOOP_MEMORY_SIZE, LoopMemory, Says};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// That memory.
#[derive(Debug)]
pub struct Told {
    file: OwnedFd,
    map: MmapRaw,
}

impl Told {
    /// Nothing is counted yet.
    pub fn new() -> io::Result<Told> {
        let file = memfd_create("punctual-loop", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, LOOP_MEMORY_SIZE as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let map = MmapOptions::new().len(LOOP_MEMORY_SIZE).map_raw(&file)?;
        Ok(Told { file, map })
    }

    /// For the program.
    pub fn share(&self) -> io::Result<OwnedFd> {
        self.file.as_fd().try_clone_to_owned()
    }

    /// What the program says now.
    pub fn read(&self) -> Says {
        self.memory().read()
    }

    /// Warns the program: its thread took more than its runtime so often.
    pub fn warn(&self, overruns: u64) {
        self.memory().warn(overruns);
    }

    fn memory(&self) -> &LoopMemory {
        // SAFETY: the mapping is aligned to pages, at least as long as the struct, and cannot shrink; all its
        // fields are atomic, since the program writes them.
        unsafe { &*self.map.as_ptr().cast::<LoopMemory>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_size_cannot_be_changed() {
        let told = Told::new().unwrap();
        let file = told.share().unwrap();
        for size in [0, 1 << 20] {
            assert!(ftruncate(&file, size).is_err());
        }
        assert!(fcntl_add_seals(&file, SealFlags::WRITE).is_err());
        assert_eq!(told.read(), Says::default());
    }
}
