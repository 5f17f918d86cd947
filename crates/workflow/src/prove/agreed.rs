//! What a contract tells the analysis.

use super::{Known, Options, check_patterns, platforms};
use crate::error::{Error, Result};
use punctual_analysis::{Arrivals, Platform, Scheduling, System, Task, Thread};
use punctual_conformance::{Answer, Contract, ContractTask};
use punctual_model::arrival::Curve;
use punctual_model::{Duration, Execution, Policy, TimingModel};

/// Every task of the contract, as often as it has threads.
pub(super) fn agreed(
    contract: &Contract,
    platform: Option<&TimingModel>,
    options: &Options,
    name: &str,
) -> Result<Known> {
    if options.margin > 0 {
        return Err(Error::usage("--margin is for observed costs; what a contract says is taken as it is")
            .advise("--what-if '*.wcet=+20%' changes it"));
    }
    let names: Vec<&str> = contract.tasks.iter().map(|task| task.name.as_str()).collect();
    check_patterns(options, &names)?;
    let (platforms, mut remarks) = match platform {
        Some(platform) => platforms(platform),
        None => latencies(contract),
    };
    let mut system = System { tasks: Vec::new(), platforms };
    let mut threads = Vec::new();
    let mut unsuspended = Vec::new();
    for agreed in &contract.tasks {
        match task(agreed, !system.platforms.is_empty(), options) {
            Ok(task) => {
                // Only what is agreed on is watched.
                if agreed.suspension.is_none() && agreed.separator.as_deref() != Some("suspension") {
                    unsuspended.push(agreed.name.as_str());
                }
                let (policy, priority) = (agreed.policy.unwrap_or(Policy::Fifo), agreed.priority);
                for _ in 0..agreed.threads.unwrap_or(1) {
                    system.tasks.push(task.clone());
                    threads.push(Thread { tid: 0, policy, priority: priority.unwrap_or(0) });
                }
            }
            Err(reason) => remarks.push(format!("{} is left out: {reason}.", agreed.name)),
        }
    }
    if !unsuspended.is_empty() {
        remarks.push(format!(
            "No suspension is agreed on of {}: it is assumed that no job sleeps, which nothing checks \
             (suspension = \"0s\" in the contract does).",
            unsuspended.join(", ")
        ));
    }
    if system.tasks.is_empty() {
        return Err(Error::target(format!("{name} has no task that can be proven"))
            .advise("a task needs policy, priority, processors, wcet, and a period or a separation"));
    }
    remarks.push(kept(contract));
    let observed_on = platform.and_then(TimingModel::latency_platform).into_iter().collect();
    Ok(Known { system, threads, observed_on, remarks })
}

/// What the bounds rest on, and what of that a check does not call a violation.
fn kept(contract: &Contract) -> String {
    let any = |is_so: &dyn Fn(&ContractTask) -> bool| contract.tasks.iter().any(is_so);
    let is_told = |answer: Option<Answer>| answer == Some(Answer::Violation);
    let gaps = [
        (!is_told(contract.scheduling), "how threads are scheduled (scheduling = \"violation\")"),
        (!is_told(contract.unknown_threads), "threads of no task (unknown_threads = \"violation\")"),
        (true, "how many threads a task has at once"),
        (any(&|task| task.suspensions.is_some()), "how often a job sleeps"),
        (any(&|task| task.reservation.is_some()), "reservations"),
        (any(&|task| task.period.is_some() && task.jitter.is_none()), "periods without a jitter"),
    ];
    let gaps: Vec<&str> = gaps.into_iter().filter(|it| it.0).map(|it| it.1).collect();
    format!(
        "Bounds hold as long as the contract is kept. punctual watch tells when it is not, as violations of \
         everything but: {}.",
        gaps.join(", ")
    )
}

/// Periods of whole microseconds are what they say; all others may have been rounded, up to the next
/// nanosecond, as a check takes them.
fn least_period(period: Duration) -> Duration {
    let rounded = u64::from(period.ns() % 1_000 != 0 && period.ns() > 1);
    Duration::from_ns(period.ns() - rounded)
}

/// The scheduling latency that was agreed on delays each window once.
fn latencies(contract: &Contract) -> (Vec<Platform>, Vec<String>) {
    let platform = |cpu: u32, latency| Platform { cpu, blocking: latency, ..Platform::default() };
    let platforms: Vec<Platform> = contract.latencies.iter().map(|it| platform(it.cpu, it.latency)).collect();
    let remark = match platforms.is_empty() {
        true => {
            "The kernel is assumed to take no time: no latency is agreed on ([[processor]] in the contract, \
             or `--platform FILE`)."
        }
        false => {
            "The kernel is assumed to take no more than the agreed latency of a processor, once for each \
             time that a thread waits for it; interrupts and switches during a job are assumed to be in its \
             cost (or give `--platform FILE`)."
        }
    };
    (platforms, vec![remark.into()])
}

