//! System calls by number and arguments: which separate jobs, on what. Without the memory that arguments
//! point to.

use super::thread::Entry;
use punctual_model::wait::{Argument, On, Timeout, Wait};
use punctual_model::{Call, Duration, FileClass, Instant, Object, Separator};

/// A machine whose numbers of system calls are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86,
    /// 64-bit Arm.
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

    /// Its name there.
    pub fn name(self) -> &'static str {
        match self {
            Machine::X86 => "x86_64",
            Machine::Arm => "aarch64",
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

    /// Whether threads may wait in the call of this number.
    pub fn waits(self, number: i64) -> bool {
        number == self.futex_number() || self.call(number).is_some()
    }

    /// The one that it is mistaken for.
    pub fn other(self) -> Machine {
        match self {
            Machine::X86 => Machine::Arm,
            Machine::Arm => Machine::X86,
        }
    }

    /// The number of futex(2), whose second argument says which call it is.
    pub fn futex_number(self) -> i64 {
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
    let futex = number == machine.futex_number();
    let call = if futex { Call::from_futex_operation(arguments[1] as u32)? } else { machine.call(number)? };
    let wait = call.wait();
    let value = |argument: Argument| arguments[argument as usize];
    let has = |(argument, bits): (Argument, u32)| value(argument) & u64::from(bits) != 0;
    let is_none = |events: Argument| value(events) as i32 <= 0;
    let milliseconds = wait.timeout.and_then(|timeout| match timeout {
        Timeout::Milliseconds(argument) => Some(value(argument) as i32),
        _ => None,
    });
    let never = wait.without.is_some_and(has)
        || !wait.with.is_none_or(has)
        || wait.events.is_some_and(is_none)
        || milliseconds == Some(0)
        || (wait.on == On::Budget && !deadline);
    if never {
        return None;
    }
    let object = object(wait.on, value);
    let always = can_block_for_certain(wait, value);
    // A wait for nothing at all is a sleep, whose end is no secret.
    let sleep = milliseconds.filter(|_| wait.descriptors.is_some_and(|count| value(count) == 0));
    let sleep = sleep.and_then(|milliseconds| u64::try_from(milliseconds).ok());
    let arrival = sleep.map(|milliseconds| at + Duration::from_ms(milliseconds));
    Some(Entry { separator: Separator { call, object }, arrival, always })
}

/// The object, as far as the arguments themselves name it.
fn object(on: On, value: impl Fn(Argument) -> u64) -> Object {
    const TIMER_ABSTIME: u64 = 1;
    const CLOCK_MONOTONIC: i32 = 1;
    let int = |argument| value(argument) as i32;
    let file = |class, fd| Object::File { class, fd: int(fd), identity: 0 };
    match on {
        On::Nothing | On::Handler | On::Budget | On::Polled(..) | On::Futexes(..) => Object::None,
        On::Monotonic(_) => Object::Clock { id: CLOCK_MONOTONIC, absolute: false },
        On::Clock(clock, flags, _) => {
            Object::Clock { id: int(clock), absolute: value(flags) & TIMER_ABSTIME != 0 }
        }
        On::File(class, fd) | On::Descriptor(class, fd) => file(class, fd),
        On::MessageQueue(fd) => file(FileClass::MessageQueue, fd),
        On::Futex(address) => Object::address(value(address) & !7),
        On::Context(address) => Object::address(value(address)),
        On::Id(id) | On::Semaphores(id, ..) => Object::Id(int(id)),
    }
}

/// Whether nothing that the arguments point to can keep the call from blocking. Of one that waits for a file
/// it is not known whether it was opened so that it never blocks: only its sleeps tell.
fn can_block_for_certain(wait: Wait, value: impl Fn(Argument) -> u64) -> bool {
    let is_of_unknown_length = match wait.timeout {
        Some(Timeout::Timespec(address) | Timeout::Timeval(address)) => value(address) != 0,
        Some(Timeout::Milliseconds(_)) | None => false,
    };
    !is_of_unknown_length && !matches!(wait.on, On::File(..) | On::MessageQueue(_) | On::Semaphores(..))
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
            Some((Call::FutexWaitBitset, Object::address(0x1000), None, true))
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
