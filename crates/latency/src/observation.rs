//! From the records of a measurement to the section `latency`: the same whether they come live or from a
//! recording.

use crate::explain::{Inside, Wait};
use crate::tracker::{Occurrence, Tracker};
use punctual_model::latency::{
    InterruptKind, MAX_WORST, Measured, Monitor, RanKind, SchedulingLatency, ThreadId, Timers, Variables,
    Wakeup,
};
use punctual_model::{Duration, Instant, latency as model};
use punctual_trace::latency::{
    Interrupt, Latency, Maximum, Processor, Scope, Source, Thread, ThreadWakeup, Variable, Witnessed,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Interrupts that are remembered of each processor, to tell what happened during a wake-up: those of at
/// least 100 ms under heavy load before the last [`Observation::forget`].
const MOST_RECENT: usize = 8_192;
/// Those that have come since: more than the programs hand over before some are lost.
const MOST_NEW: usize = 32_768;
/// Events of the flight recorder that are kept: more than it has on any machine.
const MOST_WITNESSED: usize = 1 << 20;

/// What a measurement has seen so far.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    scope: Option<Scope>,
    processors: BTreeMap<u32, Observed>,
    sources: BTreeMap<u32, Source>,
    monitors: Vec<Monitor>,
    witnessed: Vec<Witnessed>,
    interrupts: u64,
    /// The recording was cut off, or is damaged.
    is_damaged: bool,
}

/// What was seen on one processor.
#[derive(Clone, Debug, Default)]
struct Observed {
    missed: Processor,
    lost: u64,
    went_offline: u64,
    interrupts: BTreeMap<u32, Arrivals>,
    recent: VecDeque<Interrupt>,
    /// Sources of which an interrupt was not seen whole.
    unseen: BTreeSet<u32>,
    /// How many the kernel itself counted, by row.
    counted: BTreeMap<String, u64>,
    maxima: BTreeMap<usize, Maximum>,
    threads: BTreeMap<ThreadKey, Thread>,
    worst: BTreeMap<ThreadKey, Vec<Wakeup>>,
    timers: Option<Timers>,
    /// Of the measuring thread.
    from_due: Option<Duration>,
}

/// Thread, policy, priority: a thread that changes one of the latter is another.
type ThreadKey = (u32, u32, u32);

/// The interrupts of one source.
#[derive(Clone, Debug)]
struct Arrivals {
    tracker: Tracker,
    /// When the longest one ended.
    longest_at: Instant,
}

impl Observation {
    /// Takes the next record. O(interrupts of the source within the horizon) for an interrupt.
    pub fn record(&mut self, record: &Latency) {
        match record {
            Latency::Scope(scope) => self.scope = Some(*scope),
            Latency::Processor(processor) => self.on(processor.cpu).missed = *processor,
            Latency::Source(source) => drop(self.sources.insert(source.number, Source::clone(source))),
            Latency::Interrupt(interrupt) => {
                self.interrupts += 1;
                let horizon = self.scope.map_or(crate::HORIZON, |scope| scope.horizon);
                self.on(interrupt.cpu).interrupt(interrupt, horizon);
            }
            Latency::Lost { cpu, count } => {
                let on = self.on(*cpu);
                on.lost = on.lost.saturating_add(*count);
                on.gap();
            }
            Latency::Missed { cpu, source } => {
                let on = self.on(*cpu);
                on.unseen.insert(*source);
                on.gap();
            }
            Latency::Offline { cpu } => {
                let on = self.on(*cpu);
                on.went_offline += 1;
                on.gap();
            }
            Latency::Maximum(maximum) => {
                drop(self.on(maximum.cpu).maxima.insert(maximum.variable as usize, Maximum::clone(maximum)));
            }
            Latency::Thread(thread) => {
                let key = (thread.thread.id.tid, thread.thread.policy.number(), thread.thread.priority);
                drop(self.on(thread.cpu).threads.insert(key, Thread::clone(thread)));
            }
            Latency::Wakeup(wakeup) => self.wakeup(wakeup),
            Latency::FromDue { cpu, max } => {
                let on = self.on(*cpu);
                on.from_due = on.from_due.max(Some(*max));
            }
            Latency::Timers { cpu, timers } => self.on(*cpu).timers = Some(Timers::clone(timers)),
            Latency::Counted { cpu, row, count } => drop(self.on(*cpu).counted.insert(row.clone(), *count)),
            Latency::Monitor(monitor) => {
                self.monitors.retain(|other| (&other.name, &other.rules) != (&monitor.name, &monitor.rules));
                self.monitors.push(Monitor::clone(monitor));
            }
            Latency::Witnessed(event) if self.witnessed.len() < MOST_WITNESSED => {
                self.witnessed.push(Witnessed::clone(event));
            }
            Latency::Witnessed(_) => {}
        }
    }

    fn on(&mut self, cpu: u32) -> &mut Observed {
        let new = || Observed { missed: Processor { cpu, ..Processor::default() }, ..Observed::default() };
        self.processors.entry(cpu).or_insert_with(new)
    }

