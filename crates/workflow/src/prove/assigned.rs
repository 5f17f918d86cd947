//! Priorities and reservations that are found for a contract, which then holds: `punctual ctl run --model`
//! takes it.

use super::agreed::{agreed, lacks_reservation, refuse_margin};
use super::{Known, Options, observed, read_platform};
use crate::agreement::Agreement;
use crate::error::{Error, ErrorKind, Result};
use punctual_analysis::{Assignment, Proof, Scheduling, Task, Verdict};
use punctual_conformance::{Contract, Limits, Margin, Observed};
use punctual_model::{Duration, Percent, TimingModel};
use std::collections::BTreeMap;

/// Greater ones are left to the kernel and to those who watch.
pub(super) const GREATEST_PRIORITY: u32 = 90;

/// What was found of a contract, and the contract.
pub struct Assigned {
    /// What was found of the contract, with its new priorities and reservations if there are any.
    pub proof: Proof,
    /// The contract, of which everything that was asked for is proven; or why there is none.
    pub contract: Result<Contract>,
}

/// Finds priorities and reservations for a contract, or for one of what was observed plus the margin, with
/// the deadlines that were asked for. The contract is proven as it stands.
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
    let (mut contract, remarks, is_observed) = match options.model.agreement()? {
        Agreement::Contract(contract) => {
            refuse_margin(options)?;
            (contract, None, false)
        }
        Agreement::Model(model) => {
            let (contract, remark) = of_observed(&model, platform.as_ref(), options, &name)?;
            (contract, remark, true)
        }
    };
    // The contract has the margin in it.
    let options = Options { margin: Percent::ZERO, ..options.clone() };
    let know = |contract: &Contract| -> Result<Known> {
        let mut known = agreed(contract, platform.as_ref(), &options, &name)?;
        known.remarks.extend(remarks.clone());
        Ok(known)
    };
    let deadlines = shortest(&know(&contract)?);
    for task in &mut contract.tasks {
        task.deadline = deadlines.get(&task.name).copied().or(task.deadline);
    }
    let reserved = reserve(&mut contract, &know)?;
    let known = know(&contract)?;
    let reserved = match reserved {
        Ok(reserved) => reserved,
        Err(tasks) => {
            let contract = Err(without_deadlines(&known, &tasks));
            return Ok(Assigned { proof: found(known, &options, None, Some(Err(tasks))), contract });
        }
    };
    let priorities = match known.system.assign(GREATEST_PRIORITY) {
        Ok(priorities) => by_name(&known, &priorities),
        Err(tasks) => {
            let message =
                "no priorities were found under which all deadlines are met, so no contract is written";
            let contract = Err(Error::new(ErrorKind::Refused, message));
            let proof = found(known, &options, Some(Err(tasks)), Some(Ok(reserved)));
            return Ok(Assigned { proof, contract });
        }
    };
    for task in &mut contract.tasks {
        task.priority = priorities.get(&task.name).copied().or(task.priority);
    }
    let known = know(&contract)?;
    let assigned = known.system.tasks.iter().map(|task| priorities.get(&task.name).copied()).collect();
    let proof = found(known, &options, Some(Ok(assigned)), Some(Ok(reserved)));
    if is_observed {
        respond(&mut contract, &proof);
    }
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
    let limits = Limits { margin, quantile: None };
    let Observed { mut contract, left_out: without, .. } =
        Contract::observed(std::slice::from_ref(model), limits, &is_known);
    let deadlines = shortest(&known);
    for task in &mut contract.tasks {
        // The proof rests on limits that no job exceeds.
        task.may_exceed = None;
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

/// Agrees on the bounds of response times: those that were observed are of other priorities.
fn respond(contract: &mut Contract, proof: &Proof) {
    for task in &mut contract.tasks {
        let of_name = proof.system.tasks.iter().zip(&proof.bounds).filter(|(it, _)| it.name == task.name);
        let bounds: Option<Vec<Duration>> =
            of_name.map(|(_, bound)| bound.as_ref().ok().map(|bound| bound.response)).collect();
        if let Some(longest) = bounds.and_then(|bounds| bounds.into_iter().max()) {
            task.response = task.response.map(|_| longest);
        }
    }
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

/// Gives each task under SCHED_DEADLINE a reservation in the contract, if it has none, and all reservations
/// their deadlines, which it returns.
fn reserve(
    contract: &mut Contract,
    know: &impl Fn(&Contract) -> Result<Known>,
) -> Result<Assignment<Duration>> {
    let known = know(contract)?;
    for (at, task) in known.system.tasks.iter().enumerate() {
        let agreed = contract.tasks.iter_mut().find(|it| it.name == task.name);
        if let Some(agreed) = agreed.filter(|it| lacks_reservation(it)) {
            agreed.reservation = known.system.least_reservation(at);
            if agreed.reservation.is_none() {
                return Ok(Err(vec![at]));
            }
        }
    }
    let known = know(contract)?;
    let reserved = match known.system.assign_deadlines() {
        Ok(reserved) => reserved,
        Err(tasks) => return Ok(Err(tasks)),
    };
    for (task, deadline) in known.system.tasks.iter().zip(&reserved) {
        let agreed = contract.tasks.iter_mut().find(|it| it.name == task.name);
        if let (Some(reservation), Some(deadline)) =
            (agreed.and_then(|it| it.reservation.as_mut()), *deadline)
        {
            (reservation.deadline_ns, reservation.period_ns) = (deadline, deadline);
        }
    }
    Ok(Ok(reserved))
}

/// Why there is no reservation that a task's jobs fit.
fn without_reservation(task: &Task) -> Error {
    let name = &task.name;
    let message = format!("no reservation was found for {name}, so no contract is written");
    let least = Duration::from_ns(task.arrivals.span(2));
    let cost = task.execution.wcet(1).map_or_else(|| "an unknown time".to_owned(), |cost| cost.to_string());
    let mut cause = format!("its jobs need {cost} and what the kernel takes; releases may be {least} apart");
    if let Some(deadline) = task.deadline {
        let left = deadline.saturating_sub(task.jitter);
        cause += &format!("; from a release to its deadline there may be {left}");
    }
    Error::new(ErrorKind::Refused, message).because(cause).advise(
        "a reservation has a runtime of at least 1.024 µs, and a period of 100 µs to 4.194304 s in which \
         there is one release",
    )
}

/// Why there are no deadlines of reservations.
fn without_deadlines(known: &Known, tasks: &[usize]) -> Error {
    let Some(task) = tasks.first().and_then(|&task| known.system.tasks.get(task)) else {
        return Error::new(ErrorKind::Refused, "no deadlines were found for reservations");
    };
    let name = &task.name;
    let (Scheduling::Deadline(it), Some(deadline)) = (task.scheduling, task.deadline) else {
        return without_reservation(task);
    };
    let (runtime, jitter) = (it.runtime_ns, task.jitter);
    if deadline.saturating_sub(jitter) >= runtime {
        let message = format!(
            "no deadlines of the reservations were found with which {name} meets its own, so no contract is \
             written"
        );
        return Error::new(ErrorKind::Refused, message).advise(
            "ask for longer deadlines, pin threads to other processors, or change the runtimes in the \
                     contract",
        );
    }
    let message =
        format!("the deadline of {name}, {deadline}, is shorter than the runtime of its reservation");
    let until = deadline.saturating_sub(jitter);
    let cause = match jitter.is_zero() {
        true => format!("the kernel takes no reservation of {runtime} until {until}"),
        false => format!(
            "its jobs may come {jitter} late, and the kernel takes no reservation of {runtime} until {until}"
        ),
    };
    Error::new(ErrorKind::Refused, message)
        .because(cause)
        .advise("ask for a longer deadline, or lower the runtime in the contract")
}

fn found(
    known: Known,
    options: &Options,
    priorities: Option<Assignment<u32>>,
    reserved_deadlines: Option<Assignment<Duration>>,
) -> Proof {
    let Known { system, threads, observed_on, remarks, .. } = known;
    Proof {
        bounds: system.prove(),
        rooms: options.sensitivity.then(|| system.sensitivity()),
        priorities,
        reserved_deadlines,
        system,
        threads,
        late: Vec::new(),
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
