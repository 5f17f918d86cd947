//! Which thread is which task: by name, number, command line or cgroup.

use glob::Pattern;

/// What a thread has to match to be a task's. Everything that is said must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Its number.
    pub tid: Option<u32>,
    /// Pattern of its name.
    pub comm: Option<Pattern>,
    /// Pattern of its process's command line, words separated by blanks.
    pub command: Option<Pattern>,
    /// Its cgroup, as `/proc/PID/cgroup` names it: this one or one below it.
    pub cgroup: Option<String>,
}

/// A live thread, as far as selectors ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its number.
    pub tid: u32,
    /// Its process.
    pub process: u32,
    /// Its name.
    pub comm: String,
    /// Its process's command line.
    pub command: String,
    /// Its cgroup of version 2.
    pub cgroup: String,
}

impl Selector {
    /// A thread of this name. Linux keeps 15 bytes of a name, so longer ones are cut.
    pub fn named(name: &str) -> Selector {
        let mut end = name.len().min(15);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let comm = Pattern::new(&Pattern::escape(&name[..end])).ok();
        Selector { comm, ..Selector::default() }
    }

    /// The thread of this number.
    pub fn numbered(tid: u32) -> Selector {
        Selector { tid: Some(tid), ..Selector::default() }
    }

    /// Whether a thread is meant.
    pub fn matches(&self, thread: &Candidate) -> bool {
        let within = |cgroup: &String| {
            thread.cgroup == *cgroup
                || thread
                    .cgroup
                    .strip_prefix(cgroup.trim_end_matches('/'))
                    .is_some_and(|rest| rest.starts_with('/'))
        };
        let says_something = *self != Selector::default();
        says_something
            && self.tid.is_none_or(|tid| tid == thread.tid)
            && self.comm.as_ref().is_none_or(|pattern| pattern.matches(&thread.comm))
            && self.command.as_ref().is_none_or(|pattern| pattern.matches(&thread.command))
            && self.cgroup.as_ref().is_none_or(within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread() -> Candidate {
        Candidate {
            tid: 12,
            process: 10,
            comm: "control".into(),
            command: "/usr/bin/robot --fast".into(),
            cgroup: "/system.slice/robot.service".into(),
        }
    }

    fn pattern(text: &str) -> Option<Pattern> {
        Some(Pattern::new(text).expect("a pattern"))
    }

    #[test]
    fn everything_that_is_said_must_hold() {
        let thread = thread();
        assert!(Selector::named("control").matches(&thread) && !Selector::named("contro*").matches(&thread));
        assert!(Selector::numbered(12).matches(&thread) && !Selector::numbered(10).matches(&thread));
        let both = Selector { command: pattern("*robot*"), ..Selector::named("control") };
        assert!(both.matches(&thread));
        assert!(!Selector { command: pattern("*plane*"), ..both }.matches(&thread));
        assert!(!Selector::default().matches(&thread), "a selector that says nothing is nobody");
    }

    #[test]
    fn a_cgroup_has_those_below() {
        let within =
            |cgroup: &str| Selector { cgroup: Some(cgroup.into()), ..Selector::default() }.matches(&thread());
        assert!(within("/system.slice") && within("/system.slice/robot.service") && within("/"));
        assert!(!within("/system.slice/robot") && !within("/user.slice"));
    }

    #[test]
    fn long_names_are_cut_as_the_kernel_cuts_them() {
        let cut = Candidate { comm: "a_very_long_nam".into(), ..thread() };
        assert!(Selector::named("a_very_long_name_of_a_thread").matches(&cut));
    }
}
