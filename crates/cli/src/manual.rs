//! Manual pages and completions, made from the parser.

mod daemon;

use crate::args::Arguments;
use crate::failure::{CODES, Failure};
use crate::output::print_bytes;
use clap::{Arg, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use punctual_workflow::Error;
use std::fs;
use std::io;
use std::path::Path;

/// Prints the completions of a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "punctual", &mut text);
    print_bytes(&text)
}

/// Writes `punctual.1`, a page for each subcommand, and those of the daemon.
pub fn pages(directory: &Path) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        fs::create_dir_all(directory)?;
        // Otherwise pages refer to pages about the library's own `help`.
        let mut command = Arguments::command()
            .disable_help_subcommand(true)
            .mut_subcommands(|it| it.disable_help_subcommand(true));
        command.build();
        write_pages(directory, command, "punctual")?;
        fs::write(directory.join("punctuald.8"), daemon::page()?)?;
        for (name, page) in daemon::files()? {
            fs::write(directory.join(name), page)?;
        }
        Ok(())
    };
    write().map_err(|error| Error::io("write the manual pages to", directory.display(), &error).into())
}

/// The page of a command, `punctual-rules.1`, and those of its subcommands, `punctual-rules-check.1`.
fn write_pages(directory: &Path, command: clap::Command, name: &str) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        write_pages(directory, subcommand.clone(), &format!("{name}-{}", subcommand.get_name()))?;
    }
    let command = command.display_name(name.to_owned()).version(env!("CARGO_PKG_VERSION"));
    fs::write(directory.join(format!("{name}.1")), page(command, name)?)
}

fn page(command: clap::Command, name: &str) -> io::Result<Vec<u8>> {
    let source = concat!("punctual ", env!("CARGO_PKG_VERSION"));
    let examples = examples(&command);
    let has_subcommands = command.has_subcommands();
    let synopsis = synopsis(&command);
    let man = Man::new(command).title(name.to_uppercase()).source(source).manual("Punctual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    ragged().to_writer(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis.to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if has_subcommands {
        man.render_subcommands_section(&mut page)?;
    }
    let mut end = Roff::new();
    if !examples.is_empty() {
        end.control("SH", ["EXAMPLES"]).control("nf", []);
        examples.iter().for_each(|line| _ = end.text([roman(line)]));
        end.control("fi", []);
    }
    end.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in CODES {
        end.control("TP", []).text([bold(code)]).text([roman(meaning)]);
    }
    end.control("SH", ["FILES"]);
    end.control("TP", []).text([italic("*.timing.json")]);
    end.text([roman("Timing models. docs/timing-model.md describes their format.")]);
    end.control("TP", []).text([italic("DIR/metadata"), roman(", "), italic("DIR/stream_*")]);
    end.text([roman("Recordings, in the Common Trace Format 1.8. docs/recordings.md describes them.")]);
    end.to_writer(&mut page)?;
    Ok(page)
}

/// Lines end where words do: filled to the margin, there would be gaps between them.
fn ragged() -> Roff {
    let mut text = Roff::new();
    text.control("ad", ["l"]);
    text
}

/// How a command is called: its options with their values, then what follows them.
fn synopsis(command: &clap::Command) -> Roff {
    let mut words = vec![bold(command.get_bin_name().unwrap_or(command.get_name()))];
    let is_own = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let (places, options): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(is_own).partition(|arg| arg.is_positional());
    for arg in options.into_iter().chain(places) {
        words.push(roman(if arg.is_required_set() { " " } else { " [" }));
        words.extend(usage(arg));
        words.extend((!arg.is_required_set()).then(|| roman("]")));
    }
    if command.has_subcommands() {
        words.extend([roman(" "), italic("COMMAND"), roman(" ...")]);
    }
    let mut text = Roff::new();
    text.control("SH", ["SYNOPSIS"]).text(words);
    text
}

/// `--for TIME`, `FILE`, `-- COMMAND...`.
fn usage(arg: &Arg) -> Vec<Inline> {
    let mut words = Vec::new();
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => words.push(bold(format!("--{long}"))),
        (None, Some(short)) => words.push(bold(format!("-{short}"))),
        (None, None) if arg.is_last_set() => words.push(roman("-- ")),
        (None, None) => {}
    }
    if arg.is_positional() || arg.get_action().takes_values() {
        let names = arg.get_value_names().map(|names| names.join(" "));
        words.extend((!arg.is_positional()).then(|| roman(" ")));
        words.push(italic(names.unwrap_or_else(|| arg.get_id().as_str().to_uppercase())));
        let several = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        words.extend(several.then(|| roman("...")));
    }
    words
}

/// The lines of the examples in a command's help.
fn examples(command: &clap::Command) -> Vec<String> {
    let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| !line.is_empty()).map(|line| line.trim_start().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options_and_examples() {
        let folder = tempfile::tempdir().expect("a directory");
        pages(folder.path()).expect("written");
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
        let page = read("punctual-report.1");
        for part in [".TH PUNCTUAL", ".SH SYNOPSIS", "\\-\\-output", ".SH EXAMPLES", "EXIT STATUS"] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        let synopsis = page.lines().skip_while(|line| *line != ".SH SYNOPSIS").nth(1).unwrap_or_default();
        let plain = synopsis.replace("\\fB", "").replace("\\fI", "").replace("\\fR", "").replace('\\', "");
        let expected = "punctual report [--output FILE] [--force] [--thread GLOB] [--quiet] FILE [TRACE...]";
        assert_eq!(plain, expected);
        assert!(read("punctual-ctl-run.1").contains("punctual ctl run"));
        assert!(read("punctuald.8").contains("check\\-config"));
    }
}
