//! Timing models against contracts, by their curves and greatest values.
//!
//! A model bounds what was observed. Where releases were windows its bounds may be beyond what happened, so
//! a term of releases that is broken only by such a model is mentioned, and no violation; of responses the
//! model has the greatest that is certain.

use crate::chains::tally_of;
use crate::chance::Allowances;
use crate::checker::Sources;
use crate::contract::{
    Answer, Contract, ContractChain, ContractTask, latency, meant, median_separation_of, primary,
};
use crate::latency::processor_name;
use crate::scheduling::Scheduling;
use crate::spans::{Spans, least_of_any};
use crate::threads::{Match, Matcher};
use crate::tolerance::Tolerance;
use crate::verdict::{Note, Tally, Verdict};
use crate::violation::{Term, Violation};
use punctual_model::{Duration, QUANTILE_ERROR_PARTS, Quantiles, Stream, Task, TimingModel};
use std::collections::BTreeSet;

/// Compares a timing model with a contract.
pub fn check_model(contract: &Contract, model: &TimingModel) -> Verdict {
    let mut verdict = Verdict::default();
    if let Some(threads) = &model.threads {
        let mut allowances = Allowances::default();
        for task in &contract.tasks {
            let tolerance = Tolerance::new(task, &mut allowances);
            check_task(task, &tolerance, contract, model, &mut verdict);
        }
        unknown_threads(contract, model, &mut verdict);
        verdict.lost = threads.lost_records;
        verdict.notes.extend(threads.clock_steps.iter().map(|step| clock_set(step.by_ns)));
    }
    contract.chains.iter().filter(|chain| chain.has_times()).for_each(|it| chain(it, model, &mut verdict));
    for agreed in &contract.latencies {
        let mut tally = Tally::new(&processor_name(agreed.cpu), [(Term::Latency, Some(agreed.latency.ns()))]);
        let section = model.latency.as_ref();
        let found = section.and_then(|section| {
            let processor = section.processors.iter().find(|it| it.cpu == agreed.cpu)?;
            latency(section, processor)
        });
        match found {
            Some(value) => see(&mut tally, Term::Latency, value.ns()),
            None => verdict.notes.push(note(&tally, "its scheduling latency was not observed")),
        }
        verdict.tallies.push(tally);
    }
    verdict
}

fn chain(agreed: &ContractChain, model: &TimingModel, verdict: &mut Verdict) {
    let mut tally = tally_of(agreed);
    let mut chains = model.dataflow.iter().flat_map(|program| &program.chains);
    match chains.find(|chain| chain.tasks == agreed.tasks) {
        Some(chain) => {
            tally.jobs = chain.reaction.as_ref().map_or(0, |it| it.distribution.count);
            let (reaction, age) = (&chain.reaction, &chain.age);
            for (term, latency) in [(Term::ReactionTime, reaction), (Term::DataAge, age)] {
                if let Some(latency) = latency {
                    see(&mut tally, term, latency.distribution.max_ns.ns());
                }
            }
        }
        None => verdict.notes.push(note(&tally, "the chain was not observed")),
    }
    verdict.tallies.push(tally);
}

fn check_task(
    agreed: &ContractTask,
    tolerance: &Tolerance,
    contract: &Contract,
    model: &TimingModel,
    verdict: &mut Verdict,
) {
    let mut tally = Tally::of(agreed);
    let matcher = Matcher::new(&agreed.pattern());
    let mut is_in_doubt = false;
    let tasks: Vec<&Task> = (model.tasks().iter())
        .filter(|task| match matcher.matches(&task.name, &task.command, None) {
            Match::Yes => true,
            Match::No => false,
            Match::Unknown => {
                is_in_doubt = true;
                false
            }
        })
        .collect();
    let mut threads: Vec<_> = tasks.iter().map(|task| (&task.recording, task.tid)).collect();
    threads.sort_unstable();
    threads.dedup();
    tally.threads = threads.len() as u64;
    let mut doubts = Vec::new();
    for stream in tasks.iter().flat_map(|task| meant(task, agreed.separator.as_deref())) {
        tally.jobs += stream.jobs;
        let mut judged = Judged { stream, tolerance, tally: &mut tally };
        judged.judge(agreed, &mut doubts);
        judged.most();
    }
    let notes = &mut verdict.notes;
    scheduling(agreed, contract.scheduling.unwrap_or(Answer::Note), &tasks, &mut tally, notes);
    doubts.dedup();
    for term in doubts {
        let text = format!("{} may be beyond what was agreed on: some releases are windows", term.name());
        notes.push(note(&tally, &text));
    }
    if tally.threads == 0 && is_in_doubt {
        notes.push(note(&tally, "not known whether it was there: a timing model has no control groups"));
    } else if tally.threads == 0 {
        tally.answer(agreed.missing.unwrap_or(Answer::Violation), Term::Missing, "not there", notes);
    } else if tally.jobs == 0 {
        let answer = contract.tasks_without_jobs.unwrap_or(Answer::Note);
        tally.busy = tasks.iter().filter_map(|task| task.busy_ns).max();
        let why = tally.why_no_jobs();
        tally.answer(answer, Term::NoJobs, &why, notes);
    }
    verdict.tallies.push(tally);
}

