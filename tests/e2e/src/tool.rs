//! Third-party programs, which a machine may not have.

use std::process::Command;

/// A program with its arguments; `None` if there is no such program here.
pub fn tool(program: &str, arguments: &[&str]) -> Option<Command> {
    let found =
        std::env::split_paths(&std::env::var_os("PATH")?).any(|directory| directory.join(program).is_file());
    let mut command = Command::new(program);
    command.args(arguments);
    found.then_some(command)
}
