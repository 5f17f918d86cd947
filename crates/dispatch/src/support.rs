//! What this machine allows a dispatcher.

use punctual_linux::scheduling::{self, Scheduling};
use punctual_linux::system;
use punctual_schedule::AssignedPolicy;
use std::fs;

/// Options of the kernel's command line that keep processors quiet.
const BOOT_OPTIONS: [&str; 3] = ["irqaffinity", "rcu_nocbs", "nohz_full"];

/// What works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// Whether threads may have real-time priorities; or why not.
    pub priorities: Result<(), String>,
    /// Whether threads can be frozen by cgroups of their own.
    pub freezes: bool,
    /// Whether sched_ext dispatches; or why not, and what to do.
    pub sched_ext: Result<(), String>,
    /// Options of the kernel's command line that keep processors quiet, with their values.
    pub boot_options: Vec<(&'static str, Option<String>)>,
}

/// Tries what a dispatcher needs.
pub fn support() -> Support {
    let boot_options = system::boot_options();
    let option = |name: &'static str| (name, value_of(&boot_options, name));
    Support {
        priorities: try_priority(),
        freezes: system::cgroups().is_some_and(|mount| try_cgroup(&mount)),
        sched_ext: crate::ext::works(),
        boot_options: BOOT_OPTIONS.map(option).to_vec(),
    }
}

/// A thread of its own tries, so that nothing has to be put back.
fn try_priority() -> Result<(), String> {
    let try_it = || {
        let fifo = Scheduling::from_policy(AssignedPolicy::Fifo(1));
        scheduling::schedule(0, &fifo).map_err(|refused| refused.to_string())
    };
    std::thread::spawn(try_it).join().unwrap_or_else(|_| Err("the test thread panicked".into()))
}

fn try_cgroup(mount: &std::path::Path) -> bool {
    let path = mount.join(format!("punctual-tt-{}-doctor", std::process::id()));
    let is_made = fs::create_dir(&path).is_ok();
    let freezes = is_made && path.join("cgroup.freeze").exists();
    is_made && fs::remove_dir(&path).is_ok() && freezes
}

fn value_of(command_line: &str, name: &str) -> Option<String> {
    let mut words = command_line.split_whitespace();
    words.find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_on_the_command_line() {
        let line = "quiet nohz_full=1-3 irqaffinity=0 x=nohz_full=7\n";
        assert_eq!(value_of(line, "nohz_full").as_deref(), Some("1-3"));
        assert_eq!(value_of(line, "irqaffinity").as_deref(), Some("0"));
        assert_eq!(value_of(line, "rcu_nocbs"), None);
        assert_eq!(value_of(line, "nohz"), None);
    }
}
