//! Threads and processes, pinned: a number that is used again never stands for its earlier owner.

use rustix::event::{PollFd, PollFlags, poll};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// `pidfd_open(2)` of one thread, since Linux 6.9.
const PIDFD_THREAD: libc::c_int = libc::O_EXCL;

/// Whether the process or thread of a pidfd has ended.
pub fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut watched = [PollFd::new(&pidfd, PollFlags::IN)];
    matches!(poll(&mut watched, Some(&rustix::event::Timespec::default())), Ok(1..))
}

/// A pidfd for a process, or for a thread with [`PIDFD_THREAD`].
fn pidfd_open(number: u32, flags: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    match unsafe { libc::syscall(libc::SYS_pidfd_open, number, flags) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: it was just opened here.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) }),
    }
}

/// A process that lives, and when it started (in clock ticks since the machine did).
pub fn pin_process(process: u32) -> io::Result<(OwnedFd, u64)> {
    let pidfd = pidfd_open(process, 0)?;
    let start = start_of(&mut File::open(format!("/proc/{process}/stat"))?)?;
    // It is alive now, so the number was its own all the time.
    if has_ended(pidfd.as_fd()) { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok((pidfd, start)) }
}

/// When a process started. The caller holds its pidfd, which proves whose number it is.
pub fn process_start(process: u32) -> io::Result<u64> {
    start_of(&mut File::open(format!("/proc/{process}/stat"))?)
}

/// Field 22 of a `stat` file. The name before it can hold anything, a `)` too.
fn start_of(stat: &mut File) -> io::Result<u64> {
    let mut text = [0; 1024];
    let length = stat.read(&mut text)?;
    parse_start(&text[..length]).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

fn parse_start(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let field = std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace().nth(19)?;
    field.parse().ok()
}

/// What pins a thread.
#[derive(Debug)]
enum Anchor {
    /// Becomes readable when the thread ends.
    Pidfd(OwnedFd),
    /// Its `stat`, on kernels without pidfds of threads: reading fails once it has ended.
    Stat(File),
}

/// A thread, by its number in this PID namespace.
#[derive(Debug)]
pub struct Thread {
    /// Its number.
    pub number: u32,
    /// Tells it from others that had its number before, or get it, as long as the machine runs: the number of
    /// its inode, where pidfds have a file system; else when it started, in clock ticks since the machine
    /// did.
    pub identity: u64,
    anchor: Anchor,
}

/// A thread's `stat`, and when it started.
fn open_stat(number: u32) -> io::Result<(File, u64)> {
    let mut stat =
        File::open(format!("/proc/{number}/task/{number}/stat")).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => io::Error::from_raw_os_error(libc::ESRCH),
            _ => error,
        })?;
    let start = start_of(&mut stat)?;
    Ok((stat, start))
}

/// The inode of a pidfd, which is nobody else's as long as the machine runs; `None` where all pidfds share
/// one.
fn inode(pidfd: &OwnedFd) -> io::Result<Option<u64>> {
    use std::sync::OnceLock;
    const PID_FS: i64 = 0x5049_4446;
    static HAS: OnceLock<bool> = OnceLock::new();
    let has = *HAS.get_or_init(|| rustix::fs::fstatfs(pidfd).is_ok_and(|system| system.f_type == PID_FS));
    Ok(if has { Some(rustix::fs::fstat(pidfd)?.st_ino) } else { None })
}

/// The owner of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Real user.
    pub real: u32,
    /// Effective user.
    pub effective: u32,
    /// Its process.
    pub process: u32,
}

