//! Live threads against a contract: an alarm for each violation, and a recording of the seconds before it.
//!
//! Whatever may wait (standard output, the journal, commands, the disk) has a thread of its own with a
//! bounded queue. What finds no room is counted, and the observation never waits.

mod alarms;
mod causes;
mod chains;
mod flight;
mod gauges;
mod latencies;
mod presence;
mod sampler;
mod unwatched;

pub use alarms::{Alarm, Counters, Output};

use crate::accounts::Accounts;
use crate::agreement::read_contract;
use crate::bounds::Bounds;
use crate::destination::is_standard_stream;
use crate::error::{Error, Result};
use crate::model_file::display_name;
use crate::monitor::Monitor;
use crate::platform;
use crate::probes::Probed;
use crate::watch::{self, Sink, Watch};
use alarms::Alarms;
use causes::LateJobs;
use chains::Chains;
use flight::FlightRecorder;
use gauges::Gauges;
use latencies::Latencies;
use presence::Presence;
use punctual_conformance::{Checker, Contract, Verdict, Violation};
use punctual_model::Causes;
use punctual_observe::{Observer, Statistics, Switches, Target};
use punctual_report::counted;
use punctual_trace::Record;
use sampler::Sampler;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use unwatched::{Unwatched, can_be_watched};

/// How long records may wait in the kernel's buffer: most of the time from a record to its alarm.
const TICK: Duration = Duration::from_millis(50);
/// How often violations that were not told one by one are told in sum.
const TURN: Duration = Duration::from_secs(1);

/// What is watched, and what happens when the contract is broken.
pub struct Options {
    /// What to watch.
    pub watch: Watch,
    /// The contract, or a timing model.
    pub contract: PathBuf,
    /// Probes files of the dataflow program that is the target, for its chains.
    pub flow_probes: Vec<PathBuf>,
    /// A command for the shell, run for violations.
    pub on_violation: Option<String>,
    /// Whether the systemd journal is told.
    pub journal: bool,
    /// The folder in which recordings of the time before violations are kept.
    pub keep: Option<PathBuf>,
    /// How long before a violation such a recording begins.
    pub before: Duration,
    /// Whether late jobs are explained. Those in recordings always are.
    pub causes: bool,
    /// Where metrics are served.
    pub metrics: Option<SocketAddr>,
    /// What was proven of the tasks: longer responses are violations, too.
    pub bounds: Bounds,
}

/// What came of it.
#[derive(Debug)]
pub struct Guarded {
    /// By the contract as it was last.
    pub verdict: Verdict,
    /// Violations of contracts that were in force before.
    pub earlier: u64,
    /// What was told to whom.
    pub counters: Counters,
    /// Why jobs were late, if they were explained.
    pub causes: Option<Causes>,
    /// What ended the observation early.
    pub failure: Option<Error>,
}

impl Guarded {
    /// All violations.
    pub fn violations(&self) -> u64 {
        self.verdict.violations().saturating_add(self.earlier)
    }
}

