//! Reports of timing models: terminal tables and prose, the HTML page, comparisons, timelines, job lists.
//!
//! Pure functions from values to text: no files, no terminal queries. The caller describes in a [`Page`] how
//! wide the output is and whether it shows colours.
//!
//! Quantities are declared once, in [`figures`], and rounded so that they stay true: upper bounds up, lower
//! bounds down.

mod checklist;
pub mod compare;
mod comparison;
pub mod daemon;
mod derived;
pub mod figures;
pub mod flow;
pub mod html;
pub mod jobs;
pub mod latency;
mod models;
mod number;
mod overview;
mod percentiles;
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

pub use checklist::{Item, Standing, checklist};
pub use comparison::{Configured, Kind, comparison, configured};
pub use number::counted;
pub use overview::Rows;
pub use prose::{Selection, tasks};

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
fn visible(text: &str) -> String {
    // Unicode does not count marks of writing direction as control characters, and they hide text as well.
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars()
        .flat_map(
            |c| if c.is_control() || turns(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] },
        )
        .collect()
}

/// Text of several sentences, folded to the page.
fn paragraph(text: &str, page: &Page) -> String {
    match page.width {
        Some(width) => textwrap::fill(text, wrapped(usize::from(width))) + "\n",
        None => format!("{text}\n"),
    }
}

/// A line, folded to the page; what follows its first line begins at this column.
fn indented(line: &str, column: usize, page: &Page) -> String {
    match page.width {
        Some(width) => {
            let indent = " ".repeat(column.min(usize::from(width) / 2));
            textwrap::fill(line, wrapped(usize::from(width)).subsequent_indent(&indent)) + "\n"
        }
        None => format!("{line}\n"),
    }
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
    fn control_characters_of_a_name_do_not_reach_the_terminal() {
        assert_eq!(super::visible("a\x1b[31mb µ\u{202e}"), "a\\u{1b}[31mb µ\\u{202e}");
    }
}