impl Thread {
    /// Pins a thread, and returns its owner. ESRCH if there is none; one that has just ended may still be
    /// found.
    pub fn pin(number: u32) -> io::Result<(Self, Owner)> {
        static WITHOUT: AtomicBool = AtomicBool::new(false);
        if !WITHOUT.load(Ordering::Relaxed) {
            match pidfd_open(number, PIDFD_THREAD) {
                Ok(pidfd) => {
                    let identity = match inode(&pidfd)? {
                        Some(inode) => inode,
                        None => open_stat(number)?.1,
                    };
                    let thread = Self { number, identity, anchor: Anchor::Pidfd(pidfd) };
                    let owner = thread.owner()?;
                    return Ok((thread, owner));
                }
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    WITHOUT.store(true, Ordering::Relaxed)
                }
                Err(error) => return Err(error),
            }
        }
        let (stat, identity) = open_stat(number)?;
        let thread = Self { number, identity, anchor: Anchor::Stat(stat) };
        let owner = thread.owner()?;
        Ok((thread, owner))
    }

    /// Whether it still runs.
    pub fn lives(&self) -> bool {
        match &self.anchor {
            Anchor::Pidfd(pidfd) => !has_ended(pidfd.as_fd()),
            Anchor::Stat(stat) => stat.read_at(&mut [0; 16], 0).is_ok_and(|length| length > 0),
        }
    }

    /// What becomes readable when it ends, where the kernel has that.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        match &self.anchor {
            Anchor::Pidfd(pidfd) => Some(pidfd.as_fd()),
            Anchor::Stat(_) => None,
        }
    }

    /// Its owner now. ESRCH if it has ended.
    pub fn owner(&self) -> io::Result<Owner> {
        if let Some(owner) = self.pidfd().map_or(Ok(None), owner_by_pidfd)? {
            return Ok(owner);
        }
        let text = fs::read_to_string(format!("/proc/{0}/task/{0}/status", self.number))?;
        let ids: Option<Vec<u32>> = line(&text, "Uid:")
            .map(|line| line.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect());
        let process = line(&text, "Tgid:").and_then(|id| id.trim().parse().ok());
        match (ids.as_deref(), process) {
            (Some(&[real, effective, ..]), Some(process)) if self.lives() => {
                Ok(Owner { real, effective, process })
            }
            _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }
}

/// `struct pidfd_info`, as of Linux 6.13.
#[repr(C)]
#[derive(Default)]
struct PidfdInfo {
    mask: u64,
    cgroup: u64,
    pid: u32,
    tgid: u32,
    ppid: u32,
    ruid: u32,
    rgid: u32,
    euid: u32,
    egid: u32,
    suid: u32,
    sgid: u32,
    fsuid: u32,
    fsgid: u32,
    exit_code: i32,
}

/// The owner of a thread, without parsing text; `None` on kernels before 6.13. ESRCH if it has ended.
fn owner_by_pidfd(pidfd: BorrowedFd<'_>) -> io::Result<Option<Owner>> {
    const NUMBERS: u64 = 1;
    const CREDENTIALS: u64 = 1 << 1;
    const GET_INFO: libc::c_ulong =
        3 << 30 | (size_of::<PidfdInfo>() as libc::c_ulong) << 16 | 0xff << 8 | 11;
    let mut info = PidfdInfo { mask: NUMBERS | CREDENTIALS, ..PidfdInfo::default() };
    // SAFETY: the request's number holds the size of the struct, and the kernel writes no more.
    let answer = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &raw mut info) };
    if answer == -1 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::ESRCH) { Err(error) } else { Ok(None) };
    }
    let asked = NUMBERS | CREDENTIALS;
    Ok((info.mask & asked == asked).then_some(Owner {
        real: info.ruid,
        effective: info.euid,
        process: info.tgid,
    }))
}

/// What follows a name in a `status` file.
fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

/// The supplementary groups of a process.
pub fn groups(process: u32) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    Ok(line(&text, "Groups:")
        .map(|line| line.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect())
        .unwrap_or_default())
}

/// The effective group of a process.
pub fn process_group(process: u32) -> io::Result<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let group = line(&text, "Gid:").and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
    group.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// The effective user of a process.
pub fn process_user(process: u32) -> io::Result<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let user = line(&text, "Uid:").and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
    user.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// The name of a process.
pub fn command(process: u32) -> String {
    let name = fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\n').to_owned()
}

/// Whether a process is in the daemon's own PID namespace, where numbers mean the same. That never changes
/// for a process.
pub fn shares_namespace(process: u32) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: String| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    Ok(identity(format!("/proc/{process}/ns/pid"))? == identity("/proc/self/ns/pid".to_owned())?)
}