/// Watches until the limit of time, the end of the target, or `stop`. Whenever `reload` is set, the contract
/// is read again.
pub fn guard(
    options: Options,
    stop: &AtomicBool,
    reload: &AtomicBool,
    output: Output,
    monitor: &dyn Monitor,
) -> Result<Guarded> {
    let Options { contract: path, on_violation, journal, keep, before, causes, metrics, bounds, .. } =
        options;
    let (mut watch, flow_probes) = (options.watch, options.flow_probes);
    watch.check()?;
    let mut contract = read_contract(&path)?;
    tell_unproven(&bounds.apply(&mut contract), monitor);
    bounds.doubt(&platform::here()).iter().for_each(|doubt| monitor.warn(doubt));
    let probed = (!flow_probes.is_empty())
        .then(|| Probed::new(&flow_probes, chains::program(&watch.observe.target)?))
        .transpose()?;
    can_be_watched(&contract, probed.is_some(), &path)?;
    let unwatched = Unwatched::new(&contract, probed.is_some(), monitor);
    // Whoever made a job late is in the recording, too.
    let explains = causes || keep.is_some();
    watch.observe.switches = match keep {
        Some(_) => Switches::All,
        None if causes => Switches::Kept,
        None => Switches::None,
    };
    let is_kept = watch.observe.switches == Switches::Kept;
    let flight = keep.map(|folder| FlightRecorder::new(folder, before)).transpose()?;
    let gauges = metrics.map(|address| Gauges::serve(address, &contract)).transpose()?;
    if let Some(gauges) = &gauges {
        monitor.hint(&format!("metrics are at http://{}/metrics", gauges.address()));
    }
    let alarms = Alarms::start(output, on_violation, journal)?;
    let held = probed.as_ref().map(|it| it.hold(watch.observe.command_output)).transpose()?;
    if let Some(held) = &held {
        watch.observe.target = Target::Pids(vec![held.process()]);
    }
    let begun = Instant::now();
    let (sink, watched) = watch::run(&watch, stop, monitor, |observer| {
        let mut unwatched = unwatched;
        let latencies = unwatched.start_latencies(&contract, monitor);
        let started = probed.as_ref().zip(held).map(|(it, held)| Chains::start(it, held, &contract));
        let chains = started.transpose()?;
        if contract.tasks.is_empty() && latencies.is_none() && chains.is_none() {
            return Err(unwatched.refusal());
        }
        Ok(Guard {
            checker: Checker::live(&contract, Box::new(watch::cgroup)),
            sampler: Sampler::default(),
            alarms,
            flight,
            causes: explains.then(|| LateJobs::start(observer.now(), is_kept, &contract)),
            gauges,
            accounts: Accounts::start(),
            turned: Instant::now(),
            presence: Presence::since(Instant::now()),
            path,
            bounds,
            latencies,
            chains,
            unwatched,
            reload,
            earlier: 0,
            violations: 0,
            monitor,
        })
    })?;
    let lost = watched.summary.statistics.lost;
    let Guard { checker, mut sampler, mut alarms, flight, causes, gauges, .. } = sink;
    let Guard { earlier, latencies, chains, unwatched, .. } = sink;
    let mut tell = |violation: &Violation| {
        if sampler.admits(violation) {
            alarms.tell(Alarm::Violation(violation.clone()));
        }
    };
    let mut verdict = checker.finish(lost, &mut tell);
    let is_stopped = stop.load(Ordering::Relaxed) || watch.limit.is_some_and(|it| begun.elapsed() >= it);
    let chains = chains.map(|it| it.finish(&mut verdict, is_stopped, monitor, &mut tell));
    if let Some(Err(error)) = latencies.map(|it| it.finish(&mut verdict, &mut tell)) {
        monitor.warn(&format!("the last scheduling latencies were not read: {error:#}"));
    }
    let causes = causes.map(|it| it.finish(&mut sampler, &mut alarms, gauges.as_ref()));
    sampler.turn().into_iter().for_each(|more| alarms.tell(more));
    verdict.notes.extend(unwatched.notes);
    let mut counters = alarms.finish();
    if let Some(flight) = flight {
        flight.finish(&mut counters, monitor);
    }
    let failure = match (watched.failure, chains.and_then(Result::err)) {
        (Some(first), Some(other)) => {
            monitor.warn(&format!("{other:#}"));
            Some(first)
        }
        (first, other) => first.or(other),
    };
    Ok(Guarded { verdict, earlier, counters, causes, failure })
}

/// Judges records as they come.
struct Guard<'a> {
    checker: Checker,
    sampler: Sampler,
    alarms: Alarms,
    flight: Option<FlightRecorder>,
    causes: Option<LateJobs>,
    gauges: Option<Gauges>,
    accounts: Accounts,
    turned: Instant,
    presence: Presence,
    path: PathBuf,
    /// What was proven.
    bounds: Bounds,
    latencies: Option<Latencies>,
    chains: Option<Chains<'a>>,
    unwatched: Unwatched,
    reload: &'a AtomicBool,
    /// Violations of contracts before this one.
    earlier: u64,
    /// All violations that were seen.
    violations: u64,
    monitor: &'a dyn Monitor,
}

impl Guard<'_> {
    fn read_contract_again(&mut self) {
        if is_standard_stream(&self.path) {
            self.monitor.warn("a contract from standard input cannot be read again; it stays as it was");
            return;
        }
        match read_contract(&self.path) {
            Ok(mut contract) => {
                tell_unproven(&self.bounds.apply(&mut contract), self.monitor);
                let mut verdict = self.checker.change_contract(&contract);
                if let Some(chains) = &mut self.chains {
                    chains.change(&contract, &mut verdict);
                }
                self.change_latencies(&contract, &mut verdict);
                if let Some(gauges) = &mut self.gauges {
                    gauges.change_contract(&contract);
                }
                if let Some(causes) = &mut self.causes {
                    causes.change_contract(&contract);
                }
                self.presence = Presence::since(Instant::now());
                self.earlier = self.earlier.saturating_add(verdict.violations());
                self.monitor.hint(&format!("{} was read again", display_name(&self.path)));
            }
            Err(error) => self.monitor.warn(&format!("{error:#}; the contract stays as it was")),
        }
    }

    /// Those of processors are measured anew if something else was agreed on.
    fn change_latencies(&mut self, contract: &Contract, verdict: &mut Verdict) {
        self.unwatched = Unwatched::new(contract, self.chains.is_some(), self.monitor);
        if self.latencies.as_ref().is_some_and(|it| it.are_of(contract)) {
            return;
        }
        if let Some(Err(error)) = self.latencies.take().map(|it| it.finish(verdict, &mut |_| {})) {
            self.monitor.warn(&format!("the last scheduling latencies were not read: {error:#}"));
        }
        self.latencies = self.unwatched.start_latencies(contract, self.monitor);
    }

    /// Judges what the dataflow program did.
    fn look_at_chains(&mut self, now: punctual_model::Instant) {
        let Guard { chains: Some(chains), sampler, alarms, violations, flight, monitor, .. } = self else {
            return;
        };
        let before = *violations;
        chains.look(now, &mut |violation: &Violation| {
            *violations += 1;
            if sampler.admits(violation) {
                alarms.tell(Alarm::Violation(violation.clone()));
            }
        });
        if let Some(flight) = flight.as_mut().filter(|_| *violations > before) {
            flight.trigger();
        }
        chains.news(now).iter().for_each(|news| monitor.warn(news));
    }

    /// Judges what was measured of processors.
    fn look_at_latencies(&mut self, is_due: bool) {
        let Guard { latencies, sampler, alarms, violations, flight, .. } = self;
        let Some(measured) = latencies else { return };
        let before = *violations;
        let mut told = |violation: &Violation| {
            *violations += 1;
            if sampler.admits(violation) {
                alarms.tell(Alarm::Violation(violation.clone()));
            }
        };
        let read = measured.look(is_due, &mut told, &mut |record| {
            if let Some(flight) = flight {
                flight.record(&Record::Latency(record));
            }
        });
        if let Some(flight) = flight.as_mut().filter(|_| *violations > before) {
            flight.trigger();
        }
        if let Err(error) = read {
            *latencies = None;
            self.unwatched.latencies(&format!("{error:#}"), self.monitor);
        }
    }
}

