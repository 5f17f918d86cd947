//! Which options of the kernel's command line keep the processors of a table quiet. They are not the same for
//! both dispatchers: sched_ext ends turns by a timer that keeps its phase only where the kernel's tick goes
//! on, and `nohz_full` stops that.

use punctual_dispatch::Support;
use punctual_observe::{Check, Verdict};

/// For either dispatcher; the third is for the one in user space only.
const FOR_BOTH: [&str; 2] = ["irqaffinity", "rcu_nocbs"];
const NOHZ_FULL: &str = "nohz_full";

const BOOT: &str = "boot with irqaffinity= naming the processors without a table, and with rcu_nocbs=";
const WITH_NOHZ: &str = " and nohz_full= naming those with one";
const WITHOUT_NOHZ: &str = " naming those with one; nohz_full= for these is for --dispatcher user-space only";
const LEAVE_OUT: &str = "boot without nohz_full= for the processors with a table, or dispatch it with \
                         --dispatcher user-space, for which nohz_full= is right";

/// What is set, and what should be for the dispatcher that `punctual tt run` chooses by itself.
pub fn quiet(found: &Support) -> Check {
    let check = |ok, detail, advice: Option<String>| Check {
        name: "quiet processors",
        ok,
        detail,
        advice,
        needed_for: "slots that begin within some microseconds",
    };
    let is_by_sched_ext = found.sched_ext.is_ok();
    let (set, missing): (Vec<_>, Vec<_>) = found.boot_options.iter().partition(|option| option.1.is_some());
    let is_wanted = |name: &str| FOR_BOTH.contains(&name) || !is_by_sched_ext;
    let missing: Vec<&str> = missing.iter().map(|option| option.0).filter(|name| is_wanted(name)).collect();
    let shown =
        |name: &str, value: &Option<String>| format!("{name}={}", value.as_deref().unwrap_or_default());
    let harmful = set.iter().find(|option| is_by_sched_ext && option.0 == NOHZ_FULL);

    let mut details = Vec::new();
    let mut advice = Vec::new();
    if !missing.is_empty() {
        details.push(format!("the kernel was booted without {}", missing.join(", ")));
        advice.push(format!("{BOOT}{}", if is_by_sched_ext { WITHOUT_NOHZ } else { WITH_NOHZ }));
    }
    if let Some((name, value)) = harmful {
        let value = shown(name, value);
        details
            .push(format!("{value} takes from sched_ext the timers of these processors: slots begin later"));
        advice.push(LEAVE_OUT.into());
    }
    if details.is_empty() {
        let all: Vec<String> = set.iter().map(|(name, value)| shown(name, value)).collect();
        return check(Verdict::Works, all.join(" "), None);
    }
    check(Verdict::Degraded, details.join("; "), Some(advice.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sched_ext: bool, set: &[(&'static str, &str)]) -> Check {
        let value = |name| set.iter().find(|option| option.0 == name).map(|option| option.1.to_owned());
        let sched_ext = if sched_ext { Ok(()) } else { Err("not here".into()) };
        let boot_options = ["irqaffinity", "rcu_nocbs", "nohz_full"].map(|name| (name, value(name))).to_vec();
        quiet(&Support { priorities: Ok(()), freezes: true, sched_ext, boot_options })
    }

    const ALL: [(&str, &str); 3] = [("irqaffinity", "0"), ("rcu_nocbs", "1-3"), ("nohz_full", "1-3")];

    fn advice(check: &Check) -> &str {
        check.advice.as_deref().unwrap_or_default()
    }

    #[test]
    fn user_space_wants_the_tick_stopped() {
        let none = found(false, &[]);
        assert_eq!(none.detail, "the kernel was booted without irqaffinity, rcu_nocbs, nohz_full");
        assert_eq!(
            advice(&none),
            "boot with irqaffinity= naming the processors without a table, and with rcu_nocbs= and \
             nohz_full= naming those with one"
        );
        let some = found(false, &ALL[..2]);
        assert_eq!(some.detail, "the kernel was booted without nohz_full");
        let all = found(false, &ALL);
        assert_eq!((all.ok, &*all.detail), (Verdict::Works, "irqaffinity=0 rcu_nocbs=1-3 nohz_full=1-3"));
    }

    #[test]
    fn sched_ext_needs_the_tick() {
        let none = found(true, &[]);
        assert_eq!(none.detail, "the kernel was booted without irqaffinity, rcu_nocbs");
        assert_eq!(
            advice(&none),
            "boot with irqaffinity= naming the processors without a table, and with rcu_nocbs= naming those \
             with one; nohz_full= for these is for --dispatcher user-space only"
        );
        let right = found(true, &ALL[..2]);
        assert_eq!((right.ok, &*right.detail), (Verdict::Works, "irqaffinity=0 rcu_nocbs=1-3"));
        assert!(right.advice.is_none());
        let all = found(true, &ALL);
        assert_eq!(all.ok, Verdict::Degraded);
        assert_eq!(
            all.detail,
            "nohz_full=1-3 takes from sched_ext the timers of these processors: slots begin later"
        );
        assert!(advice(&all).starts_with("boot without nohz_full= for the processors with a table"));
    }
}