/// A stream, and the tally of its task.
struct Judged<'a> {
    stream: &'a Stream,
    tolerance: &'a Tolerance,
    tally: &'a mut Tally,
}

impl Judged<'_> {
    fn judge(&mut self, agreed: &ContractTask, doubts: &mut Vec<Term>) {
        let stream = self.stream;
        let is_exact = stream.uncertain_releases == 0;
        let certain = [
            (Term::Wcet, stream.execution.as_ref().and_then(|it| it.wcet_ns.first().copied())),
            (Term::Suspension, stream.suspension.as_ref().map(|it| it.dynamic_ns)),
        ];
        for (term, value) in certain {
            if let Some(value) = value {
                self.see(term, value.ns());
            }
        }
        for (jobs, limit) in (2..).zip(&agreed.more_wcets) {
            let value = stream.execution.as_ref().and_then(|it| it.wcet(jobs));
            if stream.jobs >= jobs && value.is_some_and(|value| value > *limit) {
                self.break_once(Term::WcetOfSeveral, value.unwrap_or_default(), *limit);
                break;
            }
        }
        for (gaps, limit) in (2..).zip(&agreed.more_separations) {
            let value = stream.arrival.curve.as_ref().map(|it| it.delta_min(gaps + 1));
            if stream.releases > gaps && value.is_some_and(|value| value < *limit) {
                match is_exact {
                    true => self.break_once(Term::SeparationOfSeveral, value.unwrap_or_default(), *limit),
                    false => doubts.push(Term::SeparationOfSeveral),
                }
                break;
            }
        }
        self.sources(agreed, doubts);
        let response = stream.response.as_ref().map(|it| it.max_ns.ns());
        let certain = stream.certain_response().map(Duration::ns);
        let separation = stream.arrival.sporadic.as_ref().map(|it| it.min_separation_ns.ns());
        let mut values = vec![
            (Term::Response, response),
            (Term::Deadline, response),
            (Term::Bound, response),
            (Term::Separation, separation),
        ];
        values.extend(astray(stream, agreed));
        for (term, value) in values {
            let Some((value, standing)) = value.zip(self.tally.standing(term)) else { continue };
            let is_response = matches!(term, Term::Response | Term::Deadline | Term::Bound);
            let certain = certain.filter(|certain| is_response && standing.is_beyond(*certain));
            match (standing.is_beyond(value) && !is_exact, certain) {
                (true, Some(certain)) => self.see(term, certain),
                (true, None) => doubts.push(term),
                (false, _) => self.see(term, value),
            }
        }
    }

    /// Whether releases are too close to each other, or too far apart, for the sources that are agreed on.
    /// How far apart they are across a change of modes is not agreed on.
    fn sources(&mut self, agreed: &ContractTask, doubts: &mut Vec<Term>) {
        let Some(curve) = self.stream.arrival.curve.as_ref().filter(|_| Sources::of(agreed).is_some()) else {
            return;
        };
        let spans: Vec<Spans> = agreed.modes.iter().map(Spans::of).collect();
        let most = if let [only] = &spans[..] { &only.most[..] } else { &[] };
        let least = least_of_any(&spans);
        let close = curve.delta_min_ns.iter().zip(&least).find(|(span, limit)| span < limit);
        let apart = curve.delta_max_ns.iter().zip(most).find(|(span, limit)| span > limit);
        for (term, broken) in [(Term::SeparationOfSeveral, close), (Term::GapOfSeveral, apart)] {
            match broken {
                Some((value, limit)) if self.stream.uncertain_releases == 0 => {
                    self.break_once(term, *value, *limit);
                }
                Some(_) => doubts.push(term),
                None => {}
            }
        }
    }

    /// Compares the worst value of a term. If jobs may exceed its limit, it is broken only if the model shows
    /// that more do.
    fn see(&mut self, term: Term, value: u64) {
        let jobs = self.stream.jobs;
        let Some(standing) = self.tally.standings.iter_mut().find(|it| it.term == term) else { return };
        if !standing.see(value) {
            return;
        }
        let beyond = self.stream.percentiles.as_ref().and_then(|it| match term {
            Term::Wcet => it.cost,
            Term::Response => it.response,
            _ => None,
        });
        let beyond = beyond.map_or(1, |quantiles| certainly_beyond(&quantiles, standing.agreed, jobs));
        // Responses to windows may be less than they are counted as.
        let uncertain = if term == Term::Response { self.stream.uncertain_releases } else { 0 };
        let beyond = beyond.saturating_sub(uncertain).max(1);
        let allowance = self.tolerance.of(term);
        if !self.tolerance.is_certain(term, value, standing.agreed)
            && !allowance.is_some_and(|it| it.is_exceeded(beyond, jobs))
        {
            standing.tolerated += beyond;
            return;
        }
        let (task, agreed) = (self.tally.task.clone(), standing.agreed);
        standing.count(Violation { task, term, subject: None, value, agreed }, 0);
    }

    fn break_once(&mut self, term: Term, value: Duration, agreed: Duration) {
        let is_tolerated = self.tolerance.of(term).is_some_and(|it| !it.is_exceeded(1, self.stream.jobs));
        let (task, value, agreed) = (self.tally.task.clone(), value.ns(), agreed.ns());
        match self.tally.standings.iter_mut().find(|it| it.term == term).filter(|_| is_tolerated) {
            Some(standing) => standing.tolerated += 1,
            None => self.tally.add(Violation { task, term, subject: None, value, agreed }, 0),
        }
    }

    /// Judges quartiles and medians.
    fn most(&mut self) {
        let jobs = self.stream.jobs;
        let separation = median_separation_of(self.stream);
        let costs = self.stream.percentiles.as_ref().and_then(|it| it.cost.as_ref());
        for (term, value) in [
            // If the tenth percentile is beyond the limit, so is the quartile.
            (Term::QuartileCost, costs.and_then(|it| it.p10_ns).map(exact_at_least)),
            (Term::Frequent, separation.map(|it| it.most)),
            (Term::Rare, separation.map(|it| it.least)),
        ] {
            let Some((value, standing)) = value.map(Duration::ns).zip(self.tally.standing(term)) else {
                continue;
            };
            // With too few jobs, chance may move a quartile or median anywhere.
            let is_enough = term.of_most().is_some_and(|allowance| allowance.is_exceeded(jobs, jobs));
            if is_enough && standing.is_beyond(value) {
                let (task, agreed) = (self.tally.task.clone(), standing.agreed);
                self.tally.add(Violation { task, term, subject: None, value, agreed }, 0);
            }
        }
    }
}

