//! The plugin GEDF: global EDF on SCHED_DEADLINE. Threads are not pinned; the kernel runs the m earliest
//! deadlines on the plugin's m processors, and admits threads by itself too.
//!
//! > All deadlines are met if Σ δ_i ≤ m·u − (m − 1)·max δ_i, with the densities δ_i = Q_i / min(T_i, D_i)
//! > (Goossens, Funk and Baruah 2003, GFB; for D < T Bertogna, Cirinei and Lipari 2005), on m processors of
//! > which the threads have the share u.
//!
//! Sufficient, not exact: no exact test of global EDF is known that takes bounded time.

use crate::edf::{check_served, served};
use crate::task::Task;
use crate::{
    ANYWHERE, Answer, AssignedPolicy, Assignment, Load, Offer, Parameters, Plugin, Refusal, Settings, SpecId,
    Utilization,
};
use punctual_model::Duration;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// What is admitted.
#[derive(Debug)]
pub(crate) struct Global {
    settings: Settings,
    threshold: Utilization,
    tasks: FxHashMap<SpecId, Task>,
    /// Ascending.
    densities: BTreeSet<(Utilization, SpecId)>,
    sum: Utilization,
}

impl Global {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            threshold: settings.limit(),
            settings,
            tasks: FxHashMap::default(),
            densities: BTreeSet::new(),
            sum: Utilization::ZERO,
        }
    }

    /// m·u.
    fn capacity(&self) -> Utilization {
        self.settings.processors.iter().map(|_| self.threshold).sum()
    }

    /// The greatest density that a spec may have beside the others.
    fn greatest(&self, replaced: Option<SpecId>) -> (Utilization, Utilization) {
        let replaced = replaced.and_then(|spec| Some((self.tasks.get(&spec)?.utilization(), spec)));
        let taken = self.sum - replaced.map_or(Utilization::ZERO, |(density, _)| density);
        let largest = self.densities.iter().rev().find(|it| Some(**it) != replaced);
        let largest = largest.map_or(Utilization::ZERO, |(density, _)| *density);
        let processors = self.settings.processors.len() as u64;
        let free = self.capacity() - taken;
        // Up to the largest of the others, that one counts m − 1 times; beyond it, the new one m times.
        let below = free - times(largest, processors - 1);
        let greatest = if below < largest { below } else { share(free, processors) };
        (greatest.min(self.threshold), taken)
    }

    fn runtime(&self, parameters: &Parameters, replaced: Option<SpecId>) -> Result<Duration, Refusal> {
        let least = parameters.runtime.ok_or(Refusal::Lacks("runtime_ns"))?;
        let period = parameters.period.ok_or(Refusal::Lacks("period_ns"))?;
        parameters.check(&self.settings.limits).map_err(Refusal::Bound)?;
        parameters.check_deadline_class(&self.settings.limits).map_err(Refusal::Bound)?;
        if parameters.blocking.is_some_and(|blocking| blocking > Duration::ZERO) {
            return Err(Refusal::Unschedulable("global EDF does not count blocking; EDF does".into()));
        }
        let deadline = parameters.deadline.unwrap_or(period);
        check_served(deadline, &self.settings)?;
        let window = deadline.min(period);
        let (greatest, taken) = self.greatest(replaced);
        let needed = Utilization::new(least, window);
        if needed > greatest {
            let processors = self.settings.processors.len();
            return Err(Refusal::Unschedulable(format!(
                "GFB test of global EDF on {processors} processors: a density of {needed} was asked for \
                 beside {taken}, and at most {greatest} is possible"
            )));
        }
        let most = parameters.desired_runtime.unwrap_or(least).max(least);
        Ok(most.min(greatest.runtime_in(window).max(least)))
    }
}

/// A whole multiple.
fn times(share: Utilization, count: u64) -> Utilization {
    Utilization::from_raw(share.raw().saturating_mul(count.into()))
}

/// A whole part, rounded down.
fn share(of: Utilization, count: u64) -> Utilization {
    Utilization::from_raw(of.raw() / u128::from(count.max(1)))
}

impl Plugin for Global {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn consider(&self, parameters: &Parameters, replacing: Option<SpecId>) -> Answer {
        let offer =
            |runtime, ignored| Offer { processor: ANYWHERE, accepted_runtime: Some(runtime), ignored };
        match (self.runtime(parameters, replacing), parameters.runtime) {
            (Ok(runtime), _) => Answer::Ok(offer(runtime, false)),
            (Err(Refusal::Unschedulable(_)), Some(least)) if parameters.ignore_admission => {
                Answer::Ok(offer(least, true))
            }
            (Err(refusal), _) => Answer::No(refusal),
        }
    }

