//! What the daemon has in its books, and what must be true of that at any time.

use super::setup::SPECS_PER_USER;
use punctual_daemon::access::Who;
use punctual_daemon::config::Kind::BuiltIn;
use punctual_daemon::registry::{Admission, Loaded, Registry, Spec};
use punctual_schedule::{Assignment, Kind, Limits, Load, Parameters, Policy, SpecId, Test};

pub const ROOT: Who = Who { user: 0, group: 0, groups: Vec::new() };

/// All that a request can change.
#[derive(Debug, PartialEq)]
pub struct Seen {
    specs: Vec<(SpecId, u32, u64, Parameters, Admission, Option<Assignment>)>,
    loads: Vec<Vec<Load>>,
    counts: (usize, usize),
}

impl Seen {
    pub fn of(registry: &Registry) -> Self {
        let specs = registry.list(&ROOT).into_iter();
        let of = |spec: &Spec| {
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
            specs: specs.map(of).collect(),
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
pub fn add_up(registry: &Registry) {
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
            within_threshold(loaded, &theirs);
            in_order(registry, loaded, &theirs);
            theirs.iter().for_each(|spec| as_offered(registry, loaded, spec));
        }
    }
}

/// EDF and RM give out no more of a processor than they may. (FP and RR take specs of which they know
/// nothing.)
fn within_threshold(loaded: &Loaded, specs: &[&Spec]) {
    if !matches!(kind(loaded), Kind::Edf | Kind::Rm) || specs.iter().any(|spec| spec.admission.offer.ignored)
    {
        return;
    }
    let rate = |spec: &&Spec| {
        Some(spec.admission.offer.accepted_runtime?.ns() as f64 / spec.parameters.period?.ns() as f64)
    };
    let sum: f64 = specs.iter().filter_map(rate).sum();
    assert!(sum <= loaded.config.threshold + 1e-9, "{sum} of a processor is given out by {loaded:?}");
}

/// Priorities are in the order of periods, or of priorities that were asked for.
fn in_order(registry: &Registry, loaded: &Loaded, specs: &[&Spec]) {
    let urgency = |spec: &Spec| match kind(loaded) {
        Kind::Edf => 0,
        Kind::Rm => {
            let last = loaded.config.test == Test::Exact && spec.parameters.runtime.is_none();
            let period = spec.parameters.period.map_or(u64::MAX >> 1, |period| period.ns());
            u64::MAX - period - if last { 1 << 63 } else { 0 }
        }
        Kind::Fp | Kind::Rr => spec.parameters.priority.unwrap_or(0).into(),
    };
    let mut told: Vec<(u64, u32)> = specs
        .iter()
        .filter_map(|spec| match registry.assignment(spec)?.policy {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => Some((urgency(spec), priority)),
            Policy::Deadline { .. } => None,
        })
        .collect();
    told.sort_unstable();
    assert!(told.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{told:?} is not in order");
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
    assert!(declared.plugin.as_deref().is_none_or(|name| *name == *loaded.name));
    let told = registry.assignment(spec).expect("what is admitted is assigned");
    assert_eq!(told.processor, offer.processor);
    let (least, greatest) = loaded.config.priorities;
    let limits = Limits::default();
    match (kind(loaded), told.policy) {
        (Kind::Edf, Policy::Deadline { runtime, deadline, period }) => {
            assert!(limits.least_runtime <= runtime && runtime <= deadline && deadline <= period, "{told:?}");
            assert!(limits.least_period <= period && period <= limits.greatest_period, "{told:?}");
            assert_eq!(Some(runtime), offer.accepted_runtime);
        }
        (Kind::Rm | Kind::Fp, Policy::Fifo(priority)) | (Kind::Rr, Policy::RoundRobin(priority)) => {
            assert!((least..=greatest).contains(&priority), "{told:?}");
        }
        (kind, told) => panic!("{kind} does not tell {told:?}"),
    }
}

/// Whether a spec, and all others of its plugin, had to pass a test, which then would say the same of it
/// again. Where RM has fewer priorities than specs, it would not: those that share one may be others when the
/// spec is taken out and put in again.
pub fn is_tested(registry: &Registry, spec: &Spec) -> bool {
    let loaded = &registry.plugins()[spec.admission.plugin];
    let (least, greatest) = loaded.config.priorities;
    match kind(loaded) {
        Kind::Edf => true,
        Kind::Rm => registry.counts().0 <= (greatest - least) as usize,
        Kind::Fp | Kind::Rr => false,
    }
}

/// Nothing is left.
pub fn empty(registry: &Registry) {
    assert_eq!((registry.counts(), registry.client_count()), ((0, 0), 0));
    for load in registry.plugins().iter().flat_map(|loaded| loaded.plugin.loads()) {
        assert_eq!((load.specs, load.utilization), (0, 0.0));
    }
}