/// How many of so many jobs exceed a limit, at least, if one does.
fn certainly_beyond(quantiles: &Quantiles, limit: u64, jobs: u64) -> u64 {
    let is_beyond = |(_, value): &(u64, Duration)| exact_at_least(*value).ns() > limit;
    let least = quantiles.each().into_iter().find(is_beyond);
    least.map_or(1, |(per_mille, _)| {
        let rank = (u128::from(jobs) * u128::from(per_mille)).div_ceil(1_000);
        jobs - (rank as u64).clamp(1, jobs.max(1)).min(jobs) + 1
    })
}

/// The least exact value of a quantile in a model.
fn exact_at_least(value: Duration) -> Duration {
    let parts = u128::from(QUANTILE_ERROR_PARTS);
    Duration::from_ns((u128::from(value.ns()) * parts / (parts + 1)) as u64)
}

/// How releases leave the grid, by the distance functions: n releases span at least (n − 1)·T − J, and at
/// most (n − 1)·T + J without a skip.
fn astray(stream: &Stream, agreed: &ContractTask) -> Vec<(Term, Option<u64>)> {
    let (Some(period), Some(jitter), Some(curve)) = (agreed.period, agreed.jitter, &stream.arrival.curve)
    else {
        return Vec::new();
    };
    let (period, jitter) = (period.ns(), jitter.ns());
    let early = curve.delta_min_ns.iter().zip(1_u64..).find_map(|(span, gaps)| {
        let least = gaps.saturating_mul(period - 1).saturating_sub(jitter);
        // As much as if the last had come so long after the activation before.
        (span.ns() < least).then(|| period - (least - span.ns()).min(period))
    });
    let skips = agreed.skips.unwrap_or(0);
    let gap = curve.delta_max_ns.first().map_or(0, |span| span.ns());
    let skipped = gap.saturating_sub(jitter).div_ceil(period + 1).saturating_sub(1);
    let model = stream.arrival.periodic.as_ref().filter(|it| it.period_ns.ns() == period);
    let late = model.map(|model| {
        let is_exact = model.period_exact.is_none() && !model.approximate && model.skipped + model.extra == 0;
        if is_exact { model.jitter_ns } else { model.least_jitter_ns }
    });
    // Releases that drift are later with each, by however little: n of them span at most (n − 1)·T + J.
    let drift = curve.delta_max_ns.iter().zip(1_u64..).find_map(|(span, gaps)| {
        let beyond = span.ns().saturating_sub(gaps.saturating_mul(period + 1));
        (beyond > jitter).then_some(beyond)
    });
    let late = late.map(Duration::ns).filter(|late| *late > jitter).or(drift).filter(|_| skips == 0);
    let late = late.filter(|_| early.is_none() && skipped == 0);
    vec![(Term::Early, early), (Term::Skipped, Some(skipped)), (Term::Late, late)]
}

