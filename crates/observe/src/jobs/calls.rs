//! Which system calls the programs watch on this machine, and as what: those of the model's table, and some
//! that separate nothing.

use super::skeleton::types::{limits, other_call};
use punctual_model::Call;

/// How many system call numbers the programs' tables hold of each kind of program.
const NUMBERS: usize = limits::SYSTEM_CALLS.0 as usize;
/// The same of 64-bit programs, then of 32-bit ones: a table.
const KEYS: usize = limits::SYSTEM_CALL_KEYS.0 as usize;

/// System calls that separate nothing: name and number on this machine, and what the programs take them for.
const OTHERS: [(&str, libc::c_long, other_call); 11] = [
    ("futex", libc::SYS_futex, other_call::CALL_FUTEX),
    ("restart_syscall", libc::SYS_restart_syscall, other_call::CALL_RESTART),
    ("sched_setscheduler", libc::SYS_sched_setscheduler, other_call::CALL_SET),
    ("sched_setparam", libc::SYS_sched_setparam, other_call::CALL_SET),
    ("sched_setattr", libc::SYS_sched_setattr, other_call::CALL_SET),
    ("sched_setaffinity", libc::SYS_sched_setaffinity, other_call::CALL_SET),
    ("setpriority", libc::SYS_setpriority, other_call::CALL_SET),
    ("clock_settime", libc::SYS_clock_settime, other_call::CALL_SET_CLOCK),
    ("settimeofday", libc::SYS_settimeofday, other_call::CALL_SET_CLOCK),
    ("clock_adjtime", libc::SYS_clock_adjtime, other_call::CALL_SET_CLOCK),
    ("adjtimex", libc::SYS_adjtimex, other_call::CALL_SET_CLOCK),
];

/// The same in 32-bit programs, by their numbers, most of which i386 and arm share.
const OTHERS_32: [(usize, other_call); 14] = [
    (0, other_call::CALL_RESTART),     // restart_syscall
    (79, other_call::CALL_SET_CLOCK),  // settimeofday
    (97, other_call::CALL_SET),        // setpriority
    (124, other_call::CALL_SET_CLOCK), // adjtimex
    (154, other_call::CALL_SET),       // sched_setparam
    (156, other_call::CALL_SET),       // sched_setscheduler
    (240, other_call::CALL_FUTEX),     // futex
    (241, other_call::CALL_SET),       // sched_setaffinity
    (404, other_call::CALL_SET_CLOCK), // clock_settime64
    (405, other_call::CALL_SET_CLOCK), // clock_adjtime64
    (422, other_call::CALL_FUTEX),     // futex_time64
    (CLOCK_SETTIME_32, other_call::CALL_SET_CLOCK),
    (CLOCK_ADJTIME_32, other_call::CALL_SET_CLOCK),
    (SCHED_SETATTR_32, other_call::CALL_SET),
];

const CLOCK_SETTIME_32: usize = if cfg!(target_arch = "x86_64") { 264 } else { 262 };
const CLOCK_ADJTIME_32: usize = if cfg!(target_arch = "x86_64") { 343 } else { 372 };
const SCHED_SETATTR_32: usize = if cfg!(target_arch = "x86_64") { 351 } else { 380 };

/// Calls of i386 or arm that are older forms of others: number, and what the programs take them for.
const OLDER_32: &[(usize, u8)] = match cfg!(target_arch = "x86_64") {
    true => &[
        (7, Call::Wait4 as u8),         // waitpid
        (72, Call::RtSigsuspend as u8), // sigsuspend
        (102, other_call::CALL_SOCKETCALL.0 as u8),
        (117, other_call::CALL_IPC.0 as u8),
    ],
    false => &[
        (72, Call::RtSigsuspend as u8), // sigsuspend
        (291, Call::Recvfrom as u8),    // recv
    ],
};

