//! Measuring how late the kernel can make a thread, live: the section `latency` of a timing model.

mod counters;
mod flight;
mod measuring;
mod monitors;
mod names;
mod processors;
mod sources;
mod wakeups;

use crate::error::Result;
use crate::monitor::{Monitor, Seen};
use crate::{platform, watch};
use measuring::MeasuringThreads;
use monitors::Monitors;
use names::Names;
use processors::Online;
use punctual_latency::HORIZON;
use punctual_model::latency::{self, Culprit, Measured, RealTimeThread, SchedulingLatency, ThreadId};
use punctual_model::{Instant, Policy, TimingModel};
use punctual_observe::latency::{Frame, Meter, Processor, Thread};
use punctual_report::counted;
use sources::Sources;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two looks into the buffers of interrupts.
const TICK: Duration = Duration::from_millis(50);

/// What to measure, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// When to end, if the command does not end before.
    pub limit: Option<Duration>,
    /// Which processors; all that are online, if empty.
    pub cpus: Vec<u32>,
    /// How often the measuring threads wake up; `None`: there are none.
    pub measure: Option<Duration>,
    /// End at the first duration or latency of this length, and keep the last events before it.
    pub threshold: Option<Duration>,
    /// Whether the kernel's monitors watch the rules that the bound rests on.
    pub verify: bool,
    /// What to run meanwhile; nothing, if empty.
    pub command: Vec<OsString>,
    /// Whether what the command prints goes to standard error, because standard output is for the model.
    pub command_to_stderr: bool,
}

/// What a measurement has found.
pub struct Outcome {
    /// A timing model with the section `latency`.
    pub model: TimingModel,
    /// The last events before the threshold was exceeded, in lines for people; `None` if it was not.
    pub flight: Option<String>,
}

/// Measures until the limit, the end of the command, or `stop`. Where the kernel does not show what a bound is
/// made of, the section has measured latencies alone.
pub fn measure(options: &Options, stop: &AtomicBool, monitor: &dyn Monitor) -> Result<Outcome> {
    if let Err(reason) = punctual_observe::latency::supported() {
        monitor.warn(&format!("no bound of the scheduling latency here, but what can be measured: {reason}"));
        if options.threshold.is_some() || options.verify {
            monitor.warn("--threshold and --verify are for the bound: they do nothing here");
        }
        return Ok(Outcome { model: wakeups::measure(options, stop, monitor)?, flight: None });
    }
    let cpus = processors::choose(&options.cpus)?;
    let threads = options.measure.map(|period| MeasuringThreads::start(&cpus, period)).transpose()?;
    let monitors = options.verify.then(Monitors::start).transpose()?;
    let mut meter = Meter::start(&punctual_observe::latency::Options {
        processors: cpus.clone(),
        threshold: options.threshold.map(ns),
        command: options.command.clone(),
        command_to_stderr: options.command_to_stderr,
    })?;
    let mut sources = Sources::new(&cpus);
    let mut online = Online::new(&cpus);
    let command_ended = wait(options, stop, monitor, &mut meter, &mut sources, &mut online);
    let until = platform::now();
    let left = meter.stop()?;
    meter.drain(&mut |cpu, event| sources.add(cpu, event));
    if let Some(process) = left {
        watch::warn_still_running(process, monitor);
    }
    if let Some(status) = command_ended.filter(|status| !status.success()) {
        watch::warn_command_failed(status, monitor);
    }
    let measuring = threads.as_ref().map_or(&[][..], MeasuringThreads::tids);
    let mut section = section(&meter, &sources, &online, until, measuring)?;
    drop(threads);
    if let Some(monitors) = monitors {
        section.monitors = monitors.result(until)?;
    }
    warn(&section, monitor);
    let flight = meter.flight()?.map(|(cpu, events)| flight::text(cpu, &events, &Names::read()));
    let model = TimingModel {
        platform: platform::here().known(),
        latency: Some(section),
        ..TimingModel::new(platform::CLOCK)
    };
    Ok(Outcome { model, flight })
}

