//! Manual pages and completions, made from the parser, so that they cannot say something else than it does.

mod daemon;

use crate::args::Arguments;
use crate::failure::{CODES, Failure, reason};
use crate::output::print_bytes;
use clap::CommandFactory;
use clap_mangen::Man;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Prints the completions of a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "punctual", &mut text);
    print_bytes(&text)
}

/// Writes `punctual.1`, a page for each subcommand, and the daemon's.
pub fn pages(directory: &Path) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        fs::create_dir_all(directory)?;
        // Where the library's own `help` is not left out, pages refer to pages about it.
        let mut command = Arguments::command()
            .disable_help_subcommand(true)
            .mut_subcommands(|it| it.disable_help_subcommand(true));
        command.build();
        fs::write(directory.join("punctual.1"), page(&command)?)?;
        subpages(directory, &command, "punctual")?;
        fs::write(directory.join("punctuald.8"), daemon::page()?)?;
        for (name, page) in daemon::files()? {
            fs::write(directory.join(name), page)?;
        }
        Ok(())
    };
    write().map_err(|error| Failure::file("write the manual pages to", directory.display(), reason(&error)))
}

/// A page for each subcommand, `punctual-show.1`, and for each of theirs, `punctual-rules-check.1`.
fn subpages(directory: &Path, command: &clap::Command, prefix: &str) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        let name = format!("{prefix}-{}", subcommand.get_name());
        subpages(directory, subcommand, &name)?;
        let usage = synopsis(subcommand);
        let subcommand = subcommand
            .clone()
            .display_name(name.clone())
            .version(env!("CARGO_PKG_VERSION"))
            .override_usage(usage);
        fs::write(directory.join(format!("{name}.1")), page(&subcommand)?)?;
    }
    Ok(())
}

/// How a subcommand is called: `punctual show [--all] [--task NAME] FILE`. The library's own synopsis leaves
/// the values of options out.
fn synopsis(command: &clap::Command) -> String {
    let mut parts = vec![command.get_bin_name().unwrap_or(command.get_name()).to_owned()];
    // Options first, as people write them.
    for argument in command
        .get_opts()
        .chain(command.get_arguments().filter(|argument| is_flag(argument)))
        .chain(command.get_positionals())
    {
        let values = argument.get_num_args().filter(clap::builder::ValueRange::takes_values);
        let flag = match (argument.get_short(), argument.get_long()) {
            (Some(short), _) => Some(format!("-{short}")),
            (None, Some(long)) => Some(format!("--{long}")),
            (None, None) => argument.is_last_set().then(|| "--".to_owned()),
        };
        let value = values.map(|range| {
            let names = argument.get_value_names().unwrap_or_default().join(" ");
            names + if range.max_values() > 1 { "..." } else { "" }
        });
        let words: Vec<String> = flag.into_iter().chain(value).collect();
        let words = words.join(" ");
        parts.push(if argument.is_required_set() { words } else { format!("[{words}]") });
    }
    if command.has_subcommands() {
        parts.push("COMMAND".into());
    }
    parts.join(" ")
}

fn is_flag(argument: &clap::Arg) -> bool {
    !argument.is_positional() && argument.get_num_args().is_none_or(|range| !range.takes_values())
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let source = concat!("punctual ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).title(name.to_uppercase()).source(source).manual("Punctual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    writeln!(page, ".SH \"EXIT STATUS\"")?;
    for (code, meaning) in CODES {
        writeln!(page, ".TP\n\\fB{code}\\fR\n{meaning}")?;
    }
    writeln!(
        page,
        ".SH FILES\n.TP\n\\fI*.timing.json\\fR\nTiming models. Their format is described by docs/timing\\-model.schema.json."
    )?;
    writeln!(
        page,
        ".TP\n\\fIDIR/metadata\\fR, \\fIDIR/stream_*\\fR\nRecordings, in the Common Trace Format 1.8. docs/recordings.md describes them."
    )?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_synopsis_names_the_values_of_options() {
        let mut command = Arguments::command();
        command.build();
        let of = |name: &str| synopsis(command.find_subcommand(name).expect("a subcommand"));
        assert_eq!(of("report"), "punctual report [-o FILE] [--force] [-q] [-h] FILE [TRACE...]");
        assert!(
            of("extract").contains(" [--pid PID...] ") && of("extract").ends_with(" [-- COMMAND...]"),
            "{}",
            of("extract")
        );
        assert_eq!(of("rules"), "punctual rules [-h] COMMAND");
        assert_eq!(of("doctor"), "punctual doctor [--json] [-h]");
    }
}
