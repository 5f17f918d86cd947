//! Tables of handles that are filled in a first pass over a trace, and say the same in a second one. A handle
//! is an address, which may come to mean another object.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Meanings of handles over time.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    meanings: FxHashMap<K, Meanings<V>>,
    is_second: bool,
}

#[derive(Clone, Debug)]
struct Meanings<V> {
    /// In order of time.
    all: Vec<V>,
    now: usize,
    /// Whether the first one has come in this pass. Before, it counts already.
    has_begun: bool,
}

impl<K: Hash + Eq, V: Copy> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table { meanings: FxHashMap::default(), is_second: false }
    }
}

impl<K: Hash + Eq, V: Copy> Table<K, V> {
    /// A handle gets a meaning, which `make` makes in the first pass.
    pub fn define(&mut self, key: K, make: impl FnOnce() -> V) {
        if self.is_second {
            if let Some(meanings) = self.meanings.get_mut(&key) {
                meanings.now = (meanings.now + usize::from(meanings.has_begun)).min(meanings.all.len() - 1);
                meanings.has_begun = true;
            }
            return;
        }
        let meanings =
            self.meanings.entry(key).or_insert(Meanings { all: Vec::new(), now: 0, has_begun: false });
        meanings.all.push(make());
        meanings.now = meanings.all.len() - 1;
    }

    /// What it means now.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.meanings.get(key).map(|meanings| meanings.all[meanings.now])
    }

    /// From here on, the same comes again.
    pub fn rewind(&mut self) {
        self.is_second = true;
        for meanings in self.meanings.values_mut() {
            (meanings.now, meanings.has_begun) = (0, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_pass_repeats_the_first() {
        let mut table = Table::default();
        let pass = |table: &mut Table<u64, u32>, make: &dyn Fn(u32) -> u32| {
            let early = table.get(&7);
            table.define(7, || make(1));
            let first = table.get(&7);
            table.define(8, || make(2));
            table.define(7, || make(3));
            [early, first, table.get(&7), table.get(&8), table.get(&9)]
        };
        assert_eq!(pass(&mut table, &|value| value), [None, Some(1), Some(3), Some(2), None]);
        table.rewind();
        let again = pass(&mut table, &|_| panic!("it is known"));
        assert_eq!(again, [Some(1), Some(1), Some(3), Some(2), None]);
    }
}
