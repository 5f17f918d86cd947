//! The chains of a dataflow program that a contract agrees on, watched: what probes see of the program goes
//! the way of a trace, without the trace.

use crate::error::{Error, Result};
use crate::monitor::Monitor;
use crate::probes::{self, Probed, Recorder, Sink, Target};
use crate::watch::{warn_command_failed, warn_still_running};
use punctual_conformance::{ChainChecker, Contract, ContractChain, Note, Tally, Verdict, Violation};
use punctual_extract::flow::Follower;
use punctual_model::Instant;
use punctual_observe::flow::{Counted, Held, Tracer};
use punctual_report::counted;
use punctual_trace::flow::{About, Events, Item, Kind};
use std::time::Duration;

/// How long an event may be on its way from its time to the buffer: whoever is preempted in a probe writes it
/// late.
const ON_ITS_WAY: u64 = 50_000_000;
/// How long a command may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most threads whose events are followed: as in a trace.
const MOST_PRODUCERS: usize = 4_096;
/// How long after the begin it is said which chains have not been seen.
const PATIENT: u64 = 10_000_000_000;
/// Events after which it is clear whether the probes fit the program.
const TELLING: u64 = 10_000;

/// Where events go that are followed at once.
pub struct Live {
    events: Events,
    producers: usize,
    about: About,
    is_new: bool,
    /// Events that were lost: there was no room, or their place had passed.
    lost: u64,
    /// The time of the newest event.
    newest: u64,
    /// Whether there are threads for which there was no room, and whether that was told.
    is_full: bool,
    is_told_full: bool,
}

impl Live {
    pub fn new(about: About) -> Live {
        Live {
            events: Events::default(),
            producers: 0,
            about,
            is_new: true,
            lost: 0,
            newest: 0,
            is_full: false,
            is_told_full: false,
        }
    }

    fn taken(&mut self, at: u64, is_in_time: bool) -> Result<()> {
        self.lost += u64::from(!is_in_time);
        self.newest = self.newest.max(at);
        Ok(())
    }

    /// Everything before this time has come. What is still in the buffer was written after the newest event.
    fn complete(&self, is_all: bool, now: Instant) -> Instant {
        let newest = if is_all { now.ns() } else { now.ns().min(self.newest) };
        Instant::from_ns(newest.saturating_sub(ON_ITS_WAY))
    }

    /// That there are too many threads: once.
    fn overflow(&mut self) -> Option<String> {
        let is_news = self.is_full && !std::mem::replace(&mut self.is_told_full, self.is_full);
        is_news.then(|| {
            format!(
                "more than {} of the program were seen: events of further ones count as lost",
                counted(MOST_PRODUCERS as u64, "thread")
            )
        })
    }
}

impl Sink for Live {
    fn add_producer(&mut self) -> Result<usize> {
        if self.producers == MOST_PRODUCERS {
            self.is_full = true;
            // There is none of this number: its events are lost.
            return Ok(usize::MAX);
        }
        self.producers += 1;
        Ok(self.events.add_producer())
    }

    fn event(&mut self, producer: usize, at: u64, kind: Kind, object: u16, number: u64) -> Result<()> {
        let is_in_time = self.events.event(producer, at, kind, object, number);
        self.taken(at, is_in_time)
    }

    fn count(&mut self, producer: usize, at: u64, channel: u16, count: u32) -> Result<()> {
        let is_in_time = self.events.count(producer, at, channel, count);
        self.taken(at, is_in_time)
    }

    fn discard(&mut self, events: u32) -> Result<()> {
        self.lost += u64::from(events);
        Ok(())
    }

