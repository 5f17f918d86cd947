//! What a thread waits for, in words: the name of its system call, and of the file or the futex.

use super::names::Names;
use super::skeleton::types::{blocked_flags, blocked_record};
use punctual_model::{Call, Instant, ObjectName};
use punctual_trace::{Blocked, Step, Switch};

/// System calls whose first argument is the descriptor of what they wait for.
const OF_DESCRIPTORS: [&str; 39] = [
    "accept",
    "accept4",
    "connect",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "fallocate",
    "fchmod",
    "fchown",
    "fcntl",
    "fdatasync",
    "flock",
    "fstat",
    "fsync",
    "ftruncate",
    "getdents",
    "getdents64",
    "io_uring_enter",
    "ioctl",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "shutdown",
    "sync_file_range",
    "syncfs",
    "vmsplice",
    "write",
    "writev",
];

/// Translates what the programs saw; addresses get the names of what lies there.
pub fn switch(tid: u32, raw: &blocked_record, names: &mut Names) -> Switch {
    let futex = Call::from_number(raw.header.call).map(Call::name);
    let is_narrow = u32::from(raw.header.flags) & blocked_flags::BLOCKED_NARROW.0 != 0;
    let call = futex.unwrap_or_else(|| name_of_call(raw.header.number, is_narrow));
    let object = match call {
        _ if futex.is_some() => names.name(tid, raw.argument),
        _ if OF_DESCRIPTORS.contains(&call) => ObjectName::new(&crate::loader::text(&raw.name)),
        _ => None,
    };
    let step = Step::Blocked(Blocked { call, object: object.map(ObjectName::text), owner: raw.owner });
    Switch { tid, at: Instant::from_ns(raw.at), cpu: raw.cpu, step }
}

/// The name of a system call by its number, on this machine.
fn name_of_call(number: i32, is_narrow: bool) -> &'static str {
    let Ok(number) = u32::try_from(number) else { return "page fault" };
    let name = match is_narrow {
        false => syscalls::Sysno::new(number as usize).map(|call| call.name()),
        true if cfg!(target_arch = "x86_64") => {
            syscalls::x86::Sysno::new(number as usize).map(|call| call.name())
        }
        true => syscalls::arm::Sysno::new(number as usize).map(|call| call.name()),
    };
    let unknown =
        || ObjectName::new(&format!("system call {number}")).map_or("system call", ObjectName::text);
    name.unwrap_or_else(unknown)
}
