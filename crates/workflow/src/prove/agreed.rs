//! What a contract tells the analysis.

use super::observed::UNBOUNDED;
use super::{Known, Options, check_patterns, gaps, ignored, platforms};
use crate::error::{Error, Result};
use punctual_analysis::{Arrivals, Gap, Platform, Scheduling, System, Task, Thread};
use punctual_conformance::{Answer, Contract, ContractTask};
use punctual_model::arrival::Curve;
use punctual_model::{Duration, Execution, Policy, TimingModel, together_at_least, together_at_most};
use punctual_report::few;

/// Tasks that are named with what they need, at most.
const MOST_NAMED: usize = 4;

/// Each thread's bound names all that delay it: more would take too much memory.
const MOST_THREADS: u64 = 2_000;

/// Every task of the contract, as often as it has threads.
pub(super) fn agreed(
    contract: &Contract,
    platform: Option<&TimingModel>,
    options: &Options,
    name: &str,
) -> Result<Known> {
    let names: Vec<&str> = contract.tasks.iter().map(|task| task.name.as_str()).collect();
    check_patterns(options, &names)?;
    let (platforms, mut remarks) = match platform {
        Some(platform) => platforms(platform),
        None => latencies(contract),
    };
    let mut system = System { tasks: Vec::new(), platforms };
    let mut threads = Vec::new();
    let mut unsuspended = Vec::new();
    for agreed in contract.tasks.iter().filter(|agreed| !options.ignores(&agreed.name)) {
        let task = task(agreed, !system.platforms.is_empty(), options);
        if task.scheduling == Scheduling::BestEffort && task.deadline.is_none() {
            remarks.push(format!(
                "{} is left out: only SCHED_FIFO, SCHED_RR and SCHED_DEADLINE have bounds, and it delays \
                 none of them.",
                agreed.name
            ));
            continue;
        }
        // Only what is agreed on is watched.
        let may_sleep = agreed.suspension.is_none() && agreed.separator.as_deref() != Some("suspension");
        if may_sleep && task.gap.is_none() {
            unsuspended.push(agreed.name.as_str());
        }
        let (policy, priority) = (agreed.policy, agreed.priority);
        let number = agreed.threads.unwrap_or(1);
        if number.saturating_add(threads.len() as u64) > MOST_THREADS {
            return Err(Error::file(format!(
                "{name} has more than {MOST_THREADS} threads, too many to prove"
            ))
            .advise("leave those out that share no processor with the others, or lower `threads`"));
        }
        for _ in 0..number {
            system.tasks.push(task.clone());
            threads.push(Thread { tid: 0, policy, priority: priority.unwrap_or(0) });
        }
    }
    if !unsuspended.is_empty() {
        remarks.push(format!(
            "No suspension is agreed on of {}: it is assumed that no job sleeps, which nothing checks \
             (suspension = \"0s\" in the contract does).",
            unsuspended.join(", ")
        ));
    }
    if !contract.latencies.is_empty() && platform.is_none() {
        remarks.extend(without_latency(&system));
    }
    let can_be_proven = |task: &Task| task.gap.is_none() && task.scheduling != Scheduling::BestEffort;
    let may_be_reserved = |task: &ContractTask| options.assign && lacks_reservation(task);
    if !system.tasks.iter().any(can_be_proven) && !contract.tasks.iter().any(may_be_reserved) {
        let tasks = contract.tasks.iter().filter(|agreed| !options.ignores(&agreed.name));
        let needs: Vec<String> = tasks.filter_map(|it| needs(it, !system.platforms.is_empty())).collect();
        let error = Error::target(format!("{name} has no task that can be proven"));
        return Err(match needs.is_empty() {
            true => error,
            false => error.advise(few(&needs, MOST_NAMED, " and ")),
        });
    }
    remarks.extend(ignored(options, &names));
    remarks.extend(gaps(&system));
    remarks.push(kept(contract));
    let observed_on = platform.and_then(TimingModel::latency_platform).into_iter().collect();
    Ok(Known { system, threads, observed_on, remarks, seen: Vec::new(), late: Vec::new() })
}

/// Whether it is under SCHED_DEADLINE without a reservation.
pub(super) fn lacks_reservation(task: &ContractTask) -> bool {
    task.policy == Some(Policy::Deadline) && task.reservation.is_none()
}

