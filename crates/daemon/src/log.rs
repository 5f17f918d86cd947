//! What the administrator is told: one line for each event on standard error, with the priority that journald
//! reads where that listens.

use std::io::Write;
use std::sync::OnceLock;

/// How much it matters; the numbers are syslog's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error = 3,
    /// Something is not as it should be.
    Warning = 4,
    /// The daemon started, stopped, read its configuration.
    Info = 6,
}

/// Writes a line. What comes from clients is in it only escaped.
pub fn log(level: Level, message: &str) {
    static JOURNALD: OnceLock<bool> = OnceLock::new();
    let journald = *JOURNALD.get_or_init(|| std::env::var_os("JOURNAL_STREAM").is_some());
    let prefix = if journald { format!("<{}>", level as u8) } else { "punctuald: ".to_owned() };
    let mut text = String::with_capacity(message.len() + 16);
    for line in message.lines() {
        text.push_str(&prefix);
        text.extend(line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }));
        text.push('\n');
    }
    // Where nobody can be told, nobody can be told of that either.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// See [`Level::Error`].
pub fn error(message: &str) {
    log(Level::Error, message);
}

/// See [`Level::Warning`].
pub fn warning(message: &str) {
    log(Level::Warning, message);
}

/// See [`Level::Info`].
pub fn info(message: &str) {
    log(Level::Info, message);
}
