//! What standard output is: how wide, and whether it shows colours.

use punctual_report::Page;
use std::io::{IsTerminal, stdout};

/// The page that standard output is. Colours only on a terminal, and not where NO_COLOR says no
/// (no-color.org) or it is a dumb one.
pub fn page() -> Page {
    let out = stdout();
    if !out.is_terminal() {
        return Page::default();
    }
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    Page {
        width: terminal_size::terminal_size_of(&out).map(|(width, _)| width.0).filter(|width| *width > 0),
        colour: !refused && !dumb,
    }
}