pub(super) fn refuse_margin(options: &Options) -> Result<()> {
    match options.margin.is_zero() {
        true => Ok(()),
        false => Err(Error::usage("--margin is for observed costs; what a contract says is taken as it is")
            .advise("--what-if '*.wcet=+20%' changes it")),
    }
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
        (any(&|task| task.may_exceed.is_some()), "jobs beyond a limit that some may exceed (may_exceed)"),
        (any(&|task| task.has_period() && !task.has_jitter()), "periods without a jitter"),
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

/// Processors of tasks without an agreed latency, where others have one.
fn without_latency(system: &System) -> Option<String> {
    let has_latency = |cpu: &u32| system.platforms.iter().any(|platform| platform.cpu == *cpu);
    let mut cpus = system.processors();
    cpus.retain(|cpu| !has_latency(cpu));
    let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
    (!list.is_empty()).then(|| {
        format!(
            "On processor {} the kernel is assumed to take no time: no latency is agreed on there \
             ([[processor]] in the contract).",
            list.join(", ")
        )
    })
}

/// So many jobs in a row are bounded by all that is agreed on of fewer; more by this many at a time.
const TOGETHER: usize = 256;

/// What the analysis needs of a task, or what of that is missing.
fn task(agreed: &ContractTask, has_platforms: bool, options: &Options) -> Task {
    let (scheduling, unscheduled) = scheduling(agreed);
    let (arrivals, execution) = (arrivals(agreed), execution(agreed));
    let (deadline, deadline_is_period) = deadline(agreed, options);
    let suspension = agreed.suspension.unwrap_or(Duration::ZERO);
    let demand = || missing(agreed, has_platforms).next().map(|it| Gap::Demand(it.1.into()));
    let gap = match unscheduled {
        Some(Gap::Priority(text)) => demand().or(Some(Gap::Priority(text))),
        Some(gap) => Some(gap),
        None => demand(),
    };
    Task {
        name: agreed.name.clone(),
        scheduling,
        processors: agreed.processors.clone(),
        arrivals: arrivals.unwrap_or(UNBOUNDED),
        execution: execution.unwrap_or(Execution { wcet_ns: Vec::new(), mean_ns: None }),
        suspension,
        suspensions: agreed.suspensions.unwrap_or(0),
        jitter: agreed.greatest_jitter().unwrap_or(Duration::ZERO),
        deadline,
        deadline_is_period,
        gap: gap.filter(|_| scheduling != Scheduling::BestEffort),
    }
}

/// What is missing of what it needs: the fields, and what that means.
fn missing(agreed: &ContractTask, has_platforms: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let suspends = agreed.suspension.is_some_and(|suspension| !suspension.is_zero());
    let all = [
        (agreed.processors.is_empty(), "processors", "its processors are not agreed on"),
        (
            arrivals(agreed).is_none(),
            "a period or a separation",
            "neither its period nor its separation is agreed on",
        ),
        (agreed.wcet.is_none(), "wcet", "its wcet is not agreed on"),
        (
            has_platforms && suspends && agreed.suspensions.is_none(),
            "suspensions",
            "it is not agreed on how often it suspends itself (suspensions)",
        ),
    ];
    all.into_iter().filter(|it| it.0).map(|(_, field, text)| (field, text))
}

/// The fields that are missing for a proof: `ctl needs processors and wcet`.
fn needs(agreed: &ContractTask, has_platforms: bool) -> Option<String> {
    let is_possible = agreed.reservation.is_none_or(|it| it.is_possible());
    let scheduling: &[&str] = match (agreed.policy, agreed.priority) {
        (None, None) if agreed.reservation.is_none() => &["policy", "priority (or reservation)"],
        (None, _) => &["policy"],
        (Some(Policy::Deadline), _) if agreed.reservation.is_none() => &["reservation"],
        (Some(Policy::Deadline), _) if !is_possible => &["a reservation that the kernel takes"],
        (Some(Policy::Fifo | Policy::Rr), None) => &["priority"],
        (Some(policy), _) if !policy.is_real_time() => &["a real-time policy"],
        _ => &[],
    };
    let fields = scheduling.iter().copied().chain(missing(agreed, has_platforms).map(|it| it.0));
    let fields: Vec<&str> = fields.collect();
    let fields = match &fields[..] {
        [] => return None,
        [field] => (*field).to_owned(),
        [one, other] => format!("{one} and {other}"),
        [all @ .., last] => format!("{}, and {last}", all.join(", ")),
    };
    Some(format!("{} needs {fields}", agreed.name))
}

/// How the kernel schedules it, as far as that is agreed on.
fn scheduling(agreed: &ContractTask) -> (Scheduling, Option<Gap>) {
    let unknown = |text: &str| (Scheduling::Unknown, Some(Gap::Demand(text.into())));
    match (agreed.policy, agreed.reservation, agreed.priority) {
        (None, ..) => unknown("its policy is not agreed on"),
        (Some(Policy::Deadline), Some(reservation), _) if !reservation.is_possible() => unknown(
            "the kernel takes no such reservation: it wants 1.024 µs ≤ runtime ≤ deadline ≤ period, and a \
             period from 100 µs to 4.194304 s",
        ),
        (Some(Policy::Deadline), Some(reservation), _) => (Scheduling::Deadline(reservation), None),
        (Some(Policy::Deadline), None, _) => {
            unknown("its reservation is not agreed on; --assign -o FILE.toml chooses one")
        }
        (Some(Policy::Fifo | Policy::Rr), _, Some(priority)) => (Scheduling::Priority(priority), None),
        (Some(Policy::Fifo | Policy::Rr), _, None) => {
            (Scheduling::Priority(99), Some(Gap::Priority("its priority is not agreed on".into())))
        }
        _ => (Scheduling::BestEffort, None),
    }
}

fn arrivals(agreed: &ContractTask) -> Option<Arrivals> {
    if let Some(curve) = agreed.curve() {
        return Some(Arrivals::Curve(curve));
    }
    let jitter = agreed.jitter.unwrap_or(Duration::ZERO);
    match (agreed.period, agreed.separation) {
        (None, Some(separation)) if !agreed.more_separations.is_empty() => {
            let all = std::iter::once(separation).chain(agreed.more_separations.iter().copied());
            let delta_min_ns = together_at_least(&all.collect::<Vec<_>>(), TOGETHER);
            Some(Arrivals::Curve(Curve { delta_min_ns, delta_max_ns: Vec::new() }))
        }
        (Some(period), _) => Some(Arrivals::Periodic { period: least_period(period), jitter }),
        (None, Some(separation)) => Some(Arrivals::Sporadic { separation }),
        (None, None) => None,
    }
}

fn execution(agreed: &ContractTask) -> Option<Execution> {
    let all: Vec<Duration> = std::iter::once(agreed.wcet?).chain(agreed.more_wcets.iter().copied()).collect();
    let wcet_ns = if all.len() == 1 { all } else { together_at_most(&all, TOGETHER) };
    Some(Execution { wcet_ns, mean_ns: None })
}

/// That of the command, else that of the contract, else, if it is a real-time task, that of the reservation,
/// else the period; and whether it is that.
fn deadline(agreed: &ContractTask, options: &Options) -> (Option<Duration>, bool) {
    if !options.threads.matches(&agreed.name) {
        return (None, false);
    }
    let is_real_time = agreed.policy.is_none_or(Policy::is_real_time);
    let reserved = agreed.reservation.map(|it| it.deadline_ns).filter(|_| is_real_time);
    let separation = agreed.separation.filter(|it| !it.is_zero());
    let told = options.declared(&agreed.name).or(agreed.deadline).or(reserved);
    let period = agreed.least_period().or(separation).filter(|_| is_real_time);
    (told.or(period), told.is_none())
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
    fn a_long_row_is_bounded_by_the_short_ones_in_it() {
        let text = "[[task]]\nname = \"a\"\nwcet = [\"2ms\", \"10ms\"]\nseparation = [\"5ms\", \"6ms\"]\n";
        let task = &contract(text).tasks[0];
        assert_eq!(execution(task).and_then(|it| it.wcet(3)), Some(Duration::from_ms(6)));
        assert_eq!(arrivals(task).map(|it| it.span(4)), Some(Duration::from_ms(15).ns()));
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
