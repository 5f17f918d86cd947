//! Measuring on kernels that do not show what a bound is made of: interrupts, late timers, and how late
//! real-time threads run after they were woken.

use super::counters::Counters;
use super::log::Log;
use super::measuring::MeasuringThreads;
use super::names::Names;
use super::options::{Options, Outcome, TICK, TICKS_UNTIL_DUE, ns};
use super::processors::{self, Online};
use crate::error::Result;
use crate::monitor::Monitor;
use crate::{platform, watch};
use punctual_model::latency::{
    Culprit, InterruptSource, Ran, RanKind, RealTimeThread, Split, ThreadId, Timers, Variable, Wakeup,
};
use punctual_model::{Duration, Policy, SchedulingLatency};
use punctual_observe::wakeups::{self, Event, Latencies, Meter};
use punctual_report::counted;
use punctual_trace::latency::{Latency, Processor, Thread, ThreadWakeup};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures until the limit, the end of the command, or `stop`.
pub(super) fn measure(options: &Options, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<Outcome> {
    let cpus = processors::choose(&options.cpus)?;
    let threads = options.measure.map(|period| MeasuringThreads::start(&cpus, period)).transpose()?;
    let (meter, before) = Meter::start(&options.command, options.command_to_stderr, Counters::read)?;
    let log = Log::start(meter.from, &cpus, false, options.record.as_ref(), monitor)?;
    let measuring = threads.as_ref().map_or_else(Vec::new, |threads| threads.tids().to_vec());
    let threshold = options.threshold.map(ns);
    let mut measurement =
        Measurement { meter, log, cpus: &cpus, measuring, rows: BTreeSet::new(), threshold, exceeded: None };
    let command_ended = measurement.wait(options, stop, monitor)?;
    let (until, after) = (platform::now(), Counters::read());
    if let Some(process) = measurement.meter.stop()? {
        watch::warn_still_running(process, monitor);
    }
    if let Some(status) = command_ended.filter(|status| !status.success()) {
        watch::warn_command_failed(status, monitor);
    }
    measurement.end(&before, &after)?;
    let Measurement { log, meter, exceeded, .. } = measurement;
    drop(threads);
    let flight = exceeded.map(|wakeup| text(&wakeup, &meter.latencies()));
    let outcome = Outcome { flight, ..Outcome::from(log.finish(until)) };
    warn(outcome.model.latency.as_ref(), &meter, monitor);
    Ok(outcome)
}

/// The programs in the kernel, and where what they see goes.
struct Measurement<'a> {
    meter: Meter,
    log: Log<'a>,
    cpus: &'a [u32],
    /// Thread numbers of the measuring threads.
    measuring: Vec<u32>,
    /// Rows in which the kernel counts the interrupts that were seen.
    rows: BTreeSet<String>,
    threshold: Option<Duration>,
    /// The first wake-up as long as the threshold.
    exceeded: Option<ThreadWakeup>,
}

