//! Numbers modulo 2¹⁴, made whole: of each object, the one next to what is expected.

use super::{Kind, NUMBERS, OBJECTS};

/// What is expected next of every channel and every task.
#[derive(Debug)]
pub struct Numbers {
    pushes: Box<[u64]>,
    /// Of an instance, activation, start and stop have the same number.
    instances: Box<[u64]>,
    activations: Box<[u64]>,
}

impl Default for Numbers {
    fn default() -> Numbers {
        let none = || vec![0; OBJECTS].into_boxed_slice();
        Numbers { pushes: none(), instances: none(), activations: none() }
    }
}

impl Numbers {
    /// The whole number. Events of different producers may come a little out of order, so the nearest is
    /// taken.
    #[inline]
    pub fn whole(&mut self, kind: Kind, object: u16, number: u16) -> u64 {
        let next = match kind {
            Kind::Push => &mut self.pushes[usize::from(object)],
            _ => &mut self.instances[usize::from(object)],
        };
        let whole = nearest(*next, number);
        *next = (*next).max(whole + 1);
        if kind == Kind::Activation {
            let activated = &mut self.activations[usize::from(object)];
            *activated = (*activated).max(whole + 1);
        }
        whole
    }

    /// The whole number of a push that has come, from its low bits.
    pub fn taken(&self, channel: u16, number: u32) -> u64 {
        let next = self.pushes[usize::from(channel)];
        let back = (next as u32).wrapping_sub(number);
        // Of another producer, and at the same tick, it may not have come yet.
        match u64::from(back) <= next && back <= u32::MAX / 2 {
            true => next - u64::from(back),
            false => next + u64::from(number.wrapping_sub(next as u32)),
        }
    }

    /// Whether the activation of this instance, or of a later one, has come.
    #[inline]
    pub fn is_activated(&self, task: u16, number: u16) -> bool {
        nearest(self.instances[usize::from(task)], number) < self.activations[usize::from(task)]
    }
}

/// The number nearest to `next` that is `number` modulo 2¹⁴.
#[inline]
fn nearest(next: u64, number: u16) -> u64 {
    let ahead = u64::from(number).wrapping_sub(next) % NUMBERS;
    let whole = next + ahead;
    if ahead < NUMBERS / 2 || whole < NUMBERS { whole } else { whole - NUMBERS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_pushes_are_those_that_came() {
        let mut numbers = Numbers::default();
        (0..5).for_each(|number| {
            numbers.whole(Kind::Push, 7, number);
        });
        assert_eq!([0, 3, 4, 5, 9].map(|number| numbers.taken(7, number)), [0, 3, 4, 5, 9]);
        numbers.pushes[7] = (3 << 32) + 2;
        assert_eq!(numbers.taken(7, 1), (3 << 32) + 1);
        assert_eq!(numbers.taken(7, u32::MAX), (3 << 32) - 1);
    }

    #[test]
    fn numbers_wrap_around() {
        let mut numbers = Numbers::default();
        for number in 0..3 * NUMBERS {
            assert_eq!(numbers.whole(Kind::Push, 7, (number % NUMBERS) as u16), number);
        }
        // A little out of order, and some missing.
        assert_eq!(numbers.whole(Kind::Push, 7, 3), 3 * NUMBERS + 3);
        assert_eq!(numbers.whole(Kind::Push, 7, 1), 3 * NUMBERS + 1);
        assert_eq!(numbers.whole(Kind::Push, 7, (NUMBERS - 1) as u16), 3 * NUMBERS - 1);
        // Of each object.
        assert_eq!(numbers.whole(Kind::Push, 8, (NUMBERS - 1) as u16), NUMBERS - 1);
        assert_eq!(numbers.whole(Kind::Activation, 7, 5), 5);
        assert!(numbers.is_activated(7, 5) && !numbers.is_activated(7, 6));
    }
}
