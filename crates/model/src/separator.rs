//! Separators: the calls at which one job ends and the next begins, and the objects they wait on.

use std::fmt;

mod json;

macro_rules! calls {
    ($($variant:ident = $number:literal $name:literal $meaning:literal),* $(,)?) => {
        /// A kind of call (or other way to stop) that separates jobs. The numbers are those of the kernel
        /// side's `enum call`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Call { $(#[doc = $meaning] $variant = $number),* }

        impl Call {
            /// Every call there is.
            pub const ALL: &'static [Call] = &[$(Call::$variant),*];

            /// The name in files and output: the system call's own, or `suspension`.
            pub const fn name(self) -> &'static str {
                match self { $(Call::$variant => $name),* }
            }

            /// The call with this number on the kernel side.
            pub fn from_number(number: u8) -> Option<Call> {
                Self::ALL.iter().copied().find(|call| *call as u8 == number)
            }

            /// The call of this name.
            pub fn from_name(name: &str) -> Option<Call> {
                Self::ALL.iter().copied().find(|call| call.name() == name)
            }
        }
    };
}

calls! {
    Suspension = 0 "suspension" "Any sleep, in whatever call or fault.",
    ClockNanosleep = 1 "clock_nanosleep" "Sleep until a time of, or for a time on, a clock.",
    Nanosleep = 2 "nanosleep" "Sleep for a time on CLOCK_MONOTONIC.",
    Select = 3 "select" "Wait for one of a set of descriptors.",
    Pselect6 = 4 "pselect6" "Wait for one of a set of descriptors, with a signal mask.",
    Poll = 5 "poll" "Wait for one of an array of descriptors.",
    Ppoll = 6 "ppoll" "Wait for one of an array of descriptors, with a signal mask.",
    EpollWait = 7 "epoll_wait" "Wait for an epoll descriptor.",
    EpollPwait = 8 "epoll_pwait" "Wait for an epoll descriptor, with a signal mask.",
    EpollPwait2 = 9 "epoll_pwait2" "Wait for an epoll descriptor, with a timeout in nanoseconds.",
    Read = 10 "read" "Read from a descriptor that can block.",
    Readv = 11 "readv" "Read into several buffers.",
    Preadv = 12 "preadv" "Read into several buffers at an offset.",
    Preadv2 = 13 "preadv2" "Read into several buffers at an offset, with flags.",
    Accept = 14 "accept" "Wait for a connection.",
    Accept4 = 15 "accept4" "Wait for a connection, with flags.",
    Recvfrom = 16 "recvfrom" "Wait for a message on a socket (`recv` is this call).",
    Recvmsg = 17 "recvmsg" "Wait for a message on a socket, with control data.",
    Recvmmsg = 18 "recvmmsg" "Wait for several messages on a socket.",
    FutexWait = 19 "futex_wait" "Wait on a futex word (FUTEX_WAIT, or the call futex_wait).",
    FutexWaitBitset = 20 "futex_wait_bitset" "Wait on a futex word with a bit set (what glibc's condition variables and semaphores do).",
    FutexLockPi = 21 "futex_lock_pi" "Wait for a priority-inheritance lock (FUTEX_LOCK_PI, FUTEX_LOCK_PI2).",
    FutexWaitRequeuePi = 22 "futex_wait_requeue_pi" "Wait on a condition variable with a priority-inheritance lock.",
    FutexWaitv = 23 "futex_waitv" "Wait on several futex words.",
    RtSigtimedwait = 24 "rt_sigtimedwait" "Wait for a signal (`sigwait`, `sigwaitinfo`, `sigtimedwait`).",
    RtSigsuspend = 25 "rt_sigsuspend" "Wait for a signal handler to run, with a mask.",
    Pause = 26 "pause" "Wait for a signal handler to run.",
    MqTimedreceive = 27 "mq_timedreceive" "Wait for a message of a POSIX queue.",
    Msgrcv = 28 "msgrcv" "Wait for a message of a System V queue.",
    Semop = 29 "semop" "Wait for a System V semaphore.",
    Semtimedop = 30 "semtimedop" "Wait for a System V semaphore, with a timeout.",
    Wait4 = 31 "wait4" "Wait for a child (`wait`, `waitpid`).",
    Waitid = 32 "waitid" "Wait for a child.",
    IoGetevents = 33 "io_getevents" "Wait for asynchronous I/O.",
    IoPgetevents = 34 "io_pgetevents" "Wait for asynchronous I/O, with a signal mask.",
    IoUringEnter = 35 "io_uring_enter" "Wait for completions of an io_uring.",
    SchedYield = 36 "sched_yield" "A SCHED_DEADLINE thread gives up the rest of its budget.",
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a descriptor is. The numbers are those of the kernel side's `enum file_class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum FileClass {
    /// A pipe or a named FIFO; identified by its inode.
    Pipe = 1,
    /// A socket; identified by its inode.
    Socket = 2,
    /// A character device; identified by `major << 20 | minor`.
    CharacterDevice = 3,
    /// A block device; identified by `major << 20 | minor`.
    BlockDevice = 4,
    /// timerfd_create(2).
    Timerfd = 5,
    /// eventfd(2).
    Eventfd = 6,
    /// signalfd(2).
    Signalfd = 7,
    /// inotify_init(2).
    Inotify = 8,
    /// epoll_create(2).
    Epoll = 9,
    /// io_uring_setup(2).
    IoUring = 10,
    /// mq_open(3); identified by its inode.
    MessageQueue = 11,
    /// Anything else.
    Other = 12,
}