/// Number, name and meaning of every system call of 64-bit programs that is watched.
fn watched() -> impl Iterator<Item = (usize, &'static str, u8)> {
    let number = |call: Call| match cfg!(target_arch = "x86_64") {
        true => call.number_on_x86_64(),
        false => call.number_on_aarch64(),
    };
    let separators =
        Call::ALL.iter().filter_map(move |&call| Some((usize::from(number(call)?), call.name(), call as u8)));
    separators.chain(OTHERS.iter().map(|&(name, number, call)| (number as usize, name, call.0 as u8)))
}

/// Number and meaning of every system call of 32-bit programs that is watched.
fn watched_32() -> impl Iterator<Item = (usize, u8)> {
    let separators = Call::ALL.iter().flat_map(|&call| {
        let numbers: Vec<u16> = match cfg!(target_arch = "x86_64") {
            true => call.numbers_on_i386().collect(),
            false => call.numbers_on_arm().collect(),
        };
        numbers.into_iter().map(move |number| (usize::from(number), call as u8))
    });
    let others = OTHERS_32.iter().map(|&(number, call)| (number, call.0 as u8));
    separators.chain(others).chain(OLDER_32.iter().copied())
}

/// The programs' table of calls.
pub fn table() -> [u8; KEYS] {
    let mut table = [other_call::CALL_NONE.0 as u8; KEYS];
    for (number, _, call) in watched() {
        table[number] = call;
    }
    for (number, call) in watched_32() {
        table[NUMBERS + number] = call;
    }
    table
}

/// The programs' table of calls whose end they do not see where functions are traced: those whose function
/// cannot be traced, and all of 32-bit programs, whose functions are others.
pub fn unhooked(can_be_traced: impl Fn(&str) -> bool) -> [u8; KEYS] {
    let mut table = [0; KEYS];
    table[NUMBERS..].fill(1);
    for (number, name, _) in watched() {
        table[number] = u8::from(!can_be_traced(name));
    }
    table
}

/// The kernel function behind system call `name` on this machine.
pub fn function(name: &str) -> String {
    match std::env::consts::ARCH {
        "x86_64" => format!("__x64_sys_{name}"),
        _ => format!("__arm64_sys_{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_this_machine() {
        let table = table();
        for (number, call) in [
            (libc::SYS_clock_nanosleep, Call::ClockNanosleep),
            (libc::SYS_read, Call::Read),
            (libc::SYS_recvmmsg, Call::Recvmmsg),
            (libc::SYS_futex_waitv, Call::FutexWaitv),
            (libc::SYS_rt_sigsuspend, Call::RtSigsuspend),
            (libc::SYS_mq_timedreceive, Call::MqTimedreceive),
            (libc::SYS_semtimedop, Call::Semtimedop),
            (libc::SYS_waitid, Call::Waitid),
            (libc::SYS_io_getevents, Call::IoGetevents),
            (libc::SYS_sched_yield, Call::SchedYield),
        ] {
            assert_eq!(table[number as usize], call as u8, "{call}");
        }
        assert_eq!(table[libc::SYS_getpid as usize], other_call::CALL_NONE.0 as u8);
    }

    /// The C library of 32-bit programs calls them so.
    #[test]
    fn programs_of_32_bits_have_their_own_numbers() {
        let table = table();
        let clock_nanosleep = if cfg!(target_arch = "x86_64") { 267 } else { 265 };
        for (number, call) in [
            (clock_nanosleep, Call::ClockNanosleep),
            (407, Call::ClockNanosleep),
            (3, Call::Read),
            (142, Call::Select),
            (158, Call::SchedYield),
        ] {
            assert_eq!(table[NUMBERS + number], call as u8, "{call}");
        }
        assert_eq!(table[NUMBERS + 20], other_call::CALL_NONE.0 as u8, "getpid");
    }

    /// A separator that took the number of another call would never be seen.
    #[test]
    fn no_number_stands_for_two_calls() {
        let numbers_64 = watched().map(|(number, ..)| number).collect();
        let numbers_32 = watched_32().map(|(number, _)| number).collect();
        for mut numbers in [numbers_64, numbers_32] as [Vec<usize>; 2] {
            numbers.sort_unstable();
            assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:?}");
        }
    }
}
