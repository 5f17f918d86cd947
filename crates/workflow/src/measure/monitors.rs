//! The kernel's runtime-verification monitors, which watch the rules that the bound rests on. What is
//! switched on here is switched off at the end, also if this process is killed: a guardian does it then. If
//! that is killed too, the next measurement does; until then, `punctual doctor` tells.
//! (kernel: Documentation/trace/rv)

use super::guardian::{Guardian, Step};
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

/// How buffers of measurements are called: this and the process.
const PREFIX: &str = "punctual-";
/// In such a buffer, before what was switched on for it.
const NOTE: &str = "punctual switched on:";

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
    guardian: Option<Guardian>,
}

impl Monitors {
    /// Switches on all that this kernel has; an error says why it has none.
    pub fn start() -> Result<Monitors> {
        let tracing = tracing().ok_or_else(|| {
            Error::new(
                ErrorKind::Unsupported,
                "this kernel has no runtime-verification monitors to --verify with",
            )
            .advise("it needs CONFIG_RV and CONFIG_RV_MON_SCHED, and tracefs mounted")
        })?;
        leftovers(&tracing).iter().for_each(Leftover::clear);
        let available = names(&tracing.join("rv/available_monitors"))?;
        let enabled = names(&tracing.join("rv/enabled_monitors"))?;
        let was_on = read(&tracing.join("rv/monitoring_on"))?.trim() != "0";
        if was_on && enabled.is_empty() {
            write(&tracing.join("rv/monitoring_on"), "0")?;
        }
        let instance = tracing.join(format!("instances/{PREFIX}{}", std::process::id()));
        fs::create_dir(&instance).map_err(|error| Error::io("create", instance.display(), &error))?;
        let mut monitors = Monitors {
            tracing,
            instance,
            watching: Vec::new(),
            switched_on: Vec::new(),
            was_on,
            from: crate::platform::now(),
            guardian: None,
        };
        let is_in = |list: &[String], name: &str| list.iter().any(|it| it == name);
        monitors.watching = MONITORS.into_iter().filter(|(name, _)| is_in(&available, name)).collect();
        let watching = monitors.watching.iter().map(|(name, _)| *name);
        monitors.switched_on = watching.filter(|name| !is_in(&enabled, name)).collect();
        monitors.keep_note()?;
        for (name, _) in &monitors.watching {
            write(&monitors.instance.join(format!("events/rv/error_{name}/enable")), "1")?;
        }
        for name in &monitors.switched_on {
            write(&monitors.tracing.join("rv/enabled_monitors"), name)?;
        }
        // From off to on, they begin anew: a monitor that watches while it is attached to one event after
        // another has missed some.
        write(&monitors.tracing.join("rv/monitoring_on"), "1")?;
        monitors.from = crate::platform::now();
        Ok(monitors)
    }

    /// Before anything is switched on: how it is switched off if this process does not get to that. The first
    /// lines of the buffer stay, however many follow.
    fn keep_note(&mut self) -> Result<()> {
        write(&self.instance.join("options/overwrite"), "0")?;
        let was_on = u8::from(self.was_on);
        let note = format!("{NOTE} {}; monitoring_on was {was_on}", self.switched_on.join(" "));
        write(&self.instance.join("trace_marker"), &note)?;
        let enabled = self.tracing.join("rv/enabled_monitors");
        let monitors = self.switched_on.iter().map(|name| Step::write(&enabled, &format!("!{name}")));
        let on = Step::write(&self.tracing.join("rv/monitoring_on"), &was_on.to_string());
        let steps = monitors.chain([on, Step::remove(&self.instance)]).collect::<std::io::Result<Vec<_>>>();
        let guardian = steps.and_then(|steps| Guardian::start(&steps));
        let failed = |error: &std::io::Error| {
            Error::new(ErrorKind::Unsupported, "cannot start the process that switches the monitors off")
                .because(error.to_string())
        };
        self.guardian = Some(guardian.map_err(|error| failed(&error))?);
        Ok(())
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
        switch_off(&self.tracing, &self.switched_on, self.was_on);
        // Nothing can be done about a failure.
        let _ = fs::remove_dir(&self.instance);
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
    }
}