    /// The kernel refuses threads that may not run on all of its processors.
    fn consider_within(
        &self,
        parameters: &Parameters,
        replacing: Option<SpecId>,
        may_use: &dyn Fn(u32) -> bool,
    ) -> Answer {
        match self.settings.processors.iter().find(|&&processor| !may_use(processor)) {
            Some(processor) => Answer::No(Refusal::Unschedulable(format!(
                "the thread's cpuset excludes processor {processor}, and global EDF needs all of its \
                 processors"
            ))),
            None => self.consider(parameters, replacing),
        }
    }

    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer) {
        self.release(spec);
        let runtime = offer.accepted_runtime.or(parameters.runtime);
        let task = Task::from_parameters(parameters, runtime, !offer.ignored).map(served);
        let Some(task) = task else { return };
        self.sum += task.utilization();
        self.densities.insert((task.utilization(), spec));
        self.tasks.insert(spec, task);
    }

    fn release(&mut self, spec: SpecId) {
        if let Some(task) = self.tasks.remove(&spec) {
            self.sum -= task.utilization();
            self.densities.remove(&(task.utilization(), spec));
        }
    }

    fn assignment(&self, spec: SpecId) -> Option<Assignment> {
        let Task { runtime, deadline, period, .. } = *self.tasks.get(&spec)?;
        Some(Assignment {
            processor: ANYWHERE,
            policy: AssignedPolicy::Deadline { runtime, deadline, period },
        })
    }

    fn shifted(&mut self) -> bool {
        false
    }

    /// Each processor has its part of the whole, and any of the specs.
    fn loads(&self) -> Vec<Load> {
        let utilization = self.sum.as_f64() / self.settings.processors.len().max(1) as f64;
        let load = |&processor| Load { processor, utilization, specs: self.tasks.len() };
        self.settings.processors.iter().map(load).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Test};
    use proptest::prelude::*;

    fn global(processors: u32, threshold: f64) -> Global {
        Global::new(Settings {
            name: "GEDF".into(),
            processors: (0..processors).collect(),
            priorities: (1, 99),
            threshold,
            test: Test::Exact,
            limits: Limits::default(),
            platforms: Vec::new(),
            reserves: Vec::new(),
            without_runtime_up_to: None,
        })
    }

    fn ms(runtime: u64, period: u64) -> Parameters {
        let [runtime, period] = [runtime, period].map(Duration::from_ms).map(Some);
        Parameters { runtime, period, ..Parameters::default() }
    }

    fn try_admit(plugin: &mut Global, number: u64, parameters: &Parameters) -> Option<Offer> {
        let Answer::Ok(offer) = plugin.consider(parameters, None) else { return None };
        plugin.admit(SpecId(number), parameters, offer);
        Some(offer)
    }

    /// Two processors: 0.6 + 0.6 ≤ 2 − 0.6, and 0.2 more fits exactly. Dhall and Liu's light tasks beside a
    /// heavy one do not.
    #[test]
    fn the_bound_of_goossens_funk_and_baruah() {
        let mut plugin = global(2, 1.0);
        assert!(try_admit(&mut plugin, 1, &ms(6, 10)).is_some());
        assert!(try_admit(&mut plugin, 2, &ms(6, 10)).is_some());
        assert!(try_admit(&mut plugin, 3, &ms(21, 100)).is_none());
        assert!(try_admit(&mut plugin, 4, &ms(2, 10)).is_none(), "each is rounded up");
        assert!(try_admit(&mut plugin, 5, &ms(199, 1000)).is_some());
        plugin.release(SpecId(1));
        plugin.release(SpecId(2));
        plugin.release(SpecId(5));
        assert_eq!(plugin.sum, Utilization::ZERO);
        assert!(try_admit(&mut plugin, 6, &ms(10, 10)).is_some());
        assert!(try_admit(&mut plugin, 7, &ms(1, 100)).is_none(), "2 − 1 is all that the heavy one leaves");
    }

    /// Otherwise the kernel would hold a thread that wakes up between its deadline and its next period.
    #[test]
    fn a_short_deadline_is_the_period_of_the_server() {
        let mut plugin = global(2, 1.0);
        let parameters = Parameters { deadline: Some(Duration::from_ms(20)), ..ms(5, 100) };
        assert!(try_admit(&mut plugin, 1, &parameters).is_some());
        let Some(Assignment { policy: AssignedPolicy::Deadline { deadline, period, .. }, .. }) =
            plugin.assignment(SpecId(1))
        else {
            panic!("it was admitted");
        };
        assert_eq!((deadline, period), (Duration::from_ms(20), Duration::from_ms(20)));
    }

    proptest! {
        #[test]
        fn what_is_admitted_satisfies_the_bound(processors in 1u32..6, threshold in 0.3f64..=1.0,
            specs in prop::collection::vec((1u64..100, 1u64..100, 1u64..3), 1..12)) {
            let mut plugin = global(processors, threshold);
            let mut densities: Vec<f64> = Vec::new();
            for (number, (runtime, period, desired)) in specs.into_iter().enumerate() {
                let (runtime, period) = (runtime.min(period), runtime.max(period));
                let mut parameters = ms(runtime, period);
                parameters.desired_runtime = Some(Duration::from_ms((runtime * desired).min(period)));
                let bound = |all: &[f64]| {
                    let largest = all.iter().copied().fold(0.0, f64::max);
                    let capacity = f64::from(processors) * threshold - f64::from(processors - 1) * largest;
                    capacity - all.iter().sum::<f64>()
                };
                let least = [&densities[..], &[runtime as f64 / period as f64]].concat();
                match try_admit(&mut plugin, number as u64, &parameters) {
                    Some(offer) => {
                        let accepted = offer.accepted_runtime.expect("a runtime").ns() as f64 / 1e6;
                        densities.push(accepted / period as f64);
                        prop_assert!(bound(&densities) > -1e-9, "{densities:?}");
                    }
                    None => {
                        let most = runtime as f64 / period as f64;
                        prop_assert!(bound(&least) < 1e-9 || most > threshold - 1e-9, "{least:?}");
                    }
                }
            }
        }
    }
}
