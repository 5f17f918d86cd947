//! System calls by number and arguments: which separate jobs, on what. Without the memory that arguments
//! point to.

use super::thread::Entry;
use punctual_model::{Call, Duration, FileClass, Instant, Object, Separator};

/// A machine whose numbers of system calls are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86,
    Arm,
}

impl Machine {
    /// By the name that uname(1) gives it.
    pub fn from_name(name: &str) -> Option<Machine> {
        match name {
            "x86_64" => Some(Machine::X86),
            "aarch64" => Some(Machine::Arm),
            _ => None,
        }
    }

    fn call(self, number: i64) -> Option<Call> {
        let number = u16::try_from(number).ok();
        let has_number = |call: &Call| match self {
            Machine::X86 => call.number_on_x86_64() == number,
            Machine::Arm => call.number_on_aarch64() == number,
        };
        number.and_then(|_| Call::ALL.iter().copied().find(has_number))
    }

    /// The number of futex(2), whose second argument says which call it is.
    fn futex_number(self) -> i64 {
        if self == Machine::X86 { 202 } else { 98 }
    }
}

/// restart_syscall(2) goes on with the call that a signal interrupted.
pub fn restarts(machine: Machine, number: i64) -> bool {
    number == if machine == Machine::X86 { 219 } else { 128 }
}

/// What a call with these arguments is; `None` if it separates nothing. `deadline` says whether the thread is
/// under SCHED_DEADLINE.
pub fn entry(
    machine: Machine,
    number: i64,
    arguments: [u64; 6],
    deadline: bool,
    at: Instant,
) -> Option<Entry> {
    const TIMER_ABSTIME: u64 = 1;
    const MSG_DONTWAIT: u64 = 0x40;
    const IPC_NOWAIT: u64 = 0o4000;
    const WNOHANG: u64 = 1;
    const GETEVENTS: u64 = 1;
    let [a, b, c, d, e, _] = arguments;
    let int = |argument: u64| argument as u32 as i32;
    let file = |class, fd| Object::File { class, fd: int(fd), identity: 0 };
    let call = if number == machine.futex_number() { futex(b)? } else { machine.call(number)? };
    // Of a call that waits for a file it is not known whether it was opened so that it never blocks: only its
    // sleeps tell.
    let (call, object, always) = match call {
        Call::ClockNanosleep => (call, Object::Clock { id: int(a), absolute: b & TIMER_ABSTIME != 0 }, true),
        Call::Nanosleep => (call, Object::Clock { id: 1, absolute: false }, true),
        Call::Select | Call::Pselect6 => (call, Object::None, e == 0),
        Call::Poll if int(c) == 0 => return None,
        Call::Poll => (call, Object::None, true),
        Call::Ppoll => (call, Object::None, c == 0),
        Call::EpollWait | Call::EpollPwait if int(d) == 0 => return None,
        Call::EpollWait | Call::EpollPwait => (call, file(FileClass::Epoll, a), true),
        Call::EpollPwait2 => (call, file(FileClass::Epoll, a), d == 0),
        Call::Read | Call::Readv | Call::Preadv | Call::Preadv2 => (call, file(FileClass::Other, a), false),
        Call::Accept | Call::Accept4 => (call, file(FileClass::Socket, a), false),
        Call::Recvfrom | Call::Recvmmsg if d & MSG_DONTWAIT != 0 => return None,
        Call::Recvmsg if c & MSG_DONTWAIT != 0 => return None,
        Call::Recvfrom | Call::Recvmmsg | Call::Recvmsg => (call, file(FileClass::Socket, a), false),
        Call::FutexWait | Call::FutexWaitBitset | Call::FutexLockPi | Call::FutexWaitRequeuePi => {
            (call, Object::Address(a & !7), true)
        }
        Call::FutexWaitv | Call::RtSigsuspend | Call::Pause => (call, Object::None, true),
        Call::RtSigtimedwait => (call, Object::None, c == 0),
        Call::MqTimedreceive => (call, file(FileClass::MessageQueue, a), false),
        Call::Msgrcv if e & IPC_NOWAIT != 0 => return None,
        Call::Msgrcv => (call, Object::Id(int(a)), true),
        Call::Semop | Call::Semtimedop => (call, Object::Id(int(a)), false),
        Call::Wait4 if c & WNOHANG != 0 => return None,
        Call::Waitid if d & WNOHANG != 0 => return None,
        Call::Wait4 | Call::Waitid => (call, Object::None, true),
        Call::IoGetevents | Call::IoPgetevents => (call, Object::Address(a), e == 0 && (b as i64) > 0),
        Call::IoUringEnter if d & GETEVENTS == 0 || c as u32 == 0 => return None,
        Call::IoUringEnter => (call, file(FileClass::IoUring, a), true),
        Call::SchedYield if !deadline => return None,
        _ => (call, Object::None, true),
    };
    // A wait for nothing at all is a sleep, whose end is no secret.
    let sleeps = call == Call::Poll && b == 0 && int(c) > 0;
    let arrival = sleeps.then(|| at + Duration::from_ms(c & 0x7fff_ffff));
    Some(Entry { separator: Separator { call, object }, arrival, always })
}

/// Of futex operations, those that wait.
fn futex(operation: u64) -> Option<Call> {
    match operation & 0x7f {
        0 => Some(Call::FutexWait),
        6 | 13 => Some(Call::FutexLockPi),
        9 => Some(Call::FutexWaitBitset),
        11 => Some(Call::FutexWaitRequeuePi),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: i64, arguments: [u64; 6]) -> Option<(Call, Object, Option<u64>, bool)> {
        let entry = entry(Machine::X86, number, arguments, false, Instant::from_ns(7))?;
        Some((entry.separator.call, entry.separator.object, entry.arrival.map(Instant::ns), entry.always))
    }

    #[test]
    fn calls_are_known_by_number_and_arguments() {
        let clock = Object::Clock { id: 1, absolute: true };
        assert_eq!(call(230, [1, 1, 0x7ffc_0000, 0, 0, 0]), Some((Call::ClockNanosleep, clock, None, true)));
        let file = |class, fd| Object::File { class, fd, identity: 0 };
        assert_eq!(call(0, [3, 0, 8, 0, 0, 0]), Some((Call::Read, file(FileClass::Other, 3), None, false)));
        assert_eq!(call(45, [3, 0, 8, 0x40, 0, 0]), None);
        assert_eq!(
            call(232, [4, 0, 8, u64::MAX, 0, 0]),
            Some((Call::EpollWait, file(FileClass::Epoll, 4), None, true))
        );
        assert_eq!(call(232, [4, 0, 8, 0, 0, 0]), None);
        assert_eq!(
            call(202, [0x1004, 393, 0, 0, 0, 0]),
            Some((Call::FutexWaitBitset, Object::Address(0x1000), None, true))
        );
        assert_eq!(call(202, [0x1004, 129, 0, 0, 0, 0]), None);
        assert_eq!(call(7, [0, 0, 5, 0, 0, 0]), Some((Call::Poll, Object::None, Some(5_000_007), true)));
        assert_eq!(
            call(7, [0, 1, u64::from(u32::MAX), 0, 0, 0]),
            Some((Call::Poll, Object::None, None, true))
        );
        // To yield says something under SCHED_DEADLINE only; other calls say nothing.
        assert_eq!((call(24, [0; 6]), call(1, [0; 6]), call(-1, [0; 6])), (None, None, None));
        assert!(entry(Machine::Arm, 124, [0; 6], true, Instant::from_ns(7)).is_some());
    }
}
