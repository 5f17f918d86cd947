//! Which violations are told one by one. In a storm the first ones of each kind are, and the rest in sum.

use super::alarms::Alarm;
use punctual_conformance::{Term, Violation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Violations of one task and term that are told one by one in a turn.
const MOST_OF_A_KIND: u64 = 10;
/// All violations that are told one by one in a turn.
const MOST: u64 = 100;

/// Chooses violations.
#[derive(Debug, Default)]
pub struct Sampler {
    told: u64,
    /// Of this turn, by task and term.
    kinds: BTreeMap<(Arc<str>, Term), Kind>,
    /// Causes of late jobs that were told in this turn, by task.
    causes: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Kind {
    told: u64,
    more: u64,
    worst: u64,
}

impl Sampler {
    /// Whether this one is told.
    pub fn admits(&mut self, violation: &Violation) -> bool {
        let kind = self.kinds.entry((violation.task.clone(), violation.term)).or_default();
        if kind.told < MOST_OF_A_KIND && self.told < MOST {
            kind.told += 1;
            self.told += 1;
            return true;
        }
        let value = violation.value;
        kind.worst = match (kind.more, violation.term.is_lower_bound()) {
            (0, _) => value,
            (_, true) => kind.worst.min(value),
            (_, false) => kind.worst.max(value),
        };
        kind.more += 1;
        false
    }

    /// Whether the cause of a late job of this task is told.
    pub fn admits_cause(&mut self, task: &str) -> bool {
        if self.causes.values().sum::<u64>() >= MOST {
            return false;
        }
        let told = self.causes.entry(task.to_owned()).or_default();
        *told += 1;
        *told <= MOST_OF_A_KIND
    }

    /// Begins another turn; returns the sums of what was not told in this one.
    pub fn turn(&mut self) -> Vec<Alarm> {
        self.told = 0;
        self.causes.clear();
        let kinds = std::mem::take(&mut self.kinds).into_iter();
        let more = kinds.filter(|(_, kind)| kind.more > 0);
        more.map(|((task, term), kind)| Alarm::More { task, term, number: kind.more, worst: kind.worst })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(task: &str, value: u64) -> Violation {
        Violation { task: task.into(), term: Term::Wcet, subject: None, value, agreed: 1 }
    }

    #[test]
    fn a_storm_is_told_in_sum() {
        let mut sampler = Sampler::default();
        let told = (0..100_000).filter(|value| sampler.admits(&violation("a", *value))).count();
        assert_eq!(told, 10);
        assert!(sampler.admits(&violation("b", 1)));
        let more = sampler.turn();
        let [Alarm::More { task, number: 99_990, worst: 99_999, .. }] = &more[..] else {
            panic!("{more:?}");
        };
        assert_eq!(&**task, "a");
        assert!(sampler.admits(&violation("a", 1)) && sampler.turn().is_empty());
        let names: Vec<String> = (0..200).map(|number| format!("task {number}")).collect();
        let told = names.iter().filter(|name| sampler.admits(&violation(name, 1))).count();
        assert_eq!((told, sampler.turn().len()), (100, 100));
    }
}
