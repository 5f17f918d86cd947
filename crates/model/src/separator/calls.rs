//! The table of separators: the general facts about each call. The eBPF program's `enum call`, its hooks, the
//! tables of system call numbers and the recordings' metadata are generated from it. A build script includes
//! this file, so it uses nothing else of this crate.
//!
//! A new call needs a line here, its object in `observe/src/jobs/bpf/calls.h` (`classify`), a driver in
//! `tests/workloads/drivers` and a row in `tests/e2e/src/drivers.rs`.

/// A number or, for `_`, none.
macro_rules! number {
    (_) => {
        None
    };
    ($number:literal) => {
        Some($number)
    };
}

macro_rules! calls {
    ($($variant:ident = $number:literal, $name:literal, ($x86_64:tt, $aarch64:tt), $meaning:literal;)*) => {
        /// A kind of call (or other way to stop) that separates jobs. Recordings store its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Call { $(#[doc = $meaning] $variant = $number),* }

        impl Call {
            /// All calls, ordered by number: 0, 1, 2, ….
            pub const ALL: &'static [Call] = &[$(Call::$variant),*];

            /// The name in files and output: the system call's own, or `suspension`.
            pub const fn name(self) -> &'static str {
                match self { $(Call::$variant => $name),* }
            }

            /// The number of the system call on x86-64; `None` if there is no call of that name.
            pub const fn number_on_x86_64(self) -> Option<u16> {
                match self { $(Call::$variant => number!($x86_64)),* }
            }

            /// The number of the system call on 64-bit Arm; `None` if there is no call of that name.
            pub const fn number_on_aarch64(self) -> Option<u16> {
                match self { $(Call::$variant => number!($aarch64)),* }
            }

            /// The call with this number in recordings.
            pub fn from_number(number: u8) -> Option<Call> {
                Self::ALL.get(usize::from(number)).copied()
            }

            /// The call of this name.
            pub fn from_name(name: &str) -> Option<Call> {
                Self::ALL.iter().copied().find(|call| call.name() == name)
            }
        }
    };
}

// Variant = number in recordings, name, (system call number on x86-64, on aarch64), meaning.
calls! {
    Suspension = 0, "suspension", (_, _), "Any sleep, in whatever call or fault.";
    ClockNanosleep = 1, "clock_nanosleep", (230, 115), "Sleep until a time or for a duration, on a clock.";
    Nanosleep = 2, "nanosleep", (35, 101), "Sleep for a time on CLOCK_MONOTONIC.";
    Select = 3, "select", (23, _), "Wait for one of a set of descriptors.";
    Pselect6 = 4, "pselect6", (270, 72), "Wait for one of a set of descriptors, with a signal mask.";
    Poll = 5, "poll", (7, _), "Wait for one of an array of descriptors.";
    Ppoll = 6, "ppoll", (271, 73), "Wait for one of an array of descriptors, with a signal mask.";
    EpollWait = 7, "epoll_wait", (232, _), "Wait for an epoll descriptor.";
    EpollPwait = 8, "epoll_pwait", (281, 22), "Wait for an epoll descriptor, with a signal mask.";
    EpollPwait2 = 9, "epoll_pwait2", (441, 441),
        "Wait for an epoll descriptor, with a timeout in nanoseconds.";
    Read = 10, "read", (0, 63), "Read from a descriptor that can block.";
    Readv = 11, "readv", (19, 65), "Read into several buffers.";
    Preadv = 12, "preadv", (295, 69), "Read into several buffers at an offset.";
    Preadv2 = 13, "preadv2", (327, 286), "Read into several buffers at an offset, with flags.";
    Accept = 14, "accept", (43, 202), "Wait for a connection.";
    Accept4 = 15, "accept4", (288, 242), "Wait for a connection, with flags.";
    Recvfrom = 16, "recvfrom", (45, 207), "Wait for a message on a socket (`recv` is this call).";
    Recvmsg = 17, "recvmsg", (47, 212), "Wait for a message on a socket, with control data.";
    Recvmmsg = 18, "recvmmsg", (299, 243), "Wait for several messages on a socket.";
    FutexWait = 19, "futex_wait", (455, 455), "Wait on a futex word (FUTEX_WAIT, or the call futex_wait).";
    FutexWaitBitset = 20, "futex_wait_bitset", (_, _),
        "Wait on a futex word with a bit set (what glibc's condition variables and semaphores do).";
    FutexLockPi = 21, "futex_lock_pi", (_, _),
        "Wait for a priority-inheritance lock (FUTEX_LOCK_PI, FUTEX_LOCK_PI2).";
    FutexWaitRequeuePi = 22, "futex_wait_requeue_pi", (_, _),
        "Wait on a condition variable with a priority-inheritance lock.";
    FutexWaitv = 23, "futex_waitv", (449, 449), "Wait on several futex words.";
    RtSigtimedwait = 24, "rt_sigtimedwait", (128, 137),
        "Wait for a signal (`sigwait`, `sigwaitinfo`, `sigtimedwait`).";
    RtSigsuspend = 25, "rt_sigsuspend", (130, 133), "Wait for a signal handler to run, with a mask.";
    Pause = 26, "pause", (34, _), "Wait for a signal handler to run.";
    MqTimedreceive = 27, "mq_timedreceive", (243, 183), "Wait for a message of a POSIX queue.";
    Msgrcv = 28, "msgrcv", (70, 188), "Wait for a message of a System V queue.";
    Semop = 29, "semop", (65, 193), "Wait for a System V semaphore.";
    Semtimedop = 30, "semtimedop", (220, 192), "Wait for a System V semaphore, with a timeout.";
    Wait4 = 31, "wait4", (61, 260), "Wait for a child (`wait`, `waitpid`).";
    Waitid = 32, "waitid", (247, 95), "Wait for a child.";
    IoGetevents = 33, "io_getevents", (208, 4), "Wait for asynchronous I/O.";
    IoPgetevents = 34, "io_pgetevents", (333, 292), "Wait for asynchronous I/O, with a signal mask.";
    IoUringEnter = 35, "io_uring_enter", (426, 426), "Wait for completions of an io_uring.";
    SchedYield = 36, "sched_yield", (24, 124), "A SCHED_DEADLINE thread gives up the rest of its budget.";
}
