//! Specs from a contract: what was agreed on, as it is.

use super::{Choice, Need, printable};
use punctual_client::Parameters;
use punctual_conformance::{Contract, ContractTask};
use punctual_model::Policy;

/// The specs of the selected tasks, as many as each has threads, and why others have none: a sentence each.
/// Parameters that the contract does not say are those of `declared`.
pub fn agreed(contract: &Contract, choice: &Choice, declared: &Parameters) -> (Vec<Need>, Vec<String>) {
    let (mut needs, mut remarks) = (Vec::new(), Vec::new());
    for task in contract.tasks.iter().filter(|task| choice.includes(&task.name)) {
        match need(task, choice, declared) {
            Ok(need) => {
                let threads = usize::try_from(task.threads.unwrap_or(1)).unwrap_or(usize::MAX);
                // More than any daemon has room for.
                needs.extend(std::iter::repeat_n(need, threads.min(1 << 16)));
            }
            Err(reason) => remarks.push(format!("task {} gets no spec: {reason}", printable(&task.name))),
        }
    }
    (needs, remarks)
}

/// The first pattern of `choice` that matches no task of the contract.
pub fn unmatched_in<'a>(contract: &Contract, choice: &'a Choice) -> Option<&'a str> {
    let names = contract.tasks.iter().map(|task| task.name.as_str());
    choice.only.unmatched(names.clone()).or_else(|| choice.without.unmatched(names))
}

fn need(task: &ContractTask, choice: &Choice, declared: &Parameters) -> Result<Need, &'static str> {
    if !task.modes.is_empty() {
        return Err("it has several periods, bursts or modes, for which a spec has no word");
    }
    if task.period.is_none() && !task.more_separations.is_empty() {
        return Err("its releases come in bursts, for which a spec has no word");
    }
    let period = task.period.or(task.separation);
    let mut parameters = match task.reservation.filter(|_| task.policy == Some(Policy::Deadline)) {
        // It has what the kernel takes in its runtime, and the jitter is off its deadline.
        Some(it) => Parameters {
            period: Some(it.period_ns),
            runtime: Some(it.runtime_ns),
            deadline: Some(it.deadline_ns),
            ..declared.clone()
        },
        None => Parameters {
            period: Some(period.ok_or("neither its period nor its separation is agreed on")?),
            runtime: Some(task.wcet.ok_or("its wcet is not agreed on")?),
            deadline: task.deadline,
            ..declared.clone()
        },
    };
    if choice.keep_priorities {
        parameters.priority = task.priority.or(parameters.priority);
    }
    Ok(Need {
        name: thread_name(task).ok_or("threads are found by their names, and its pattern names none")?,
        tid: 0,
        // Nobody knows.
        first: true,
        jobs: 0,
        together: 1,
        covered: None,
        usual: None,
        has_percentiles: false,
        parameters,
    })
}

/// The name that all its threads have, if the pattern leaves only one.
fn thread_name(task: &ContractTask) -> Option<String> {
    let Some(pattern) = &task.thread else { return Some(task.name.clone()) };
    let comm = pattern.comm.as_ref()?;
    (!comm.contains(['*', '?', '['])).then(|| comm.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadFilter;
    use crate::specs::Quantile;

    const CONTRACT: &str = "
[[task]]
name = \"control\"
period = \"10ms\"
wcet = \"2ms\"
deadline = \"8ms\"
policy = \"SCHED_FIFO\"
priority = 80
[[task]]
name = \"workers\"
thread = { comm = \"worker\" }
threads = 2
separation = \"900us\"
wcet = \"50us\"
[[task]]
name = \"any\"
thread = { comm = \"a*\" }
period = \"1ms\"
wcet = \"5us\"
[[task]]
name = \"light\"
period = \"1ms\"
[[task]]
name = \"rare\"
wcet = \"1ms\"
";

    fn chosen(without: &[&str], keep_priorities: bool) -> (Vec<String>, Vec<String>) {
        let contract = Contract::parse(CONTRACT).expect("a contract");
        let without: Vec<String> = without.iter().map(|name| (*name).to_owned()).collect();
        let choice = Choice {
            margin: punctual_model::Percent::ZERO,
            quantile: Quantile::ALL,
            min_jobs: 10,
            only: ThreadFilter::default(),
            without: ThreadFilter::new(&without).expect("patterns"),
            keep_priorities,
        };
        let (needs, remarks) = agreed(&contract, &choice, &Parameters::default());
        let described = |need: &Need| {
            let deadline = need.parameters.deadline.map_or(String::new(), |it| format!(", deadline {it}"));
            format!("{}: {}{deadline}", need.name, need.describe())
        };
        (needs.iter().map(described).collect(), remarks)
    }

    #[test]
    fn specs_are_what_was_agreed_on() {
        let (needs, remarks) = chosen(&[], false);
        let worker = "worker: period 900 µs, runtime 50 µs";
        assert_eq!(needs, ["control: period 10 ms, runtime 2 ms, deadline 8 ms", worker, worker]);
        assert_eq!(
            remarks,
            [
                "task any gets no spec: threads are found by their names, and its pattern names none",
                "task light gets no spec: its wcet is not agreed on",
                "task rare gets no spec: neither its period nor its separation is agreed on",
            ]
        );
        let (needs, remarks) = chosen(&["[!c]*"], true);
        assert_eq!(needs, ["control: period 10 ms, runtime 2 ms, priority 80, deadline 8 ms"]);
        assert_eq!(remarks, [""; 0]);
    }
}