impl Measurement<'_> {
    /// Waits, and reads the buffer meanwhile; returns how the command ended, if that was the end.
    fn wait(
        &mut self,
        options: &Options,
        stop: &AtomicBool,
        monitor: &dyn Monitor,
    ) -> Result<Option<ExitStatus>> {
        let end = options.limit.and_then(|limit| std::time::Instant::now().checked_add(limit));
        let mut progress = monitor.watching(options.limit);
        let mut online = Online::new(self.cpus);
        for tick in 1_u32.. {
            let now = std::time::Instant::now();
            let left = end.map_or(TICK, |end| end.saturating_duration_since(now).min(TICK));
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(left);
            self.drain()?;
            online.look().into_iter().for_each(|cpu| self.log.record(Latency::Offline { cpu }));
            if tick % TICKS_UNTIL_DUE == 0 && options.record.is_some() {
                self.sums()?;
            }
            self.log.tick();
            if self.exceeded.is_some() {
                break;
            }
            progress.update(&|| self.log.seen());
            if let Some(status) = self.meter.command_status() {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    fn drain(&mut self) -> Result<()> {
        let Measurement { meter, log, cpus, rows, threshold, exceeded, .. } = self;
        let mut source = |log: &mut Log<'_>, number| {
            let source = log.source(number);
            rows.extend(Names::row(&source));
            source
        };
        meter.drain(&mut |event| match event {
            Event::Interrupt(cpu, of) if cpus.contains(&cpu) => {
                source(log, of.source);
                log.interrupt(cpu, &of);
            }
            Event::Missed(of) if cpus.contains(&of.cpu) => {
                source(log, of.source);
                log.record(Latency::Missed { cpu: of.cpu, source: of.source });
            }
            Event::Wakeup(of) if cpus.contains(&of.key.cpu) => {
                let wakeups::Key { tid, cpu, policy, priority } = of.key;
                let wakeup = wakeup(&of, |number| source(log, number));
                let wakeup = ThreadWakeup { cpu, tid, policy, priority, wakeup };
                if exceeded.is_none() && threshold.is_some_and(|it| wakeup.wakeup.latency_ns >= it) {
                    *exceeded = Some(wakeup.clone());
                }
                log.record(Latency::Wakeup(Box::new(wakeup)));
            }
            Event::Interrupt(..) | Event::Missed(_) | Event::Wakeup(_) => {}
        })?;
        Ok(())
    }

    /// Records the sums as they are.
    fn sums(&mut self) -> Result<()> {
        let all = self.meter.latencies();
        for of in all.into_iter().filter(|of| self.cpus.contains(&of.key.cpu)) {
            if let Some(thread) = thread(of, &self.measuring) {
                self.log.thread(thread, true, None);
            }
        }
        for &cpu in self.cpus {
            let timers = Box::new(timers(&self.meter.processor(cpu)?.timers));
            self.log.record(Latency::Timers { cpu, timers });
        }
        Ok(())
    }

    /// Records the rest, once the measurement has ended.
    fn end(&mut self, before: &Counters, after: &Counters) -> Result<()> {
        self.drain()?;
        self.sums()?;
        let has_skipped = self.meter.skipped() > 0;
        for &cpu in self.cpus {
            let of = self.meter.processor(cpu)?;
            if of.lost > 0 {
                self.log.record(Latency::Lost { cpu, count: of.lost });
            }
            self.log.record(Latency::Processor(Processor {
                cpu,
                skipped_events: of.missed,
                negative_durations: 0,
                is_partial: of.lost > 0 || has_skipped,
            }));
            for row in &self.rows {
                let count = after.since(before, cpu, row);
                self.log.record(Latency::Counted { cpu, row: row.clone(), count });
            }
        }
        Ok(())
    }
}

/// What ran during a wake-up, in lines for people; times count from when the thread was ready.
fn text(of: &ThreadWakeup, latencies: &[Latencies]) -> String {
    let is_it = |it: &&Latencies| (it.key.cpu, it.key.tid) == (of.cpu, of.tid);
    let name = latencies.iter().find(is_it).map_or("thread", |it| &it.comm);
    let (wakeup, tid, cpu) = (&of.wakeup, of.tid, of.cpu);
    let mut text = format!(
        "{name} ({tid}) on CPU {cpu} ran {} after it was woken, which is not below the threshold:\n",
        wakeup.latency_ns
    );
    for ran in &wakeup.ran {
        let after = ran.from_ns.since(wakeup.at_ns).ns() as f64 / 1_000.0;
        let what = match ran.kind {
            RanKind::Thread => format!("{} ({})", ran.name, ran.number),
            RanKind::Interrupt => format!("interrupt {} {}", ran.number, ran.name),
            RanKind::Softirq => format!("softirq {}", ran.name),
            RanKind::Nmi => "NMI".to_owned(),
        };
        let _ = writeln!(text, "  {:>12}  {what} for {}", format!("+{after:.3} µs"), ran.duration_ns);
    }
    text
}

/// `None` under a policy that is not known.
fn thread(of: Latencies, measuring: &[u32]) -> Option<Thread> {
    let policy = Policy::from_number(of.key.policy)?;
    let id = ThreadId { name: of.comm, pid: of.pid, tid: of.key.tid };
    Some(Thread {
        cpu: of.key.cpu,
        is_measuring: measuring.contains(&of.key.tid),
        thread: RealTimeThread { id, policy, priority: of.key.priority },
        wakeups: of.wakeups,
        unmeasured: of.unmeasured,
        total: of.total,
        max: of.max,
        bounded_max: of.undelayed,
    })
}

fn wakeup(of: &wakeups::Wakeup, mut source: impl FnMut(u32) -> InterruptSource) -> Wakeup {
    let split = of.split.map(|(interrupts_ns, threads_ns)| Split {
        interrupts_ns,
        threads_ns,
        rest_ns: of.latency.saturating_sub(interrupts_ns + threads_ns),
    });
    let ran = of.ran.iter().map(|ran| {
        let (name, number) = match ran.kind {
            wakeups::RanKind::Thread => (ran.comm.clone(), ran.number),
            _ => {
                let source = source(ran.number);
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
fn warn(section: Option<&SchedulingLatency>, meter: &Meter, monitor: &dyn Monitor) {
    let processors = section.iter().flat_map(|section| &section.processors);
    let lost: u64 = processors.map(|cpu| cpu.lost_records).sum();
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
