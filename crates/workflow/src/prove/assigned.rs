//! Priorities that are found for a contract, which then holds: `punctual ctl run --model` takes it.

use super::agreed::{agreed, refuse_margin};
use super::{Known, Options, observed, read_platform};
use crate::agreement::Agreement;
use crate::error::{Error, ErrorKind, Result};
use punctual_analysis::{Proof, Verdict};
use punctual_conformance::{Contract, Margin};
use punctual_model::{Duration, Percent, TimingModel};
use std::collections::BTreeMap;

/// Greater ones are left to the kernel and to those who watch.
pub(super) const GREATEST_PRIORITY: u32 = 90;

/// What was found of a contract, and the contract.
pub struct Assigned {
    /// What was found of the contract, with its new priorities if there are any.
    pub proof: Proof,
    /// The contract, of which everything that was asked for is proven; or why there is none.
    pub contract: Result<Contract>,
}

/// Finds priorities for a contract, or for one of what was observed plus the margin, with the deadlines that
/// were asked for, which become those of reservations, too. The contract is proven as it stands.
///
/// # Errors
/// If a file cannot be read, there is nothing to prove, or a pattern matches none.
pub fn assign(options: &Options) -> Result<Assigned> {
    if !options.changes.is_empty() {
        return Err(Error::usage("--what-if changes nothing of the threads, so no contract is made of it")
            .advise("leave --what-if out, or -o"));
    }
    let name = options.model.name();
    let platform = options.platform.as_ref().map(read_platform).transpose()?;
    let (mut contract, remarks) = match options.model.agreement()? {
        Agreement::Contract(contract) => {
            refuse_margin(options)?;
            (contract, None)
        }
        Agreement::Model(model) => of_observed(&model, platform.as_ref(), options, &name)?,
    };
    // The contract has the margin in it.
    let options = Options { margin: Percent::ZERO, ..options.clone() };
    let know = |contract: &Contract| -> Result<Known> {
        let mut known = agreed(contract, platform.as_ref(), &options, &name)?;
        known.remarks.extend(remarks.clone());
        Ok(known)
    };
    let deadlines = shortest(&know(&contract)?);
    let too_short = set_deadlines(&mut contract, &deadlines);
    let known = know(&contract)?;
    if let Err(error) = too_short {
        return Ok(Assigned { proof: found(known, &options, None), contract: Err(error) });
    }
    let priorities = match known.system.assign(GREATEST_PRIORITY) {
        Ok(priorities) => by_name(&known, &priorities),
        Err(tasks) => {
            let message =
                "no priorities were found under which all deadlines are met, so no contract is written";
            let contract = Err(Error::new(ErrorKind::Refused, message));
            return Ok(Assigned { proof: found(known, &options, Some(Err(tasks))), contract });
        }
    };
    for task in &mut contract.tasks {
        task.priority = priorities.get(&task.name).copied().or(task.priority);
    }
    let known = know(&contract)?;
    let assigned = known.system.tasks.iter().map(|task| priorities.get(&task.name).copied()).collect();
    let proof = found(known, &options, Some(Ok(assigned)));
    let contract = missed(&proof).map_or(Ok(contract), Err);
    Ok(Assigned { proof, contract })
}

/// A contract of what was observed of the threads of a proof, with the deadlines of that one.
fn of_observed(
    model: &TimingModel,
    platform: Option<&TimingModel>,
    options: &Options,
    name: &str,
) -> Result<(Contract, Option<String>)> {
    let known = observed(model, platform, options, name)?;
    let is_known = |name: &str| known.system.tasks.iter().any(|task| task.name == name);
    let margin = if options.margin.is_zero() { Margin::None } else { Margin::Percent(options.margin) };
    let (mut contract, without) = Contract::observed(model, margin, &is_known);
    let deadlines = shortest(&known);
    for task in &mut contract.tasks {
        task.deadline = deadlines.get(&task.name).copied();
    }
    let remark = (!without.is_empty()).then(|| {
        format!(
            "The contract has no task for threads with too few jobs, nor the proof: {}.",
            without.join(", ")
        )
    });
    Ok((contract, remark))
}

/// The shortest deadline of all threads of a name.
fn shortest(known: &Known) -> BTreeMap<String, Duration> {
    let mut shortest: BTreeMap<String, Duration> = BTreeMap::new();
    for task in &known.system.tasks {
        let Some(deadline) = task.deadline else { continue };
        let of_name = shortest.entry(task.name.clone()).or_insert(deadline);
        *of_name = deadline.min(*of_name);
    }
    shortest
}

/// Threads of one name get the least urgent of their priorities.
fn by_name(known: &Known, priorities: &[Option<u32>]) -> BTreeMap<String, u32> {
    let mut least: BTreeMap<String, u32> = BTreeMap::new();
    for (task, priority) in known.system.tasks.iter().zip(priorities) {
        let Some(priority) = *priority else { continue };
        let of_name = least.entry(task.name.clone()).or_insert(priority);
        *of_name = priority.min(*of_name);
    }
    least
}

/// Has a contract say deadlines, also those of reservations, which are within their periods.
fn set_deadlines(contract: &mut Contract, deadlines: &BTreeMap<String, Duration>) -> Result<()> {
    for task in &mut contract.tasks {
        let Some(&deadline) = deadlines.get(&task.name) else { continue };
        task.deadline = Some(deadline);
        let Some(reservation) = &mut task.reservation else { continue };
        if deadline < reservation.runtime_ns {
            let (name, runtime) = (&task.name, reservation.runtime_ns);
            let message =
                format!("the deadline of {name}, {deadline}, is shorter than the runtime of its reservation");
            return Err(Error::new(ErrorKind::Refused, message)
                .because(format!("the kernel takes no reservation of {runtime} until {deadline}"))
                .advise("ask for a longer deadline, or lower the runtime in the contract"));
        }
        reservation.deadline_ns = deadline.min(reservation.period_ns);
    }
    Ok(())
}

fn found(known: Known, options: &Options, priorities: Option<Result<Vec<Option<u32>>, Vec<usize>>>) -> Proof {
    let Known { system, threads, observed_on, remarks } = known;
    Proof {
        bounds: system.prove(),
        rooms: options.sensitivity.then(|| system.sensitivity()),
        priorities,
        system,
        threads,
        observed_on,
        remarks,
    }
}

/// Why a contract with these priorities does not hold.
fn missed(proof: &Proof) -> Option<Error> {
    let task = proof.verdicts().into_iter().position(|verdict| verdict == Verdict::Missed)?;
    let name = &proof.system.tasks[task].name;
    let share_names = proof.system.tasks.iter().filter(|task| task.name == *name).count() > 1;
    let refused = |message: String| Error::new(ErrorKind::Refused, message);
    Some(match &proof.bounds[task] {
        Err(reason) => refused(format!("the deadline of {name} is not proven, so no contract is written"))
            .because(proof.reason(task, reason)),
        Ok(_) if share_names => {
            refused(format!("{name} misses its deadline if all threads of one name have one priority"))
                .because("a contract cannot say anything else")
                .advise("give each thread a name of its own")
        }
        Ok(bound) => refused(format!("{name} may take {}, which exceeds its deadline", bound.response)),
    })
}
