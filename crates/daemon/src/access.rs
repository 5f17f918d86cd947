//! Access control: the question that the registry asks, and the types of its answer. The rules (`rules.rs`)
//! answer it.

use punctual_model::Duration;
use punctual_schedule::Parameters;

/// The user who asks, according to the socket: effective user and group, and the supplementary groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Effective user.
    pub user: u32,
    /// Effective group.
    pub group: u32,
    /// Supplementary groups; the effective one may be among them.
    pub groups: Vec<u32>,
}

impl Who {
    /// Whether this is root, to whom no rules apply.
    pub fn is_root(&self) -> bool {
        self.user == 0
    }

    /// Whether rules for that domain apply.
    pub fn is_in(&self, domain: Domain) -> bool {
        match domain {
            Domain::Everyone => true,
            Domain::User(user) => self.user == user,
            Domain::Group(group) => self.group == group || self.groups.contains(&group),
        }
    }

    /// All domains of this user, each once.
    pub fn domains(&self) -> impl Iterator<Item = Domain> + '_ {
        let other = self
            .groups
            .iter()
            .enumerate()
            .filter(|&(at, group)| *group != self.group && !self.groups[..at].contains(group));
        [Domain::Everyone, Domain::User(self.user), Domain::Group(self.group)]
            .into_iter()
            .chain(other.map(|(_, &group)| Domain::Group(group)))
    }
}

/// Those to whom a rule applies (ReTiF, Section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// `-`
    Everyone,
    /// A user's name, in the file.
    User(u32),
    /// `@` and a group's name, in the file.
    Group(u32),
}

/// A share of processors, in 2⁻⁶⁴ of one: sums are exact, and whatever was added can be taken away again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub u128);

impl Share {
    /// One processor.
    pub const ONE: Share = Share(1 << 64);

    /// `runtime` / min(period, deadline), rounded up once; nothing where no period or deadline is declared
    /// (ReTiF, Equation 1).
    pub fn new(runtime: Option<Duration>, parameters: &Parameters) -> Share {
        match (runtime, window(parameters)) {
            (Some(runtime), Some(window)) if window > Duration::ZERO => {
                let (runtime, window) = (u128::from(runtime.ns()) << 64, u128::from(window.ns()));
                Share(runtime.div_ceil(window))
            }
            _ => Share::default(),
        }
    }

    /// The longest runtime in each min(period, deadline) that is not more than this; `None` where neither is
    /// declared.
    pub fn runtime(self, parameters: &Parameters) -> Option<Duration> {
        // More than 2⁶³ processors is as good as 2⁶³.
        let share = self.0.min(1 << 127);
        window(parameters).map(|window| {
            let (whole, part) = (share >> 64, share & u128::from(u64::MAX));
            let window = u128::from(window.ns());
            Duration::from_ns(u64::try_from(whole * window + ((part * window) >> 64)).unwrap_or(u64::MAX))
        })
    }
}

/// min(T, D), of those that are declared.
fn window(parameters: &Parameters) -> Option<Duration> {
    parameters.period.into_iter().chain(parameters.deadline).min()
}

/// How much is in use now. The spec that is being replaced does not count.
pub trait Usage {
    /// The sum of accepted shares of all specs of a domain, under that plugin or under any. O(1).
    fn share(&self, domain: Domain, plugin: Option<&str>) -> Share;
}

/// What is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The longest runtime to accept, whatever is desired; `None` without a limit.
    pub greatest_runtime: Option<Duration>,
}

/// What is allowed if Polkit authorises it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditional {
    /// That.
    pub grant: Grant,
    /// The line that leaves it to Polkit, as written, with its file and number.
    pub rule: String,
}

/// Why something is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// What was asked, what is allowed: a sentence.
    pub reason: String,
    /// The line that decides, as written, with its file and number; `None` where no rule allows anything.
    pub rule: Option<String>,
}

/// Access control. Not asked about root.
pub trait Access: std::fmt::Debug {
    /// Whether a spec of these parameters may go to that plugin. All rules that match must allow it; where
    /// none matches, it is denied. A runtime that is declared is within the grant; the desired one may be
    /// beyond it, and is then cut.
    fn check(
        &self,
        who: &Who,
        plugin: &str,
        parameters: &Parameters,
        usage: &dyn Usage,
    ) -> Result<Grant, Denied>;

    /// The same for a request that Polkit has authorised; `None` where no rule leaves anything to Polkit.
    fn check_authorised(
        &self,
        _: &Who,
        _plugin: &str,
        _: &Parameters,
        _: &dyn Usage,
    ) -> Option<Result<Conditional, Denied>> {
        None
    }

    /// Whether a rule leaves anything to Polkit, for anybody.
    fn leaves_to_polkit(&self) -> bool {
        false
    }

    /// Whether somebody may see the specs of all users that this plugin has, and report what they use.
    fn may_observe(&self, _: &Who, _plugin: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_domain_is_listed_once() {
        let who = Who { user: 1000, group: 100, groups: vec![4, 100, 24, 4] };
        let domains: Vec<Domain> = who.domains().collect();
        assert_eq!(
            domains,
            [Domain::Everyone, Domain::User(1000), Domain::Group(100), Domain::Group(4), Domain::Group(24)]
        );
        assert!(domains.iter().all(|&domain| who.is_in(domain)));
        assert!(!who.is_in(Domain::User(1)) && !who.is_in(Domain::Group(1)));
    }

    proptest! {
        #[test]
        fn a_runtime_within_a_share_does_not_exceed_it(runtime in 0u64.., period in 1u64..,
            share in 0u128..1 << 66) {
            let parameters = Parameters { period: Some(Duration::from_ns(period)), ..Parameters::default() };
            prop_assume!(share >> 64 <= 3);
            let greatest = Share(share).runtime(&parameters).unwrap();
            prop_assert!(Share::new(Some(greatest), &parameters) <= Share(share));
            let runtime = Duration::from_ns(runtime);
            prop_assert_eq!(runtime <= greatest || greatest.ns() == u64::MAX,
                Share::new(Some(runtime), &parameters) <= Share(share) || greatest.ns() == u64::MAX);
        }
    }
}