    fn describe(&mut self, about: &About) -> Result<()> {
        self.about.clone_from(about);
        self.is_new = true;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Judges the events of a recorder as they come.
pub struct Judge {
    follower: Follower,
    checker: Option<ChainChecker>,
    agreed: Vec<ContractChain>,
    items: Vec<Item>,
    /// Lost events that the follower knows of.
    lost: u64,
    data: u64,
}

impl Judge {
    pub fn new(contract: &Contract) -> Judge {
        let checker = ChainChecker::new(contract);
        Judge {
            follower: Follower::new(tasks(checker.as_ref())),
            checker,
            agreed: contract.chains.clone(),
            items: Vec::new(),
            lost: 0,
            data: 0,
        }
    }

    /// Judges everything that happened before this time. What was lost was so before `now`.
    pub fn until(&mut self, until: Instant, now: Instant, live: &mut Live, each: &mut dyn FnMut(&Violation)) {
        if live.lost > self.lost {
            self.lost = live.lost;
            self.follower.lose(now);
        }
        self.items.clear();
        let items = &mut self.items;
        live.events.until(until.ns(), &mut |item| items.push(item));
        let Judge { follower, checker, items, data, .. } = self;
        let is_new = std::mem::take(&mut live.is_new);
        follower.batch(items, &live.about, is_new, &mut |chain, latency| {
            *data += 1;
            checker.iter_mut().for_each(|it| it.latency(chain, latency, &mut |violation| each(violation)));
        });
    }

    /// Whether other chains are agreed on now.
    fn change(&mut self, contract: &Contract, verdict: &mut Verdict) -> bool {
        if self.agreed == contract.chains {
            return false;
        }
        self.conclude(verdict);
        self.agreed.clone_from(&contract.chains);
        self.checker = ChainChecker::new(contract);
        self.follower.change(tasks(self.checker.as_ref()));
        true
    }

    /// Adds what came of the contract so far to a verdict.
    fn conclude(&mut self, verdict: &mut Verdict) {
        if let Some(mut checker) = self.checker.take() {
            self.follower.absent().for_each(|(chain, why)| checker.is_absent(chain, why));
            checker.finish(verdict);
        }
    }

    /// Ends, and adds what came of it to a verdict.
    pub fn finish(mut self, verdict: &mut Verdict) {
        self.conclude(verdict);
        verdict.gaps += self.follower.losses();
        verdict.lost = verdict.lost.saturating_add(self.lost);
        let restarts = self.follower.restarts();
        if restarts > 0 {
            let text = format!(
                "new parts of the program appeared {}; data in flight then were not judged",
                counted(restarts, "time")
            );
            verdict.notes.push(Note { task: "".into(), text });
        }
    }
}

fn tasks(checker: Option<&ChainChecker>) -> Vec<Vec<String>> {
    checker.iter().flat_map(|it| it.tasks()).map(<[String]>::to_vec).collect()
}

/// A program that is watched.
pub struct Chains<'a> {
    probed: &'a Probed,
    tracer: Tracer,
    recorder: Recorder<'a, Live>,
    judge: Judge,
    /// Why it ended.
    failure: Option<Error>,
    is_told_to_fit: bool,
    /// When it is to be said which chains have not been seen, unless that was.
    absent_at: Option<Instant>,
}

/// What is counted of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events of the program.
    pub events: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Latencies of chains.
    pub data: u64,
    /// How often judging began anew.
    pub restarts: u64,
}

impl<'a> Chains<'a> {
    /// Begins; a command begins to run.
    pub fn start(probed: &'a Probed, held: Held, contract: &Contract) -> Result<Chains<'a>> {
        let source = probed.source();
        let about = probes::about(&source);
        let recorder = Recorder::new(&source, about.clone(), Live::new(about));
        let judge = Judge::new(contract);
        let tracer = held.go()?;
        Ok(Chains { probed, tracer, recorder, judge, failure: None, is_told_to_fit: false, absent_at: None })
    }

    /// Judges by this contract from now on; adds what came of the one before to a verdict.
    pub fn change(&mut self, contract: &Contract, verdict: &mut Verdict) {
        if self.judge.change(contract, verdict) {
            self.absent_at = None;
        }
    }

    /// Judges what came since the last call.
    pub fn look(&mut self, now: Instant, each: &mut dyn FnMut(&Violation)) {
        if self.failure.is_none() {
            self.failure = self.take(now, each).err();
        }
    }

    fn take(&mut self, now: Instant, each: &mut dyn FnMut(&Violation)) -> Result<()> {
        let Chains { tracer, recorder, judge, .. } = self;
        let mut failure = None;
        let is_all = tracer.drain(&mut |seen| recorder.take(seen, &mut failure))?;
        failure.map_or(Ok(()), Err)?;
        recorder.tick(tracer.counted())?;
        let until = recorder.sink().complete(is_all, now);
        judge.until(until, now, recorder.sink(), each);
        if !self.is_told_to_fit && self.recorder.events() >= TELLING {
            self.is_told_to_fit = true;
            return misfit(self.probed, &self.recorder, self.tracer.counted()).map_or(Ok(()), Err);
        }
        Ok(())
    }

    /// What is to be told now besides violations.
    pub fn news(&mut self, now: Instant) -> Vec<String> {
        let mut news = self.unseen(now);
        news.extend(self.recorder.sink().overflow());
        news
    }

    /// The chains that have not been seen some seconds after the begin, and why: once.
    fn unseen(&mut self, now: Instant) -> Vec<String> {
        let at = *self.absent_at.get_or_insert(Instant::from_ns(now.ns().saturating_add(PATIENT)));
        if now < at {
            return Vec::new();
        }
        self.absent_at = Some(Instant::from_ns(u64::MAX));
        let names: Vec<String> = self.tallies().map(|tally| tally.task.to_string()).collect();
        let absent = self.judge.follower.absent();
        absent.map(|(chain, why)| format!("{} has not been seen yet: {why}", names[chain])).collect()
    }

    /// Whether there is nothing more to come.
    pub fn has_ended(&mut self) -> bool {
        self.failure.is_some() || self.tracer.ended()
    }

    /// How the chains stand.
    pub fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.judge.checker.iter().flat_map(ChainChecker::tallies)
    }

