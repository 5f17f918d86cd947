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
    Culprit, InterruptSource, NoVariables, Ran, RanKind, RealTimeThread, Split, ThreadId, Timers, Variable,
    Wakeup,
};
use punctual_model::{Duration, Policy, SchedulingLatency};
use punctual_observe::wakeups::{self, Event, Latencies, Meter};
use punctual_report::counted;
use punctual_report::latency::{Reached, Threshold, ran_name, unknown_ran};
use punctual_trace::latency::{Latency, Processor, Thread, ThreadWakeup};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures until the limit, the end of the command, or `stop`.
pub(super) fn measure(
    options: &Options,
    no_variables: NoVariables,
    stop: &AtomicBool,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    let cpus = processors::choose(&options.cpus)?;
    let threads =
        options.measure.map(|period| MeasuringThreads::start(&cpus, period, monitor)).transpose()?;
    let begun = || {
        threads.iter().for_each(|threads| threads.begin(platform::now()));
        (Counters::read(), processors::remaining(&cpus, &options.cpus, monitor))
    };
    let (meter, (before, cpus)) = Meter::start(&options.command, options.command_to_stderr, begun)?;
    let cpus = cpus?;
    let log = Log::start(meter.from, &cpus, Some(no_variables), options.record.as_ref(), monitor)?;
    let measuring = threads.as_ref().map_or_else(Vec::new, |threads| threads.tids().to_vec());
    let mut measurement = Measurement {
        meter,
        log,
        cpus: &cpus,
        threads: threads.as_ref(),
        measuring,
        rows: BTreeSet::new(),
        threshold: options.threshold.map(ns),
        exceeded: None,
    };
    let command_ended = measurement.wait(options, stop, monitor)?;
    let (until, after) = (platform::now(), Counters::read());
    if let Some(threads) = &threads {
        threads.end(until);
    }
    if let Some(process) = measurement.meter.stop()? {
        watch::warn_still_running(process, monitor);
    }
    if let Some(status) = command_ended.filter(|status| !status.success()) {
        watch::warn_command_failed(status, monitor);
    }
    measurement.end(&before, &after)?;
    let Measurement { log, meter, threshold, exceeded, .. } = measurement;
    drop(threads);
    let mut outcome = Outcome::from(log.finish(until));
    let latencies = meter.latencies();
    let reached = exceeded.as_ref().map(|wakeup| reached(wakeup, &latencies));
    outcome.threshold = threshold.map(|length| Threshold { length, reached });
    outcome.flight = exceeded.map(|wakeup| {
        let processors = outcome.model.latency.iter().flat_map(|latency| &latency.processors);
        let interrupts = processors.filter(|on| on.cpu == wakeup.cpu).flat_map(|on| &on.interrupts);
        let sources: Vec<&InterruptSource> = interrupts.map(|it| &it.source).collect();
        text(&wakeup, &sources)
    });
    warn(outcome.model.latency.as_ref(), &meter, monitor);
    Ok(outcome)
}

/// The programs in the kernel, and where what they see goes.
struct Measurement<'a, 't> {
    meter: Meter,
    log: Log<'a>,
    cpus: &'a [u32],
    threads: Option<&'t MeasuringThreads>,
    /// Thread numbers of the measuring threads.
    measuring: Vec<u32>,
    /// Rows in which the kernel counts the interrupts that were seen.
    rows: BTreeSet<String>,
    threshold: Option<Duration>,
    /// The first wake-up as long as the threshold.
    exceeded: Option<ThreadWakeup>,
}