/// As the model has it; saturates.
fn ns(duration: Duration) -> punctual_model::Duration {
    punctual_model::Duration::from_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Waits, and reads the buffers meanwhile; returns how the command ended, if that was the end.
fn wait(
    options: &Options,
    stop: &AtomicBool,
    monitor: &dyn Monitor,
    meter: &mut Meter,
    sources: &mut Sources,
    online: &mut Online,
) -> Option<std::process::ExitStatus> {
    let end = options.limit.and_then(|limit| std::time::Instant::now().checked_add(limit));
    let mut progress = monitor.watching(options.limit);
    while !stop.load(Ordering::Relaxed) {
        let left = end.map_or(TICK, |end| end.saturating_duration_since(std::time::Instant::now()).min(TICK));
        if left.is_zero() {
            return None;
        }
        std::thread::sleep(left);
        meter.drain(&mut |cpu, event| sources.add(cpu, event));
        for cpu in online.look() {
            sources.gap(cpu);
        }
        if options.threshold.is_some() && meter.is_over_threshold() {
            return None;
        }
        progress.update(&|| Seen { summary: counted(sources.count(), "interrupt"), lost: sources.lost() });
        if let Some(status) = meter.command_status() {
            return Some(status);
        }
    }
    None
}

fn section(
    meter: &Meter,
    sources: &Sources,
    online: &Online,
    until: Instant,
    measuring: &[u32],
) -> Result<SchedulingLatency> {
    let skipped = meter.losses().skipped;
    let names = Names::read();
    let processors = meter.processors()?;
    let first = processors.first().map(|cpu| cpu.number);
    let processor = |measured: Processor| {
        let cpu = measured.number;
        let went_offline = online.times_offline(cpu);
        let at_least = skipped > 0 || went_offline > 0 || measured.unseen > 0 || measured.negative > 0;
        latency::Processor {
            cpu,
            observed_ns: until.since(meter.from),
            // The kernel counts them for all processors together: all are "at least", the first has the number.
            skipped_events: if Some(cpu) == first { skipped } else { 0 },
            lost_records: sources.lost_on(cpu),
            went_offline,
            negative_durations: measured.negative,
            variables: Some(variables(&measured, at_least)),
            interrupts: sources.interrupts(cpu, &names, at_least),
            timers: None,
            measured: latencies(measured.threads, measuring),
        }
    };
    Ok(SchedulingLatency {
        from_ns: meter.from,
        until_ns: until,
        kernel: platform::here().kernel,
        preemption: punctual_observe::preemption(),
        horizon_ns: HORIZON,
        processors: processors.into_iter().map(processor).collect(),
        monitors: Vec::new(),
    })
}

fn variables(measured: &Processor, at_least: bool) -> latency::Variables {
    let [poid, psd, st, paie] = [0, 1, 2, 3].map(|at| latency::Variable {
        max_ns: measured.durations[at],
        at_least,
        culprit: measured.culprits[at].as_ref().map(culprit),
    });
    latency::Variables { poid, psd, st, paie }
}

fn culprit(of: &punctual_observe::latency::Culprit) -> Culprit {
    Culprit {
        at_ns: of.at,
        thread: ThreadId { name: of.comm.clone(), pid: of.pid, tid: of.tid },
        opened: of.opened.as_ref().map(place),
        closed: of.closed.as_ref().map(place),
        stack: of.stack.iter().map(place).collect(),
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

/// By thread, those of the measuring thread first.
fn latencies(threads: Vec<Thread>, measuring: &[u32]) -> Vec<Measured> {
    let mut by_thread = BTreeMap::new();
    for thread in threads {
        let Some(policy) = Policy::from_number(thread.policy) else { continue };
        let id = ThreadId { name: thread.comm.clone(), pid: thread.pid, tid: thread.tid };
        let observed = RealTimeThread { id, policy, priority: thread.priority };
        let measured = Measured {
            thread: (!measuring.contains(&thread.tid)).then_some(observed),
            wakeups: thread.wakeups,
            unmeasured: 0,
            total_ns: thread.total,
            max_ns: thread.max,
            bounded_max_ns: Some(thread.max),
            worst: vec![latency::Wakeup {
                at_ns: thread.max_at,
                latency_ns: thread.max,
                ..Default::default()
            }],
        };
        by_thread.insert(measured.key(), measured);
    }
    by_thread.into_values().collect()
}

/// Tells what makes the variables less than a bound.
fn warn(section: &SchedulingLatency, monitor: &dyn Monitor) {
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
