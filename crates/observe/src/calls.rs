//! Which system call numbers the kernel side must see on this machine, and as what.

use crate::interface::{CALL_FUTEX, CALL_NONE, CALL_RESTART, CALL_SET};
use punctual_model::Call;

/// System calls that have no constant in libc yet; their numbers are the same on all machines.
const SYS_FUTEX_WAIT: libc::c_long = 455;

/// Missing from libc too, and older than numbers that are the same on all machines.
#[cfg(target_arch = "x86_64")]
const SYS_IO_PGETEVENTS: libc::c_long = 333;
#[cfg(target_arch = "aarch64")]
const SYS_IO_PGETEVENTS: libc::c_long = 292;

/// Number, name and meaning of every system call that is watched.
fn watched() -> Vec<(libc::c_long, &'static str, u8)> {
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut calls = vec![
        (libc::SYS_clock_nanosleep, "clock_nanosleep", Call::ClockNanosleep as u8),
        (libc::SYS_nanosleep, "nanosleep", Call::Nanosleep as u8),
        (libc::SYS_pselect6, "pselect6", Call::Pselect6 as u8),
        (libc::SYS_ppoll, "ppoll", Call::Ppoll as u8),
        (libc::SYS_epoll_pwait, "epoll_pwait", Call::EpollPwait as u8),
        (libc::SYS_epoll_pwait2, "epoll_pwait2", Call::EpollPwait2 as u8),
        (libc::SYS_read, "read", Call::Read as u8),
        (libc::SYS_readv, "readv", Call::Readv as u8),
        (libc::SYS_preadv, "preadv", Call::Preadv as u8),
        (libc::SYS_preadv2, "preadv2", Call::Preadv2 as u8),
        (libc::SYS_accept, "accept", Call::Accept as u8),
        (libc::SYS_accept4, "accept4", Call::Accept4 as u8),
        (libc::SYS_recvfrom, "recvfrom", Call::Recvfrom as u8),
        (libc::SYS_recvmsg, "recvmsg", Call::Recvmsg as u8),
        (libc::SYS_recvmmsg, "recvmmsg", Call::Recvmmsg as u8),
        (libc::SYS_futex, "futex", CALL_FUTEX),
        (SYS_FUTEX_WAIT, "futex_wait", Call::FutexWait as u8),
        (libc::SYS_futex_waitv, "futex_waitv", Call::FutexWaitv as u8),
        (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait", Call::RtSigtimedwait as u8),
        (libc::SYS_rt_sigsuspend, "rt_sigsuspend", Call::RtSigsuspend as u8),
        (libc::SYS_mq_timedreceive, "mq_timedreceive", Call::MqTimedreceive as u8),
        (libc::SYS_msgrcv, "msgrcv", Call::Msgrcv as u8),
        (libc::SYS_semop, "semop", Call::Semop as u8),
        (libc::SYS_semtimedop, "semtimedop", Call::Semtimedop as u8),
        (libc::SYS_wait4, "wait4", Call::Wait4 as u8),
        (libc::SYS_waitid, "waitid", Call::Waitid as u8),
        (libc::SYS_io_getevents, "io_getevents", Call::IoGetevents as u8),
        (SYS_IO_PGETEVENTS, "io_pgetevents", Call::IoPgetevents as u8),
        (libc::SYS_io_uring_enter, "io_uring_enter", Call::IoUringEnter as u8),
        (libc::SYS_sched_yield, "sched_yield", Call::SchedYield as u8),
        (libc::SYS_restart_syscall, "restart_syscall", CALL_RESTART),
        (libc::SYS_sched_setscheduler, "sched_setscheduler", CALL_SET),
        (libc::SYS_sched_setparam, "sched_setparam", CALL_SET),
        (libc::SYS_sched_setattr, "sched_setattr", CALL_SET),
        (libc::SYS_sched_setaffinity, "sched_setaffinity", CALL_SET),
        (libc::SYS_setpriority, "setpriority", CALL_SET),
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        (libc::SYS_select, "select", Call::Select as u8),
        (libc::SYS_poll, "poll", Call::Poll as u8),
        (libc::SYS_epoll_wait, "epoll_wait", Call::EpollWait as u8),
        (libc::SYS_pause, "pause", Call::Pause as u8),
    ]);
    calls
}

/// The kernel side's table from number to call.
pub fn table() -> [u8; 512] {
    let mut table = [CALL_NONE; 512];
    for (number, _, call) in watched() {
        if let Some(entry) = usize::try_from(number).ok().and_then(|number| table.get_mut(number)) {
            *entry = call;
        }
    }
    table
}

/// The kernel side's table of the calls whose end it does not see, because their function cannot be traced.
pub fn unhooked(can_be_traced: impl Fn(&str) -> bool) -> [bool; 512] {
    let mut table = [false; 512];
    for (number, name, _) in watched() {
        if let Some(entry) = usize::try_from(number).ok().and_then(|number| table.get_mut(number)) {
            *entry = !can_be_traced(name);
        }
    }
    table
}

/// The kernel function behind system call `name` on this machine.
pub fn function(name: &str) -> String {
    match std::env::consts::ARCH {
        "x86_64" => format!("__x64_sys_{name}"),
        "aarch64" => format!("__arm64_sys_{name}"),
        _ => format!("__se_sys_{name}"),
    }
}
