//! The books of a processor: sums over its specs, updated as specs come and go, so that reading them is free.

use crate::reserve::{Reserve, Workload};
use crate::task::Task;
use crate::{Load, Utilization};

/// The books of one processor, for one plugin.
#[derive(Clone, Debug)]
pub(crate) struct Books {
    pub(crate) processor: u32,
    /// U_k: the sum of Q^a / min(T, D) (ReTiF, Equation 2).
    pub(crate) utilization: Utilization,
    /// The sum of Q^a / T.
    pub(crate) rate: Utilization,
    /// What the specs that declare a runtime and a period take in any window.
    pub(crate) workload: Workload,
    /// How many specs may take more than that: those that declare less, and those whose test was ignored.
    pub(crate) unknown: usize,
    pub(crate) specs: usize,
}

impl Books {
    pub(crate) fn new(processor: u32) -> Self {
        Self {
            processor,
            utilization: Utilization::ZERO,
            rate: Utilization::ZERO,
            workload: Workload::default(),
            unknown: 0,
            specs: 0,
        }
    }

    pub(crate) fn add(&mut self, task: Option<&Task>) {
        self.specs += 1;
        if let Some(task) = task {
            self.utilization += task.utilization();
            self.rate += task.rate;
            self.workload.add(task);
        }
        self.unknown += usize::from(!task.is_some_and(|task| task.guaranteed));
    }

    pub(crate) fn remove(&mut self, task: Option<&Task>) {
        self.specs -= 1;
        if let Some(task) = task {
            self.utilization -= task.utilization();
            self.rate -= task.rate;
            self.workload.remove(task);
        }
        self.unknown -= usize::from(!task.is_some_and(|task| task.guaranteed));
    }

    /// Those of `reserves` that the kernel may take from these specs and one more.
    pub(crate) fn acting(&self, reserves: &[Reserve], more: Option<&Task>) -> Vec<Reserve> {
        if reserves.is_empty() {
            return Vec::new();
        }
        let mut with = self.clone();
        with.add(more);
        let acts = |reserve: &&Reserve| with.unknown > 0 || !reserve.is_left(&with.workload);
        reserves.iter().filter(acts).copied().collect()
    }

    pub(crate) fn load(&self) -> Load {
        Load { processor: self.processor, utilization: self.utilization.as_f64(), specs: self.specs }
    }
}

/// Message: a processor's utilization would exceed the threshold (Equation 3).
pub(crate) fn exceeds(
    threshold: Utilization,
    processor: u32,
    taken: Utilization,
    needed: Utilization,
) -> String {
    format!(
        "utilization, processor {processor}: {needed} needed, {taken} already taken, the threshold is \
         {threshold}"
    )
}

/// Indices of those `books` whose processor `may_use` names, least loaded by `measure` first; worst fit takes
/// the first. Ties stay in the order of the configuration.
pub(crate) fn least_loaded<K: Ord>(
    books: &[Books],
    may_use: &dyn Fn(u32) -> bool,
    measure: impl Fn(&Books) -> K,
) -> Vec<usize> {
    let mut places: Vec<usize> = (0..books.len()).filter(|&at| may_use(books[at].processor)).collect();
    places.sort_by_cached_key(|&at| measure(&books[at]));
    places
}

/// The first place that passes `test`, with its result; if none does, why the first one failed.
pub(crate) fn first_fit<T>(
    places: &[usize],
    mut test: impl FnMut(usize) -> Result<T, String>,
) -> Result<(usize, T), String> {
    let mut reason = None;
    for &place in places {
        match test(place) {
            Ok(found) => return Ok((place, found)),
            Err(why) => reason = reason.or(Some(why)),
        }
    }
    Err(reason.unwrap_or_else(|| "the thread's cpuset excludes all of its processors".into()))
}
