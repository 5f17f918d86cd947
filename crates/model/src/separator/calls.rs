//! The table of separators: what is known of each call. The eBPF program's `enum call`, its hooks, its
//! reading of arguments, the tables of system call numbers and the recordings' metadata are generated from
//! it, and importers of traces read it. A build script includes this file, so it uses nothing else of this
//! crate but the files beside it.
//!
//! A new call needs a line here, a driver in `tests/workloads/drivers` and a row in
//! `tests/e2e/src/drivers.rs`; one that waits on a new kind of object, a variant of [`On`], too.

use super::files::FileClass;
use super::wait::{Argument, On, Timeout, Wait};

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
    ($(
        $variant:ident = $number:literal, $name:literal, ($x86_64:tt, $aarch64:tt),
        ($i386:tt, $arm:tt, $both:tt), $wait:expr, $meaning:literal;
    )*) => {
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

            /// The numbers of the system call in 32-bit programs on x86-64.
            pub fn numbers_on_i386(self) -> impl Iterator<Item = u16> {
                match self { $(Call::$variant => [number!($i386), number!($both)]),* }.into_iter().flatten()
            }

            /// The numbers of the system call in 32-bit programs on 64-bit Arm.
            pub fn numbers_on_arm(self) -> impl Iterator<Item = u16> {
                match self { $(Call::$variant => [number!($arm), number!($both)]),* }.into_iter().flatten()
            }

            /// How it waits, as its arguments say.
            pub const fn wait(self) -> Wait {
                match self { $(Call::$variant => $wait),* }
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

use Argument::{A, B, C, D, E, F};
use Timeout::{Milliseconds, Timespec, Timeval};

const NOTHING: Wait = Wait::on(On::Nothing);
const HANDLER: Wait = Wait::on(On::Handler);
const POLLED: Wait = Wait::on(On::Polled(A, B)).for_one_of(B);
const EPOLL: Wait = Wait::on(On::Descriptor(FileClass::Epoll, A));
const FILE: Wait = Wait::on(On::File(FileClass::Other, A));
const SOCKET: Wait = Wait::on(On::File(FileClass::Socket, A));
const FUTEX: Wait = Wait::on(On::Futex(A));
const SEMAPHORES: Wait = Wait::on(On::Semaphores(A, B, C));
const CONTEXT: Wait = Wait::on(On::Context(A));
const IO_URING: Wait = Wait::on(On::Descriptor(FileClass::IoUring, A));

const RWF_NOWAIT: u32 = 0x08;
const MSG_DONTWAIT: u32 = 0x40;
const IPC_NOWAIT: u32 = 0o4000;
const WNOHANG: u32 = 1;
const IORING_ENTER_GETEVENTS: u32 = 1;

// Variant = number in recordings, name, (system call number on x86-64, on aarch64), (in 32-bit programs: on
// i386, on arm, on both since Linux 5.1), how it waits, meaning.
calls! {
    Suspension = 0, "suspension", (_, _), (_, _, _), NOTHING, "Any sleep, in whatever call or fault.";
    ClockNanosleep = 1, "clock_nanosleep", (230, 115), (267, 265, 407), Wait::on(On::Clock(A, B, C)),
        "Sleep until a time or for a duration, on a clock.";
    Nanosleep = 2, "nanosleep", (35, 101), (162, 162, _), Wait::on(On::Monotonic(A)),
        "Sleep for a time on CLOCK_MONOTONIC.";
    Select = 3, "select", (23, _), (142, 142, _), NOTHING.for_one_of(A).for_at_most(Timeval(E)),
        "Wait for one of a set of descriptors.";
    Pselect6 = 4, "pselect6", (270, 72), (308, 335, 413), NOTHING.for_one_of(A).for_at_most(Timespec(E)),
        "Wait for one of a set of descriptors, with a signal mask.";
    Poll = 5, "poll", (7, _), (168, 168, _), POLLED.for_at_most(Milliseconds(C)),
        "Wait for one of an array of descriptors.";
    Ppoll = 6, "ppoll", (271, 73), (309, 336, 414), POLLED.for_at_most(Timespec(C)),
        "Wait for one of an array of descriptors, with a signal mask.";
    EpollWait = 7, "epoll_wait", (232, _), (256, 252, _), EPOLL.for_at_most(Milliseconds(D)),
        "Wait for an epoll descriptor.";
    EpollPwait = 8, "epoll_pwait", (281, 22), (319, 346, _), EPOLL.for_at_most(Milliseconds(D)),
        "Wait for an epoll descriptor, with a signal mask.";
    EpollPwait2 = 9, "epoll_pwait2", (441, 441), (_, _, 441), EPOLL.for_at_most(Timespec(D)),
        "Wait for an epoll descriptor, with a timeout in nanoseconds.";
    Read = 10, "read", (0, 63), (3, 3, _), FILE, "Read from a descriptor that can block.";
    Readv = 11, "readv", (19, 65), (145, 145, _), FILE, "Read into several buffers.";
    Preadv = 12, "preadv", (295, 69), (333, 361, _), FILE, "Read into several buffers at an offset.";
    Preadv2 = 13, "preadv2", (327, 286), (378, 392, _), FILE.without(F, RWF_NOWAIT),
        "Read into several buffers at an offset, with flags.";
    Accept = 14, "accept", (43, 202), (_, 285, _), SOCKET, "Wait for a connection.";
    Accept4 = 15, "accept4", (288, 242), (364, 366, _), SOCKET, "Wait for a connection, with flags.";
    Recvfrom = 16, "recvfrom", (45, 207), (371, 292, _), SOCKET.without(D, MSG_DONTWAIT),
        "Wait for a message on a socket (`recv` is this call).";
    Recvmsg = 17, "recvmsg", (47, 212), (372, 297, _), SOCKET.without(C, MSG_DONTWAIT),
        "Wait for a message on a socket, with control data.";
    Recvmmsg = 18, "recvmmsg", (299, 243), (337, 365, 417), SOCKET.without(D, MSG_DONTWAIT),
        "Wait for several messages on a socket.";
    FutexWait = 19, "futex_wait", (455, 455), (_, _, 455), FUTEX,
        "Wait on a futex word (FUTEX_WAIT, or the call futex_wait).";
    FutexWaitBitset = 20, "futex_wait_bitset", (_, _), (_, _, _), FUTEX,
        "Wait on a futex word with a bit set (what glibc's condition variables and semaphores do).";
    FutexLockPi = 21, "futex_lock_pi", (_, _), (_, _, _), FUTEX,
        "Wait for a priority-inheritance lock (FUTEX_LOCK_PI, FUTEX_LOCK_PI2).";
    FutexWaitRequeuePi = 22, "futex_wait_requeue_pi", (_, _), (_, _, _), FUTEX,
        "Wait on a condition variable with a priority-inheritance lock.";
    FutexWaitv = 23, "futex_waitv", (449, 449), (_, _, 449), Wait::on(On::Futexes(A, B)),
        "Wait on several futex words.";
    RtSigtimedwait = 24, "rt_sigtimedwait", (128, 137), (177, 177, 421), NOTHING.for_at_most(Timespec(C)),
        "Wait for a signal (`sigwait`, `sigwaitinfo`, `sigtimedwait`).";
    RtSigsuspend = 25, "rt_sigsuspend", (130, 133), (179, 179, _), HANDLER,
        "Wait for a signal handler to run, with a mask.";
    Pause = 26, "pause", (34, _), (29, 29, _), HANDLER, "Wait for a signal handler to run.";
    MqTimedreceive = 27, "mq_timedreceive", (243, 183), (280, 277, 419), Wait::on(On::MessageQueue(A)),
        "Wait for a message of a POSIX queue.";
    Msgrcv = 28, "msgrcv", (70, 188), (401, 302, _), Wait::on(On::Id(A)).without(E, IPC_NOWAIT),
        "Wait for a message of a System V queue.";
    Semop = 29, "semop", (65, 193), (_, 298, _), SEMAPHORES, "Wait for a System V semaphore.";
    Semtimedop = 30, "semtimedop", (220, 192), (_, 312, 420), SEMAPHORES.for_at_most(Timespec(D)),
        "Wait for a System V semaphore, with a timeout.";
    Wait4 = 31, "wait4", (61, 260), (114, 114, _), NOTHING.without(C, WNOHANG),
        "Wait for a child (`wait`, `waitpid`).";
    Waitid = 32, "waitid", (247, 95), (284, 280, _), NOTHING.without(D, WNOHANG), "Wait for a child.";
    IoGetevents = 33, "io_getevents", (208, 4), (247, 245, _), CONTEXT.for_events(B).for_at_most(Timespec(E)),
        "Wait for asynchronous I/O.";
    IoPgetevents = 34, "io_pgetevents", (333, 292), (385, 399, 416),
        CONTEXT.for_events(B).for_at_most(Timespec(E)),
        "Wait for asynchronous I/O, with a signal mask.";
    IoUringEnter = 35, "io_uring_enter", (426, 426), (_, _, 426),
        IO_URING.with(D, IORING_ENTER_GETEVENTS).for_events(C),
        "Wait for completions of an io_uring.";
    SchedYield = 36, "sched_yield", (24, 124), (158, 158, _), Wait::on(On::Budget),
        "A SCHED_DEADLINE thread gives up the rest of its budget.";
}

impl Call {
    /// Which calls the operations of futex(2) are: operation (its second argument, without
    /// `FUTEX_PRIVATE_FLAG` and `FUTEX_CLOCK_REALTIME`), and call. The others do not wait.
    pub const FUTEX_OPERATIONS: [(u32, Call); 5] = [
        (0, Call::FutexWait),
        (6, Call::FutexLockPi),
        (9, Call::FutexWaitBitset),
        (11, Call::FutexWaitRequeuePi),
        (13, Call::FutexLockPi), // FUTEX_LOCK_PI2
    ];

    /// System calls of 32-bit programs with this number or a higher one pass times in 64 bits, others in 32.
    pub const FIRST_WITH_64_BIT_TIME: u16 = 403;

    /// The bits of futex(2)'s second argument that hold the operation.
    pub const FUTEX_COMMAND: u32 = 0x7f;

    /// The call that futex(2) is with this second argument; `None` if it does not wait.
    pub fn from_futex_operation(operation: u32) -> Option<Call> {
        let command = operation & Self::FUTEX_COMMAND;
        Self::FUTEX_OPERATIONS.iter().find(|(known, _)| *known == command).map(|(_, call)| *call)
    }
}