fn switch_off(tracing: &Path, monitors: &[impl AsRef<str>], was_on: bool) {
    // Nothing can be done about a failure here, and the next is worth trying.
    for name in monitors {
        let _ = write(&tracing.join("rv/enabled_monitors"), &format!("!{}", name.as_ref()));
    }
    let _ = write(&tracing.join("rv/monitoring_on"), if was_on { "1" } else { "0" });
}

/// The kernel's tracefs, if it has monitors.
fn tracing() -> Option<PathBuf> {
    punctual_linux::system::tracefs_with("rv")
}

/// What a measurement has left that was killed together with its guardian.
#[derive(Debug, PartialEq, Eq)]
pub struct Leftover {
    tracing: PathBuf,
    instance: PathBuf,
    /// Monitors that it has switched on.
    pub monitors: Vec<String>,
    was_on: bool,
}

impl Leftover {
    fn clear(&self) {
        switch_off(&self.tracing, &self.monitors, self.was_on);
        let _ = fs::remove_dir(&self.instance);
    }
}

/// What measurements have left on this machine.
pub fn left() -> Vec<Leftover> {
    tracing().map_or_else(Vec::new, |tracing| leftovers(&tracing))
}

fn leftovers(tracing: &Path) -> Vec<Leftover> {
    let instances = fs::read_dir(tracing.join("instances")).into_iter().flatten().flatten();
    let leftover = |entry: fs::DirEntry| {
        let name = entry.file_name();
        let process: u32 = name.to_str()?.strip_prefix(PREFIX)?.parse().ok()?;
        if punctual_linux::proc::exists(process) {
            return None;
        }
        let instance = entry.path();
        let trace = fs::read_to_string(instance.join("trace")).unwrap_or_default();
        let (monitors, was_on) = noted(&trace).unwrap_or_default();
        Some(Leftover { tracing: tracing.to_owned(), instance, monitors, was_on })
    };
    instances.filter_map(leftover).collect()
}

/// Which monitors were switched on for a buffer, and whether monitoring was on before.
fn noted(trace: &str) -> Option<(Vec<String>, bool)> {
    let (_, note) = trace.split_once(NOTE)?;
    let (monitors, was_on) = note.lines().next()?.split_once("; monitoring_on was ")?;
    Some((monitors.split_whitespace().map(str::to_owned).collect(), was_on.trim() == "1"))
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
    fn what_a_killed_measurement_has_left_is_known_and_cleared() {
        let folder = tempfile::tempdir().expect("a folder");
        let (rv, instances) = (folder.path().join("rv"), folder.path().join("instances"));
        fs::create_dir(&rv).expect("made");
        for name in ["enabled_monitors", "monitoring_on"] {
            fs::write(rv.join(name), "1").expect("written");
        }
        // No process has the first number; this one has the second; the third is somebody else's.
        for name in
            ["punctual-4294967295".to_owned(), format!("punctual-{}", std::process::id()), "x-1".into()]
        {
            fs::create_dir_all(instances.join(name)).expect("made");
        }
        let trace = "# tracer: nop\n  punctual-12 [001] ..... 3.5: tracing_mark_write: punctual switched on: \
            nrp opid; monitoring_on was 0\n  x-1 [000] d..2. 1.5: error_nrp: 71: event\n";
        let left = instances.join("punctual-4294967295");
        fs::write(left.join("trace"), trace).expect("written");
        let found = leftovers(folder.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((&found[0].monitors[..], found[0].was_on), (&["nrp".into(), "opid".into()][..], false));
        fs::remove_file(left.join("trace")).expect("a folder of tracefs has no files of its own");
        found[0].clear();
        assert_eq!(fs::read_to_string(rv.join("enabled_monitors")).expect("there"), "!opid");
        assert_eq!(fs::read_to_string(rv.join("monitoring_on")).expect("there"), "0");
        assert!(!left.exists());
    }

    #[test]
    fn monitors_are_in_the_order_of_the_file() {
        assert!(MONITORS.is_sorted_by_key(|(name, _)| *name));
    }
}
