//! Which threads a task is.

use punctual_model::table::ThreadPattern;

/// What the threads of a task are called, and where they belong. A thread must match all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    /// The thread's name (`comm`), as a glob.
    pub comm: Option<String>,
    /// The command line of its process, as a glob.
    pub command: Option<String>,
    /// Its control group, or one above: a path or a glob.
    pub cgroup: Option<String>,
    /// The unit of systemd that it belongs to.
    pub unit: Option<String>,
}

impl Pattern {
    /// Threads of this name.
    pub fn named(name: &str) -> Pattern {
        Pattern { comm: Some(glob::Pattern::escape(name)), ..Pattern::default() }
    }

    /// The same for a table, which knows no units.
    pub fn table(&self) -> Option<ThreadPattern> {
        let Pattern { comm, command, cgroup, unit } = self.clone();
        unit.is_none().then_some(ThreadPattern { comm, command, cgroup })
    }
}

/// A pattern, ready to be applied.
#[derive(Clone, Debug)]
pub struct Matcher {
    comm: Option<glob::Pattern>,
    command: Option<glob::Pattern>,
    cgroup: Option<(String, Option<glob::Pattern>)>,
    unit: Option<String>,
}

/// Whether a thread is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Yes,
    No,
    /// It would depend on the control group, which is not known.
    Unknown,
}

impl Matcher {
    /// What is no glob matches literally; contracts that were read have none.
    pub fn new(pattern: &Pattern) -> Matcher {
        let glob = |text: &String| {
            glob::Pattern::new(text).or_else(|_| glob::Pattern::new(&glob::Pattern::escape(text))).ok()
        };
        Matcher {
            comm: pattern.comm.as_ref().and_then(glob),
            command: pattern.command.as_ref().and_then(glob),
            cgroup: pattern.cgroup.as_ref().map(|text| (text.clone(), glob(text))),
            unit: pattern.unit.clone(),
        }
    }

    /// Whether a thread is meant. If its control group is not known, the rest of the pattern counts, if any.
    pub fn means(&self, name: &str, command: &str, cgroup: Option<&str>) -> bool {
        self.matches(name, command, cgroup) == Match::Yes
    }

    /// Whether it depends on the control group.
    pub fn asks_for_group(&self) -> bool {
        self.cgroup.is_some() || self.unit.is_some()
    }

    /// Without its control group, a thread is matched by the rest if the pattern has any.
    pub(crate) fn matches(&self, name: &str, command: &str, cgroup: Option<&str>) -> Match {
        let fits = |pattern: &Option<glob::Pattern>, text| pattern.as_ref().is_none_or(|it| it.matches(text));
        if !fits(&self.comm, name) || !fits(&self.command, command) {
            return Match::No;
        }
        let is_inside = match cgroup {
            _ if !self.asks_for_group() => true,
            Some(cgroup) => self.contains(cgroup),
            None if self.comm.is_some() || self.command.is_some() => true,
            None => return Match::Unknown,
        };
        if is_inside { Match::Yes } else { Match::No }
    }

    fn contains(&self, cgroup: &str) -> bool {
        let is_in_group = self.cgroup.as_ref().is_none_or(|(path, glob)| {
            let below = cgroup.strip_prefix(path.trim_end_matches('/'));
            cgroup == path
                || below.is_some_and(|rest| rest.starts_with('/'))
                || glob.as_ref().is_some_and(|glob| glob.matches(cgroup))
        });
        is_in_group && self.unit.as_ref().is_none_or(|unit| cgroup.split('/').any(|part| part == unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(comm: Option<&str>, cgroup: Option<&str>, unit: Option<&str>) -> Matcher {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Matcher::new(&Pattern { comm: own(comm), command: None, cgroup: own(cgroup), unit: own(unit) })
    }

    #[test]
    fn threads_are_matched_by_all_that_is_given() {
        let group = "/system.slice/robot.service/arm";
        for (matcher, cgroup, expected) in [
            (pattern(Some("ctl*"), None, None), None, Match::Yes),
            (pattern(Some("other"), None, None), None, Match::No),
            (pattern(Some("ctl*"), Some("/system.slice"), None), Some(group), Match::Yes),
            (pattern(Some("ctl*"), Some("/system"), None), Some(group), Match::No),
            (pattern(None, Some("/*/robot*"), None), Some(group), Match::Yes),
            (pattern(None, None, Some("robot.service")), Some(group), Match::Yes),
            (pattern(None, None, Some("bot.service")), Some(group), Match::No),
            (pattern(None, None, Some("robot.service")), None, Match::Unknown),
            (pattern(Some("ctl*"), None, Some("robot.service")), None, Match::Yes),
        ] {
            assert_eq!(matcher.matches("ctl-1", "robot -v", cgroup), expected, "{matcher:?}");
        }
    }
}
