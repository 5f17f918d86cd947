//! What the kernel's own accounts say of a thread: how much it has taken, whether it has blocked, whether it
//! sleeps. For where perf events are refused; of a running thread, they are right up to the last tick.

use super::budget::Look;
use super::now;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The accounts of one thread.
#[derive(Debug)]
pub struct Account {
    /// `schedstat`: processor time first.
    times: File,
    /// `status`: its state, and how often it has blocked.
    status: File,
    taken: u64,
    blocked: u64,
}

impl Account {
    /// From now on.
    pub fn open(thread: u32) -> io::Result<Account> {
        let file = |name: &str| {
            let path = format!("/proc/{thread}/task/{thread}/{name}");
            File::open(&path).map_err(|error| match error.raw_os_error() {
                Some(libc::ENOENT) if std::fs::exists(format!("/proc/{thread}")).unwrap_or(true) => {
                    io::Error::new(error.kind(), format!("{path}: the kernel has none (CONFIG_SCHED_INFO)"))
                }
                Some(libc::ENOENT) => io::Error::from_raw_os_error(libc::ESRCH),
                _ => error,
            })
        };
        let mut account =
            Account { times: file("schedstat")?, status: file("status")?, taken: 0, blocked: 0 };
        account.look()?;
        Ok(account)
    }

    /// What has changed since the last look.
    pub fn look(&mut self) -> io::Result<Look> {
        let from = now();
        // In this order: what it takes after it has blocked is not seen before that.
        let taken: u64 = read(&self.times, |text| text.split_ascii_whitespace().next()?.parse().ok())?;
        let (sleeps, blocked) = read(&self.status, state)?;
        let look = Look {
            from,
            now: now(),
            took: taken.saturating_sub(self.taken),
            has_blocked: blocked != self.blocked,
            sleeps,
        };
        (self.taken, self.blocked) = (taken, blocked);
        Ok(look)
    }
}

/// Reads a file of the kernel's anew.
fn read<T>(file: &File, parse: impl FnOnce(&str) -> Option<T>) -> io::Result<T> {
    let mut bytes = [0; 4096];
    let length = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    // Of a thread that has ended, it is empty.
    parse(&text).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
}

/// Whether the thread sleeps, and how often it has blocked.
fn state(status: &str) -> Option<(bool, u64)> {
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let blocked = value("voluntary_ctxt_switches:")?.parse().ok()?;
    Some((!value("State:")?.starts_with('R'), blocked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read() {
        let status = "Name:\tx\nState:\tS (sleeping)\nvoluntary_ctxt_switches:\t12\n\
                      nonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(state(status), Some((true, 12)));
        assert_eq!(state(&status.replace("S (sleeping)", "R (running)")), Some((false, 12)));
        assert_eq!(state(""), None);
    }

    #[test]
    fn this_thread_runs_and_blocks() {
        let number = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut account = match Account::open(number) {
            Ok(account) => account,
            Err(error) => return eprintln!("SKIPPED: {error}"),
        };
        let first = account.look().unwrap();
        assert!(!first.sleeps && first.from <= first.now);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let then = account.look().unwrap();
        assert!(then.has_blocked && !then.sleeps && then.from >= first.now, "{then:?}");
        let mut sleeper = Sleeper(std::process::Command::new("sleep").arg("1000").spawn().unwrap());
        let number = sleeper.0.id();
        let mut account = Account::open(number).unwrap();
        // It may sleep while it starts, too.
        while !(is_in_its_sleep(number) && account.look().unwrap().sleeps) {
            std::thread::yield_now();
        }
        // What it took before it slept is told by the look that saw it asleep.
        let asleep = account.look().unwrap();
        assert!(asleep.sleeps && (asleep.took, asleep.has_blocked) == (0, false), "{asleep:?}");
        sleeper.end();
        assert!(account.look().is_err());
        assert!(Account::open(number).is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH)));
    }

    /// Where the kernel does not show the system call, any sleep counts.
    fn is_in_its_sleep(number: u32) -> bool {
        let call = std::fs::read_to_string(format!("/proc/{number}/syscall"));
        call.map_or(true, |call| call.split(' ').next() == Some(&libc::SYS_clock_nanosleep.to_string()))
    }

    /// A process that does not outlive the test: it would keep the test's output open.
    struct Sleeper(std::process::Child);

    impl Sleeper {
        fn end(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.end();
        }
    }
}
