//! Random changes of bytes that are the same in every run.

/// SplitMix64 with a fixed seed.
pub struct Mutator(pub u64);

impl Mutator {
    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }

    /// Flips, overwrites, cuts or truncates at `at`, or inserts a part of one of the others there.
    pub fn change(&mut self, input: &mut Vec<u8>, at: usize, others: &[Vec<u8>]) {
        let to = (at + self.below(300)).min(input.len());
        match self.below(if others.is_empty() { 6 } else { 7 }) {
            _ if input.is_empty() => input.push(self.below(256) as u8),
            0 | 1 => input[at] ^= 1 << self.below(8),
            2 => input[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            3 => input[at..to].fill(if self.below(2) == 0 { 0 } else { 0xff }),
            4 => drop(input.drain(at..to)),
            5 => input.truncate(at),
            _ => {
                let other = &others[self.below(others.len())];
                let from = self.below(other.len());
                let to = (from + self.below(600)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
}
