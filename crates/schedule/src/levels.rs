//! Maps an order of urgency to the kernel's priorities (ReTiF, Equations 5 and 6), for one processor.
//!
//! The order is that of keys: smaller is more urgent. Distinct keys have distinct priorities as long as the
//! range has enough of them; otherwise neighbours share one. As few priorities as possible change when a key
//! comes or goes: each change costs a system call for each thread that has it.
//!
//! Two things are safe without a new admission test: moving priorities without changing their order, and
//! splitting a shared one, since some threads then have less interference than before. Joining needs a test,
//! so it happens only on insertion.

/// Priorities of one processor, and the keys that have them.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    lowest: u32,
    highest: u32,
    /// From the most urgent; priorities strictly decrease, keys strictly increase.
    levels: Vec<Level>,
}

#[derive(Clone, Debug)]
struct Level {
    priority: u32,
    /// Sorted, each with the number of its specs. Never empty.
    keys: Vec<(u64, usize)>,
}

impl Level {
    fn new(priority: u32, key: u64) -> Self {
        Self { priority, keys: vec![(key, 1)] }
    }

    fn first(&self) -> u64 {
        self.keys[0].0
    }

    fn last(&self) -> u64 {
        self.keys[self.keys.len() - 1].0
    }

    fn count(&mut self, key: u64) {
        match self.keys.binary_search_by_key(&key, |&(key, _)| key) {
            Ok(at) => self.keys[at].1 += 1,
            Err(at) => self.keys.insert(at, (key, 1)),
        }
    }
}

impl Levels {
    /// All priorities from `lowest` to `highest`, unused.
    pub(crate) fn new(lowest: u32, highest: u32) -> Self {
        Self { lowest, highest: highest.max(lowest), levels: Vec::new() }
    }

    fn capacity(&self) -> usize {
        (self.highest - self.lowest) as usize + 1
    }

    /// The priority of all specs with this key.
    pub(crate) fn priority(&self, key: u64) -> Option<u32> {
        let level = &self.levels[self.above(key).checked_sub(1)?];
        level.keys.binary_search_by_key(&key, |&(key, _)| key).is_ok().then_some(level.priority)
    }

    /// The least urgent key of each level, from the most urgent level.
    pub(crate) fn last_keys(&self) -> impl Iterator<Item = u64> {
        self.levels.iter().map(Level::last)
    }

    /// Whether different keys have one priority.
    pub(crate) fn shares(&self) -> bool {
        self.levels.iter().any(|level| level.keys.len() > 1)
    }

    /// Number of levels that begin at `key` or a more urgent one.
    fn above(&self, key: u64) -> usize {
        self.levels.partition_point(|level| level.first() <= key)
    }

    /// Adds a spec with this key; returns whether priorities of other keys changed. A new key gets a priority
    /// near `wish` if that is possible without moving others, otherwise one in the middle of the free range,
    /// which leaves room on both sides.
    pub(crate) fn insert(&mut self, key: u64, wish: Option<u32>) -> bool {
        let at = self.above(key);
        if at > 0 && key <= self.levels[at - 1].last() {
            self.levels[at - 1].count(key);
            return self.divide_shared();
        }
        if self.levels.len() == self.capacity() {
            let shared = match at {
                0 => 0,
                at if at == self.levels.len() => at - 1,
                at if self.levels[at].keys.len() < self.levels[at - 1].keys.len() => at,
                at => at - 1,
            };
            self.levels[shared].count(key);
            return false;
        }
        let moved = self.make_room(at);
        let (above, below) = self.bounds(at);
        let priority = wish.map_or(below + (above - below) / 2, |wish| wish.clamp(below + 1, above - 1));
        self.levels.insert(at, Level::new(priority, key));
        self.divide_shared() || moved
    }

    /// Like [`insert`](Self::insert), at the priority this key had under an earlier daemon if possible.
    pub(crate) fn restore(&mut self, key: u64, priority: u32) -> bool {
        let at = self.above(key);
        let joins = |level: &Level| level.priority == priority;
        if at > 0 && joins(&self.levels[at - 1]) {
            self.levels[at - 1].count(key);
            return false;
        }
        let inside = at > 0 && key <= self.levels[at - 1].last();
        if !inside {
            if self.levels.get(at).is_some_and(joins) {
                self.levels[at].count(key);
                return false;
            }
            let (above, below) = self.bounds(at);
            if below < priority && priority < above {
                self.levels.insert(at, Level::new(priority, key));
                return false;
            }
        }
        self.insert(key, None)
    }

    /// Removes a spec with this key; returns whether priorities of other keys changed. Unknown keys are
    /// ignored.
    pub(crate) fn remove(&mut self, key: u64) -> bool {
        let Some(at) = self.above(key).checked_sub(1) else { return false };
        let keys = &mut self.levels[at].keys;
        let Ok(place) = keys.binary_search_by_key(&key, |&(key, _)| key) else { return false };
        keys[place].1 -= 1;
        if keys[place].1 > 0 {
            return false;
        }
        keys.remove(place);
        if keys.is_empty() {
            self.levels.remove(at);
        }
        self.divide_shared()
    }

    /// Priorities strictly between these two are free for a new level at `at`. The lower one may be just
    /// below the range, which is why priorities begin at 1.
    fn bounds(&self, at: usize) -> (u32, u32) {
        let above = if at == 0 { self.highest + 1 } else { self.levels[at - 1].priority };
        let below = self.levels.get(at).map_or(self.lowest - 1, |level| level.priority);
        (above, below)
    }