/// What the analysis needs of a task; or why it cannot have it.
fn task(agreed: &ContractTask, has_platforms: bool, options: &Options) -> Result<Task, &'static str> {
    let policy = agreed.policy.ok_or("its policy is not agreed on")?;
    let scheduling = match (policy, agreed.reservation, agreed.priority) {
        (Policy::Deadline, Some(reservation), _) => Scheduling::Deadline(reservation),
        (Policy::Deadline, None, _) => return Err("its reservation is not agreed on"),
        (Policy::Fifo | Policy::Rr, _, Some(priority)) => Scheduling::Priority(priority),
        (Policy::Fifo | Policy::Rr, _, None) => return Err("its priority is not agreed on"),
        _ => return Err("only SCHED_FIFO, SCHED_RR and SCHED_DEADLINE have bounds"),
    };
    if agreed.processors.is_empty() {
        return Err("its processors are not agreed on");
    }
    let jitter = agreed.jitter.unwrap_or(Duration::ZERO);
    let arrivals = match (agreed.period, agreed.separation) {
        (None, Some(separation)) if !agreed.more_separations.is_empty() => {
            let all = std::iter::once(separation).chain(agreed.more_separations.iter().copied());
            Arrivals::Curve(Curve { delta_min_ns: all.collect(), delta_max_ns: Vec::new() })
        }
        (Some(period), _) => Arrivals::Periodic { period: least_period(period), jitter },
        (None, Some(separation)) => Arrivals::Sporadic { separation },
        (None, None) => return Err("neither its period nor its separation is agreed on"),
    };
    let wcet = agreed.wcet.ok_or("its wcet is not agreed on")?;
    let suspension = agreed.suspension.unwrap_or(Duration::ZERO);
    if has_platforms && !suspension.is_zero() && agreed.suspensions.is_none() {
        return Err("it is not agreed on how often it suspends itself (suspensions)");
    }
    Ok(Task {
        name: agreed.name.clone(),
        scheduling,
        processors: agreed.processors.clone(),
        arrivals,
        execution: Execution {
            wcet_ns: std::iter::once(wcet).chain(agreed.more_wcets.iter().copied()).collect(),
            mean_ns: None,
        },
        suspension,
        suspensions: agreed.suspensions.unwrap_or(0),
        jitter,
        deadline: deadline(agreed, options),
    })
}

/// That of the command, else that of the contract, else that of the reservation, else the period.
fn deadline(agreed: &ContractTask, options: &Options) -> Option<Duration> {
    if !options.threads.matches(&agreed.name) {
        return None;
    }
    let declared = options.deadlines.iter().rev().find(|(threads, _)| threads.matches(&agreed.name));
    let reserved = agreed.reservation.map(|it| it.deadline_ns);
    let separation = agreed.separation.filter(|it| !it.is_zero());
    declared.map(|it| it.1).or(agreed.deadline).or(reserved).or(agreed.period).or(separation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(text: &str) -> Contract {
        Contract::parse(text).unwrap_or_else(|faulty| panic!("{faulty:?}"))
    }

    #[test]
    fn a_period_that_may_be_rounded_is_taken_as_the_shorter_one() {
        let ns = Duration::from_ns;
        // 1,024 frames at 44.1 kHz are 23,219,954.648 ns.
        assert_eq!(least_period(ns(23_219_955)), ns(23_219_954));
        assert_eq!(least_period(ns(10_000_000)), ns(10_000_000));
        assert_eq!(least_period(ns(1)), ns(1));
    }

    #[test]
    fn what_a_check_does_not_call_a_violation_is_named() {
        let text = kept(&contract("[[task]]\nname = \"a\"\nperiod = \"1ms\"\nsuspensions = 2\n"));
        for gap in ["scheduling = ", "unknown_threads = ", "how many threads", "sleeps", "without a jitter"] {
            assert!(text.contains(gap), "{gap}: {text}");
        }
        let told = "scheduling = \"violation\"\nunknown_threads = \"violation\"\n[[task]]\nname = \"a\"\n";
        let text = kept(&contract(told));
        assert!(text.ends_with("but: how many threads a task has at once."), "{text}");
    }
}