/// Translates a TID of a process's PID namespace to this one. An error says why it cannot be translated.
pub fn translate(process: u32, thread: u32) -> Result<u32, String> {
    let theirs = File::open(format!("/proc/{process}/ns/pid"))
        .map_err(|error| format!("the PID namespace of process {process}: {error}"))?;
    // NS_GET_PID_FROM_PIDNS, since Linux 6.11.
    const GET_PID: libc::c_ulong = 2 << 30 | 4 << 16 | 0xb7 << 8 | 6;
    let number = i32::try_from(thread).map_err(|_| format!("there is no thread {thread}"))?;
    // SAFETY: the argument is a number.
    match unsafe { libc::ioctl(theirs.as_raw_fd(), GET_PID as _, number) } {
        -1 => match io::Error::last_os_error().raw_os_error() {
            Some(libc::ENOTTY) | Some(libc::EINVAL) => translate_among(process, thread),
            _ => Err(format!("there is no thread {thread} in the PID namespace of process {process}")),
        },
        found => Ok(found as u32),
    }
}

/// The threads of a thread's process, without itself.
pub fn siblings(thread: u32) -> Vec<u32> {
    let Ok(folder) = fs::read_dir(format!("/proc/{thread}/task")) else { return Vec::new() };
    let numbers = folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&number| number != thread).collect()
}

/// How many threads of a process to search for a TID of another namespace.
const LOOKED_AT: usize = 1024;

/// The same on kernels that do not translate: among the threads of the process itself.
fn translate_among(process: u32, thread: u32) -> Result<u32, String> {
    let folder = fs::read_dir(format!("/proc/{process}/task"))
        .map_err(|error| format!("the threads of process {process}: {error}"))?;
    for entry in folder.take(LOOKED_AT).flatten() {
        let name = entry.file_name();
        let Ok(text) = fs::read_to_string(entry.path().join("status")) else { continue };
        let innermost = line(&text, "NSpid:")
            .and_then(|line| line.split_ascii_whitespace().last())
            .and_then(|last| last.parse().ok());
        if innermost == Some(thread) {
            return name
                .to_str()
                .and_then(|name| name.parse().ok())
                .ok_or_else(|| format!("/proc/{process}/task has no numbers"));
        }
    }
    Err(format!(
        "process {process} is in another PID namespace, and this kernel translates only the TIDs of its own \
         threads (the first {LOOKED_AT}), and {thread} is not one of them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn this_thread() -> u32 {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }

    #[test]
    fn start_times_are_read_whatever_the_thread_name() {
        let stat = b"7 (a) b) 1 2) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(parse_start(stat), Some(4711));
        for cut in 0..stat.len() - 3 {
            let _ = parse_start(&stat[..cut]);
        }
        assert_eq!(parse_start(b""), None);
    }

    #[test]
    fn a_thread_is_pinned_until_it_ends() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            sender.send(this_thread()).unwrap();
            let _ = ended.recv();
        });
        let number = receiver.recv().unwrap();
        let (thread, _) = Thread::pin(number).unwrap();
        assert!(thread.lives());
        let me = rustix::process::getuid().as_raw();
        assert_eq!(thread.owner().unwrap(), Owner { real: me, effective: me, process: std::process::id() });
        drop(end);
        other.join().unwrap();
        // join() returns before the kernel has quite forgotten the thread.
        while thread.lives() {
            std::thread::yield_now();
        }
        assert!(thread.owner().is_err() || Thread::pin(number).is_err());
    }

    #[test]
    fn tids_of_this_namespace_are_unchanged() {
        assert!(shares_namespace(std::process::id()).unwrap());
        assert_eq!(translate(std::process::id(), this_thread()), Ok(this_thread()));
        assert_eq!(translate_among(std::process::id(), this_thread()), Ok(this_thread()));
        assert!(translate_among(std::process::id(), 1 << 30).unwrap_err().contains("is not one of them"));
    }
}
