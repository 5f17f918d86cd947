//! Deadlines: whether they hold, how far each task is from breaking them, and priorities and reservations
//! that keep them.

use crate::bound::{Bound, NoBound};
use crate::demand::{Demand, Other};
use crate::edf;
use crate::fixed;
use crate::system::{Bounds, System};
use crate::task::{Gap, Scheduling, Task};
use punctual_model::Duration;
use punctual_model::policy::Reservation;

/// Factors are in parts of this.
pub const PARTS: u64 = 1_000;
/// Greater factors are not looked for.
pub const MOST_PARTS: u64 = 16 * PARTS;

/// Whether a task meets its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its bound is at most its deadline.
    Met,
    /// Its bound exceeds its deadline, or it has none.
    Missed,
    /// It has no deadline.
    NotAsked,
}

/// How far one task's parameters may change before the first deadline of any task is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The task.
    pub task: usize,
    /// The greatest factor of its processor time, in [`PARTS`]; [`MOST_PARTS`] stands for that or more.
    pub cost: u64,
    /// The least factor of the distances between its releases, in [`PARTS`], and of its deadline, if that is
    /// its period.
    pub distance: u64,
}

/// What each task gets, where it gets something; or the tasks for which nothing was found.
pub type Assignment<T> = Result<Vec<Option<T>>, Vec<usize>>;

/// The verdict of one task.
pub fn verdict(task: &Task, bound: &Result<Bound, NoBound>) -> Verdict {
    match (task.deadline, bound) {
        (None, _) => Verdict::NotAsked,
        (Some(deadline), Ok(bound)) if bound.response <= deadline => Verdict::Met,
        _ => Verdict::Missed,
    }
}

impl System {
    /// Whether all deadlines hold.
    pub fn meets_deadlines(&self) -> bool {
        let bounds = self.prove();
        self.tasks.iter().zip(&bounds).all(|(task, bound)| verdict(task, bound) != Verdict::Missed)
    }

    /// How far each task may change alone; `None` where a deadline is missed already that the task's
    /// processors have to do with, for tasks without a real-time policy, and where too little is known.
    pub fn sensitivity(&self) -> Vec<Option<Room>> {
        let mut rooms = vec![None; self.tasks.len()];
        for part in self.parts() {
            let system = self.only(&part);
            if !system.meets_deadlines() {
                continue;
            }
            for (at, &task) in part.iter().enumerate() {
                let changed = &system.tasks[at];
                if changed.gap.is_none() && changed.scheduling != Scheduling::BestEffort {
                    rooms[task] = Some(Room { task, ..system.room(at) });
                }
            }
        }
        rooms
    }

    fn room(&self, task: usize) -> Room {
        let holds = |change: &dyn Fn(&mut Task)| {
            let mut changed = self.clone();
            change(&mut changed.tasks[task]);
            changed.meets_deadlines()
        };
        let cost =
            greatest(PARTS, MOST_PARTS, |parts| holds(&|task| *task = task.with_cost_scaled(parts, PARTS)));
        let shorter = greatest(0, PARTS - 1, |less| {
            holds(&|task| *task = task.with_distances_scaled(PARTS - less, PARTS))
        });
        Room { task, cost, distance: PARTS - shorter }
    }