    /// Where the kernel shows the variables, only the greatest latency of a thread is known. Recordings
    /// before version 6 do not have its parts.
    fn wakeup(&mut self, record: &ThreadWakeup) {
        let has_variables = self.scope.is_some_and(|scope| scope.has_variables());
        let mut wakeup = record.wakeup.clone();
        if has_variables && wakeup.split.is_none() && wakeup.ran.is_empty() {
            let (ready, latency) = (wakeup.at_ns, wakeup.latency_ns);
            wakeup =
                self.explain(record.cpu, &Wait { ready, latency, overhead: Duration::ZERO, parts: None });
        }
        let Some(on) = self.processors.get_mut(&record.cpu) else { return };
        let worst = on.worst.entry((record.tid, record.policy, record.priority)).or_default();
        worst.push(wakeup);
        worst.sort_by_key(|wakeup| std::cmp::Reverse(wakeup.latency_ns));
        worst.truncate(if has_variables { 1 } else { MAX_WORST });
    }

    /// Forgets interrupts that only wake-ups of long ago may contain: all wake-ups so far have been told of.
    pub fn forget(&mut self) {
        for on in self.processors.values_mut() {
            let old = on.recent.len().saturating_sub(MOST_RECENT);
            on.recent.drain(..old);
        }
    }

    /// What a latency was made of, with the interrupts that are known.
    pub fn explain(&self, cpu: u32, wait: &Wait) -> Wakeup {
        let recent = self.processors.get(&cpu).into_iter().flat_map(|on| &on.recent);
        let overlaps = |it: &&Interrupt| it.exit > wait.ready && it.entry < wait.end();
        wait.explain(recent.filter(overlaps).map(|it| {
            let source = self.source(it.source);
            Inside {
                kind: match source.map(|source| source.kind) {
                    Some(InterruptKind::Nmi) => RanKind::Nmi,
                    Some(InterruptKind::Softirq) => RanKind::Softirq,
                    _ => RanKind::Interrupt,
                },
                name: source.map_or_else(String::new, |source| source.name.clone()),
                number: source.and_then(|source| source.number).unwrap_or(0),
                entry: it.entry,
                exit: it.exit,
                execution: it.execution,
            }
        }))
    }

    /// Says that the recording was cut off or is damaged: everything may have been greater.
    pub fn mark_damaged(&mut self) {
        self.is_damaged = true;
        self.processors.values_mut().for_each(|on| on.missed.is_partial = true);
    }

    /// How many interrupts there were.
    pub fn interrupts(&self) -> u64 {
        self.interrupts
    }

    /// How many records of interrupts were lost.
    pub fn lost(&self) -> u64 {
        self.processors.values().map(|on| on.lost).fold(0, u64::saturating_add)
    }

    /// What the flight recorder kept, by processor in order.
    pub fn witnessed(&self) -> &[Witnessed] {
        &self.witnessed
    }

    /// The name of a thread that was measured or made a variable grow; `None` for any other.
    pub fn thread_name(&self, tid: u32) -> Option<&str> {
        self.processors
            .values()
            .flat_map(Observed::known_threads)
            .find(|id| id.tid == tid)
            .map(|id| &*id.name)
    }

    /// What a number stands for; `None` for one that was not declared.
    pub fn source(&self, number: u32) -> Option<&model::InterruptSource> {
        self.sources.get(&number).map(|source| &source.source)
    }

    /// The section, of an observation from and until these instants on a kernel of this release; `None` if
    /// the records do not say how it was measured.
    pub fn section(&self, from: Instant, until: Instant, kernel: &str) -> Option<SchedulingLatency> {
        let scope = self.scope?;
        let mut monitors = self.monitors.clone();
        monitors.sort_by(|one, other| (&one.name, &one.rules).cmp(&(&other.name, &other.rules)));
        let processors = self.processors.values();
        Some(SchedulingLatency {
            from_ns: from,
            until_ns: until,
            kernel: kernel.to_owned(),
            preemption: scope.preemption,
            no_variables: scope.no_variables,
            damaged_recordings: self.is_damaged.into(),
            horizon_ns: scope.horizon,
            processors: processors.map(|on| on.section(until.since(from), scope, &self.sources)).collect(),
            monitors,
        })
    }
}

impl Observed {
    fn interrupt(&mut self, interrupt: &Interrupt, horizon: Duration) {
        let Interrupt { entry, exit, execution, source, .. } = *interrupt;
        let new = || Arrivals { tracker: Tracker::new(horizon), longest_at: Instant::default() };
        let arrivals = self.interrupts.entry(source).or_insert_with(new);
        if execution > arrivals.tracker.curves().wcet() {
            arrivals.longest_at = exit;
        }
        arrivals.tracker.add(Occurrence { entry, exit, execution });
        if self.recent.len() == MOST_RECENT + MOST_NEW {
            self.recent.pop_front();
        }
        self.recent.push_back(*interrupt);
    }

    /// Threads of which the name is known.
    fn known_threads(&self) -> impl Iterator<Item = &ThreadId> {
        let measured = self.threads.values().map(|it| &it.thread.id);
        measured.chain(self.maxima.values().filter_map(|it| Some(&it.culprit.as_ref()?.thread)))
    }