/// How its threads are scheduled, while they have jobs.
fn scheduling(
    agreed: &ContractTask,
    answer: Answer,
    tasks: &[&Task],
    tally: &mut Tally,
    notes: &mut Vec<Note>,
) {
    let expected = Scheduling::of(agreed);
    let working = tasks
        .iter()
        .filter(|task| meant(task, agreed.separator.as_deref()).iter().any(|stream| stream.jobs > 0));
    let broken = working.flat_map(|task| expected.broken(task.policy, task.priority, &task.affinity));
    let all: BTreeSet<(Term, u64, u64)> = broken.collect();
    for (term, value, agreed) in all {
        let violation = Violation { task: tally.task.clone(), term, subject: None, value, agreed };
        match answer {
            Answer::Violation => tally.add(violation, 0),
            Answer::Note => {
                let text = violation.to_string();
                let text = text.strip_prefix(&format!("{}: ", tally.task)).unwrap_or(&text);
                notes.push(note(tally, text));
            }
            Answer::Ignore => {}
        }
    }
}

fn see(tally: &mut Tally, term: Term, value: u64) {
    let task = tally.task.clone();
    if let Some(standing) = tally.standings.iter_mut().find(|it| it.term == term) {
        if standing.see(value) {
            let agreed = standing.agreed;
            standing.count(Violation { task, term, subject: None, value, agreed }, 0);
        }
    }
}

fn unknown_threads(contract: &Contract, model: &TimingModel, verdict: &mut Verdict) {
    let answer = contract.unknown_threads.unwrap_or(Answer::Note);
    if answer == Answer::Ignore {
        return;
    }
    let matchers: Vec<Matcher> = contract.tasks.iter().map(|task| Matcher::new(&task.pattern())).collect();
    for task in model.tasks().iter().filter(|task| task.policy.is_real_time()) {
        let worked = primary(task).is_some_and(|stream| stream.jobs > 0);
        let is_known = matchers.iter().any(|it| it.matches(&task.name, &task.command, None) != Match::No);
        if worked && !is_known {
            *verdict.unknown.entry(task.name.clone()).or_default() += 1;
            verdict.unknown_violations += u64::from(answer == Answer::Violation);
        }
    }
}

/// Times of jobs by that clock are those after the step, which a reader may not expect.
pub fn clock_set(by_ns: i64) -> Note {
    let sign = if by_ns < 0 { '-' } else { '+' };
    let by = Duration::from_ns(by_ns.unsigned_abs());
    let text = format!("CLOCK_REALTIME was set by {sign}{by}: what was due in between is counted from then");
    Note { task: "".into(), text }
}

fn note(tally: &Tally, text: &str) -> Note {
    Note { task: tally.task.clone(), text: text.to_owned() }
}
