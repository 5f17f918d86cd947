//! How preemptible the running kernel is, from whichever of its files tells.

use punctual_linux::system;
use punctual_model::latency::Preemption;
use std::fs;
use std::io::Read;
use std::path::Path;

/// The running kernel's model of preemption.
pub fn preemption() -> Preemption {
    let version = version();
    if let Some(model) = built_in(&version) {
        return model;
    }
    let is_dynamic = has(&version, "PREEMPT_DYNAMIC");
    let chosen = || fs::read_to_string("/sys/kernel/debug/sched/preempt").ok().and_then(|it| chosen(&it));
    let at_boot = || parameter(&system::boot_options());
    let dynamic = if is_dynamic { chosen().or_else(at_boot) } else { None };
    dynamic.or_else(|| configuration().and_then(|it| configured(&it))).unwrap_or(Preemption::Unknown)
}

/// Whether threads are preempted while they run in the kernel. Where it cannot be known: yes.
pub fn may_be_preempted() -> bool {
    match preemption() {
        Preemption::None | Preemption::Voluntary => false,
        Preemption::Lazy | Preemption::Full | Preemption::Rt => true,
        // Without the word, it is one of the first two.
        Preemption::Unknown => version().contains("PREEMPT"),
    }
}

/// Whether the kernel is built with PREEMPT_RT.
pub fn is_real_time_kernel() -> bool {
    built_in(&version()) == Some(Preemption::Rt)
}

/// As `uname -v`.
fn version() -> String {
    fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default()
}

fn has(version: &str, word: &str) -> bool {
    version.split_whitespace().any(|it| it == word)
}

/// What the version tells. `None` if the model is chosen at boot, or is one of the two that have no word
/// there.
fn built_in(version: &str) -> Option<Preemption> {
    let words = [
        ("PREEMPT_RT", Some(Preemption::Rt)),
        ("PREEMPT_DYNAMIC", None),
        ("PREEMPT_LAZY", Some(Preemption::Lazy)),
        ("PREEMPT", Some(Preemption::Full)),
    ];
    words.into_iter().find(|(word, _)| has(version, word)).and_then(|(_, model)| model)
}

fn named(name: &str) -> Option<Preemption> {
    match name {
        "none" => Some(Preemption::None),
        "voluntary" => Some(Preemption::Voluntary),
        "full" => Some(Preemption::Full),
        "lazy" => Some(Preemption::Lazy),
        _ => None,
    }
}

/// From the file of debugfs: `none voluntary (full) lazy`.
fn chosen(models: &str) -> Option<Preemption> {
    let (name, _) = models.split_once('(')?.1.split_once(')')?;
    named(name)
}

/// From the kernel's command line; the last `preempt=` counts.
fn parameter(parameters: &str) -> Option<Preemption> {
    parameters.split_whitespace().filter_map(|word| word.strip_prefix("preempt=")).next_back().and_then(named)
}

/// From the kernel's configuration: the model that is built in, or that holds unless another is chosen at
/// boot.
fn configured(configuration: &str) -> Option<Preemption> {
    configuration.lines().find_map(|line| match line {
        "CONFIG_PREEMPT_NONE=y" => Some(Preemption::None),
        "CONFIG_PREEMPT_VOLUNTARY=y" => Some(Preemption::Voluntary),
        "CONFIG_PREEMPT_LAZY=y" => Some(Preemption::Lazy),
        "CONFIG_PREEMPT=y" => Some(Preemption::Full),
        _ => None,
    })
}

/// The running kernel's configuration, from itself or from its package.
fn configuration() -> Option<String> {
    let mut text = String::new();
    let packed = fs::File::open("/proc/config.gz").ok();
    if packed.is_some_and(|file| flate2::read::GzDecoder::new(file).read_to_string(&mut text).is_ok()) {
        return Some(text);
    }
    let release = system::kernel_release();
    let places = [format!("/boot/config-{release}"), format!("/usr/lib/modules/{release}/config")];
    places.iter().find_map(|place| fs::read_to_string(Path::new(place)).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_tells_what_is_built_in() {
        assert_eq!(built_in("#1 SMP PREEMPT_RT Debian 7.2.13-1"), Some(Preemption::Rt));
        assert_eq!(built_in("#1 SMP PREEMPT Tue"), Some(Preemption::Full));
        assert_eq!(built_in("#1 SMP PREEMPT_LAZY Tue"), Some(Preemption::Lazy));
        assert_eq!(built_in("#1 SMP PREEMPT_DYNAMIC x"), None);
        assert_eq!(built_in("#1 SMP Debian 6.1"), None);
    }

    #[test]
    fn what_was_chosen_counts_before_what_was_configured() {
        assert_eq!(chosen("none voluntary (full) lazy\n"), Some(Preemption::Full));
        assert_eq!(chosen(""), None);
        assert_eq!(parameter("quiet preempt=full preempt=lazy"), Some(Preemption::Lazy));
        assert_eq!(parameter("quiet preempt=sometimes"), None);
        assert_eq!(configured("CONFIG_A=y\nCONFIG_PREEMPT_VOLUNTARY=y\n"), Some(Preemption::Voluntary));
        assert_eq!(
            configured("# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_NONE=y\n"),
            Some(Preemption::None)
        );
        assert_eq!(configured("CONFIG_PREEMPT_RCU=y\n"), None);
    }
}