    /// No window spans what was not seen.
    fn gap(&mut self) {
        self.interrupts.values_mut().for_each(|arrivals| arrivals.tracker.gap());
    }

    fn section(
        &self,
        observed_ns: Duration,
        scope: Scope,
        sources: &BTreeMap<u32, Source>,
    ) -> model::Processor {
        let Processor { cpu, skipped_events, negative_durations, is_partial } = self.missed;
        let at_least = is_partial || self.went_offline > 0 || negative_durations > 0;
        let interrupts = self.interrupts(at_least || self.lost > 0, sources);
        model::Processor {
            cpu,
            observed_ns,
            skipped_events,
            lost_records: self.lost,
            went_offline: self.went_offline,
            negative_durations,
            variables: scope.has_variables().then(|| self.variables(at_least)),
            timers: self.timers(&interrupts),
            interrupts,
            measured: self.measured(),
        }
    }

    fn variables(&self, at_least: bool) -> Variables {
        let variable = |variable: Variable| {
            let maximum = self.maxima.get(&(variable as usize));
            model::Variable {
                max_ns: maximum.map_or(Duration::ZERO, |maximum| maximum.duration),
                at_least,
                culprit: maximum.and_then(|maximum| maximum.culprit.clone()),
            }
        };
        let [poid, psd, st, paie] = Variable::ALL.map(variable);
        Variables { poid, psd, st, paie }
    }

    /// By source. Where the kernel counted more than were seen, or one was not seen whole, there may be more.
    fn interrupts(&self, at_least: bool, sources: &BTreeMap<u32, Source>) -> Vec<model::Interrupt> {
        let known = |number: &u32| sources.get(number);
        let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
        for (number, arrivals) in &self.interrupts {
            if let Some(row) = known(number).and_then(|source| source.row.as_deref()) {
                *seen.entry(row).or_default() += arrivals.tracker.curves().count;
            }
        }
        let is_short = |source: &Source| {
            let row = source.row.as_deref();
            row.is_some_and(|row| self.counted.get(row).is_some_and(|counted| seen.get(row) < Some(counted)))
        };
        let interrupt = |(number, arrivals): (&u32, &Arrivals)| {
            let source = known(number)?;
            Some(model::Interrupt {
                source: source.source.clone(),
                at_least: at_least || self.unseen.contains(number) || is_short(source),
                longest_at_ns: Some(arrivals.longest_at),
                curves: arrivals.tracker.curves().clone(),
            })
        };
        let mut interrupts: Vec<_> = self.interrupts.iter().filter_map(interrupt).collect();
        interrupts.sort_by(|one, other| one.source.cmp(&other.source));
        interrupts
    }

    /// Where interrupts of the timer were missed, so may have been the latest timer.
    fn timers(&self, interrupts: &[model::Interrupt]) -> Option<Timers> {
        let is_of_timer = |it: &model::InterruptSource| {
            it.kind != InterruptKind::Softirq && it.name.to_lowercase().contains("timer")
        };
        let at_least = interrupts.iter().any(|it| it.at_least && is_of_timer(&it.source));
        let mut timers = self.timers.clone()?;
        timers.lateness.at_least |= at_least;
        Some(timers)
    }

    /// By thread, those of the measuring thread first.
    fn measured(&self) -> Vec<Measured> {
        let mut by_thread: BTreeMap<_, Measured> = BTreeMap::new();
        for (key, thread) in &self.threads {
            let worst = self.worst.get(key).map_or(&[][..], Vec::as_slice);
            // It may have been read while the kernel was adding the greatest: the sum has it then.
            let mean = thread.total.ns().checked_div(thread.wakeups).map(Duration::from_ns);
            let max = match mean {
                Some(mean) if thread.total.ns() % thread.wakeups > 0 => mean + Duration::from_ns(1),
                mean => mean.unwrap_or_default(),
            };
            let max = thread.max.max(max);
            // Where the record of the greatest was lost, the others are not the greatest.
            let is_whole = worst.first().is_some_and(|first| first.latency_ns == max);
            let measured = Measured {
                thread: (!thread.is_measuring).then(|| thread.thread.clone()),
                wakeups: thread.wakeups,
                unmeasured: thread.unmeasured,
                total_ns: thread.total,
                max_ns: max,
                bounded_max_ns: thread.bounded_max,
                from_due_max_ns: None,
                worst: if is_whole { worst.to_vec() } else { Vec::new() },
            };
            match by_thread.entry(measured.key()) {
                std::collections::btree_map::Entry::Vacant(free) => drop(free.insert(measured)),
                std::collections::btree_map::Entry::Occupied(mut taken) => taken.get_mut().merge(measured),
            }
        }
        if self.from_due.is_some() {
            // Even if none of its wake-ups was seen.
            let measuring = Measured::default();
            by_thread.entry(measuring.key()).or_insert(measuring).from_due_max_ns = self.from_due;
        }
        by_thread.into_values().collect()
    }
}
