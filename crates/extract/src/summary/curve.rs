//! A greatest or least value for each number of jobs or releases, with the run it is from.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Entries for which memory is taken before they are read.
const MOST_AT_ONCE: usize = 4096;

/// The place of a run in its summary.
pub(crate) type RunNumber = u32;

/// A value and the run it is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extreme {
    pub ns: u64,
    pub run: RunNumber,
}

/// Which of two values is kept; of equal ones, that of the first run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    Least,
    Greatest,
}

impl Keep {
    fn prefers(self, one: Extreme, to: Extreme) -> bool {
        match self {
            Keep::Least => (one.ns, one.run) < (to.ns, to.run),
            Keep::Greatest => one.ns > to.ns || (one.ns == to.ns && one.run < to.run),
        }
    }

    /// The one to keep.
    pub fn of(self, one: Option<Extreme>, other: Option<Extreme>) -> Option<Extreme> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if self.prefers(other, one) { other } else { one }),
            (one, other) => one.or(other),
        }
    }
}

/// The values of a curve. It says nothing beyond `reach` entries, even if runs are longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    pub reach: u64,
    pub values: Vec<Extreme>,
}

impl Curve {
    /// Of one run.
    pub fn new(reach: u64, values: impl Iterator<Item = u64>) -> Curve {
        Curve { reach, values: values.map(|ns| Extreme { ns, run: 0 }).collect() }
    }

    pub fn renumber(&mut self, numbers: &[RunNumber]) {
        match numbers {
            // Of one run, as all are at first.
            [only] => self.values.iter_mut().for_each(|value| value.run = *only),
            _ => self.values.iter_mut().for_each(|value| value.run = numbers[value.run as usize]),
        }
    }

    pub fn merge(&mut self, other: &Curve, keep: Keep) {
        for (mine, theirs) in self.values.iter_mut().zip(&other.values) {
            if keep.prefers(*theirs, *mine) {
                *mine = *theirs;
            }
        }
        let known = self.values.len().min(other.values.len());
        self.values.extend(&other.values[known..]);
        self.reach = self.reach.min(other.reach);
        self.values.truncate(usize::try_from(self.reach).unwrap_or(usize::MAX));
    }

    /// The values, none below the one before: a longer run of jobs needs no less than a shorter one.
    pub fn never_falling(&self) -> impl Iterator<Item = Extreme> + '_ {
        self.values.iter().scan(None, |before: &mut Option<Extreme>, value| {
            let value = before.filter(|before| before.ns > value.ns).unwrap_or(*value);
            *before = Some(value);
            Some(value)
        })
    }
}

/// In a file: the reach; second differences, which are small where jobs are regular; runs with how many
/// entries in a row they have.
#[derive(Serialize)]
struct Packed {
    reach: u64,
    bends: Vec<i64>,
    runs: Vec<(u64, RunNumber)>,
}

/// The same, read: values for the second differences.
#[derive(Deserialize)]
struct Unpacked {
    reach: u64,
    values: Values,
    runs: Vec<(u64, RunNumber)>,
}

/// All of run 0.
struct Values(Vec<Extreme>);

impl Serialize for Curve {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (mut last, mut step) = (0, 0);
        let bends = self.values.iter().map(|value| {
            let next = (value.ns as i64).wrapping_sub(last);
            let bend = next.wrapping_sub(step);
            (last, step) = (value.ns as i64, next);
            bend
        });
        let bends = bends.collect();
        let mut runs: Vec<(u64, RunNumber)> = Vec::new();
        for value in &self.values {
            match runs.last_mut().filter(|(_, run)| *run == value.run) {
                Some((count, _)) => *count += 1,
                None => runs.push((1, value.run)),
            }
        }
        Packed { reach: self.reach, bends, runs }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        struct Bends;
        impl<'de> de::Visitor<'de> for Bends {
            type Value = Values;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str("second differences")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut bends: A) -> Result<Values, A::Error> {
                // A length that is not true must not take memory.
                let known = bends.size_hint().unwrap_or(0).min(MOST_AT_ONCE);
                let mut values = Vec::with_capacity(known);
                let (mut last, mut step) = (0_i64, 0_i64);
                while let Some(bend) = bends.next_element::<i64>()? {
                    step = step.wrapping_add(bend);
                    last = last.wrapping_add(step);
                    values.push(Extreme { ns: last as u64, run: 0 });
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_seq(Bends)
    }
}

impl<'de> Deserialize<'de> for Curve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Curve, D::Error> {
        let Unpacked { reach, values: Values(mut values), runs } = Unpacked::deserialize(deserializer)?;
        let counts = runs.iter().try_fold(0_u64, |sum, (count, _)| sum.checked_add(*count));
        if counts != Some(values.len() as u64) || values.len() as u64 > reach {
            return Err(de::Error::custom("a curve with as many runs as entries, within its reach"));
        }
        let mut rest = &mut values[..];
        for (count, run) in runs {
            let (these, others) = std::mem::take(&mut rest).split_at_mut(count as usize);
            these.iter_mut().for_each(|value| value.run = run);
            rest = others;
        }
        Ok(Curve { reach, values })
    }
}
