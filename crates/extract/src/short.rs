//! Numbers in few bytes as long as they are small.

/// Numbers, of four bytes each as long as that is enough for all of them.
#[derive(Clone, Debug)]
pub(crate) enum Numbers {
    Short(Vec<u32>),
    Long(Vec<u64>),
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers::Short(Vec::new())
    }
}

impl Numbers {
    pub fn len(&self) -> usize {
        match self {
            Numbers::Short(numbers) => numbers.len(),
            Numbers::Long(numbers) => numbers.len(),
        }
    }

    pub fn push(&mut self, number: u64) {
        self.insert(self.len(), number);
    }

    /// Inserts a number at this place, and moves those from there on.
    pub fn insert(&mut self, place: usize, number: u64) {
        match (&mut *self, u32::try_from(number)) {
            (Numbers::Short(numbers), Ok(short)) => numbers.insert(place, short),
            (Numbers::Short(_), Err(_)) => {
                *self = Numbers::Long(self.iter().collect());
                self.insert(place, number);
            }
            (Numbers::Long(numbers), _) => numbers.insert(place, number),
        }
    }

    pub fn truncate(&mut self, length: usize) {
        match self {
            Numbers::Short(numbers) => numbers.truncate(length),
            Numbers::Long(numbers) => numbers.truncate(length),
        }
    }

    pub fn get(&self, place: usize) -> Option<u64> {
        match self {
            Numbers::Short(numbers) => numbers.get(place).copied().map(u64::from),
            Numbers::Long(numbers) => numbers.get(place).copied(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (short, long) = match self {
            Numbers::Short(numbers) => (&numbers[..], &[][..]),
            Numbers::Long(numbers) => (&[][..], &numbers[..]),
        };
        short.iter().map(|number| u64::from(*number)).chain(long.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_are_kept() {
        let mut numbers = Numbers::default();
        let all = [5, 0, u64::from(u32::MAX), 1 << 40, 7, u64::MAX];
        for (count, number) in all.into_iter().enumerate() {
            numbers.push(number);
            assert!(numbers.len() == count + 1 && numbers.iter().eq(all[..=count].iter().copied()));
            assert_eq!(matches!(numbers, Numbers::Short(_)), count < 3);
        }
    }
}
