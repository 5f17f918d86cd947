//! A whole machine: tasks, processors, and the bound of each task.

use crate::bound::{Bound, Method, NoBound};
use crate::demand::{Demand, Other};
use crate::platform::Platform;
use crate::task::{Gap, Scheduling, Task};
use crate::{edf, fixed};
use punctual_model::Duration;

/// Rounds in which the bounds of tasks of equal priority that depend on each other grow.
const MOST_ROUNDS: usize = 100;

/// Tasks and the processors that they run on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// Every task that matters: whatever is missing here is missing in the bounds of the others.
    pub tasks: Vec<Task>,
    /// What the kernel takes; processors without an entry are assumed to take nothing.
    pub platforms: Vec<Platform>,
}

/// For each task its bound, or why there is none.
pub type Bounds = Vec<Result<Bound, NoBound>>;

impl System {
    /// The processors of any task, ascending.
    pub fn processors(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.tasks.iter().flat_map(|task| task.processors.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Bounds the response time of each task. A task that one with a gap may delay without a bound has none.
    pub fn prove(&self) -> Bounds {
        let mut bounds = self.prove_all();
        for (index, task) in self.tasks.iter().enumerate() {
            if matches!(task.gap, Some(Gap::Evidence(_) | Gap::Seen(_))) {
                bounds[index] = Err(NoBound::Gap(index));
            }
        }
        bounds
    }

    /// The same, with the bounds of tasks that too little was observed of: those of others contain them.
    pub(crate) fn prove_all(&self) -> Bounds {
        let unknown = |(index, task): (usize, &Task)| match task.delays_without_bound() {
            true => Err(NoBound::Gap(index)),
            false => Err(NoBound::BestEffort),
        };
        let mut bounds: Bounds = self.tasks.iter().enumerate().map(unknown).collect();
        for level in self.levels() {
            self.prove_level(&level, &mut bounds);
        }
        bounds
    }

    /// The bound of one task, if those of all more urgent ones are known; `bounds` are those of all tasks.
    pub(crate) fn prove_task(&self, me: usize, bounds: &Bounds) -> Result<Bound, NoBound> {
        let others = self.others(me, bounds)?;
        match self.tasks[me].scheduling {
            Scheduling::Deadline(_) => edf::bound(self, me, others),
            Scheduling::Priority(_) if self.tasks[me].is_pinned() => {
                fixed::uniprocessor(&Demand::new(self, me, others))
            }
            Scheduling::Priority(_) => fixed::global(&Demand::new(self, me, others)),
            Scheduling::BestEffort | Scheduling::Unknown => Err(NoBound::BestEffort),
        }
    }

    /// The bounds of tasks of equal urgency. Where they depend on each other, they grow from the least
    /// possible ones until all hold (Tindell and Clark 1994). As they only grow, a task without a bound stays
    /// so, for the reason that was found first: later, others depend on it that it depends on.
    fn prove_level(&self, level: &[usize], bounds: &mut Bounds) {
        for &task in level {
            bounds[task] = Ok(self.least_bound(task));
        }
        for _ in 0..MOST_ROUNDS {
            let prove = |&task: &usize| match &bounds[task] {
                Err(reason) => Err(reason.clone()),
                Ok(_) => self.prove_task(task, bounds),
            };
            let found: Vec<_> = level.iter().map(prove).collect();
            let is_stable = level.iter().zip(&found).all(|(&task, found)| bounds[task] == *found);
            level.iter().zip(found).for_each(|(&task, found)| bounds[task] = found);
            if is_stable {
                return;
            }
        }
        for &task in level {
            bounds[task] = bounds[task].clone().and(Err(NoBound::Overload));
        }
    }

    fn least_bound(&self, task: usize) -> Bound {
        Bound {
            response: self.tasks[task].execution.wcet(1).unwrap_or_default(),
            method: Method::FixedPriority,
            parts: Vec::new(),
            earlier: Duration::ZERO,
            job: 0,
        }
    }

    /// The tasks by urgency, those of equal urgency together.
    fn levels(&self) -> Vec<Vec<usize>> {
        let known = self.tasks.iter().enumerate().filter(|(_, task)| !task.delays_without_bound());
        let mut ranked: Vec<(u32, usize)> =
            known.filter_map(|(index, task)| Some((rank(task)?, index))).collect();
        ranked.sort_unstable();
        ranked
            .chunk_by(|one, other| one.0 == other.0)
            .map(|level| level.iter().map(|it| it.1).collect())
            .collect()
    }

    /// The tasks that may delay one, and for how long before a window their jobs may be left over.
    pub(crate) fn others(&self, me: usize, bounds: &Bounds) -> Result<Vec<Other>, NoBound> {
        let own = &self.tasks[me];
        let Some(mine) = rank(own) else { return Err(NoBound::BestEffort) };
        let delays = |(index, task): &(usize, &Task)| {
            *index != me && rank(task).is_some_and(|rank| rank <= mine) && task.meets(own)
        };
        let others = self.tasks.iter().enumerate().filter(delays);
        if let Some((index, _)) = others.clone().find(|(_, task)| task.delays_without_bound()) {
            return Err(NoBound::Gap(index));
        }
        others
            .map(|(index, task)| {
                let carry_in = match begins_with_window(own, task, &bounds[index]) {
                    true => 0,
                    false => released_before(task, &bounds[index]).map_err(|_| NoBound::Depends(index))?,
                };
                Ok(Other { task: index, carry_in })
            })
            .collect()
    }
}

/// Whether no job of `task` can be pending when a window of `own` begins: it is always ready while it is
/// pending, on the same processor.
fn begins_with_window(own: &Task, task: &Task, bound: &Result<Bound, NoBound>) -> bool {
    let is_never_throttled = match task.scheduling {
        Scheduling::Deadline(_) => matches!(bound, Ok(bound) if bound.method == Method::EarliestDeadline),
        _ => true,
    };
    matches!(own.scheduling, Scheduling::Deadline(_))
        || own.is_pinned() && task.is_pinned() && task.suspension.is_zero() && is_never_throttled
}

/// How long before its end a job may have been released.
fn released_before(task: &Task, bound: &Result<Bound, NoBound>) -> Result<u64, NoBound> {
    let response = bound.as_ref().map_err(Clone::clone)?.response;
    Ok(response.saturating_sub(task.jitter).ns())
}

/// Its place in the order of urgency, the first that it may have; `None` for tasks that delay no other.
fn rank(task: &Task) -> Option<u32> {
    match task.scheduling {
        Scheduling::Deadline(_) | Scheduling::Unknown => Some(0),
        Scheduling::Priority(_) if matches!(task.gap, Some(Gap::Priority(_))) => Some(1),
        Scheduling::Priority(priority) => Some(100 - priority.min(99)),
        Scheduling::BestEffort => None,
    }
}
