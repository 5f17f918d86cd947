//! What the daemon has in its books, and what must be true of that at any time.

use super::setup::SPECS_PER_USER;
use punctual_daemon::access::Who;
use punctual_daemon::config::Kind::BuiltIn;
use punctual_daemon::registry::{Admission, Loaded, Registry, Spec};
use punctual_schedule::{AssignedPolicy, Assignment, Kind, Limits, Load, Parameters, SpecId, Test};
use std::collections::BTreeMap;

pub const ROOT: Who = Who { user: 0, group: 0, groups: Vec::new() };

/// All that a request can change.
#[derive(Debug, PartialEq)]
pub struct Seen {
    specs: Vec<(SpecId, u32, u64, Parameters, Admission, Option<Assignment>)>,
    loads: Vec<Vec<Load>>,
    counts: (usize, usize),
}

impl Seen {
    pub fn new(registry: &Registry) -> Self {
        let specs = registry.list(&ROOT).into_iter();
        let entry = |spec: &Spec| {
            (
                spec.id,
                spec.who.user,
                spec.process,
                spec.parameters.clone(),
                spec.admission,
                registry.assignment(spec),
            )
        };
        Self {
            specs: specs.map(entry).collect(),
            loads: registry.plugins().iter().map(|loaded| loaded.plugin.loads()).collect(),
            counts: registry.counts(),
        }
    }
}

fn kind(loaded: &Loaded) -> Kind {
    match loaded.config.kind {
        BuiltIn(kind) => kind,
        ref other => panic!("{other} is not built in"),
    }
}

/// Specs, plugins and what threads are to be told agree.
pub fn add_up(registry: &Registry, thresholds: &Thresholds) {
    let specs = registry.list(&ROOT);
    assert_eq!(registry.counts(), (specs.len(), 0));
    for user in super::setup::USERS {
        assert!(specs.iter().filter(|spec| spec.who.user == user).count() <= SPECS_PER_USER);
    }
    for (at, loaded) in registry.plugins().iter().enumerate() {
        let of_plugin: Vec<&Spec> =
            specs.iter().copied().filter(|spec| spec.admission.plugin == at).collect();
        let loads = loaded.plugin.loads();
        assert_eq!(loads.iter().map(|load| load.specs).sum::<usize>(), of_plugin.len());
        for load in loads {
            let theirs: Vec<&Spec> = of_plugin
                .iter()
                .copied()
                .filter(|spec| spec.admission.offer.processor == load.processor)
                .collect();
            assert_eq!(load.specs, theirs.len());
            within_threshold(loaded, &theirs, thresholds);
            in_order(registry, loaded, &theirs);
            theirs.iter().for_each(|spec| as_offered(registry, loaded, spec));
        }
    }
}

/// How much of a processor each plugin may have given out, by its name. A reload with a lower threshold does
/// not take back what was admitted before it.
#[derive(Default)]
pub struct Thresholds(BTreeMap<String, f64>);

impl Thresholds {
    /// Notes the thresholds that hold from now on.
    pub fn note(&mut self, registry: &Registry) {
        for loaded in registry.plugins() {
            // FP and RR test nothing by utilization.
            let tested = matches!(kind(loaded), Kind::Edf | Kind::Rm) || loaded.config.test == Test::Exact;
            let threshold = if tested { loaded.config.threshold } else { f64::INFINITY };
            let greatest = self.0.entry(loaded.name.to_string()).or_default();
            *greatest = greatest.max(threshold);
        }
    }
}

/// No plugin gives out more of a processor than it may, unless it was told to ignore its test.
fn within_threshold(loaded: &Loaded, specs: &[&Spec], thresholds: &Thresholds) {
    if specs.iter().any(|spec| spec.admission.offer.ignored) {
        return;
    }
    let rate = |spec: &&Spec| {
        Some(spec.admission.offer.accepted_runtime?.ns() as f64 / spec.parameters.period?.ns() as f64)
    };
    let sum: f64 = specs.iter().filter_map(rate).sum();
    let threshold = thresholds.0[&*loaded.name];
    assert!(sum <= threshold + 1e-9, "{sum} of a processor is given out by {loaded:?}");
}

