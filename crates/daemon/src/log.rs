//! The log: one line per event on standard error, with a priority for journald if that is listening.

use std::io::Write;
use std::sync::OnceLock;

/// Priorities; the numbers are syslog's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error = 3,
    /// Something is not as expected.
    Warning = 4,
    /// The daemon started, stopped, read its configuration.
    Info = 6,
}

/// Writes a message, each of its lines with the prefix. Control characters are replaced.
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
    // There is nowhere left to report a failure to.
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
