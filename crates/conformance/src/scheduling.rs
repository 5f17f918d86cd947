//! How a task is to be scheduled: policy, priority, processors. What is agreed on of it is compared with what
//! the kernel says of a thread when one of its jobs is judged.

use crate::contract::ContractTask;
use crate::violation::Term;
use punctual_model::{Policy, processor_list};

/// What is agreed on.
#[derive(Clone, Debug)]
pub struct Scheduling {
    policy: Option<Policy>,
    priority: Option<u32>,
    /// Ascending; empty if all.
    processors: Vec<u32>,
}

impl Scheduling {
    /// That of a task of a contract.
    pub fn of(task: &ContractTask) -> Scheduling {
        Scheduling { policy: task.policy, priority: task.priority, processors: task.processors.clone() }
    }

    /// Each term that a thread breaks, with what it has and what was agreed on.
    pub fn broken(&self, policy: Policy, priority: u32, affinity: &str) -> Vec<(Term, u64, u64)> {
        let mut broken = Vec::new();
        if let Some(agreed) = self.policy.filter(|agreed| *agreed != policy) {
            broken.push((Term::Policy, number(policy), number(agreed)));
        }
        // Another policy need not have one.
        if let Some(agreed) = self.priority.filter(|agreed| policy.has_priority() && *agreed != priority) {
            broken.push((Term::Priority, priority.into(), agreed.into()));
        }
        let allowed = processor_list(affinity).unwrap_or_default();
        let other = allowed.iter().find(|cpu| self.processors.binary_search(cpu).is_err());
        if let (Some(other), Some(first)) = (other, self.processors.first()) {
            broken.push((Term::Processors, (*other).into(), (*first).into()));
        }
        broken
    }
}

fn number(policy: Policy) -> u64 {
    Policy::ALL.iter().position(|it| *it == policy).unwrap_or_default() as u64
}

/// The name of a policy by its place among all.
pub fn policy_name(number: u64) -> &'static str {
    usize::try_from(number).ok().and_then(|place| Policy::ALL.get(place)).map_or("?", |it| it.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let agreed = Scheduling { policy: Some(Policy::Fifo), priority: Some(80), processors: vec![2, 3] };
        assert_eq!(agreed.broken(Policy::Fifo, 80, "2"), []);
        let terms = |policy, priority, affinity| {
            let broken = agreed.broken(policy, priority, affinity);
            broken.into_iter().map(|(term, value, _)| (term, value)).collect::<Vec<_>>()
        };
        assert_eq!(terms(Policy::Fifo, 70, "2-3"), [(Term::Priority, 70)]);
        assert_eq!(terms(Policy::Rr, 80, "0-7")[1..], [(Term::Processors, 0)]);
        assert_eq!(terms(Policy::Other, 0, "3").len(), 1);
    }
}
