//! What is wrong with a recording, and where.

use std::fmt;

/// As many are told one by one.
const MOST: usize = 100;

/// Something that is wrong with a recording. Displayed: the file, the byte, what that means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    file: String,
    offset: u64,
    what: String,
    activations: u64,
}

impl Damage {
    pub(crate) fn new(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Damage {
        Damage { file: file.into(), offset, what: what.into(), activations: 0 }
    }

    /// The same, with how many activations are lost by it.
    pub(super) fn of(self, activations: u64) -> Damage {
        Damage { activations, ..self }
    }

    /// The same with more words at its end.
    pub(super) fn and(mut self, more: &str) -> Damage {
        self.what.push_str(more);
        self
    }

    /// The file in the recording's folder.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The byte in that file, from 0.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Activations that are lost by it, as far as the recording says; 0 where it does not.
    pub fn activations(&self) -> u64 {
        self.activations
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, byte {}: {}", self.file, self.offset, self.what)
    }
}

/// Damages as they are found; a file full of them does not fill the memory.
#[derive(Clone, Debug, Default)]
pub struct Damages {
    list: Vec<Damage>,
    more: u64,
}

impl Damages {
    pub fn push(&mut self, damage: Damage) {
        if self.list.len() < MOST {
            self.list.push(damage);
        } else {
            self.more += 1;
        }
    }

    pub fn extend(&mut self, damages: impl IntoIterator<Item = Damage>) {
        damages.into_iter().for_each(|damage| self.push(damage));
    }

    pub fn into_list(mut self) -> Vec<Damage> {
        if let (Some(last), true) = (self.list.last_mut(), self.more > 0) {
            last.what.push_str(&format!("; and {} more damaged places behind this one", self.more));
        }
        self.list
    }

    pub fn list(&self) -> Vec<Damage> {
        self.clone().into_list()
    }
}
