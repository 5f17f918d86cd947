//! The same run of periodic threads, as trace-cmd and as LTTng record it.

use crate::perf_file::{File, SLEEPS};
use crate::trace_dat::{Kind, file, pages};
use punctual_bench::Error;
use punctual_test_lttng::ctf::{Value, Writer};
use punctual_test_lttng::kernel::{IDLE, layout, switch, waking};
use std::fs;
use std::path::Path;

/// Events of a job: woken, switched to, back from its call, calls, switched from.
pub const EVENTS: u64 = 5;
pub const CPUS: u32 = 2;
/// Of each processor.
pub const THREADS: u64 = 10;

/// Jobs of a processor begin this often.
const EVERY_US: u64 = 100;
const CLOCK_NANOSLEEP: i64 = 230;
/// The kernel's number of SCHED_FIFO 60.
const FIFO_60: i32 = 39;

/// When a job begins and when its thread sleeps again, in microseconds; and the thread.
fn job(cpu: u32, number: u64) -> (u64, u64, i32) {
    let begin = 1_000 + number * EVERY_US;
    let thread = 1_000 * (1 + u64::from(cpu)) + number % THREADS;
    (begin, begin + 20 + number * 7 % 50, thread as i32)
}

/// As trace-cmd 3 writes it, unpacked.
pub fn trace_dat(path: &Path, jobs: u64) -> Result<(), Error> {
    /// Jobs that are made at a time.
    const CHUNK: u64 = 50_000;
    let mut cpus = Vec::new();
    for cpu in 0..CPUS {
        let mut data = Vec::new();
        for from in (0..jobs).step_by(CHUNK as usize) {
            let mut events = File::default();
            for number in from..jobs.min(from + CHUNK) {
                let (begin, end, tid) = job(cpu, number);
                events
                    .waking(begin, 0, tid)
                    .switch(begin + 3, (0, 120, 0), (tid, FIFO_60))
                    .leave(begin + 4, tid, CLOCK_NANOSLEEP, 0)
                    .enter(end, tid, CLOCK_NANOSLEEP, [1, 1, 0x7ffc_0000, 0, 0, 0])
                    .switch(end + 1, (tid, FIFO_60, SLEEPS), (0, 120));
            }
            let events = events.samples();
            data.extend(pages(&events.iter().collect::<Vec<_>>(), &[]));
        }
        cpus.push(data);
    }
    Ok(fs::write(path, file(Kind::Six, "mono", &cpus))?)
}

/// As LTTng's kernel tracer writes it.
pub fn lttng(folder: &Path, jobs: u64) -> Result<(), Error> {
    let mut writer = Writer::create(folder, layout(), CPUS)?;
    for cpu in 0..CPUS {
        for number in 0..jobs {
            let (begin, end, tid) = job(cpu, number);
            let thread = ("control", tid, FIFO_60);
            let call = [Value::I32(1), Value::I32(1), Value::U64(0x7ffc_0000)];
            let mut event =
                |us: u64, class: &str, fields: &[Value]| writer.event(cpu, us * 1_000, class, &[], fields);
            event(begin, "sched_waking", &waking(thread))?;
            event(begin + 3, "sched_switch", &switch(IDLE, 0, thread))?;
            event(begin + 4, "syscall_exit_clock_nanosleep", &[Value::I64(0)])?;
            event(end, "syscall_entry_clock_nanosleep", &call)?;
            event(end + 1, "sched_switch", &switch(thread, 1, IDLE))?;
        }
    }
    writer.finish()?;
    Ok(())
}
