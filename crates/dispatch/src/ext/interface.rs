//! What the scheduler in the kernel and this process share: mirrors `bpf/interface.h`.

/// No task, or no lane.
pub const NONE: u32 = u32::MAX;

/// `struct turn`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    pub from: u32,
    pub to: u32,
    pub task: u32,
    pub job: u32,
    pub is_last: u32,
}

/// `struct rows`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Rows {
    pub from: u64,
    pub after: u64,
    pub origin: u64,
    pub once: u32,
    pub once_count: u32,
    pub cycle: u32,
    pub cycle_count: u32,
    pub cycle_slots: u32,
    pub reserved: u32,
}

/// `struct lane`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Lane {
    pub until: u64,
    pub end: u64,
    pub rows: Rows,
    pub base: u64,
    pub taken: u64,
    pub index: u32,
    pub cpu: u32,
    /// Of the present turn.
    pub present: [u64; 5],
    pub previous: u64,
    pub lost: u64,
    pub rest: [u32; 8],
}

/// `struct task`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Task {
    pub tid: u32,
    pub skips: u32,
    pub holder: u32,
    pub is_skipping: u32,
    pub is_runnable: u32,
    pub is_new: u32,
    pub had_turn: u32,
    pub reserved: u32,
    pub runnable_at: u64,
    pub used: u64,
    pub ended: u64,
    pub slept: u64,
}

/// `struct record`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub slot: u64,
    pub previous: u64,
    pub error: u64,
    pub ran: u64,
    pub outside: u64,
    pub at: u64,
    pub lane: u32,
    pub slots: u32,
    pub task: u32,
    pub job: u32,
    pub tid: u32,
    pub is_overrun: u32,
    pub is_skipped: u32,
    pub reserved: u32,
}

/// Integers without padding: any bytes are a value, and every value is bytes.
///
/// # Safety
/// Only for `repr(C)` structs of integers without padding.
pub unsafe trait Plain: Copy {
    /// As the kernel reads it.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the value has no padding, so all of its bytes are initialized.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// As the kernel wrote it; `None` if there are too few bytes.
    fn read(bytes: &[u8]) -> Option<Self> {
        // SAFETY: there are enough bytes, `read_unaligned` needs no alignment, and any bytes are a value.
        (bytes.len() >= size_of::<Self>()).then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

// SAFETY: structs of integers; the sizes below leave no room for padding.
unsafe impl Plain for Turn {}
// SAFETY: as above.
unsafe impl Plain for Rows {}
// SAFETY: as above.
unsafe impl Plain for Lane {}
// SAFETY: as above.
unsafe impl Plain for Task {}
// SAFETY: as above.
unsafe impl Plain for Record {}
const _: () = {
    use super::skeleton::types;
    assert!(size_of::<Turn>() == size_of::<types::turn>() && size_of::<Turn>() == 5 * 4);
    assert!(size_of::<Rows>() == size_of::<types::rows>() && size_of::<Rows>() == 3 * 8 + 6 * 4);
    assert!(size_of::<Lane>() == size_of::<types::lane>() && size_of::<Lane>() == 11 * 8 + 10 * 4 + 48);
    assert!(size_of::<Task>() == size_of::<types::task>() && size_of::<Task>() == 8 * 4 + 4 * 8);
    assert!(size_of::<Record>() == 6 * 8 + 8 * 4);
};