/// Says which tasks are not compared with a bound although others are.
pub(crate) fn tell_unproven(names: &[String], monitor: &dyn Monitor) {
    if !names.is_empty() {
        monitor.warn(&format!("not compared with a proven bound, since there is none: {}", names.join(", ")));
    }
}

impl Sink for Guard<'_> {
    fn record(&mut self, record: &Record) -> Result<()> {
        let Guard { checker, sampler, alarms, violations, gauges, accounts, causes, .. } = self;
        let before = *violations;
        let mut told = |violation: &Violation| {
            *violations += 1;
            if sampler.admits(violation) {
                alarms.tell(Alarm::Violation(violation.clone()));
            }
        };
        checker.record_jobs(record, &mut told, &mut |task, seen| {
            gauges.iter_mut().for_each(|gauges| gauges.job(task, seen));
            causes.iter_mut().for_each(|causes| causes.job(task, seen));
            accounts.job(seen);
        });
        causes.iter_mut().for_each(|causes| causes.record(record));
        if let Some(flight) = &mut self.flight {
            flight.record(record);
            if self.violations > before {
                flight.trigger();
            }
        }
        Ok(())
    }

    fn look(&mut self, observer: &Observer) {
        let Guard { checker, sampler, alarms, violations, flight, .. } = self;
        let mut seen = BTreeMap::new();
        let mut stuck = Vec::new();
        let mut glance = |tid| {
            let glance = observer.glance(tid)?;
            seen.insert(tid, glance);
            Some(glance)
        };
        checker.overdue(observer.now(), &mut glance, &mut |violation| {
            *violations += 1;
            stuck.extend(violation.subject.as_ref().map(|subject| subject.tid));
            if sampler.admits(violation) {
                alarms.tell(Alarm::Violation(violation.clone()));
            }
        });
        if let Some(flight) = flight.as_mut().filter(|_| !stuck.is_empty()) {
            stuck.dedup();
            let last = stuck.into_iter().filter_map(|tid| Some((tid, seen.get(&tid)?)));
            flight.trigger_with(last.flat_map(|(tid, glance)| glance.last_records(tid)));
        }
        self.look_at_latencies(false);
        self.look_at_chains(observer.now());
    }

    fn look_back(&mut self, observer: &Observer, has_ended: bool) {
        if let Some(causes) = &mut self.causes {
            causes.turn(observer, has_ended, &mut self.sampler, &mut self.alarms, self.gauges.as_ref());
        }
    }

    fn has_ended(&mut self) -> bool {
        self.chains.as_mut().is_some_and(Chains::has_ended)
    }

    fn tick(&mut self, statistics: &Statistics) -> Result<()> {
        if self.reload.swap(false, Ordering::Relaxed) {
            self.read_contract_again();
        }
        self.unwatched.threads(statistics, self.monitor);
        if self.turned.elapsed() >= TURN {
            self.turned = Instant::now();
            self.sampler.turn().into_iter().for_each(|more| self.alarms.tell(more));
            self.look_at_latencies(true);
            let threads = self.checker.task_threads();
            self.presence.look(self.turned, &threads).iter().for_each(|news| self.monitor.warn(news));
            if let Some(gauges) = &self.gauges {
                let chains = self.chains.iter().flat_map(Chains::tallies);
                let others = chains.chain(self.latencies.iter().flat_map(Latencies::tallies));
                gauges.turn(&self.checker, others, statistics);
                self.chains.iter().for_each(|chains| gauges.flow(&chains.counts()));
            }
        }
        if let Some(flight) = &mut self.flight {
            flight.tick(statistics, self.monitor);
        }
        Ok(())
    }

    fn progress(&self) -> String {
        format!("{}, {}", counted(self.checker.jobs(), "job"), counted(self.violations, "violation"))
    }

    fn patience(&self) -> Duration {
        TICK
    }
}

#[cfg(test)]
mod tests;
