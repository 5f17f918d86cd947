//! What `/proc` tells of processes and threads. A thread's number may stand wherever a process's may.

use punctual_model::Duration;
use std::fs;
use std::io;
use std::path::Path;

/// All processes.
pub fn processes() -> impl Iterator<Item = u32> {
    numbers("/proc")
}

/// The threads of a process; none if it has ended.
pub fn threads(process: u32) -> impl Iterator<Item = u32> {
    numbers(&format!("/proc/{process}/task"))
}

fn numbers(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process or thread has not ended.
pub fn exists(number: u32) -> bool {
    Path::new(&format!("/proc/{number}")).exists()
}

/// Its name; `None` if it has ended. Only the kernel's line end is taken off: a name may contain others.
pub fn name(number: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{number}/comm")).ok()?;
    let name = String::from_utf8_lossy(&name);
    Some(name.strip_suffix('\n').unwrap_or(&name).to_owned())
}

/// The arguments of a process's command, each with its NUL; none of a kernel thread's, and if it has ended.
pub fn arguments(process: u32) -> Vec<u8> {
    fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default()
}

/// The control group of version 2 that it is in.
pub fn cgroup(number: u32) -> io::Result<String> {
    let cgroups = fs::read_to_string(format!("/proc/{number}/cgroup"))?;
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"));
    own.map(str::to_owned).ok_or_else(|| io::Error::other("it is in no cgroup of version 2"))
}

/// The processes that a thread has started; `None` on kernels without CONFIG_PROC_CHILDREN, and if it has
/// ended.
pub fn children(thread: u32) -> Option<Vec<u32>> {
    let list = fs::read_to_string(format!("/proc/{thread}/task/{thread}/children")).ok()?;
    Some(list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect())
}

/// Processor time that a thread has had by the kernel's account: as of the last tick, if it runs.
pub fn processor_time(process: u32, thread: u32) -> io::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat"))?;
    let used = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
    used.map(Duration::from_ns).ok_or_else(|| io::Error::other("schedstat has no number"))
}

/// The file `stat` of a process or thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat(String);

impl Stat {
    /// `None` if it has ended.
    pub fn of(number: u32) -> Option<Stat> {
        fs::read_to_string(format!("/proc/{number}/task/{number}/stat")).ok().map(Stat)
    }

    /// The file's text.
    pub fn from_text(text: impl Into<String>) -> Stat {
        Stat(text.into())
    }

    /// The name, which may hold anything.
    pub fn name(&self) -> Option<&str> {
        let (before, _) = self.0.rsplit_once(')')?;
        before.split_once('(').map(|(_, name)| name)
    }

    /// A field behind the name by its number in proc(5): 3 is the state, 4 the parent.
    pub fn field<T: std::str::FromStr>(&self, number: usize) -> Option<T> {
        let (_, behind) = self.0.rsplit_once(')')?;
        behind.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// The number of the parent.
    pub fn parent(&self) -> Option<u32> {
        self.field(4)
    }

    /// Whether it is a thread of the kernel's.
    pub fn is_of_kernel(&self) -> bool {
        const PF_KTHREAD: u64 = 0x0020_0000;
        self.field::<u64>(9).is_some_and(|flags| flags & PF_KTHREAD != 0)
    }

    /// When it started, in ticks since the boot.
    pub fn start(&self) -> Option<u64> {
        self.field(22)
    }

    /// The processor that it runs on, or has run on last.
    pub fn processor(&self) -> Option<u32> {
        self.field(39)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_a_name_that_holds_anything() {
        let rest = "7 12 12 0 -1 4194304 80 0 0 0 0 0 0 0 20 0 1 0 8151 2600960";
        let stat = Stat::from_text(format!("12 (a) S 9 (b) S {rest}"));
        assert_eq!((stat.name(), stat.parent(), stat.start()), (Some("a) S 9 (b"), Some(7), Some(8_151)));
        assert!(!stat.is_of_kernel() && stat.processor().is_none());
        let cut = Stat::from_text("12 (sh");
        assert_eq!((cut.name(), cut.parent(), cut.field::<u32>(0)), (None, None, None));
        let kernels =
            |flags: u64| Stat::from_text(format!("7 (rcuc/1) S 2 0 0 0 -1 {flags} 0")).is_of_kernel();
        assert_eq!([kernels(0x0420_8040), kernels(0x0040_0000)], [true, false]);
    }

    #[test]
    fn this_process_is_found() {
        let own = std::process::id();
        let stat = Stat::of(own).expect("this process");
        assert!(stat.parent() > Some(0) && stat.start() > Some(0) && !stat.is_of_kernel(), "{stat:?}");
        assert!(processes().any(|it| it == own) && threads(own).any(|it| it == own) && exists(own));
        assert_eq!(name(own).as_deref(), stat.name());
        assert!(processor_time(own, own).expect("its time") > Duration::ZERO);
        // No process has the greatest number.
        assert!(!exists(1 << 22) && name(1 << 22).is_none() && Stat::of(1 << 22).is_none());
    }

    #[test]
    fn a_name_may_contain_a_line_end() {
        let (named, is_named) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::Builder::new().name("a name\n".into());
        let other = other.spawn(move || {
            named.send(rustix::thread::gettid().as_raw_nonzero().get() as u32).expect("the test waits");
            let _ = ended.recv();
        });
        let other = other.expect("a thread");
        let found = name(is_named.recv().expect("it runs"));
        drop(end);
        other.join().expect("ended");
        assert_eq!(found.as_deref(), Some("a name\n"));
    }
}
