//! The table of what descriptors refer to. The eBPF program's `enum object_class` is generated from it: a
//! build script includes this file, so it uses nothing else of this crate.

macro_rules! files {
    ($($variant:ident = $number:literal, $name:literal, $has_identity:literal, $meaning:literal;)*) => {
        /// What a descriptor refers to. Recordings store its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum FileClass { $(#[doc = $meaning] $variant = $number),* }

        impl FileClass {
            /// All classes, ordered by number: 1, 2, 3, ….
            pub const ALL: &'static [FileClass] = &[$(FileClass::$variant),*];

            /// The class with this number in recordings.
            pub fn from_number(number: u8) -> Option<FileClass> {
                Self::ALL.get(usize::from(number.checked_sub(1)?)).copied()
            }

            /// The name in files and output.
            pub const fn name(self) -> &'static str {
                match self { $(FileClass::$variant => $name),* }
            }

            /// Whether it has an inode or device number that is meaningful to users.
            pub const fn has_identity(self) -> bool {
                match self { $(FileClass::$variant => $has_identity),* }
            }
        }
    };
}

// Variant = number in recordings, name, whether it has an identity, meaning.
files! {
    Pipe = 1, "pipe", true, "A pipe or a named FIFO; identified by its inode.";
    Socket = 2, "socket", true, "A socket; identified by its inode.";
    CharacterDevice = 3, "char", true, "A character device; identified by `major << 20 | minor`.";
    BlockDevice = 4, "block", true, "A block device; identified by `major << 20 | minor`.";
    Timerfd = 5, "timerfd", false, "timerfd_create(2).";
    Eventfd = 6, "eventfd", false, "eventfd(2).";
    Signalfd = 7, "signalfd", false, "signalfd(2).";
    Inotify = 8, "inotify", false, "inotify_init(2).";
    Epoll = 9, "epoll", false, "epoll_create(2).";
    IoUring = 10, "io_uring", false, "io_uring_setup(2).";
    MessageQueue = 11, "mqueue", true, "mq_open(3); identified by its inode.";
    Other = 12, "file", false, "Anything else.";
}
