//! What a periodic loop tells the daemon, through memory that both share: without a system call.

use punctual_protocol::{LOOP_MEMORY_SIZE, LoopMemory};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::ptr::{NonNull, null_mut};

/// Memory that is shared with the daemon: what is counted there appears in its lists as what the program
/// says. A child of `fork(2)` that goes on with it counts for its parent.
#[derive(Debug)]
pub struct LoopCounts(NonNull<LoopMemory>);

// SAFETY: the memory belongs to the value, and is only used through atomics.
unsafe impl Send for LoopCounts {}
// SAFETY: as above.
unsafe impl Sync for LoopCounts {}

impl LoopCounts {
    pub(crate) fn map(file: &OwnedFd) -> io::Result<LoopCounts> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: the kernel chooses a free place.
        let place = unsafe { mmap(null_mut(), LOOP_MEMORY_SIZE, access, flags, file, 0) }?;
        NonNull::new(place.cast()).map(LoopCounts).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Other memory at the same place, even while a loop counts there.
    pub(crate) fn map_again(&self, file: &OwnedFd) -> io::Result<()> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE | MapFlags::FIXED;
        // SAFETY: the place is this value's own, all of it; who uses it meanwhile does so through atomics,
        // and finds one memory or the other.
        unsafe { mmap(self.0.as_ptr().cast(), LOOP_MEMORY_SIZE, access, flags, file, 0) }?;
        Ok(())
    }
}

impl Deref for LoopCounts {
    type Target = LoopMemory;

    fn deref(&self) -> &LoopMemory {
        // SAFETY: it is mapped as long as the value lives, aligned to pages, longer than the struct, and the
        // daemon has sealed its size.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for LoopCounts {
    fn drop(&mut self) {
        // SAFETY: it was mapped with that size, and nobody borrows it any more.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), LOOP_MEMORY_SIZE) };
    }
}
