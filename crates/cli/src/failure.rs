//! What went wrong, in one line, and the exit code that says which kind of thing it was.

use crate::args::Arguments;
use clap::CommandFactory;
use punctual_observe::ErrorKind;
use std::ffi::OsString;
use std::fmt::Display;
use std::panic::PanicHookInfo;

/// Exit codes. They are part of the interface: scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    Other = 1,
    Usage = 2,
    CannotHere = 3,
    Target = 4,
    File = 5,
    Refused = 6,
    Daemon = 7,
}

/// The exit codes as help and manual page tell them.
pub const CODES: [(&str, &str); 8] = [
    (
        "0",
        "Done. An observed COMMAND may have failed all the same, which is said on standard error; punctual ctl run ends as its COMMAND does.",
    ),
    ("1", "Something else failed."),
    ("2", "The arguments make no sense."),
    ("3", "This kernel or these privileges do not allow it; punctual doctor says what is missing."),
    (
        "4",
        "A process, cgroup or thread was not found, COMMAND could not be started, or a probes file does not fit it.",
    ),
    ("5", "A file or recording could not be read or written, or is none."),
    ("6", "punctuald says no: not admitted, not permitted, or no such spec."),
    ("7", "punctuald cannot be reached, or did not answer."),
];

/// The exit codes at the end of the help.
pub fn codes() -> String {
    let lines: Vec<String> = CODES.iter().map(|(code, meaning)| format!("  {code}  {meaning}")).collect();
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// Why the command ends.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// A file that could not be read or written: what was tried, on what, why.
    pub fn file(what: &str, path: impl Display, why: impl Display) -> Failure {
        Failure::new(Code::File, format!("cannot {what} {path}: {why}"))
    }
}

impl From<punctual_observe::Error> for Failure {
    fn from(error: punctual_observe::Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::Privileges | ErrorKind::Kernel => Code::CannotHere,
            ErrorKind::TargetNotFound | ErrorKind::CommandFailed => Code::Target,
            ErrorKind::Other => Code::Other,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<punctual_trace::Error> for Failure {
    fn from(error: punctual_trace::Error) -> Failure {
        Failure::new(Code::File, error.to_string())
    }
}

/// An operating system's error without its number, which says nothing to most readers.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

/// The parser's message as one line, with its tip if it has one.
pub fn of_usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let said =
        text.split("\n\n").take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
    let line: Vec<&str> = said.flat_map(str::split_whitespace).collect();
    let line = line.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line).replace(" tip: ", "; ");
    let command = meant(&mut Arguments::command(), std::env::args_os().skip(1));
    Failure::new(Code::Usage, format!("{line}; see {command} --help"))
}

/// The command that these arguments begin with: `punctual flow-probes check`.
fn meant(command: &mut clap::Command, arguments: impl Iterator<Item = OsString>) -> String {
    command.build();
    let (mut name, mut command) = (command.get_name().to_owned(), &*command);
    for argument in arguments {
        let Some(found) = argument.to_str().and_then(|argument| command.find_subcommand(argument)) else {
            break;
        };
        name += &format!(" {}", found.get_name());
        command = found;
    }
    name
}

/// One line instead of a backtrace.
pub fn of_panic(panic: &PanicHookInfo<'_>) -> String {
    let said = panic.payload();
    let said =
        said.downcast_ref::<&str>().copied().or_else(|| said.downcast_ref::<String>().map(String::as_str));
    let at = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
    let said = said.unwrap_or("no message").replace('\n', " ");
    format!(
        "punctual: this is a bug in punctual {}: {said}{at}; please report this line and what you ran",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_that_of_the_command_that_was_meant() {
        let meant = |line: &str| meant(&mut Arguments::command(), line.split(' ').map(OsString::from));
        assert_eq!(meant("chains --no-such-option show"), "punctual chains");
        assert_eq!(meant("flow-probes check a b c"), "punctual flow-probes check");
        assert_eq!(meant("no-such-command"), "punctual");
    }
}
