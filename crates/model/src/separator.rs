//! Separators: the calls at which one job ends and the next begins, and the objects they wait on.

use std::fmt;

mod calls;
mod files;
mod json;
mod name;
pub mod wait;

pub use calls::Call;
pub use files::FileClass;
pub use name::ObjectName;

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a call waits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// Nothing that distinguishes one use of the call from another.
    None,
    /// A clock (`CLOCK_MONOTONIC` = 1, …): until a point in time (`absolute`) or for a duration.
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
        /// Inode or device number, depending on the class; 0 if it means nothing.
        identity: u64,
    },
    /// A place in the memory of the thread's process.
    Address {
        /// The address, rounded down to eight bytes (a glibc condition variable alternates between two
        /// adjacent words).
        address: u64,
        /// What lies there in every run of the program; `None` if that is unknown, and for heap and stack.
        name: Option<ObjectName>,
    },
    /// A System V identifier.
    Id(i32),
    /// All objects seen after the task's list of separators was full.
    Others,
}

/// Each record has one.
const _: () = assert!(size_of::<Object>() == 16);

impl Object {
    /// An address without a name.
    pub const fn address(address: u64) -> Object {
        Object::Address { address, name: None }
    }

    /// The part that distinguishes the separators of a thread: for descriptors, number and class, so that one
    /// that is closed and opened again stays the same separator; of addresses, the address.
    pub fn key(self) -> Object {
        match self {
            Object::File { class, fd, .. } => Object::File { class, fd, identity: 0 },
            Object::Address { address, .. } => Object::address(address),
            other => other,
        }
    }

    /// The part that can be the same in other runs of the program: no inodes, and names of addresses.
    pub fn lasting(self) -> Object {
        match self {
            Object::Address { .. } => self,
            other => other.key(),
        }
    }

    /// The name of an address, if it has one.
    pub fn name(self) -> Option<ObjectName> {
        match self {
            Object::Address { name, .. } => name,
            _ => None,
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

    /// The part that distinguishes separators ([`Object::key`]).
    pub fn key(self) -> Separator {
        Separator { call: self.call, object: self.object.key() }
    }

    /// The part that can be the same in other runs ([`Object::lasting`]).
    pub fn lasting(self) -> Separator {
        Separator { call: self.call, object: self.object.lasting() }
    }
}

/// The name of a clock that a thread can sleep on, in files and output.
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
            Object::Address { name: Some(name), .. } => write!(f, "{name}"),
            Object::Address { address, name: None } => write!(f, "{address:#x}"),
            Object::Id(id) => write!(f, "id {id}"),
            Object::Others => write!(f, "(others)"),
        }
    }
}

/// `read pipe:[1234] fd 5`, `clock_nanosleep CLOCK_MONOTONIC absolute`, `futex_wait robot:lock`,
/// `suspension`.
impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.object {
            Object::None => f.pad(self.call.name()),
            object => f.pad(&format!("{} {object}", self.call)),
        }
    }
}