    /// Indices of tasks that share processors, directly or by others; each part by itself.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut parts: Vec<Vec<usize>> = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            let touches = |part: &Vec<usize>| part.iter().any(|&other| self.tasks[other].meets(task));
            let (touched, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(touches);
            let mut joined: Vec<usize> = touched.into_iter().flatten().chain([index]).collect();
            joined.sort_unstable();
            parts = others.into_iter().chain([joined]).collect();
        }
        parts.sort_unstable();
        parts
    }

    fn only(&self, tasks: &[usize]) -> System {
        System {
            tasks: tasks.iter().map(|&task| self.tasks[task].clone()).collect(),
            platforms: self.platforms.clone(),
        }
    }

    /// Priorities under which all tasks with a priority and a deadline meet it, one for each, at most
    /// `greatest`: if there are any, this finds some (Audsley 1991). Tasks without a deadline come last. The
    /// others keep their scheduling: reservations, and those that too little was observed of, which count as
    /// more urgent here. `None` for tasks that have no priority to assign.
    ///
    /// # Errors
    /// The tasks of which none can have the lowest of the priorities that are left; or all, if there are more
    /// than priorities, or they do not go with those that others keep.
    pub fn assign(&self, greatest: u32) -> Assignment<u32> {
        let mut left: Vec<usize> = (0..self.tasks.len()).filter(|&it| self.takes_priority(it)).collect();
        let all = left.clone();
        if left.len() > greatest as usize {
            return Err(left);
        }
        // Where there is a choice, those with long deadlines are least urgent, and are listed so.
        left.sort_by_key(|&task| (self.tasks[task].deadline.map_or(u64::MAX, Duration::ns), task));
        let mut priorities = vec![None; self.tasks.len()];
        let bounds = self.prove_all();
        for priority in (greatest - left.len() as u32 + 1)..=greatest {
            let lowest = left.iter().rposition(|&task| self.can_be_lowest(task, &left, &bounds));
            let Some(lowest) = lowest else { return Err(left) };
            priorities[left.remove(lowest)] = Some(priority);
        }
        let assigned = self.with_priorities(&priorities);
        let bounds = assigned.prove();
        let is_met = |&task: &usize| verdict(&assigned.tasks[task], &bounds[task]) != Verdict::Missed;
        if all.iter().all(is_met) { Ok(priorities) } else { Err(all) }
    }

    /// Deadlines of reservations under which all tasks in reservations meet theirs, one for each, which are
    /// their periods, too; `None` for those in none, and for those without a deadline, which keep what they
    /// have.
    ///
    /// Each is the longest that keeps its task's own deadline D: min(D − J, T), as the kernel counts from a
    /// release, which may be the jitter J after the arrival. If any deadlines do within these periods, these
    /// do: on one processor since EDF is optimal (Dertouzos 1974), by the density test since longer deadlines
    /// are less dense. (But for interrupts, of which a reservation is charged all that come until its
    /// deadline.) With a longer period, the kernel might hold a job until that ends.
    ///
    /// # Errors
    /// The tasks that have no such deadline, or may miss theirs with these.
    pub fn assign_deadlines(&self) -> Assignment<Duration> {
        let longest = |task: &Task| match (task.scheduling, task.deadline) {
            (Scheduling::Deadline(it), Some(deadline)) => {
                Some((it, deadline.saturating_sub(task.jitter).min(it.period_ns)))
            }
            _ => None,
        };
        let all: Vec<_> = self.tasks.iter().map(longest).collect();
        let is_too_short = |(task, it): (usize, &Option<(Reservation, Duration)>)| {
            it.filter(|(reservation, deadline)| *deadline < reservation.runtime_ns).map(|_| task)
        };
        let too_short: Vec<usize> = all.iter().enumerate().filter_map(is_too_short).collect();
        if !too_short.is_empty() {
            return Err(too_short);
        }
        let deadlines: Vec<Option<Duration>> =
            all.iter().map(|it| it.map(|(_, deadline)| deadline)).collect();
        let assigned = self.with_deadlines(&deadlines);
        let bounds = assigned.prove();
        let is_missed = |task: &usize| {
            deadlines[*task].is_some() && verdict(&assigned.tasks[*task], &bounds[*task]) == Verdict::Missed
        };
        let missed: Vec<usize> = (0..self.tasks.len()).filter(is_missed).collect();
        if missed.is_empty() { Ok(deadlines) } else { Err(missed) }
    }

    /// The same with these deadlines and periods of reservations, where there are any.
    pub fn with_deadlines(&self, deadlines: &[Option<Duration>]) -> System {
        let mut system = self.clone();
        for (task, deadline) in system.tasks.iter_mut().zip(deadlines) {
            let (Scheduling::Deadline(reservation), Some(deadline)) = (&mut task.scheduling, deadline) else {
                continue;
            };
            (reservation.deadline_ns, reservation.period_ns) = (*deadline, *deadline);
        }
        system
    }

    /// The smallest reservation that each job of a task fits, with what the kernel takes of it: a period, and
    /// deadline, as long as the least distance between two releases or as the task's own deadline allows.
    /// `None` where too little is known of the task, or the kernel takes no such reservation.
    pub fn least_reservation(&self, task: usize) -> Option<Reservation> {
        let own = &self.tasks[task];
        let least = Duration::from_ns(own.arrivals.span(2)).min(Reservation::PERIODS.1);
        let period_ns = own.deadline.map_or(least, |it| it.saturating_sub(own.jitter).min(least));
        let reservation = Reservation { runtime_ns: Duration::ZERO, deadline_ns: period_ns, period_ns };
        let runtime_ns = edf::least_runtime(self, task, &reservation)?.max(Reservation::LEAST_RUNTIME);
        Some(Reservation { runtime_ns, ..reservation }).filter(Reservation::is_possible)
    }

    /// Whether an assignment gives it a priority.
    fn takes_priority(&self, task: usize) -> bool {
        let task = &self.tasks[task];
        matches!(task.scheduling, Scheduling::Priority(_))
            && !matches!(task.gap, Some(Gap::Evidence(_) | Gap::Seen(_)))
    }

    /// The same with these priorities, where there are any.
    pub fn with_priorities(&self, priorities: &[Option<u32>]) -> System {
        let mut system = self.clone();
        for (task, priority) in system.tasks.iter_mut().zip(priorities) {
            let Some(priority) = *priority else { continue };
            task.scheduling = Scheduling::Priority(priority);
            task.gap.take_if(|gap| matches!(gap, Gap::Priority(_)));
        }
        system
    }

    /// Whether a task may delay this one without a bound, if `left` are more urgent.
    fn has_unbounded(&self, me: usize, left: &[usize]) -> bool {
        let own = &self.tasks[me];
        (0..self.tasks.len()).filter(|other| *other != me).any(|other| {
            let task = &self.tasks[other];
            let is_unbounded = match task.gap {
                Some(Gap::Demand(_)) => left.contains(&other) || !self.takes_priority(other),
                Some(Gap::Priority(_)) => !self.takes_priority(other),
                _ => false,
            };
            is_unbounded && task.scheduling != Scheduling::BestEffort && task.meets(own)
        })
    }

    /// Whether a task meets its deadline if all of `left` are more urgent. Those meet theirs, which is shown
    /// when it is their turn: whichever order they have, they end at most their deadline after their arrival.
    fn can_be_lowest(&self, me: usize, left: &[usize], bounds: &Bounds) -> bool {
        let Some(deadline) = self.tasks[me].deadline else { return true };
        let own = &self.tasks[me];
        if matches!(own.gap, Some(Gap::Demand(_))) || self.has_unbounded(me, left) {
            return false;
        }
        let kept = (0..self.tasks.len()).filter_map(|other| {
            let task = &self.tasks[other];
            let is_scheduled = !matches!(task.scheduling, Scheduling::BestEffort | Scheduling::Unknown);
            let is_kept = is_scheduled && !self.takes_priority(other) && task.meets(own);
            is_kept.then_some((other, bounds[other].as_ref().ok().map(|bound| bound.response)))
        });
        let more_urgent = left.iter().filter(|&&other| other != me && self.tasks[other].meets(own));
        let more_urgent = more_urgent.map(|&other| (other, self.tasks[other].deadline));
        let others: Option<Vec<Other>> = more_urgent
            .chain(kept)
            .map(|(task, response)| {
                let other = &self.tasks[task];
                let begins_with_window = own.is_pinned()
                    && other.is_pinned()
                    && other.suspension.is_zero()
                    && !matches!(other.scheduling, Scheduling::Deadline(_));
                let carry_in = match begins_with_window {
                    true => 0,
                    false => response?.saturating_sub(other.jitter).ns(),
                };
                Some(Other { task, carry_in })
            })
            .collect();
        let Some(others) = others else { return false };
        let demand = Demand::new(self, me, others);
        let bound = if own.is_pinned() { fixed::uniprocessor(&demand) } else { fixed::global(&demand) };
        bound.is_ok_and(|bound| bound.response <= deadline)
    }
}

/// The greatest number up to `most` for which `holds`, which does for `least`.
fn greatest(least: u64, most: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut yes, mut no) = (least, most + 1);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if holds(middle) { yes = middle } else { no = middle }
    }
    yes
}
