//! What threads of specs took, as OpenMetrics: one sample of what punctuald lists.

use crate::specs::printable;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use punctual_client::Spec;
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Label {
    spec: u64,
    name: String,
    plugin: String,
    user: u32,
}

type Seconds = Family<Label, Gauge<f64, AtomicU64>>;

#[derive(Default)]
struct Families {
    jobs: Family<Label, Counter>,
    overruns: Family<Label, Counter>,
    misses: Family<Label, Counter>,
    put_back: Family<Label, Counter>,
    demoted: Family<Label, Gauge>,
    worst: Seconds,
    runtime: Seconds,
    observed_jobs: Family<Label, Counter>,
    observed_overruns: Family<Label, Counter>,
    observed_misses: Family<Label, Counter>,
    observed_worst: Seconds,
    says_jobs: Family<Label, Counter>,
    says_misses: Family<Label, Counter>,
    says_worst: Seconds,
}

impl Families {
    fn registry(&self) -> Registry {
        let mut it = Registry::with_prefix("punctual_spec");
        it.register("jobs", "Jobs of the thread since it was attached", self.jobs.clone());
        it.register("overruns", "Periods in which it exceeded its runtime", self.overruns.clone());
        it.register("misses", "Activations that missed the deadline, at least", self.misses.clone());
        it.register("put_back", "Changes by others that were undone", self.put_back.clone());
        it.register("demoted", "Whether it is demoted until its next period", self.demoted.clone());
        let worst = "The greatest processor time of a job";
        it.register_with_unit("worst_cost", worst, Unit::Seconds, self.worst.clone());
        it.register_with_unit("runtime", "The accepted runtime", Unit::Seconds, self.runtime.clone());
        let observed = "As punctual watch observes it: ";
        it.register("observed_jobs", format!("{observed}jobs of the thread"), self.observed_jobs.clone());
        let overruns = format!("{observed}jobs that took more than the accepted runtime");
        it.register("observed_overruns", overruns, self.observed_overruns.clone());
        let misses = format!("{observed}jobs that ended after their deadline, at least");
        it.register("observed_misses", misses, self.observed_misses.clone());
        let worst = format!("{observed}the greatest processor time of a job");
        it.register_with_unit("observed_worst_cost", worst, Unit::Seconds, self.observed_worst.clone());
        let says = "As the program says itself: ";
        let jobs = format!("{says}jobs of its loop that have ended");
        it.register("says_jobs", jobs, self.says_jobs.clone());
        let misses = format!("{says}jobs that ended after their deadline");
        it.register("says_misses", misses, self.says_misses.clone());
        let worst = format!("{says}the longest time from a release to the end of its job");
        it.register_with_unit("says_worst_response", worst, Unit::Seconds, self.says_worst.clone());
        it
    }

    fn add(&self, spec: &Spec) {
        let label = Label {
            spec: spec.admission.spec,
            name: spec.name.as_deref().map(printable).unwrap_or_default(),
            plugin: spec.admission.plugin.clone(),
            user: spec.user,
        };
        if let Some(says) = &spec.says {
            self.says_jobs.get_or_create(&label).inc_by(says.jobs);
            self.says_misses.get_or_create(&label).inc_by(says.misses);
            self.says_worst.get_or_create(&label).set(says.worst_response.as_secs_f64());
        }
        if let Some(used) = &spec.used {
            self.observed_jobs.get_or_create(&label).inc_by(used.jobs);
            self.observed_overruns.get_or_create(&label).inc_by(used.overruns);
            if let Some(misses) = used.misses {
                self.observed_misses.get_or_create(&label).inc_by(misses);
            }
            self.observed_worst.get_or_create(&label).set(used.worst_cost.as_secs_f64());
        }
        let Some(enforced) = &spec.enforced else { return };
        self.jobs.get_or_create(&label).inc_by(enforced.jobs);
        self.overruns.get_or_create(&label).inc_by(enforced.overruns);
        self.misses.get_or_create(&label).inc_by(enforced.misses);
        self.put_back.get_or_create(&label).inc_by(enforced.put_back);
        self.demoted.get_or_create(&label).set(i64::from(enforced.demoted));
        self.worst.get_or_create(&label).set(enforced.worst_cost.as_secs_f64());
        if let Some(runtime) = spec.admission.accepted_runtime {
            self.runtime.get_or_create(&label).set(runtime.as_secs_f64());
        }
    }
}

/// The specs whose threads are held to their runtimes, what `punctual watch` observes of threads, and what
/// programs say of their loops, in the text format of OpenMetrics 1.0.
pub fn spec_metrics(specs: &[Spec]) -> String {
    let families = Families::default();
    specs.iter().for_each(|spec| families.add(spec));
    let mut text = String::new();
    // A String takes everything.
    let _ = encode(&mut text, &families.registry());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_spec_has_its_samples() {
        let spec = json!({
            "admission": {"spec": 7, "plugin": "FP", "answer": "ok", "admission_ignored": false,
                "processor": 1, "accepted_runtime_ns": 3_000_000, "policy": "fifo", "policy_priority": 30},
            "name": "con\"trol", "parameters": {"period_ns": 10_000_000, "runtime_ns": 3_000_000},
            "user": 1000, "process": 12, "thread": 13,
            "enforced": {"jobs": 12, "worst_cost_ns": 3_250_000, "overruns": 5, "misses": 4,
                "demoted": true, "put_back": 1},
            "used": {"jobs": 10, "worst_cost_ns": 3_200_000, "overruns": 2, "misses": 3},
            "says": {"jobs": 11, "misses": 6, "worst_response_ns": 12_000_000}
        });
        let text = spec_metrics(&[serde_json::from_value(spec).expect("a spec")]);
        let label = "{spec=\"7\",name=\"con\\\"trol\",plugin=\"FP\",user=\"1000\"}";
        for (name, value) in [
            ("jobs_total", "12"),
            ("overruns_total", "5"),
            ("misses_total", "4"),
            ("put_back_total", "1"),
            ("demoted", "1"),
            ("worst_cost_seconds", "0.00325"),
            ("runtime_seconds", "0.003"),
            ("observed_jobs_total", "10"),
            ("observed_overruns_total", "2"),
            ("observed_misses_total", "3"),
            ("observed_worst_cost_seconds", "0.0032"),
            ("says_jobs_total", "11"),
            ("says_misses_total", "6"),
            ("says_worst_response_seconds", "0.012"),
        ] {
            let line = format!("punctual_spec_{name}{label} {value}");
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