/// Priorities are in the order of deadlines, or of priorities that were asked for.
fn in_order(registry: &Registry, loaded: &Loaded, specs: &[&Spec]) {
    let urgency = |spec: &Spec| match kind(loaded) {
        Kind::Edf | Kind::Gedf => 0,
        Kind::Rm => {
            // Whoever declares no runtime comes last.
            let last = spec.parameters.runtime.is_none();
            let deadline = spec.parameters.deadline.or(spec.parameters.period);
            let deadline = deadline.map_or(u64::MAX >> 1, |deadline| deadline.ns());
            u64::MAX - deadline - if last { 1 << 63 } else { 0 }
        }
        Kind::Fp | Kind::Rr => spec.parameters.priority.unwrap_or(0).into(),
        Kind::Nice => 0,
    };
    let mut assigned: Vec<(u64, u32)> = specs
        .iter()
        .filter_map(|spec| match registry.assignment(spec)?.policy {
            AssignedPolicy::Fifo(priority) | AssignedPolicy::RoundRobin(priority) => {
                Some((urgency(spec), priority))
            }
            AssignedPolicy::Deadline { .. }
            | AssignedPolicy::Other { .. }
            | AssignedPolicy::Dispatched { .. } => None,
        })
        .collect();
    assigned.sort_unstable();
    assert!(assigned.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{assigned:?} is not in order");
}

/// What was offered is what was declared, and the kernel would take it.
fn as_offered(registry: &Registry, loaded: &Loaded, spec: &Spec) {
    let (offer, declared) = (spec.admission.offer, &spec.parameters);
    assert_eq!(offer.accepted_runtime.is_some(), declared.runtime.is_some());
    if let (Some(accepted), Some(least)) = (offer.accepted_runtime, declared.runtime) {
        assert!(
            least <= accepted && accepted <= declared.desired_runtime.unwrap_or(least).max(least),
            "{spec:?}"
        );
    }
    assert!(!offer.ignored || declared.ignore_admission);
    assert!(declared.plugin.as_deref().is_none_or(|name| name.eq_ignore_ascii_case(&loaded.name)));
    let assigned = registry.assignment(spec).expect("what is admitted is assigned");
    assert_eq!(assigned.processor, offer.processor);
    let (least, greatest) = loaded.config.priorities;
    let limits = Limits::default();
    match (kind(loaded), assigned.policy) {
        (Kind::Edf | Kind::Gedf, AssignedPolicy::Deadline { runtime, deadline, period }) => {
            assert!(
                limits.least_runtime <= runtime && runtime <= deadline && deadline <= period,
                "{assigned:?}"
            );
            assert!(limits.least_period <= period && period <= limits.greatest_period, "{assigned:?}");
            assert_eq!(Some(runtime), offer.accepted_runtime);
        }
        (Kind::Rm | Kind::Fp, AssignedPolicy::Fifo(priority))
        | (Kind::Rr, AssignedPolicy::RoundRobin(priority)) => {
            assert!((least..=greatest).contains(&priority), "{assigned:?}");
        }
        (Kind::Nice, AssignedPolicy::Other { nice }) => assert_eq!(Some(nice), declared.nice),
        (kind, assigned) => panic!("{kind} does not tell {assigned:?}"),
    }
}

/// Whether a spec, and all others of its plugin, had to pass a test, which then would say the same of it
/// again. Where RM has fewer priorities than specs, it would not: those that share one may be others when the
/// spec is taken out and put in again.
pub fn is_tested(registry: &Registry, spec: &Spec) -> bool {
    let loaded = &registry.plugins()[spec.admission.plugin];
    let (least, greatest) = loaded.config.priorities;
    match kind(loaded) {
        Kind::Edf | Kind::Gedf => true,
        Kind::Rm => registry.counts().0 <= (greatest - least) as usize,
        Kind::Fp | Kind::Rr | Kind::Nice => false,
    }
}

/// Nothing is left.
pub fn empty(registry: &Registry) {
    assert_eq!((registry.counts(), registry.client_count()), ((0, 0), 0));
    for load in registry.plugins().iter().flat_map(|loaded| loaded.plugin.loads()) {
        assert_eq!((load.specs, load.utilization), (0, 0.0));
    }
}