    /// What was counted.
    pub fn counts(&self) -> Counts {
        Counts {
            events: self.recorder.events(),
            lost: self.judge.lost,
            data: self.judge.data,
            restarts: self.judge.follower.losses() + self.judge.follower.restarts(),
        }
    }

    /// Ends, asks a command to do so too, and adds what came of it to a verdict.
    pub fn finish(
        self,
        verdict: &mut Verdict,
        is_stopped: bool,
        monitor: &dyn Monitor,
        each: &mut dyn FnMut(&Violation),
    ) -> Result<()> {
        let Chains { probed, tracer, mut recorder, mut judge, mut failure, .. } = self;
        let process = tracer.process();
        let (status, counts) = tracer.finish(PATIENCE, &mut |seen| recorder.take(seen, &mut failure))?;
        let failure = failure.or_else(|| misfit(probed, &recorder, counts));
        match status {
            None if probed.is_command() => warn_still_running(process, monitor),
            Some(status) if !status.success() && !is_stopped => warn_command_failed(status, monitor),
            _ => {}
        }
        recorder.tick(counts)?;
        let end = Instant::from_ns(u64::MAX);
        judge.until(end, end, recorder.sink(), each);
        let losses = "nothing is judged across them";
        probes::warn(counts, recorder.by_kind(), &recorder.findings(counts), losses, monitor);
        recorder.sink().overflow().iter().for_each(|full| monitor.warn(full));
        judge.finish(verdict);
        failure.map_or(Ok(()), Err)
    }
}

/// That the probes certainly do not fit the program, and why.
fn misfit(probed: &Probed, recorder: &Recorder<'_, Live>, counts: Counted) -> Option<Error> {
    let findings = recorder.findings(counts);
    let why = findings.iter().find(|finding| finding.is_certain).map(|finding| finding.text.clone());
    let advice = ["no chain was seen", "do not trust what was said of its chains"];
    let error = probed.misfit(recorder.events(), counts, &findings, advice)?;
    Some(match why {
        Some(why) => error.because(why),
        None => error,
    })
}

/// The program among the targets of an observation.
pub fn program(target: &punctual_observe::Target) -> Result<Target> {
    match target {
        punctual_observe::Target::Command(words) => Ok(Target::Command(words.clone())),
        punctual_observe::Target::Pids(pids) if pids.len() == 1 => Ok(Target::Process(pids[0])),
        _ => Err(Error::usage("--flow-probes needs one program")
            .advise("-- COMMAND starts it, or a single --pid names one that runs")),
    }
}

/// That they cannot be watched, and how they could be.
pub fn unwatched() -> Note {
    let text = "chains are not watched: name the program and how its framework is probed by --flow-probes; \
                or punctual check CONTRACT TRACE judges them afterwards";
    Note { task: "".into(), text: text.into() }
}

#[cfg(test)]
mod tests;
