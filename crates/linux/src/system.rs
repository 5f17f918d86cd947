//! What the kernel and the machine are.

use punctual_model::{Instant, processor_list};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folders where tracefs may be mounted.
pub const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The file with the processors that are online.
pub const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The inode of the PID namespace that the machine boots with.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// The processors that are online; `None` if that cannot be read.
pub fn online() -> Option<Vec<u32>> {
    processors("online")
}

/// The processors on which the kernel stops its tick.
pub fn without_tick() -> Vec<u32> {
    processors("nohz_full").unwrap_or_default()
}

/// The greatest number that a processor of this machine can have.
pub fn greatest_processor() -> u32 {
    processors("possible").and_then(|all| all.last().copied()).unwrap_or(0)
}

fn processors(list: &str) -> Option<Vec<u32>> {
    processor_list(&fs::read_to_string(format!("/sys/devices/system/cpu/{list}")).ok()?)
}

/// The kernel's release, as `uname -r`.
pub fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Version and patch level of the kernel that runs; 0.0 if its release names none.
pub fn kernel_version() -> (u32, u32) {
    version_of(&kernel_release())
}

fn version_of(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The command line that the kernel was booted with.
pub fn boot_options() -> String {
    fs::read_to_string("/proc/cmdline").unwrap_or_default()
}

/// Where control groups of version 2 are mounted; `None` if they are not.
pub fn cgroups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    fields.find(|fields| fields.get(2) == Some(&"cgroup2"))?.get(1).map(PathBuf::from)
}

/// The folder of tracefs that has this file or folder.
pub fn tracefs_with(file: &str) -> Option<PathBuf> {
    TRACEFS.map(Path::new).into_iter().find(|root| root.join(file).exists()).map(Path::to_path_buf)
}

/// The inode of this process's PID namespace, if that can be read.
pub fn pid_namespace() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|namespace| namespace.ino())
}

/// Whether it is the one that the machine boots with, so that processes have the same numbers as everywhere.
pub fn is_first_pid_namespace() -> bool {
    pid_namespace() == Some(FIRST_PID_NAMESPACE)
}

/// The present time on CLOCK_MONOTONIC, the clock of all records.
pub fn now() -> Instant {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Instant::from_ns(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_two_numbers_of_the_release() {
        assert_eq!(version_of("6.12.48+deb13-amd64"), (6, 12));
        assert_eq!(version_of("7.2-rc1"), (7, 2));
        assert_eq!(version_of(""), (0, 0));
        assert!(kernel_version() >= (3, 14), "{}", kernel_release());
    }

    #[test]
    fn this_processor_is_one_of_the_machines() {
        let online = online().expect("the processors");
        assert!(online.iter().all(|processor| *processor <= greatest_processor()), "{online:?}");
    }
}
