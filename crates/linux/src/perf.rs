//! Events that the kernel itself counts (`perf_event_open(2)`).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// What to count, and what to tell of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event {
    /// Which of the kernel's own counters (PERF_COUNT_SW_…).
    pub counter: u64,
    /// A record stands for so many.
    pub period: u64,
    /// What a record has (PERF_SAMPLE_…).
    pub record: u64,
    /// The bits of the attributes, the first one the lowest.
    pub flags: u64,
    /// After so many records, or bytes of them, whoever waits is woken.
    pub wakeup: u32,
    /// For programs on the event: whose it is.
    pub mark: u64,
    /// The clock of records, if the flags say that it is given.
    pub clock: i32,
}

/// The beginning of `struct perf_event_attr` (PERF_ATTR_SIZE_VER5).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}

const SOFTWARE: u32 = 1;
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// Opens an event of a thread (0: the caller; −1: all) on a processor (−1: any).
///
/// # Errors
/// What the kernel said.
pub fn open(event: &Event, thread: i32, processor: i32) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: event.counter,
        sample_period: event.period,
        sample_type: event.record,
        flags: event.flags,
        wakeup_events: event.wakeup,
        config1: event.mark,
        clockid: event.clock,
        ..Attributes::default()
    };
    let (attributes, group) = (&raw const attributes, -1);
    // SAFETY: the kernel reads as much as `size` says, which is that of the struct.
    match unsafe {
        libc::syscall(libc::SYS_perf_event_open, attributes, thread, processor, group, CLOSE_ON_EXEC)
    } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: it was just opened here.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }),
    }
}
