//! Reports of timing models: terminal tables and prose, the HTML page, comparisons, timelines, job lists.
//!
//! Pure functions from values to text: no files, no terminal queries. The caller describes in a [`Page`] how
//! wide the output is and whether it shows colours.
//!
//! Quantities are declared once, in [`figures`], and rounded so that they stay true: upper bounds up, lower
//! bounds down.

mod account;
mod analysed;
pub mod blame;
mod busy;
mod checklist;
mod clock;
pub mod compare;
mod comparison;
pub mod conformance;
pub mod daemon;
mod derived;
pub mod dispatched;
pub mod figures;
pub mod flow;
pub mod html;
pub mod jobs;
pub mod latency;
pub mod live;
mod models;
mod modes;
mod number;
mod one_job;
mod overview;
mod percentiles;
mod pool;
pub mod proof;
mod prose;
pub mod sections;
mod shape;
mod slips;
mod summed;
mod table;
mod text;
pub mod time_table;
pub mod timeline;
pub mod tt;
pub mod why;

pub use account::{account, account_json};
pub use checklist::{Item, Standing, checklist};
pub use comparison::{Configured, Kind, comparison, configured};
pub use number::{counted, few};
pub use overview::Rows;
pub use prose::{Selection, tasks};
use std::path::Path;

/// The output that text is printed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Columns of the terminal; `None` folds nothing.
    pub width: Option<u16>,
    /// Whether it shows colours.
    pub colour: bool,
}

/// Text from a thread or program with control characters escaped, so that the name of a thread cannot write
/// to the reader's terminal.
pub fn visible(text: &str) -> String {
    // Unicode does not count marks of writing direction as control characters, and they hide text as well.
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .flat_map(
            |c| if c.is_control() || turns(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] },
        )
        .collect()
}

/// A path as a shell takes it: in quotes where it has blanks or the like.
pub fn shell_word(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./+=:@%,".contains(c);
    match !path.is_empty() && path.chars().all(is_plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Text of several sentences, folded to the page.
pub fn paragraph(text: &str, page: &Page) -> String {
    match page.width {
        Some(width) => filled(text, wrapped(usize::from(width))) + "\n",
        None => format!("{text}\n"),
    }
}

/// A line, folded to the page; what follows its first line begins at this column.
fn indented(line: &str, column: usize, page: &Page) -> String {
    match page.width {
        Some(width) => {
            let indent = " ".repeat(column.min(usize::from(width) / 2));
            filled(line, wrapped(usize::from(width)).subsequent_indent(&indent)) + "\n"
        }
        None => format!("{line}\n"),
    }
}

/// Text folded to lines; numbers keep their units, and symbols their values.
fn filled(text: &str, options: textwrap::Options<'_>) -> String {
    folded(text, options).join("\n")
}

/// [`filled`], line by line.
fn folded(text: &str, options: textwrap::Options<'_>) -> Vec<String> {
    let text = joined(text);
    let lines = textwrap::wrap(&text, options).into_iter();
    lines.map(|line| line.replace(NO_BREAK, " ")).collect()
}

/// U+00A0: a space at which no line ends.
const NO_BREAK: char = '\u{a0}';

/// What follows a number and belongs to it.
const UNITS: [&str; 7] = ["ns", "µs", "ms", "s", "%", "Hz", "ppm"];

/// Joins `925.7 µs` and `J = 41,000 ns` and `≤ 2 in 5 ms`, so that no line ends inside.
fn joined(text: &str) -> String {
    let mut words = text.split(' ');
    let mut joined = words.next().unwrap_or_default().to_owned();
    let mut before = joined.clone();
    for word in words {
        let is_number = before.ends_with(|c: char| c.is_ascii_digit());
        let unit = word.trim_end_matches(|c: char| ".,;:)".contains(c));
        let belongs = (is_number && UNITS.contains(&unit)) || word == "=";
        let holds = ["=", "≤", "≥"].contains(&before.trim_start_matches('('));
        joined.push(if belongs || holds { NO_BREAK } else { ' ' });
        joined += word;
        before = word.to_owned();
    }
    joined
}

/// Wraps between words only, so that names of threads and calls stay whole.
fn wrapped<'a>(width: usize) -> textwrap::Options<'a> {
    textwrap::Options::new(width).word_splitter(textwrap::WordSplitter::NoHyphenation).break_words(false)
}

#[cfg(test)]
mod example;

#[cfg(test)]
mod tests {
    #[test]
    fn paths_are_quoted_for_the_shell() {
        let word = |path: &str| super::shell_word(std::path::Path::new(path));
        assert_eq!(word("a/b-1_2.timing.json"), "a/b-1_2.timing.json");
        assert_eq!(word("my file"), "'my file'");
        assert_eq!(word("it's $(x)"), r"'it'\''s $(x)'");
    }

    #[test]
    fn numbers_keep_their_units() {
        let text = "It took 925.7 µs (J = 41,000 ns), 99.9 % of 12 jobs, ≤ 3 in 5 ms, at 60 Hz.";
        for width in 20..80 {
            let lines = super::folded(text, super::wrapped(width));
            assert_eq!(lines.join(" "), text);
            for line in lines {
                let broken = ["925.7", "J", "=", "41,000", "99.9", "≤", "5", "60"];
                assert!(
                    !broken.iter().any(|end| line.trim_matches('(').ends_with(&format!(" {end}"))),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn control_characters_of_a_name_do_not_reach_the_terminal() {
        assert_eq!(super::visible("a\x1b[31mb µ\u{202e}"), "a\\u{1b}[31mb µ\\u{202e}");
    }
}