impl FileClass {
    /// Every class there is.
    pub const ALL: &'static [FileClass] = &[
        FileClass::Pipe,
        FileClass::Socket,
        FileClass::CharacterDevice,
        FileClass::BlockDevice,
        FileClass::Timerfd,
        FileClass::Eventfd,
        FileClass::Signalfd,
        FileClass::Inotify,
        FileClass::Epoll,
        FileClass::IoUring,
        FileClass::MessageQueue,
        FileClass::Other,
    ];

    /// The class with this number on the kernel side.
    pub fn from_number(number: u8) -> Option<FileClass> {
        Self::ALL.iter().copied().find(|class| *class as u8 == number)
    }

    /// The name in files and output.
    pub const fn name(self) -> &'static str {
        match self {
            FileClass::Pipe => "pipe",
            FileClass::Socket => "socket",
            FileClass::CharacterDevice => "char",
            FileClass::BlockDevice => "block",
            FileClass::Timerfd => "timerfd",
            FileClass::Eventfd => "eventfd",
            FileClass::Signalfd => "signalfd",
            FileClass::Inotify => "inotify",
            FileClass::Epoll => "epoll",
            FileClass::IoUring => "io_uring",
            FileClass::MessageQueue => "mqueue",
            FileClass::Other => "file",
        }
    }

    /// Whether the identity means something to a person (inode or device number) beyond the descriptor.
    pub const fn has_identity(self) -> bool {
        matches!(
            self,
            FileClass::Pipe
                | FileClass::Socket
                | FileClass::CharacterDevice
                | FileClass::BlockDevice
                | FileClass::MessageQueue
        )
    }
}

/// What a call waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// Nothing that tells one use of the call from another.
    None,
    /// A clock (`CLOCK_MONOTONIC` = 1, …), until a time of it (`absolute`) or for a time on it.
    Clock {
        /// The clock's number.
        id: i32,
        /// Whether the call named a point in time.
        absolute: bool,
    },
    /// A descriptor.
    File {
        /// What it is.
        class: FileClass,
        /// Its number in the thread's process.
        fd: i32,
        /// Inode or device number, as the class has it; 0 where that says nothing.
        identity: u64,
    },
    /// An address in the thread's process, rounded down to eight bytes (a glibc condition variable alternates
    /// between two adjacent words).
    Address(u64),
    /// A System V identifier.
    Id(i32),
    /// Every object that came after the task's list of separators was full.
    Others,
}

impl Object {
    /// What tells two separators apart: descriptors by number and class, so that one that is closed and
    /// opened again stays one separator.
    pub fn key(self) -> Object {
        match self {
            Object::File { class, fd, .. } => Object::File { class, fd, identity: 0 },
            other => other,
        }
    }
}

/// Where one job ends and the next begins: a kind of call and what it waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Separator {
    /// The kind of call.
    pub call: Call,
    /// What it waits on.
    pub object: Object,
}

impl Separator {
    /// Any sleep.
    pub const SUSPENSION: Separator = Separator { call: Call::Suspension, object: Object::None };

    /// What tells two separators apart ([`Object::key`]).
    pub fn key(self) -> Separator {
        Separator { call: self.call, object: self.object.key() }
    }
}

/// The name of a clock in files and output, for those that a thread can sleep on.
pub fn clock_name(id: i32) -> &'static str {
    match id {
        0 => "CLOCK_REALTIME",
        1 => "CLOCK_MONOTONIC",
        2 => "CLOCK_PROCESS_CPUTIME_ID",
        7 => "CLOCK_BOOTTIME",
        8 => "CLOCK_REALTIME_ALARM",
        9 => "CLOCK_BOOTTIME_ALARM",
        11 => "CLOCK_TAI",
        _ => "CLOCK_OTHER",
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Object::None => Ok(()),
            Object::Clock { id, absolute } => {
                write!(f, "{}{}", clock_name(id), if absolute { " absolute" } else { " relative" })
            }
            Object::File { class, fd, identity } if identity != 0 && class.has_identity() => match class {
                FileClass::CharacterDevice | FileClass::BlockDevice => {
                    write!(f, "{} {}:{} fd {fd}", class.name(), identity >> 20, identity & 0xf_ffff)
                }
                _ => write!(f, "{}:[{identity}] fd {fd}", class.name()),
            },
            Object::File { class, fd, .. } => write!(f, "{} fd {fd}", class.name()),
            Object::Address(address) => write!(f, "{address:#x}"),
            Object::Id(id) => write!(f, "id {id}"),
            Object::Others => write!(f, "(others)"),
        }
    }
}

/// `read pipe:[1234] fd 5`, `clock_nanosleep CLOCK_MONOTONIC absolute`, `suspension`.
impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.object {
            Object::None => f.pad(self.call.name()),
            object => f.pad(&format!("{} {object}", self.call)),
        }
    }
}
