//! Errors of the command line, and bugs, as one line each.

use crate::args::Arguments;
use crate::failure::{Code, Failure};
use clap::CommandFactory;
use std::ffi::OsString;
use std::panic::PanicHookInfo;

/// The parser's message as one line, with its tip if there is one.
pub fn usage_failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let message =
        text.split("\n\n").take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
    let line: Vec<&str> = message.flat_map(str::split_whitespace).collect();
    let line = line.join(" ");
    let line = line.strip_prefix("error: ").unwrap_or(&line);
    // The parser advises to write -- before what begins with a dash: after that, COMMAND begins.
    let line = line.split(" tip: to pass '").next().unwrap_or(line).replace(" tip: ", "; ");
    let command = intended(&mut Arguments::command(), std::env::args_os().skip(1));
    Failure::new(Code::Usage, format!("{line}; see {command} --help"))
}

/// The command that the arguments begin with: `punctual flow-probes check`.
fn intended(command: &mut clap::Command, arguments: impl Iterator<Item = OsString>) -> String {
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

/// A panic in one line instead of a backtrace.
pub fn bug(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let message = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let at = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
    let message = message.unwrap_or("no message").replace('\n', " ");
    format!(
        "punctual: this is a bug in punctual {}: {message}{at}; please report this line and what you ran",
        env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_no_reason_to_begin_a_command() {
        use clap::Parser;
        let parsed = Arguments::try_parse_from(["punctual", "extract", "--for", "-5s"]);
        let message = usage_failure(&parsed.expect_err("a time has no sign")).message;
        assert!(message.contains("'-5") && !message.contains("-- -5"), "{message}");
    }

    #[test]
    fn usage_errors_point_at_the_help_of_the_intended_command() {
        let help = |line: &str| intended(&mut Arguments::command(), line.split(' ').map(OsString::from));
        assert_eq!(help("chains --no-such-option show"), "punctual chains");
        assert_eq!(help("flow-probes check a b c"), "punctual flow-probes check");
        assert_eq!(help("no-such-command"), "punctual");
    }
}
