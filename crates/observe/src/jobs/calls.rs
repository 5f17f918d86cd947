//! Which system calls the programs watch on this machine, and as what: those of the model's table, and some
//! that separate nothing.

use super::skeleton::types::{limits, other_call};
use punctual_model::Call;

/// How many system call numbers the programs' tables hold.
const NUMBERS: usize = limits::SYSTEM_CALLS.0 as usize;

/// System calls that separate nothing: name and number on this machine, and what the programs take them for.
const OTHERS: [(&str, libc::c_long, other_call); 7] = [
    ("futex", libc::SYS_futex, other_call::CALL_FUTEX),
    ("restart_syscall", libc::SYS_restart_syscall, other_call::CALL_RESTART),
    ("sched_setscheduler", libc::SYS_sched_setscheduler, other_call::CALL_SET),
    ("sched_setparam", libc::SYS_sched_setparam, other_call::CALL_SET),
    ("sched_setattr", libc::SYS_sched_setattr, other_call::CALL_SET),
    ("sched_setaffinity", libc::SYS_sched_setaffinity, other_call::CALL_SET),
    ("setpriority", libc::SYS_setpriority, other_call::CALL_SET),
];

/// Number, name and meaning of every system call that is watched.
fn watched() -> impl Iterator<Item = (usize, &'static str, u8)> {
    let number = |call: Call| match cfg!(target_arch = "x86_64") {
        true => call.number_on_x86_64(),
        false => call.number_on_aarch64(),
    };
    let separators =
        Call::ALL.iter().filter_map(move |&call| Some((usize::from(number(call)?), call.name(), call as u8)));
    separators.chain(OTHERS.iter().map(|&(name, number, call)| (number as usize, name, call.0 as u8)))
}

/// The programs' table from number to call.
pub fn table() -> [u8; NUMBERS] {
    let mut table = [other_call::CALL_NONE.0 as u8; NUMBERS];
    for (number, _, call) in watched() {
        table[number] = call;
    }
    table
}

/// The programs' table of calls whose end they do not see, because the function cannot be traced.
pub fn unhooked(can_be_traced: impl Fn(&str) -> bool) -> [u8; NUMBERS] {
    let mut table = [0; NUMBERS];
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

    /// A separator that took the number of another call would never be seen.
    #[test]
    fn no_number_stands_for_two_calls() {
        let mut numbers: Vec<usize> = watched().map(|(number, ..)| number).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] != pair[1]), "{numbers:?}");
    }
}
