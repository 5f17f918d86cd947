//! What keys and figures mean.

use crate::figures::{LIVE, LIVE_JOBS};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

/// Every key, and what it does.
pub const KEYS: &[(&str, &str)] = &[
    ("↑ ↓ PgUp PgDn Home End", "select a thread, or scroll; also j, k"),
    ("Enter", "details of the selected thread; Esc goes back"),
    ("Tab", "the next page of the details: times, recent jobs, description"),
    ("← →", "sort by another column; also < and >"),
    ("r", "reverse the order"),
    ("/", "show only threads whose name or TID contains what is typed; Esc shows all again"),
    ("a", "show threads with fewer than two jobs, too"),
    ("t", "draw costs instead of response times, and back"),
    ("Space", "freeze what is shown, and go on; the observation goes on meanwhile"),
    ("s", "save the timing model of what was observed so far"),
    ("?", "this help; also h and F1"),
    ("q", "quit; also Ctrl-C"),
];

/// The text of the help, in lines of this width.
pub(super) fn lines(width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![heading("Keys")];
    lines.extend(KEYS.iter().flat_map(|(key, meaning)| entry(key, meaning, width)));
    for (title, figures) in [
        ("Columns", LIVE.iter().map(|entry| entry.figure).collect::<Vec<_>>()),
        ("Columns of recent jobs", LIVE_JOBS.iter().map(|entry| entry.figure).collect()),
    ] {
        lines.extend([Line::default(), heading(title)]);
        lines.extend(figures.iter().flat_map(|figure| entry(figure.title, figure.meaning, width)));
    }
    lines
}

fn heading(text: &'static str) -> Line<'static> {
    Line::from(Span::from(text)).style(Modifier::BOLD)
}

const INDENT: usize = 24;

fn entry(what: &str, meaning: &str, width: usize) -> Vec<Line<'static>> {
    let indent = if width >= 60 { INDENT } else { 2 };
    let options = crate::wrapped(width.max(indent + 20).saturating_sub(indent));
    let folded = crate::folded(meaning, options);
    let gap = indent.saturating_sub(textwrap::core::display_width(what)).max(1);
    let mut lines = Vec::new();
    let mut folded = folded.into_iter();
    if indent == INDENT {
        lines.push(Line::from(format!("{what}{}{}", " ".repeat(gap), folded.next().unwrap_or_default())));
    } else {
        lines.push(Line::from(what.to_owned()));
    }
    lines.extend(folded.map(|line| Line::from(format!("{}{line}", " ".repeat(indent)))));
    lines
}
