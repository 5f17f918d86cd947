//! Feeds a fuzz target in an ordinary test: its corpus, and mutations that are the same in every run, so that
//! a new finding does not fail an unrelated change. Not for finding new inputs: `make fuzz` does that.

use crate::Mutator;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// The function that a fuzz target calls, and where its inputs are.
pub struct FuzzTarget {
    /// Its name in `scripts/fuzz`.
    pub name: &'static str,
    /// The folder with the corpora and dictionaries.
    pub folder: &'static str,
    /// Reads an input; panics if something is wrong.
    pub read: fn(&[u8]),
}

impl FuzzTarget {
    /// Reads every input of the corpus as it is.
    pub fn reads_corpus(&self) {
        for (file, input) in self.corpus() {
            eprintln!("reading {}", file.display());
            (self.read)(&input);
        }
    }

    /// Reads this many mutations of the corpus.
    pub fn reads_mutations(&self, count: usize) {
        let corpus: Vec<Vec<u8>> = self.corpus().into_iter().map(|(_, input)| input).collect();
        let mut mutator = Mutator::new(1).inserting(self.dictionary(), corpus.clone());
        for number in 0..count {
            let mut input = corpus[number % corpus.len()].clone();
            mutator.mutate(&mut input);
            let reading = Reading { target: self, number, input: &input };
            (self.read)(reading.input);
        }
    }

    fn corpus_folder(&self) -> PathBuf {
        Path::new(self.folder).join("corpus").join(self.name)
    }

    /// The inputs of the corpus with their files, in order.
    fn corpus(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let entries = fs::read_dir(self.corpus_folder()).expect("a corpus");
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        assert!(!files.is_empty(), "the corpus of {} is empty", self.name);
        let with_input = |file: PathBuf| {
            let input = fs::read(&file).expect("an input");
            (file, input)
        };
        files.into_iter().map(with_input).collect()
    }

    /// The words of the dictionary; none if there is no dictionary.
    fn dictionary(&self) -> Vec<Vec<u8>> {
        let file = Path::new(self.folder).join("dictionaries").join(self.name);
        if !file.exists() {
            return Vec::new();
        }
        fs::read_to_string(file).expect("a dictionary").lines().map(word).collect()
    }
}

/// A line of libFuzzer's dictionaries: `"word"`, with the escapes `\"`, `\\` and `\x41`.
fn word(line: &str) -> Vec<u8> {
    let quoted = line.strip_prefix('"').and_then(|line| line.strip_suffix('"'));
    let mut rest = quoted.unwrap_or_else(|| panic!("not a word in quotes: {line}")).as_bytes();
    let mut word = Vec::new();
    while let [first, after @ ..] = rest {
        rest = after;
        word.push(match (first, after) {
            (b'\\', [b'x', high, low, after @ ..]) => {
                rest = after;
                let digit = |byte: &u8| char::from(*byte).to_digit(16).expect("a hexadecimal digit") as u8;
                16 * digit(high) + digit(low)
            }
            (b'\\', [escaped, after @ ..]) => {
                rest = after;
                *escaped
            }
            _ => *first,
        });
    }
    word
}

/// An input while it is read. If that panics, the input is written to a file, whose name is printed.
struct Reading<'a> {
    target: &'a FuzzTarget,
    number: usize,
    input: &'a [u8],
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let Reading { target, number, input } = self;
        let file = std::env::temp_dir().join(format!("fuzz-{}-{number}", target.name));
        match fs::write(&file, input) {
            Ok(()) => eprintln!(
                "mutation {number} failed; to read it again, first of all: cp {} {}/",
                file.display(),
                target.corpus_folder().display(),
            ),
            Err(error) => {
                eprintln!("mutation {number} failed; cannot keep it in {}: {error}", file.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_dictionaries_are_unescaped() {
        assert_eq!(word(r#""a\"\\\x0a\xffb""#), b"a\"\\\n\xffb");
        assert_eq!(word(r#""""#), b"");
    }
}
