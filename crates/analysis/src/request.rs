//! How much may be asked of a processor from the beginning of a window on, as a staircase: where it comes
//! down to the time that has passed, the window ends.

use crate::bound::{Bound, Method};
use crate::demand::Demand;
use crate::system::{Bounds, System};
use crate::window::sum;
use punctual_model::Duration;

/// Steps of a staircase: more would not be seen.
const STEPS: u64 = 400;

/// What may be asked of the processor in the window of a task's worst job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestBound {
    /// The length of the window: there, everything that was asked for has been done.
    pub window: Duration,
    /// Points up to which a demand holds, from the point before on; never less than the exact function.
    pub steps: Vec<(Duration, Duration)>,
}

/// The request bound of a task with a fixed priority on one processor; `None` for others, whose bounds are
/// not the meeting of a demand and a supply.
pub fn request_bound(system: &System, me: usize, bounds: &Bounds) -> Option<RequestBound> {
    let bound: &Bound =
        bounds.get(me)?.as_ref().ok().filter(|bound| bound.method == Method::FixedPriority)?;
    let demand = Demand::new(system, me, system.others(me, bounds).ok()?);
    let window = (bound.response + bound.earlier).saturating_sub(demand.task().jitter).ns();
    let asked = |span: u64| {
        let others = demand.others.iter().map(|&other| demand.other(other, span));
        sum(others.chain([demand.own(bound.job), demand.interrupts(span)]))
    };
    let count = STEPS.min(window.max(1));
    let point = |step: u64| (u128::from(window) * u128::from(step) / u128::from(count)) as u64;
    let steps = (1..=count)
        .map(|step| Some((Duration::from_ns(point(step)), Duration::from_ns(asked(point(step).max(1))?))));
    Some(RequestBound { window: Duration::from_ns(window), steps: steps.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use crate::task::{Scheduling, Task};
    use punctual_model::Execution;

    fn task(name: &str, priority: u32, cost: u64, period: u64) -> Task {
        let ms = Duration::from_ms;
        Task {
            name: name.into(),
            scheduling: Scheduling::Priority(priority),
            processors: vec![0],
            arrivals: Arrivals::Sporadic { separation: ms(period) },
            execution: Execution { wcet_ns: vec![ms(cost)], mean_ns: None },
            suspension: Duration::ZERO,
            suspensions: 0,
            jitter: Duration::ZERO,
            deadline: None,
            deadline_is_period: false,
            gap: None,
        }
    }

    /// Lehoczky 1990: (26, 70) and (62, 100) take 118, in a window of several jobs.
    #[test]
    fn the_demand_comes_down_to_the_time_at_the_end_of_the_window_only() {
        let system =
            System { tasks: vec![task("a", 2, 26, 70), task("b", 1, 62, 100)], platforms: Vec::new() };
        let bounds = system.prove();
        let found = request_bound(&system, 1, &bounds).expect("fixed priorities");
        let bound = bounds[1].as_ref().expect("a bound");
        assert_eq!(bound.response, Duration::from_ms(118));
        assert_eq!(found.window, bound.response + bound.earlier);
        let (end, asked) = found.steps.last().expect("steps");
        assert_eq!((*end, *asked), (found.window, found.window));
        assert!(found.steps.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].0 < pair[1].0));
        let before = &found.steps[..found.steps.len() - 1];
        assert!(before.iter().all(|(time, asked)| asked > time), "the window would end before");
    }
}
