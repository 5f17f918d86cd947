//! Measuring how late the kernel can make a thread, live: the section `latency` of a timing model.

mod counters;
mod flight;
mod guardian;
pub(crate) mod log;
mod measuring;
mod monitors;
mod names;
mod options;
mod processors;
pub(crate) mod sentry;
mod wakeups;

pub use log::Recorded;
pub use options::{Options, Outcome};

use crate::error::Result;
use crate::monitor::Monitor;
use crate::{platform, watch};
use bytesize::ByteSize;
use log::Log;
use measuring::MeasuringThreads;
pub(crate) use measuring::permitted as measuring_permitted;
use monitors::Monitors;
pub(crate) use monitors::left as monitors_left;
use options::{TICK, TICKS_UNTIL_DUE, ns};
use processors::Online;
use punctual_latency::{Section, Wait, WaitPart};
use punctual_model::latency::{self, Culprit, Preemption, RanKind, RealTimeThread, ThreadId};
use punctual_model::{Duration, Instant, Policy, SchedulingLatency};
use punctual_observe::latency::{self as observe, Event, Frame, Meter};
use punctual_report::counted;
use punctual_report::latency::{Reached, Threshold};
use punctual_trace::latency::{Latency, Maximum, Processor, Thread, Variable, Witnessed, WitnessedKind};
use rustix::process::{getpriority_process, setpriority_process};
use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

