//! Words of messages that several crates have.

/// A number of things: `1 slot`, `2 slots`. For people, `punctual_report` groups digits, too.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
