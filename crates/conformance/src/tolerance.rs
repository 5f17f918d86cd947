//! What a contract tolerates: jobs that may exceed a limit, and values that no share excuses.

use crate::chance::{Allowance, Allowances};
use crate::contract::ContractTask;
use crate::violation::Term;
use punctual_model::Duration;

/// A thread that is later than agreed by more than this breaks the contract, whatever may exceed its limits.
const MOST_TOLERATED: Duration = Duration::from_ms(1_000);

/// How many jobs of a task may exceed its limits.
pub struct Tolerance {
    /// Single jobs; `None` if none may.
    some: Option<Allowance>,
}

impl Tolerance {
    /// What the contract says of a task.
    pub fn new(task: &ContractTask, allowances: &mut Allowances) -> Tolerance {
        let some = task.may_exceed.filter(|share| !share.is_zero());
        Tolerance { some: some.map(|share| allowances.of(share)) }
    }

    /// How many jobs may exceed the limit of a term; `None` if none may.
    pub fn of(&self, term: Term) -> Option<&Allowance> {
        self.some.as_ref().filter(|_| !matches!(term, Term::Deadline | Term::Bound))
    }

    /// Whether a value breaks the contract whatever other jobs do.
    pub fn is_certain(&self, term: Term, value: u64, agreed: u64) -> bool {
        self.of(term).is_none()
            || (matches!(term, Term::Wcet | Term::Response | Term::Suspension | Term::Late | Term::Overdue)
                && value > agreed.saturating_add(MOST_TOLERATED.ns()))
    }
}
