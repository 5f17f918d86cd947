//! Measuring on kernels that do not show what a bound is made of: interrupts, late timers, and how late
//! real-time threads run after they were woken.

use super::counters::Counters;
use super::measuring::MeasuringThreads;
use super::names::Names;
use super::processors::{self, Online};
use super::sources::Sources;
use super::{Options, TICK};
use crate::error::Result;
use crate::monitor::{Monitor, Seen};
use crate::{platform, watch};
use punctual_latency::HORIZON;
use punctual_model::latency::{
    Culprit, Interrupt, MAX_WORST, Measured, Ran, RanKind, RealTimeThread, SchedulingLatency, Split,
    ThreadId, Timers, Variable, Wakeup,
};
use punctual_model::{Instant, Policy, TimingModel, latency};
use punctual_observe::latency::Event as SourceEvent;
use punctual_observe::wakeups::{self, Event, Latencies, Meter};
use punctual_report::counted;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures until the limit, the end of the command, or `stop`.
pub(super) fn measure(options: &Options, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<TimingModel> {
    let cpus = processors::choose(&options.cpus)?;
    let threads = options.measure.map(|period| MeasuringThreads::start(&cpus, period)).transpose()?;
    let (mut meter, before) = Meter::start(&options.command, options.command_to_stderr, Counters::read)?;
    let mut seen = Seeing::new(&cpus);
    let command_ended = seen.wait(options, stop, monitor, &mut meter)?;
    let (until, after) = (platform::now(), Counters::read());
    let left = meter.stop()?;
    meter.drain(&mut |event| seen.event(event))?;
    if let Some(process) = left {
        watch::warn_still_running(process, monitor);
    }
    if let Some(status) = command_ended.filter(|status| !status.success()) {
        watch::warn_command_failed(status, monitor);
    }
    let measuring = threads.as_ref().map_or(&[][..], MeasuringThreads::tids);
    let section = seen.section(&meter, until, measuring, &before, &after)?;
    drop(threads);
    warn(&section, &meter, monitor);
    Ok(TimingModel {
        platform: platform::here().known(),
        latency: Some(section),
        ..TimingModel::new(platform::CLOCK)
    })
}

/// What was seen so far.
struct Seeing {
    cpus: Vec<u32>,
    sources: Sources,
    online: Online,
    /// Sources of which an interrupt was not seen whole, by processor.
    missed: BTreeSet<(u32, u32)>,
    worst: BTreeMap<wakeups::Key, Vec<wakeups::Wakeup>>,
}

impl Seeing {
    fn new(cpus: &[u32]) -> Seeing {
        Seeing {
            cpus: cpus.to_vec(),
            sources: Sources::new(cpus),
            online: Online::new(cpus),
            missed: BTreeSet::new(),
            worst: BTreeMap::new(),
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Interrupt(cpu, interrupt) if self.cpus.contains(&cpu) => {
                self.sources.add(cpu, SourceEvent::Interrupt(interrupt));
            }
            Event::Interrupt(..) => {}
            Event::Missed(missed) => {
                self.missed.insert((missed.cpu, missed.source));
                self.sources.gap(missed.cpu);
            }
            Event::Wakeup(wakeup) => {
                let worst = self.worst.entry(wakeup.key).or_default();
                worst.push(*wakeup);
                worst.sort_by_key(|wakeup| std::cmp::Reverse(wakeup.latency));
                worst.truncate(MAX_WORST);
            }
        }
    }

    /// Waits, and reads the buffer meanwhile; returns how the command ended, if that was the end.
    fn wait(
        &mut self,
        options: &Options,
        stop: &AtomicBool,
        monitor: &dyn Monitor,
        meter: &mut Meter,
    ) -> Result<Option<ExitStatus>> {
        let end = options.limit.and_then(|limit| std::time::Instant::now().checked_add(limit));
        let mut progress = monitor.watching(options.limit);
        while !stop.load(Ordering::Relaxed) {
            let now = std::time::Instant::now();
            let left = end.map_or(TICK, |end| end.saturating_duration_since(now).min(TICK));
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left);
            meter.drain(&mut |event| self.event(event))?;
            for cpu in self.online.look() {
                self.sources.gap(cpu);
            }
            let count = self.sources.count();
            progress.update(&|| Seen { summary: counted(count, "interrupt"), lost: 0 });
            if let Some(status) = meter.command_status() {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    fn section(
        &self,
        meter: &Meter,
        until: Instant,
        measuring: &[u32],
        before: &Counters,
        after: &Counters,
    ) -> Result<SchedulingLatency> {
        let names = Names::read();
        let latencies = meter.latencies();
        let processor = |&cpu: &u32| {
            let of = meter.processor(cpu)?;
            let is_partial = of.lost > 0 || meter.skipped() > 0;
            let mut interrupts = self.sources.interrupts(cpu, &names, is_partial);
            self.mark_missed(cpu, &mut interrupts, |row| after.since(before, cpu, row));
            Ok(latency::Processor {
                cpu,
                observed_ns: until.since(meter.from),
                skipped_events: of.doubts,
                lost_records: of.lost,
                went_offline: self.online.times_offline(cpu),
                negative_durations: 0,
                variables: None,
                interrupts,
                timers: Some(timers(&of.timers)),
                measured: self.measured(cpu, &latencies, measuring, &names),
            })
        };
        Ok(SchedulingLatency {
            from_ns: meter.from,
            until_ns: until,
            kernel: platform::here().kernel,
            preemption: punctual_observe::preemption(),
            horizon_ns: HORIZON,
            processors: self.cpus.iter().map(processor).collect::<Result<_>>()?,
            monitors: Vec::new(),
        })
    }

    /// Marks the sources of which the kernel counted more than were seen, or which were not seen whole.
    fn mark_missed(&self, cpu: u32, interrupts: &mut [Interrupt], counted: impl Fn(&str) -> u64) {
        let mut rows: BTreeMap<String, u64> = BTreeMap::new();
        for interrupt in interrupts.iter() {
            if let Some(row) = Names::row(&interrupt.source) {
                *rows.entry(row).or_default() += interrupt.curves.count;
            }
        }
        for interrupt in interrupts {
            let row = Names::row(&interrupt.source);
            let is_short = row.is_some_and(|row| rows.get(&row).is_some_and(|seen| *seen < counted(&row)));
            let number = Names::number(&interrupt.source);
            interrupt.at_least |= is_short || self.missed.contains(&(cpu, number));
        }
    }

    /// The latencies on a processor; the measuring thread's first.
    fn measured(&self, cpu: u32, all: &[Latencies], measuring: &[u32], names: &Names) -> Vec<Measured> {
        let mut by_thread: BTreeMap<_, Measured> = BTreeMap::new();
        for of in all.iter().filter(|of| of.key.cpu == cpu) {
            let Some(policy) = Policy::from_number(of.key.policy) else { continue };
            let id = ThreadId { name: of.comm.clone(), pid: of.pid, tid: of.key.tid };
            let thread = RealTimeThread { id, policy, priority: of.key.priority };
            let worst = self.worst.get(&of.key).map_or(&[][..], Vec::as_slice);
            // Where the record of the greatest found no room, the others are not the greatest.
            let is_whole = worst.first().is_some_and(|first| first.latency == of.max);
            let measured = Measured {
                thread: (!measuring.contains(&of.key.tid)).then_some(thread),
                wakeups: of.wakeups,
                unmeasured: of.unmeasured,
                total_ns: of.total,
                max_ns: of.max,
                bounded_max_ns: of.undelayed,
                worst: match is_whole {
                    true => worst.iter().map(|it| wakeup(it, names)).collect(),
                    false => Vec::new(),
                },
            };
            match by_thread.entry(measured.key()) {
                Entry::Vacant(free) => drop(free.insert(measured)),
                Entry::Occupied(mut taken) => taken.get_mut().merge(measured),
            }
        }
        by_thread.into_values().collect()
    }
}

fn wakeup(of: &wakeups::Wakeup, names: &Names) -> Wakeup {
    let split = of.split.map(|(interrupts_ns, threads_ns)| Split {
        interrupts_ns,
        threads_ns,
        rest_ns: of.latency.saturating_sub(interrupts_ns + threads_ns),
    });
    let ran = of.ran.iter().map(|ran| {
        let (name, number) = match ran.kind {
            wakeups::RanKind::Thread => (ran.comm.clone(), ran.number),
            _ => {
                let source = names.source(ran.number);
                (source.name, source.number.unwrap_or(0))
            }
        };
        let from_ns = ran.from.max(of.ready);
        // What began before the wake-up counts from there on; how it is interrupted is not known then.
        let duration_ns = match ran.from < of.ready {
            true => (ran.from + ran.duration).since(of.ready),
            false => ran.duration,
        };
        Ran { kind: kind(ran.kind), name, number, from_ns, duration_ns }
    });
    Wakeup { at_ns: of.ready, latency_ns: of.latency, split, ran: ran.collect() }
}

fn kind(of: wakeups::RanKind) -> RanKind {
    match of {
        wakeups::RanKind::Thread => RanKind::Thread,
        wakeups::RanKind::Interrupt => RanKind::Interrupt,
        wakeups::RanKind::Softirq => RanKind::Softirq,
        wakeups::RanKind::Nmi => RanKind::Nmi,
    }
}

fn timers(of: &wakeups::Timers) -> Timers {
    let (pid, tid, name) = of.interrupted.clone();
    let culprit = Culprit {
        at_ns: of.at,
        thread: ThreadId { name, pid, tid },
        closed: of.function.clone(),
        ..Culprit::default()
    };
    let culprit = (of.expired > 0 && !of.max.is_zero()).then_some(culprit);
    let lateness = Variable { max_ns: of.max, at_least: false, culprit };
    Timers { expired: of.expired, total_ns: of.total, lateness }
}

/// Tells what the figures leave out.
fn warn(section: &SchedulingLatency, meter: &Meter, monitor: &dyn Monitor) {
    let lost: u64 = section.processors.iter().map(|cpu| cpu.lost_records).sum();
    if lost > 0 {
        let lost = counted(lost, "record");
        monitor.warn(&format!("{lost} lost: the buffer was full; there were more interrupts than are shown"));
    }
    let untracked = meter.untracked();
    if untracked > 0 {
        monitor.warn(&format!("{untracked} threads found no room; their latencies are not shown"));
    }
    let skipped = meter.skipped();
    if skipped > 0 {
        monitor.warn(&format!("the kernel skipped {} of the programs", counted(skipped, "run")));
    }
}
