//! Names of addresses that last longer than a run: `robot:lock+0x10`, `robot+0x4040`. Who finds them is in
//! `observe` (`jobs/names.rs`).
//!
//! A separator is copied with every record, so it holds a number, and the texts are in one table per process.
//! The table has a limit, because names come from files of others: beyond it, an address has no name.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{LazyLock, PoisonError, RwLock, RwLockReadGuard};

/// Most names of a process.
const MOST: usize = 1 << 18;

/// The name of an address: what lies there, in words that hold for other runs of the program, too. Compares
/// as its text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectName(NonZeroU32);

#[derive(Default)]
struct Table {
    texts: Vec<&'static str>,
    numbers: HashMap<&'static str, NonZeroU32>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

fn table() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

impl ObjectName {
    /// Most bytes of a name.
    pub const MOST_BYTES: usize = 320;

    /// The name with this text. `None` if it is empty, too long or has control characters, or if this process
    /// has 262,144 other names.
    pub fn new(text: &str) -> Option<ObjectName> {
        if text.is_empty() || text.len() > ObjectName::MOST_BYTES || text.chars().any(char::is_control) {
            return None;
        }
        if let Some(number) = table().numbers.get(text) {
            return Some(ObjectName(*number));
        }
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        let Table { texts, numbers } = &mut *table;
        if let Some(number) = numbers.get(text) {
            return Some(ObjectName(*number));
        }
        if texts.len() == MOST {
            return None;
        }
        // Names live as long as the process, so that nobody has to count who uses them.
        let text: &'static str = Box::leak(text.into());
        texts.push(text);
        let number = NonZeroU32::new(u32::try_from(texts.len()).ok()?)?;
        numbers.insert(text, number);
        Some(ObjectName(number))
    }

    /// The text.
    pub fn text(self) -> &'static str {
        table().texts.get(self.0.get() as usize - 1).copied().unwrap_or_default()
    }

    /// A number that no other name has, in this process; never 0.
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

impl Ord for ObjectName {
    fn cmp(&self, other: &ObjectName) -> Ordering {
        self.text().cmp(other.text())
    }
}

impl PartialOrd for ObjectName {
    fn partial_cmp(&self, other: &ObjectName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text(), f)
    }
}
