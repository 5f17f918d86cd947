//! Metrics of an observation under way, for Prometheus: what the jobs of tasks took, losses, violations,
//! headroom. [`Endpoint`] serves them over HTTP.
//!
//! Fed by whoever sees jobs end: [`Metrics::task`] gives a handle that counts without looking anything up.
//! The number of tasks with labels of their own is bounded; all others are counted together. Not for deciding
//! what a violation is.

mod endpoint;
mod format;

pub use endpoint::Endpoint;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use punctual_model::Duration;
use punctual_trace::Totals;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most tasks with labels of their own.
pub const MOST_TASKS: usize = 256;

/// Most culprits of late jobs with labels of their own.
const MOST_CULPRITS: usize = 64;

/// The label of all further tasks, and culprits.
pub const OTHERS: &str = "(others)";

/// The term that a proven bound is, where there is one.
pub const BOUND: &str = "bound";

/// Upper ends of the buckets of times, in seconds: 1, 2, 5 from a microsecond to ten seconds.
const BUCKETS: [f64; 22] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5,
    1.0, 2.0, 5.0, 10.0,
];

/// What is counted of a dataflow program.
const FLOW: [(&str, &str); 4] = [
    ("flow_events", "Events of the dataflow program"),
    ("lost_flow_events", "Those that were lost; nothing is judged across them"),
    ("chain_latencies", "Reaction times and data ages that were judged"),
    ("chain_restarts", "How often judging of chains began anew, for losses or new parts of the program"),
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Task {
    task: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Term {
    task: String,
    term: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Late {
    task: String,
    cause: &'static str,
    culprit: String,
}

type Times = Family<Task, Histogram, fn() -> Histogram>;
type Ratio = Gauge<f64, AtomicU64>;

/// Everything that is counted. Shared by those who count and those who serve.
pub struct Metrics {
    registry: Registry,
    jobs: Family<Task, Counter>,
    releases: Family<Task, Counter>,
    response: Times,
    cost: Times,
    lateness: Times,
    violations: Family<Term, Counter>,
    late_jobs: Family<Late, Counter>,
    culprits: Mutex<BTreeSet<String>>,
    agreed: Family<Term, Ratio>,
    headroom: Family<Term, Ratio>,
    bound: Family<Task, Ratio>,
    records: Counter,
    lost: Counter,
    skipped: Counter,
    flow: [Counter; 4],
    stolen: Counter<f64, AtomicU64>,
    threads: Gauge,
    task_threads: Family<Task, Gauge>,
    untracked: Gauge,
    others: Counter,
    named: Mutex<Vec<String>>,
}

/// Counts the jobs of one task.
#[derive(Clone, Debug)]
pub struct TaskMetrics {
    jobs: Counter,
    releases: Counter,
    response: Histogram,
    cost: Histogram,
    lateness: Histogram,
}

impl TaskMetrics {
    /// A job was released, so late after its arrival or its place on the grid, if that is known.
    pub fn release(&self, lateness: Option<Duration>) {
        self.releases.inc();
        if let Some(lateness) = lateness {
            self.lateness.observe(lateness.as_secs_f64());
        }
    }

    /// A job ended.
    pub fn job(&self, response: Duration, cost: Duration) {
        self.jobs.inc();
        self.response.observe(response.as_secs_f64());
        self.cost.observe(cost.as_secs_f64());
    }
}

fn times() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Nothing has been counted yet.
    pub fn new() -> Metrics {
        let family = || Times::new_with_constructor(times);
        let mut metrics = Metrics {
            registry: Registry::with_prefix("punctual"),
            jobs: Family::default(),
            releases: Family::default(),
            response: family(),
            cost: family(),
            lateness: family(),
            violations: Family::default(),
            late_jobs: Family::default(),
            culprits: Mutex::default(),
            agreed: Family::default(),
            headroom: Family::default(),
            bound: Family::default(),
            records: Counter::default(),
            lost: Counter::default(),
            skipped: Counter::default(),
            flow: Default::default(),
            stolen: Counter::default(),
            threads: Gauge::default(),
            task_threads: Family::default(),
            untracked: Gauge::default(),
            others: Counter::default(),
            named: Mutex::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let it = &mut self.registry;
        let version = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        it.register("build", "The version of Punctual", version);
        it.register("jobs", "Jobs seen from release to end", self.jobs.clone());
        it.register("releases", "Releases of jobs", self.releases.clone());
        it.register_with_unit(
            "response",
            "Time from the arrival of a job (where it is unknown, its release) to its end",
            Unit::Seconds,
            self.response.clone(),
        );
        it.register_with_unit("cost", "Processor time of a job", Unit::Seconds, self.cost.clone());
        it.register_with_unit(
            "lateness",
            "How late a job was released, where that is known",
            Unit::Seconds,
            self.lateness.clone(),
        );
        it.register("violations", "Violations of what was agreed on", self.violations.clone());
        it.register("late_jobs", "Late jobs by main cause", self.late_jobs.clone());
        it.register("agreed", "What was agreed on: seconds, or a count", self.agreed.clone());
        it.register_with_unit(
            "headroom",
            "What is left of what was agreed on at the worst so far, as a share of it; negative if violated",
            Unit::Other("ratio".into()),
            self.headroom.clone(),
        );
        it.register_with_unit(
            "bound",
            "The proven bound of the response time",
            Unit::Seconds,
            self.bound.clone(),
        );
        it.register("records", "Activation records received", self.records.clone());
        it.register("lost_records", "Records that found no room in the buffer", self.lost.clone());
        it.register(
            "skipped_events",
            "Runs of the observing programs that the kernel skipped",
            self.skipped.clone(),
        );
        for ((name, help), counter) in FLOW.into_iter().zip(&self.flow) {
            it.register(name, help, counter.clone());
        }
        it.register_with_unit(
            "stolen",
            "Time that the hypervisor took from the processors",
            Unit::Seconds,
            self.stolen.clone(),
        );
        it.register("threads", "Threads that are watched", self.threads.clone());
        it.register("task_threads", "Threads of a task that live", self.task_threads.clone());
        it.register(
            "untracked_threads",
            "How often a thread was not watched: there was no room, or it ended before it was seen",
            self.untracked.clone(),
        );
        it.register(
            "unlabelled_tasks",
            "Tasks without labels of their own, because there were too many",
            self.others.clone(),
        );
    }

    /// The name that a task has in labels: its own, as long as there are not too many. Call it once for each
    /// task, not for each job.
    fn label(&self, task: &str) -> String {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if !named.iter().any(|name| name == task) {
            if named.len() == MOST_TASKS {
                self.others.inc();
                return OTHERS.into();
            }
            named.push(task.to_owned());
        }
        task.to_owned()
    }

    /// Counts the jobs of a task. Threads of one name are one task.
    pub fn task(&self, name: &str) -> TaskMetrics {
        let label = Task { task: self.label(name) };
        TaskMetrics {
            jobs: self.jobs.get_or_create_owned(&label),
            releases: self.releases.get_or_create_owned(&label),
            response: self.response.get_or_create_owned(&label),
            cost: self.cost.get_or_create_owned(&label),
            lateness: self.lateness.get_or_create_owned(&label),
        }
    }

    /// So many threads of a task live.
    pub fn living(&self, task: &str, threads: u64) {
        let threads = i64::try_from(threads).unwrap_or(i64::MAX);
        self.task_threads.get_or_create(&Task { task: self.label(task) }).set(threads);
    }

    /// A term of a task has been violated so often, all in all. A term that has not been is worth telling,
    /// too.
    pub fn violations(&self, task: &str, term: &'static str, number: u64) {
        set(&self.violations.get_or_create(&Term { task: self.label(task), term }), number);
    }

    /// A job of a task was late for this cause: a kind of part, and the thread or interrupt behind it, where
    /// known.
    pub fn late_job(&self, task: &str, cause: &'static str, culprit: Option<&str>) {
        let mut culprit = culprit.unwrap_or_default();
        let mut known = self.culprits.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(culprit) {
            match known.len() < MOST_CULPRITS {
                true => _ = known.insert(culprit.to_owned()),
                false => culprit = OTHERS,
            }
        }
        let label = Late { task: self.label(task), cause, culprit: culprit.to_owned() };
        self.late_jobs.get_or_create(&label).inc();
    }

    /// What was agreed on for a term of a task, and the worst that was seen: the greatest, or the least if
    /// that is what is bounded.
    pub fn term(
        &self,
        task: &str,
        term: &'static str,
        agreed: f64,
        worst: Option<f64>,
        is_lower_bound: bool,
    ) {
        let label = Term { task: self.label(task), term };
        self.agreed.get_or_create(&label).set(agreed);
        if let Some(worst) = worst.filter(|_| agreed > 0.0) {
            let left = if is_lower_bound { worst - agreed } else { agreed - worst };
            self.headroom.get_or_create(&label).set(left / agreed);
        }
    }

    /// The proven bound of a task's response times, and the longest response that was seen: its headroom is
    /// that of a term called `bound`. Both in seconds.
    pub fn bound(&self, task: &str, bound: f64, longest: Option<f64>) {
        let task = self.label(task);
        self.bound.get_or_create(&Task { task: task.clone() }).set(bound);
        if let Some(longest) = longest.filter(|_| bound > 0.0) {
            self.headroom.get_or_create(&Term { task, term: BOUND }).set((bound - longest) / bound);
        }
    }

    /// Forgets terms, because something else has been agreed on.
    pub fn forget_terms(&self) {
        self.violations.clear();
        self.agreed.clear();
        self.headroom.clear();
        self.bound.clear();
    }

    /// What was counted of a dataflow program so far: events, those lost, latencies, and how often judging
    /// began anew.
    pub fn flow(&self, events: u64, lost: u64, latencies: u64, restarts: u64) {
        let numbers = [events, lost, latencies, restarts];
        self.flow.iter().zip(numbers).for_each(|(counter, number)| set(counter, number));
    }

    /// The counters of the observation so far, and how many threads are watched.
    pub fn observation(&self, records: u64, totals: &Totals, threads: u64) {
        set(&self.records, records);
        set(&self.lost, totals.lost);
        set(&self.skipped, totals.skipped);
        self.stolen.inner().store(totals.stolen.as_secs_f64().to_bits(), Ordering::Relaxed);
        self.threads.set(i64::try_from(threads).unwrap_or(i64::MAX));
        self.untracked.set(i64::try_from(totals.untracked).unwrap_or(i64::MAX));
    }

    /// All metrics in the text format of OpenMetrics 1.0.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // A String takes everything.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// Counters of others only grow, so they are taken over as they are.
fn set(counter: &Counter, number: u64) {
    counter.inner().store(number, Ordering::Relaxed);
}