impl Measurement<'_, '_> {
    /// Waits, and reads the buffer meanwhile; returns how the command ended, if that was the end.
    fn wait(
        &mut self,
        options: &Options,
        stop: &AtomicBool,
        monitor: &dyn Monitor,
    ) -> Result<Option<ExitStatus>> {
        let end = options.end(self.meter.from);
        let mut progress = monitor.watching(options.limit);
        let mut online = Online::new(self.cpus);
        for tick in 1_u32.. {
            let now = std::time::Instant::now();
            let left = end.map_or(TICK, |end| end.saturating_duration_since(now).min(TICK));
            if left.is_zero() || stop.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(left);
            // What has come until then is read after the end.
            if end.is_some_and(|end| std::time::Instant::now() >= end) {
                break;
            }
            self.drain()?;
            self.note_absences(online.look());
            if tick % TICKS_UNTIL_DUE == 0 && options.record.is_some() {
                self.sums()?;
            }
            self.log.tick();
            if self.exceeded.is_some() {
                break;
            }
            progress.update(&|| self.log.seen());
            if let Some(status) = self.meter.command_status() {
                self.note_absences(online.look_now());
                return Ok(Some(status));
            }
        }
        self.note_absences(online.look_now());
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
            Event::Interrupt(cpu, interrupt) if cpus.contains(&cpu) => {
                source(log, interrupt.source);
                log.interrupt(cpu, &interrupt);
            }
            Event::Missed(missed) if cpus.contains(&missed.cpu) => {
                source(log, missed.source);
                log.record(Latency::Missed { cpu: missed.cpu, source: missed.source });
            }
            Event::Wakeup(observed) if cpus.contains(&observed.key.cpu) => {
                let wakeups::Key { tid, cpu, policy, priority } = observed.key;
                let wakeup = wakeup(&observed, |number| source(log, number));
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
        for latencies in all.into_iter().filter(|latencies| self.cpus.contains(&latencies.key.cpu)) {
            if let Some(thread) = thread(latencies, &self.measuring) {
                self.log.thread(thread, true, |_| None);
            }
        }
        self.log.take_from_due(self.threads);
        for &cpu in self.cpus {
            let timers = Box::new(timers(&self.meter.processor(cpu)?.timers));
            self.log.record(Latency::Timers { cpu, timers });
        }
        Ok(())
    }

    fn note_absences(&mut self, gone: Vec<u32>) {
        gone.into_iter().for_each(|cpu| self.log.record(Latency::Offline { cpu }));
    }

    /// Records the rest, once the measurement has ended.
    fn end(&mut self, before: &Counters, after: &Counters) -> Result<()> {
        self.drain()?;
        self.sums()?;
        let has_skipped = self.meter.skipped() > 0;
        for &cpu in self.cpus {
            let processor = self.meter.processor(cpu)?;
            if processor.lost > 0 {
                self.log.record(Latency::Lost { cpu, count: processor.lost });
            }
            self.log.record(Latency::Processor(Processor {
                cpu,
                skipped_events: processor.missed,
                negative_durations: 0,
                is_partial: processor.lost > 0 || has_skipped,
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
fn text(record: &ThreadWakeup, sources: &[&InterruptSource]) -> String {
    let wakeup = &record.wakeup;
    if wakeup.ran.is_empty() {
        let why = unknown_ran(wakeup).unwrap_or("it had begun before the measurement did");
        return format!("What ran on CPU {} after the wake-up was not seen: {why}.\n", record.cpu);
    }
    let mut text = format!("What ran on CPU {} after the wake-up:\n", record.cpu);
    for ran in &wakeup.ran {
        let after = ran.from_ns.since(wakeup.at_ns).ns() as f64 / 1_000.0;
        let what = ran_name(ran, sources.iter().copied());
        let _ = writeln!(text, "  {:>12}  {what} for {}", format!("+{after:.3} µs"), ran.duration_ns);
    }
    text
}

fn reached(record: &ThreadWakeup, latencies: &[Latencies]) -> Reached {
    let ThreadWakeup { cpu, tid, wakeup, .. } = record;
    let known = latencies.iter().find(|it| (it.key.cpu, it.key.tid) == (*cpu, *tid));
    Reached {
        cpu: *cpu,
        variable: None,
        duration: wakeup.latency_ns,
        until: wakeup.at_ns + wakeup.latency_ns,
        thread: known.map(|it| ThreadId { name: it.comm.clone(), pid: it.pid, tid: *tid }),
        opened: None,
        closed: None,
    }
}

/// `None` under a policy that is not known.
pub(super) fn thread(latencies: Latencies, measuring: &[u32]) -> Option<Thread> {
    let policy = Policy::from_number(latencies.key.policy)?;
    let id = ThreadId { name: latencies.comm, pid: latencies.pid, tid: latencies.key.tid };
    Some(Thread {
        cpu: latencies.key.cpu,
        is_measuring: measuring.contains(&latencies.key.tid),
        thread: RealTimeThread { id, policy, priority: latencies.key.priority },
        wakeups: latencies.wakeups,
        unmeasured: latencies.unmeasured,
        total: latencies.total,
        max: latencies.max,
        bounded_max: latencies.undelayed,
    })
}

pub(super) fn wakeup(wakeup: &wakeups::Wakeup, mut source: impl FnMut(u32) -> InterruptSource) -> Wakeup {
    let split = wakeup.split.map(|(interrupts_ns, threads_ns)| Split {
        interrupts_ns,
        threads_ns,
        sections_ns: Duration::ZERO,
        rest_ns: wakeup.latency.saturating_sub(interrupts_ns + threads_ns),
    });
    let ran = wakeup.ran.iter().map(|ran| {
        let (name, number) = match ran.kind {
            wakeups::RanKind::Thread => (ran.comm.clone(), ran.number),
            _ => {
                let source = source(ran.number);
                (source.name, source.number.unwrap_or(0))
            }
        };
        let from_ns = ran.from.max(wakeup.ready);
        // What began before the wake-up counts from there on; when it was interrupted is not known.
        let duration_ns = ran.duration.min(ran.until.since(from_ns));
        Ran { kind: kind(ran.kind), name, number, from_ns, duration_ns, ..Ran::default() }
    });
    Wakeup { at_ns: wakeup.ready, latency_ns: wakeup.latency, split, ran: ran.collect() }
}

fn kind(kind: wakeups::RanKind) -> RanKind {
    match kind {
        wakeups::RanKind::Thread => RanKind::Thread,
        wakeups::RanKind::Interrupt => RanKind::Interrupt,
        wakeups::RanKind::Softirq => RanKind::Softirq,
        wakeups::RanKind::Nmi => RanKind::Nmi,
    }
}

fn timers(timers: &wakeups::Timers) -> Timers {
    let (pid, tid, name) = timers.interrupted.clone();
    let culprit = Culprit {
        at_ns: timers.at,
        thread: ThreadId { name, pid, tid },
        closed: timers.function.clone(),
        ..Culprit::default()
    };
    let culprit = (timers.expired > 0 && !timers.max.is_zero()).then_some(culprit);
    let lateness = Variable { max_ns: timers.max, at_least: false, culprit };
    Timers { expired: timers.expired, total_ns: timers.total, lateness }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(ran: Vec<wakeups::Ran>, split: Option<(Duration, Duration)>) -> wakeups::Wakeup {
        wakeups::Wakeup {
            key: wakeups::Key { tid: 7, cpu: 1, policy: 1, priority: 80 },
            ready: punctual_model::Instant::from_ns(1_000_000),
            latency: Duration::from_ns(981_693),
            split,
            ran,
        }
    }

    fn lines(observed: &wakeups::Wakeup) -> String {
        let wakeups::Key { tid, cpu, policy, priority } = observed.key;
        let wakeup = wakeup(observed, |_| unreachable!("no interrupt"));
        text(&ThreadWakeup { cpu, tid, policy, priority, wakeup }, &[])
    }

    /// A thread that was interrupted often has had less of the processor than the time since the wake-up.
    #[test]
    fn what_began_before_the_wake_up_counts_from_there_on() {
        let at = punctual_model::Instant::from_ns;
        let (from, until) = (at(100_000), at(1_981_693));
        let busy = |duration| wakeups::Ran {
            kind: wakeups::RanKind::Thread,
            number: 9,
            comm: "busy".into(),
            from,
            until,
            duration: Duration::from_ns(duration),
        };
        assert!(lines(&observed(vec![busy(1_880_000)], None)).contains("+0.000 µs  busy (9) for 981.693 µs"));
        assert!(lines(&observed(vec![busy(800_000)], None)).contains("+0.000 µs  busy (9) for 800 µs"));
    }

    #[test]
    fn without_what_ran_there_is_a_reason() {
        let text = lines(&observed(vec![], None));
        assert!(
            text.contains("What ran on CPU 1 after the wake-up was not seen: an event between"),
            "{text}"
        );
        let none = Duration::ZERO;
        let text = lines(&observed(vec![], Some((none, none))));
        assert!(text.contains("was not seen: it had begun before the measurement did"), "{text}");
    }
}