/// Measures until the limit, the end of the command, or `stop`. Where the kernel does not show what a bound
/// is made of, the section has measured latencies alone.
pub fn measure(options: &Options, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<Outcome> {
    // Before the measuring threads, which need others that are no use without these.
    punctual_observe::require_privileges()?;
    if let Err(unsupported) = punctual_observe::latency::supported() {
        let other = match punctual_observe::preemption() {
            Preemption::Rt => "",
            _ => "; and it is not a PREEMPT_RT kernel, whose rules a bound rests on",
        };
        monitor.warn(&format!("measuring without a bound: {unsupported}{other}"));
        if options.verify {
            monitor.warn("--verify is for the bound: it does nothing here");
        }
        return wakeups::measure(options, unsupported.reason, stop, monitor);
    }
    let cpus = processors::choose(&options.cpus)?;
    let threads =
        options.measure.map(|period| MeasuringThreads::start(&cpus, period, monitor)).transpose()?;
    let what = observe::Options {
        processors: cpus.clone(),
        threshold: options.threshold.map(ns),
        command: options.command.clone(),
        command_to_stderr: options.command_to_stderr,
    };
    // Behind our programs, or a monitor would take what they do in an event for what the kernel does after
    // it.
    let (mut meter, monitors) = Meter::load(&what, || options.verify.then(Monitors::start).transpose())?;
    let monitors = monitors?;
    // The command has been started by now, and keeps its priority.
    let _ahead = Ahead::start(monitor);
    let measuring = threads.as_ref().map_or_else(Vec::new, |threads| threads.tids().to_vec());
    let cpus = processors::remaining(&cpus, &options.cpus, monitor)?;
    meter.retain(&cpus);
    let from = platform::now();
    let log = Log::start(from, &cpus, None, options.record.as_ref(), monitor)?;
    if let Some(threads) = &threads {
        threads.begin(from);
    }
    meter.begin()?;
    let mut measurement = Measurement {
        meter,
        log,
        threads: threads.as_ref(),
        measuring,
        from,
        online: Some(Online::new(&cpus)),
        offline: BTreeMap::new(),
    };
    let command_ended = measurement.wait(options, stop, monitor)?;
    let until = platform::now();
    if let Some(threads) = &threads {
        threads.end(until);
    }
    if let Some(process) = measurement.meter.stop()? {
        watch::warn_still_running(process, monitor);
    }
    if let Some(status) = command_ended.filter(|status| !status.success()) {
        watch::warn_command_failed(status, monitor);
    }
    let reached = measurement.end()?;
    monitor.hint(&measurement.handed_over(until));
    let Measurement { mut log, .. } = measurement;
    drop(threads);
    for found in monitors.map_or_else(|| Ok(Vec::new()), |it| it.result(until, |what| monitor.warn(what)))? {
        log.record(Latency::Monitor(Box::new(found)));
    }
    let mut outcome = Outcome::from(log.finish(until));
    outcome.threshold = options.threshold.map(|length| Threshold { length: ns(length), reached });
    warn(outcome.model.latency.as_ref(), monitor);
    if options.cpus.is_empty() {
        processors::warn_of_newcomers(&cpus, monitor);
    }
    Ok(outcome)
}

/// The nice value of threads that go first.
const HIGHEST: i32 = -20;

/// The calling thread goes ahead of all other ordinary threads: who reads too late, loses interrupts. Until
/// this is dropped.
struct Ahead(i32);

impl Ahead {
    fn start(monitor: &dyn Monitor) -> Option<Ahead> {
        let before = getpriority_process(None);
        match before.and_then(|before| setpriority_process(None, HIGHEST).map(|()| before)) {
            Ok(before) => Some(Ahead(before)),
            Err(error) => {
                monitor.hint(&format!("what the kernel says is not read ahead of other threads: {error}"));
                None
            }
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Lowering is always permitted.
        let _ = setpriority_process(None, self.0);
    }
}

/// The programs in the kernel, and where what they see goes.
struct Measurement<'a, 't> {
    meter: Meter,
    log: Log<'a>,
    threads: Option<&'t MeasuringThreads>,
    /// Thread numbers of the measuring threads.
    measuring: Vec<u32>,
    /// When it began: all programs were attached by then.
    from: Instant,
    /// Until the first look.
    online: Option<Online>,
    /// By processor, how often it has gone offline.
    offline: BTreeMap<u32, u64>,
}

impl Measurement<'_, '_> {
    /// Waits, and reads the buffers meanwhile; returns how the command ended, if that was the end.
    fn wait(
        &mut self,
        options: &Options,
        stop: &AtomicBool,
        monitor: &dyn Monitor,
    ) -> Result<Option<ExitStatus>> {
        let end = options.end(self.from);
        let mut progress = monitor.watching(options.limit);
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
            self.collect(tick % TICKS_UNTIL_DUE == 0)?;
            self.log.tick();
            if options.threshold.is_some() && self.meter.is_over_threshold() {
                break;
            }
            progress.update(&|| self.log.seen());
            if let Some(status) = self.meter.command_status() {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// Records what came since the last call: interrupts before the latencies that they may be part of.
    fn collect(&mut self, is_due: bool) -> Result<()> {
        let threads = self.meter.threads();
        let Measurement { meter, log, threads: measuring_threads, measuring, offline, .. } = self;
        meter.drain(&mut |cpu, event| match event {
            Event::Interrupt(interrupt) => log.interrupt(cpu, &interrupt),
            Event::Lost(count) => log.record(Latency::Lost { cpu, count }),
        });
        meter.grown(&mut |cpu, grown| log.record(Latency::Maximum(Box::new(maximum(cpu, &grown)))))?;
        for (cpu, latencies) in threads {
            let wait = wait(&latencies);
            if let Some(thread) = thread(cpu, latencies, measuring) {
                log.thread(thread, is_due, |log| Some(log.explain(cpu, &wait)));
            }
        }
        if is_due {
            log.take_from_due(*measuring_threads);
        }
        if let Some(mut online) = self.online.take() {
            // The programs count who goes offline from the beginning on, but not who was about to.
            let gone = online.look_now();
            let counts = meter.counts();
            let uncounted = counts.iter().filter(|it| it.offline == 0 && gone.contains(&it.number));
            uncounted.for_each(|it| log.record(Latency::Offline { cpu: it.number }));
        }
        for counts in meter.counts() {
            let known = offline.insert(counts.number, counts.offline).unwrap_or(0);
            (known..counts.offline).for_each(|_| log.record(Latency::Offline { cpu: counts.number }));
        }
        Ok(())
    }

    /// Records the rest, once the measurement has ended; returns what reached the threshold.
    fn end(&mut self) -> Result<Option<Reached>> {
        self.collect(true)?;
        let skipped = self.meter.losses().skipped;
        for (index, counts) in self.meter.counts().into_iter().enumerate() {
            self.log.record(Latency::Processor(Processor {
                cpu: counts.number,
                // The kernel counts them for all processors together: the first has the number.
                skipped_events: if index == 0 { skipped } else { 0 },
                negative_durations: counts.negative,
                is_partial: skipped > 0 || counts.unseen > 0,
            }));
        }
        let Some((cpu, exceeded, events)) = self.meter.flight() else { return Ok(None) };
        for event in events {
            self.log.witnessed(cpu, &event);
        }
        Ok(Some(reached(cpu, exceeded)))
    }
}

impl Measurement<'_, '_> {
    /// How much data came from the kernel.
    fn handed_over(&self, until: Instant) -> String {
        let counts = self.meter.counts();
        let bytes: u64 = counts.iter().map(|processor| processor.bytes).sum();
        let seconds = until.since(self.from).ns() as f64 / 1e9;
        let rate = bytes as f64 / seconds / counts.len() as f64 / 1e3;
        format!("from the kernel: {} of interrupts, {rate:.1} KB/s for each processor", ByteSize(bytes))
    }
}

fn variable(variable: observe::Variable) -> Variable {
    match variable {
        observe::Variable::Poid => Variable::Poid,
        observe::Variable::Psd => Variable::Psd,
        observe::Variable::St => Variable::St,
        observe::Variable::Paie => Variable::Paie,
    }
}

fn reached(cpu: u32, exceeded: observe::Exceeded) -> Reached {
    let observe::Exceeded { duration, at, pid, tid, comm, opened, closed, .. } = exceeded;
    Reached {
        cpu,
        variable: exceeded.variable.map(|it| variable(it).symbol()),
        duration,
        until: at,
        thread: Some(ThreadId { name: comm, pid, tid }),
        opened: opened.as_ref().map(place),
        closed: closed.as_ref().map(place),
    }
}

fn maximum(cpu: u32, grown: &observe::Grown) -> Maximum {
    let variable = variable(grown.variable);
    Maximum { cpu, variable, duration: grown.duration, culprit: grown.culprit.as_ref().map(culprit) }
}

/// What the greatest latency of a thread was made of, besides interrupts.
fn wait(latencies: &observe::Thread) -> Wait {
    let part = |part: &observe::WaitPart| WaitPart {
        section: part.variable.map(|variable| Section {
            kind: match variable {
                observe::Variable::Poid => RanKind::Poid,
                observe::Variable::Psd => RanKind::Psd,
                observe::Variable::St => RanKind::St,
                observe::Variable::Paie => RanKind::Paie,
            },
            name: part.comm.clone(),
            tid: part.tid,
            opened: part.opened.as_ref().map(place),
            before: part.before,
        }),
        from: part.from,
        spent: part.spent,
    };
    Wait {
        ready: latencies.max_at,
        latency: latencies.max,
        overhead: latencies.worst.as_ref().map_or(Duration::ZERO, |worst| worst.overhead),
        parts: latencies.worst.as_ref().map(|worst| worst.parts.iter().map(part).collect()),
    }
}

/// `None` under a policy that is not known.
fn thread(cpu: u32, latencies: observe::Thread, measuring: &[u32]) -> Option<Thread> {
    let policy = Policy::from_number(latencies.policy)?;
    let id = ThreadId { name: latencies.comm, pid: latencies.pid, tid: latencies.tid };
    Some(Thread {
        cpu,
        is_measuring: measuring.contains(&latencies.tid),
        thread: RealTimeThread { id, policy, priority: latencies.priority },
        wakeups: latencies.wakeups,
        unmeasured: 0,
        total: latencies.total,
        max: latencies.max,
        bounded_max: Some(latencies.max),
    })
}

impl Log<'_> {
    fn witnessed(&mut self, cpu: u32, witnessed: &observe::Witnessed) {
        let kind = witnessed.kind;
        if let WitnessedKind::InterruptSource(source) = kind {
            self.source(source);
        }
        let place = witnessed.place.as_ref().map(place);
        let event = Witnessed { cpu, at: witnessed.at, tid: witnessed.tid, kind, place };
        self.record(Latency::Witnessed(Box::new(event)));
    }
}

fn culprit(culprit: &observe::Culprit) -> Culprit {
    Culprit {
        at_ns: culprit.at,
        thread: ThreadId { name: culprit.comm.clone(), pid: culprit.pid, tid: culprit.tid },
        opened: culprit.opened.as_ref().map(place),
        closed: culprit.closed.as_ref().map(place),
        stack: culprit.stack.iter().map(place).collect(),
    }
}

/// `function+0x1c`, with ` [module]` behind it, or the bare address.
fn place(frame: &Frame) -> String {
    let module = frame.module.as_ref().map_or_else(String::new, |module| format!(" [{module}]"));
    match frame.function.is_empty() {
        true => format!("{:#x}", frame.offset),
        false => format!("{}+{:#x}{module}", frame.function, frame.offset),
    }
}

/// Tells what makes the variables less than a bound.
fn warn(section: Option<&SchedulingLatency>, monitor: &dyn Monitor) {
    let Some(section) = section else { return };
    let each = |count: fn(&latency::Processor) -> u64| section.processors.iter().map(count);
    let skipped: u64 = each(|cpu| cpu.skipped_events).sum();
    if skipped > 0 {
        let runs = counted(skipped, "run");
        monitor.warn(&format!("the kernel skipped {runs} of the programs: every duration is \"at least\""));
    }
    let lost: u64 = each(|cpu| cpu.lost_records).sum();
    if lost > 0 {
        let lost = counted(lost, "record");
        monitor.warn(&format!(
            "{lost} of interrupts overwritten before they were read: there were more interrupts"
        ));
    }
    let negative: u64 = each(|cpu| cpu.negative_durations).sum();
    if negative > 0 {
        let durations = counted(negative, "duration");
        monitor.warn(&format!("{durations} came out negative; this is a bug of Punctual's"));
    }
    for cpu in section.processors.iter().filter(|cpu| cpu.went_offline > 0) {
        monitor.warn(&format!("processor {} was offline for a while", cpu.cpu));
    }
}
