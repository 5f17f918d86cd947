//! Why a command fails: a message of one line and an exit code.

use punctual_workflow::{Error, ErrorKind};

/// Exit codes. Scripts rely on them.
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
    Exceeded = 8,
    NotAsPlanned = 9,
}

/// The exit codes for help and manual pages.
pub const CODES: [(&str, &str); 10] = [
    (
        "0",
        "Success. If an observed COMMAND fails, that is only reported on standard error; punctual ctl run \
         exits as its COMMAND does.",
    ),
    ("1", "Any other failure."),
    ("2", "Invalid arguments."),
    ("3", "Not possible with this kernel or these privileges; punctual doctor says what is missing."),
    (
        "4",
        "A process, cgroup, thread or task was not found, COMMAND cannot be started, or a probes file does \
         not fit it.",
    ),
    ("5", "A file or recording cannot be read or written, or is not what it should be."),
    (
        "6",
        "Refused: by punctuald (not admitted, not permitted, or no such spec); no table was found for the \
         tasks; or a deadline is not proven.",
    ),
    ("7", "punctuald cannot be reached, or did not answer."),
    (
        "8",
        "A contract is not kept (punctual check, punctual watch); a configuration is worse than the first \
         (punctual compare --fail-on-worse); or a measured latency is above its bound: \
         a defect of Punctual, or the kernel broke a rule that the bound rests on.",
    ),
    ("9", "A slot was not given as its table says (punctual tt check)."),
];

/// The exit codes for the end of a help text.
pub fn codes() -> String {
    let lines: Vec<String> = CODES.iter().map(|(code, meaning)| format!("  {code}  {meaning}")).collect();
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// Why a command fails.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::Usage => Code::Usage,
            ErrorKind::Unsupported => Code::CannotHere,
            ErrorKind::Target => Code::Target,
            ErrorKind::File => Code::File,
            ErrorKind::Refused => Code::Refused,
            _ => Code::Other,
        };
        Failure::new(code, format!("{error:#}"))
    }
}
