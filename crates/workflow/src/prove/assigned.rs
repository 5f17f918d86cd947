//! Priorities that were found, as a contract: `punctual ctl run --model` takes it.

use super::{Options, Proven};
use crate::agreement::Agreement;
use crate::error::{Error, ErrorKind, Result};
use punctual_analysis::{Scheduling, Verdict, verdict};
use punctual_conformance::{Contract, Margin};
use punctual_model::Duration;
use punctual_model::policy::Reservation;
use std::collections::BTreeMap;

/// What all threads of a name get.
#[derive(Clone, Copy, Default)]
struct Assigned {
    priority: Option<u32>,
    deadline: Option<Duration>,
}

impl Proven {
    /// The contract, or one of what was observed, with the priorities that were found and the deadlines that
    /// they are for.
    ///
    /// # Errors
    /// If there are no such priorities, or a contract cannot say them.
    pub fn assigned(&self, options: &Options) -> Result<Contract> {
        if !options.changes.is_empty() {
            return Err(Error::usage(
                "--what-if changes nothing of the threads, so no contract is made of it",
            )
            .advise("leave --what-if out, or -o"));
        }
        let found = self.by_name()?;
        self.check(&found)?;
        let mut contract = match &self.agreement {
            Agreement::Contract(contract) => contract.clone(),
            Agreement::Model(model) => {
                let margin = if options.margin > 0 { Margin::Percent(options.margin) } else { Margin::None };
                Contract::observed(model, margin, &|name| found.contains_key(name)).0
            }
        };
        for task in &mut contract.tasks {
            let Some(assigned) = found.get(task.name.as_str()) else { continue };
            task.priority = assigned.priority.or(task.priority);
            task.deadline = assigned.deadline.or(task.deadline);
            task.reservation.iter_mut().for_each(|it| reserve(it, assigned.deadline));
        }
        Ok(contract)
    }

    /// Threads of one name get the least urgent of their priorities.
    fn by_name(&self) -> Result<BTreeMap<&str, Assigned>> {
        let Some(Ok(priorities)) = &self.proof.priorities else {
            let message =
                "no priorities were found under which all deadlines are met, so no contract is written";
            return Err(Error::new(ErrorKind::Refused, message));
        };
        let mut found: BTreeMap<&str, Assigned> = BTreeMap::new();
        for (task, priority) in self.proof.system.tasks.iter().zip(priorities) {
            let of_name = found.entry(&task.name).or_default();
            of_name.priority = of_name.priority.map_or(*priority, |it| Some((*priority)?.min(it)));
            of_name.deadline = of_name.deadline.into_iter().chain(task.deadline).min();
        }
        Ok(found)
    }

    /// Whether all deadlines are met if threads of one name have one priority, and reservations these
    /// deadlines.
    fn check(&self, found: &BTreeMap<&str, Assigned>) -> Result<()> {
        let mut system = self.proof.system.clone();
        for task in &mut system.tasks {
            let Some(assigned) = found.get(task.name.as_str()) else { continue };
            match &mut task.scheduling {
                Scheduling::Priority(priority) => *priority = assigned.priority.unwrap_or(*priority),
                Scheduling::Deadline(reservation) => reserve(reservation, assigned.deadline),
                _ => {}
            }
        }
        let bounds = system.prove();
        let missed = system.tasks.iter().zip(&bounds).find(|it| verdict(it.0, it.1) == Verdict::Missed);
        match missed {
            None => Ok(()),
            Some((task, _)) => Err(Error::new(
                ErrorKind::Refused,
                format!("{} misses its deadline if all threads of one name have one priority", task.name),
            )
            .because("a contract cannot say anything else")
            .advise("give each thread a name of its own")),
        }
    }
}

/// A reservation until a deadline, which is within its period.
fn reserve(reservation: &mut Reservation, deadline: Option<Duration>) {
    if let Some(deadline) = deadline {
        reservation.deadline_ns = deadline.min(reservation.period_ns);
    }
}
