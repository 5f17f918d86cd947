//! Random changes of bytes, the same in every run.

use crate::Random;

/// Many formats begin with a header of about this length.
const HEADER: usize = 140;
/// Most bytes that one change overwrites, removes or inserts.
const LONGEST: usize = 600;

/// Changes inputs of parsers at random.
pub struct Mutator {
    random: Random,
    words: Vec<Vec<u8>>,
    inputs: Vec<Vec<u8>>,
}

impl Mutator {
    /// The same changes for the same seed.
    pub fn new(seed: u64) -> Mutator {
        Mutator { random: Random(seed), words: Vec::new(), inputs: Vec::new() }
    }

    /// The same, which also inserts these words, and pieces of these inputs.
    pub fn inserting(self, words: Vec<Vec<u8>>, inputs: Vec<Vec<u8>>) -> Mutator {
        Mutator { words, inputs, ..self }
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.random.below(end as u64) as usize
    }

    /// One to five changes.
    pub fn mutate(&mut self, input: &mut Vec<u8>) {
        for _ in 0..=self.below(5) {
            self.change(input);
        }
    }

    /// Flips a bit, overwrites, removes or inserts bytes, or truncates: often in the header.
    pub fn change(&mut self, input: &mut Vec<u8>) {
        let end = if self.below(3) == 0 { input.len().min(HEADER) } else { input.len() };
        let at = self.below(end);
        let to = (at + 1 + self.below(LONGEST / 2)).min(input.len());
        match self.below(8) {
            _ if input.is_empty() => *input = self.insertion(),
            0 => input[at] ^= 1 << self.below(8),
            1 => input[at] = self.below(256) as u8,
            2 => input.iter_mut().skip(at).zip(self.extreme_number()).for_each(|(byte, new)| *byte = new),
            3 => input[at..to].fill(if self.below(2) == 0 { 0 } else { 0xff }),
            4 => drop(input.drain(at..to)),
            5 => input.truncate(at),
            _ => drop(input.splice(at..at, self.insertion())),
        }
    }

    /// A signed or unsigned number of 1 to 8 bytes at an end of its range.
    fn extreme_number(&mut self) -> Vec<u8> {
        let length = self.random.one_of(&[1, 2, 4, 8]);
        let number = self.random.one_of(&[0, i64::MAX, i64::MIN, -1]) >> (64 - 8 * length);
        number.to_le_bytes()[..length].to_vec()
    }

    fn insertion(&mut self) -> Vec<u8> {
        if !self.words.is_empty() && self.below(2) == 0 {
            let word = self.below(self.words.len());
            return self.words[word].clone();
        }
        if self.inputs.is_empty() {
            return self.extreme_number();
        }
        let input = self.below(self.inputs.len());
        let from = self.below(self.inputs[input].len());
        let length = self.below(LONGEST);
        self.inputs[input].iter().skip(from).take(length).copied().collect()
    }
}