    /// Makes a priority free for a new level at `at`, by moving the levels between it and the nearest free
    /// priority. Some priority must be free.
    fn make_room(&mut self, at: usize) -> bool {
        let gap = |levels: &Self, at: usize| {
            let (above, below) = levels.bounds(at);
            above - below > 1
        };
        if gap(self, at) {
            return false;
        }
        let up = (0..at).rev().find(|&above| gap(self, above));
        let down = (at + 1..=self.levels.len()).find(|&below| gap(self, below));
        match (up, down) {
            (Some(up), down) if down.is_none_or(|down| at - up <= down - at) => {
                self.levels[up..at].iter_mut().for_each(|level| level.priority += 1);
            }
            (_, Some(down)) => self.levels[at..down].iter_mut().for_each(|level| level.priority -= 1),
            (_, None) => return false,
        }
        true
    }

    /// Splits shared levels in two while priorities are free, the fullest first.
    fn divide_shared(&mut self) -> bool {
        let mut moved = false;
        while self.levels.len() < self.capacity() {
            let fullest = (0..self.levels.len()).max_by_key(|&at| self.levels[at].keys.len());
            let Some(at) = fullest.filter(|&at| self.levels[at].keys.len() > 1) else { break };
            self.make_room(at + 1);
            let (above, below) = self.bounds(at + 1);
            let half = self.levels[at].keys.len() / 2;
            let keys = self.levels[at].keys.split_off(half);
            self.levels.insert(at + 1, Level { priority: below + (above - below) / 2, keys });
            moved = true;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn priorities(levels: &Levels, keys: impl IntoIterator<Item = u64>) -> Vec<u32> {
        keys.into_iter().map(|key| levels.priority(key).expect("it was inserted")).collect()
    }

    #[test]
    fn requested_priorities_within_the_range_are_kept() {
        // As in FP: the key falls as the priority rises.
        let mut levels = Levels::new(1, 99);
        for wish in [50, 99, 1, 51, 98, 49] {
            assert!(!levels.insert(100 - u64::from(wish), Some(wish)));
            assert_eq!(levels.priority(100 - u64::from(wish)), Some(wish));
        }
    }

    #[test]
    fn the_order_is_kept_in_a_narrow_range() {
        let mut levels = Levels::new(10, 12);
        levels.insert(30, Some(12));
        assert_eq!(priorities(&levels, [30]), [12]);
        assert!(levels.insert(20, Some(12)), "30 has to make room");
        levels.insert(40, Some(12));
        assert_eq!(priorities(&levels, [20, 30, 40]), [12, 11, 10]);
        // Equation 6 no longer holds: one has to be shared.
        assert!(!levels.insert(35, None));
        let shared = priorities(&levels, [20, 30, 35, 40]);
        assert!(shared == [12, 11, 11, 10] || shared == [12, 11, 10, 10]);
        assert!(levels.remove(20), "it is split as soon as there is room");
        assert_eq!(priorities(&levels, [30, 35, 40]), [12, 11, 10]);
    }

    #[test]
    fn one_priority_is_shared_by_all() {
        let mut levels = Levels::new(7, 7);
        for key in 0..100 {
            assert!(!levels.insert(key, Some(99)));
        }
        assert!(priorities(&levels, 0..100).iter().all(|&priority| priority == 7));
    }

    #[test]
    fn a_restored_key_has_the_priority_it_had() {
        let mut levels = Levels::new(1, 3);
        for (key, priority) in [(40, 1), (10, 3), (30, 2), (20, 2)] {
            assert!(!levels.restore(key, priority));
        }
        assert_eq!(priorities(&levels, [10, 20, 30, 40]), [3, 2, 2, 1]);
        // A priority that contradicts the order or is out of range is ignored.
        let mut levels = Levels::new(1, 3);
        levels.restore(10, 2);
        levels.restore(20, 3);
        levels.restore(30, 77);
        assert_eq!(priorities(&levels, [10, 20, 30]), [3, 2, 1]);
    }

    proptest! {
        #[test]
        fn priorities_are_monotone_and_strictly_so_while_the_range_allows(
            lowest in 1..5u32,
            width in 0..8u32,
            steps in prop::collection::vec((any::<bool>(), 0..20u64, prop::option::of(1..20u32)), 1..80),
        ) {
            let mut levels = Levels::new(lowest, lowest + width);
            let mut books = BTreeMap::<u64, usize>::new();
            for (come, key, wish) in steps {
                let before: BTreeMap<_, _> = books.keys().map(|&key| (key, levels.priority(key))).collect();
                let moved = if come {
                    *books.entry(key).or_default() += 1;
                    levels.insert(key, wish)
                } else {
                    if let Some(count) = books.get_mut(&key) {
                        *count -= 1;
                    }
                    books.retain(|_, count| *count > 0);
                    levels.remove(key)
                };
                let now = priorities(&levels, books.keys().copied());
                prop_assert!(now.iter().all(|priority| (lowest..=lowest + width).contains(priority)));
                prop_assert!(now.windows(2).all(|pair| pair[0] >= pair[1]), "{now:?}");
                let distinct = now.windows(2).filter(|pair| pair[0] != pair[1]).count()
                    + usize::from(!now.is_empty());
                prop_assert_eq!(
                    distinct,
                    now.len().min(width as usize + 1),
                    "all levels are used before one is shared"
                );
                prop_assert_eq!(levels.priority(key).is_some(), books.contains_key(&key));
                let changed = before.iter().any(|(&other, &was)| {
                    other != key && books.contains_key(&other) && levels.priority(other) != was
                });
                prop_assert!(moved || !changed);
                // What was more urgent stays so, except where the new key joined a level.
                for pair in before.iter().collect::<Vec<_>>().windows(2) {
                    let ((&urgent, &a), (&other, &b)) = (pair[0], pair[1]);
                    if a > b && books.contains_key(&urgent) && books.contains_key(&other) {
                        prop_assert!(levels.priority(urgent) > levels.priority(other));
                    }
                }
            }
        }
    }
}
