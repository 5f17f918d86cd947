//! The kernel's runtime-verification monitors, which watch the rules that the bound rests on. What is
//! switched on here is switched off at the end. (kernel: Documentation/trace/rv)

use crate::error::{Error, ErrorKind, Result};
use punctual_model::Instant;
use punctual_model::latency::Monitor;
use std::fs;
use std::path::{Path, PathBuf};

/// The monitors, and the paper's rules and operations that each watches.
const MONITORS: [(&str, &[&str]); 8] = [
    ("nrp", &["R12", "R14"]),
    ("opid", &["R10", "R11"]),
    ("sco", &["O7"]),
    ("scpd", &["R6"]),
    ("snep", &["R7"]),
    ("snroc", &["O8"]),
    ("sssw", &["O4", "O8"]),
    ("sts", &["R5", "R8", "R9"]),
];

/// Monitors that are on. Dropping this restores what was before.
pub struct Monitors {
    tracing: PathBuf,
    /// A buffer of its own for the violations.
    instance: PathBuf,
    watching: Vec<(&'static str, &'static [&'static str])>,
    /// Those of them that were off before.
    switched_on: Vec<&'static str>,
    /// Whether monitors that are on were to watch.
    was_on: bool,
    from: Instant,
}

impl Monitors {
    /// Switches on all that this kernel has; an error says why it has none.
    pub fn start() -> Result<Monitors> {
        let tracing = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"].map(PathBuf::from);
        let tracing = tracing.into_iter().find(|folder| folder.join("rv").is_dir()).ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                "this kernel has no runtime-verification monitors to --verify with",
            )
            .advise("it needs CONFIG_RV and CONFIG_RV_MON_SCHED, and tracefs mounted")
        })?;
        let available = names(&tracing.join("rv/available_monitors"))?;
        let enabled = names(&tracing.join("rv/enabled_monitors"))?;
        let was_on = read(&tracing.join("rv/monitoring_on"))?.trim() != "0";
        if was_on && enabled.is_empty() {
            write(&tracing.join("rv/monitoring_on"), "0")?;
        }
        let instance = tracing.join(format!("instances/punctual-{}", std::process::id()));
        fs::create_dir(&instance).map_err(|error| Error::io("create", instance.display(), &error))?;
        let mut monitors = Monitors {
            tracing,
            instance,
            watching: Vec::new(),
            switched_on: Vec::new(),
            was_on,
            from: crate::platform::now(),
        };
        for (name, rules) in MONITORS.into_iter().filter(|(name, _)| available.iter().any(|it| it == name)) {
            let event = monitors.instance.join(format!("events/rv/error_{name}/enable"));
            write(&event, "1")?;
            if !enabled.iter().any(|it| it == name) {
                write(&monitors.tracing.join("rv/enabled_monitors"), name)?;
                monitors.switched_on.push(name);
            }
            monitors.watching.push((name, rules));
        }
        // From off to on, they begin anew: a monitor that watches while it is attached to one event after
        // another has missed some.
        write(&monitors.tracing.join("rv/monitoring_on"), "1")?;
        monitors.from = crate::platform::now();
        Ok(monitors)
    }

    /// What they have found by now. Tells of each violated rule how, the first time.
    pub fn result(&self, until: Instant, warn: impl Fn(&str)) -> Result<Vec<Monitor>> {
        let trace = read(&self.instance.join("trace"))?;
        for (name, rules) in &self.watching {
            if let Some(how) = violations(&trace, name).next() {
                let rules = rules.join(" ");
                warn(&format!("the kernel's monitor {name} ({rules}) found a violation: {how}"));
            }
        }
        let monitor = |&(name, rules): &(&str, &[&str])| Monitor {
            name: name.to_owned(),
            rules: rules.iter().map(|rule| (*rule).to_owned()).collect(),
            watched_ns: until.since(self.from),
            violations: violations(&trace, name).count() as u64,
        };
        Ok(self.watching.iter().map(monitor).collect())
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        // Nothing can be done about a failure here, and the next is worth trying.
        for name in &self.switched_on {
            let _ = write(&self.tracing.join("rv/enabled_monitors"), &format!("!{name}"));
        }
        let _ = write(&self.tracing.join("rv/monitoring_on"), if self.was_on { "1" } else { "0" });
        let _ = fs::remove_dir(&self.instance);
    }
}

/// A monitor's violations in a trace: `error_nrp: event … not expected in the state …`.
fn violations<'a>(trace: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let event = format!(" error_{name}: ");
    let events = trace.lines().filter(|line| !line.starts_with('#'));
    events.filter_map(move |line| Some(line.split_once(&event)?.1))
}

/// The monitors in a list; those of a group have its name before theirs: `sched:nrp`.
fn names(list: &Path) -> Result<Vec<String>> {
    let name = |line: &str| line.trim().rsplit(':').next().unwrap_or_default().to_owned();
    Ok(read(list)?.lines().map(name).collect())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Error::io("read", path.display(), &error))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::io("write", path.display(), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_counted_by_monitor() {
        let trace = "# tracer: nop\n\
            hackbench-71 [000] d..2. 1.5: error_nrp: 71: event schedule_entry not expected in the state x\n\
            <idle>-0 [000] d..2. 1.6: error_sts: event irq_enable not expected in the state y\n\
            hackbench-71 [000] d..2. 1.7: error_nrp: 71: event schedule_entry not expected in the state x\n";
        let found = |name| violations(trace, name).collect::<Vec<_>>();
        assert_eq!(found("nrp").len(), 2);
        assert_eq!(found("sts"), ["event irq_enable not expected in the state y"]);
        assert!(found("opid").is_empty());
    }

    #[test]
    fn monitors_are_in_the_order_of_the_file() {
        assert!(MONITORS.is_sorted_by_key(|(name, _)| *name));
    }
}
