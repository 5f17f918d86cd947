//! Standard output as a terminal: its width, and whether it shows colours.

use punctual_report::Page;
use rustix::termios::tcgetwinsize;
use std::io::{IsTerminal, stdout};
use std::os::fd::AsFd;

/// The page for text on standard output. Colours only on a terminal that is not dumb, and not if NO_COLOR is
/// set (no-color.org).
pub fn page() -> Page {
    page_of(&stdout())
}

/// The page for text on another stream.
pub fn page_of(out: &(impl IsTerminal + AsFd)) -> Page {
    if !out.is_terminal() {
        return Page::default();
    }
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    Page {
        // A terminal may know its width but not its height (0 rows).
        width: tcgetwinsize(out).ok().map(|size| size.ws_col).filter(|width| *width > 0),
        colour: !refused && !dumb,
    }
}
