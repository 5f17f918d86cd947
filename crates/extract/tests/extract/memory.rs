//! A stream takes memory for its jobs up to the horizon, and none after that.

use crate::common::Seen;
use punctual_extract::stream::{Circumstances, Options, Stream};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// Counts each thread's allocations: of all tests here, which run in threads of their own.
struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `dealloc`, and `pointer` came from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.set(HELD.get() + size as isize - layout.size() as isize);
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `realloc`, and `pointer` came from the same allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn feed(stream: &mut Stream, jobs: std::ops::Range<u64>) {
    for job in jobs {
        let mut seen = Seen::at(1_000_000 * job + job * job * 7_919 % 50_000);
        if job % 2 == 0 {
            seen.sleeps.push((10, 20));
        }
        let (job, segments) = seen.recorded();
        stream.release(&seen.release, Circumstances::default());
        stream.complete(&job, &segments);
    }
}

#[test]
fn memory_follows_the_jobs_up_to_the_horizon() {
    let bytes_held = |jobs: u64| {
        let before = HELD.get();
        let mut stream = Stream::new(&Options::default());
        feed(&mut stream, 0..jobs);
        let bytes_held = HELD.get() - before + size_of::<Stream>() as isize;
        drop(stream);
        bytes_held
    };
    // What a thread keeps to work with is no stream's.
    bytes_held(100_000);
    assert!(bytes_held(3) < 4_300, "{}", bytes_held(3));
    assert!(bytes_held(100) < 16 << 10, "{}", bytes_held(100));
    assert!(bytes_held(100_000) < 88 << 10, "{}", bytes_held(100_000));
    println!(
        "bytes held by 3, 100 and 100,000 jobs: {}, {}, {}",
        bytes_held(3),
        bytes_held(100),
        bytes_held(100_000)
    );
}

/// Once it has seen jobs of each kind: 10,000 more of those kinds take no more memory, but that a hull may
/// grow by a corner.
#[test]
fn nothing_is_allocated_per_job() {
    let jittered = |job: u64| Seen::at(1_000_000 * job + job * job * 7_919 % 50_000);
    let on_time = |job: u64| Seen::at(1_000_000 * job);
    let mut stream = Stream::new(&Options::default());
    let mut allocated = |jobs: std::ops::Range<u64>, seen: &dyn Fn(u64) -> Seen| {
        let jobs: Vec<_> = jobs.map(|job| (seen(job), seen(job).recorded())).collect();
        let before = ALLOCATIONS.get();
        for (seen, (job, segments)) in &jobs {
            stream.release(&seen.release, Circumstances::default());
            stream.complete(job, segments);
        }
        ALLOCATIONS.get() - before
    };
    allocated(0..20_000, &jittered);
    assert!(allocated(20_000..30_000, &jittered) <= 2);
    allocated(30_000..32_000, &on_time);
    assert!(allocated(32_000..42_000, &on_time) <= 2);
}
