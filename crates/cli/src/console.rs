//! Standard error: messages, and progress on a terminal. A standard error that cannot be written never ends
//! the command.

use crate::terminal;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use punctual_report::{counted, visible};
use punctual_workflow::{Monitor, Progress, Seen, Unit, Watching};
use std::ffi::OsString;
use std::io::{IsTerminal, Write as _, stderr};
use std::time::{Duration, Instant};

/// Prints a line to standard error.
pub fn line(text: &str) {
    let _ = stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Prints a message of this command to standard error.
pub fn message(text: &str) {
    line(&format!("punctual: {}", shown(text)));
}

/// Names of files and of threads may have control characters, which are not to reach the terminal.
fn shown(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Shows what an operation reports.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    quiet: bool,
    shares_terminal: bool,
}

impl Console {
    /// Without hints and progress if `quiet`.
    pub fn new(quiet: bool) -> Console {
        Console { quiet, shares_terminal: false }
    }

    /// While `command` runs, what it prints is on the same terminal: a line about how the observation is
    /// going would end up inside it. Without a command nothing changes.
    pub fn beside(self, command: &[OsString]) -> Console {
        Console { shares_terminal: !command.is_empty(), ..self }
    }

    /// Prints a line unless it is quiet; on a terminal, folded to its width.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            let page = terminal::page_of(&stderr());
            line(punctual_report::paragraph(&shown(text), &page).trim_end());
        }
    }

    fn shows_progress(&self) -> bool {
        !self.quiet && stderr().is_terminal()
    }

    fn shows_status(&self, is_terminal: bool) -> bool {
        !self.quiet && is_terminal && !self.shares_terminal
    }
}

impl Monitor for Console {
    fn warn(&self, text: &str) {
        message(text);
    }

    fn hint(&self, text: &str) {
        if !self.quiet {
            message(text);
        }
    }

    fn begin(&self, activity: &'static str, total: u64, unit: Unit) -> Box<dyn Progress> {
        Box::new(Bar::new(self.shows_progress(), activity, total, unit))
    }

    fn watching(&self, limit: Option<Duration>) -> Box<dyn Watching> {
        Box::new(StatusLine::new(self.shows_status(stderr().is_terminal()), limit))
    }
}

/// A line that says how an observation is going; gone at its end.
struct StatusLine {
    bar: Option<ProgressBar>,
    began: Instant,
    limit: Option<Duration>,
    next: Instant,
}

/// Often enough to look alive, seldom enough to cost nothing.
const EVERY: Duration = Duration::from_millis(200);

impl StatusLine {
    fn new(is_shown: bool, limit: Option<Duration>) -> StatusLine {
        let bar = is_shown.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar
        });
        let began = Instant::now();
        StatusLine { bar, began, limit, next: began }
    }
}

impl Watching for StatusLine {
    fn update(&mut self, seen: &dyn Fn() -> Seen) {
        let Some(bar) = &self.bar else { return };
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        let Seen { summary, lost } = seen();
        bar.set_message(text(now - self.began, self.limit, &summary, lost));
    }
}

impl Drop for StatusLine {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn text(elapsed: Duration, limit: Option<Duration>, progress: &str, lost: u64) -> String {
    let suffix = limit.map(|limit| format!(" of {}", humantime::format_duration(limit))).unwrap_or_default();
    let lost = match lost {
        0 => "nothing lost".to_string(),
        lost => format!("{} LOST", counted(lost, "record")),
    };
    let elapsed = humantime::format_duration(Duration::from_secs(elapsed.as_secs()));
    format!("watching for {elapsed}{suffix}: {progress}, {lost} (Ctrl-C to end)")
}

/// A progress bar with rate and remaining time; gone when dropped.
struct Bar(ProgressBar);

impl Bar {
    fn new(is_shown: bool, activity: &'static str, total: u64, unit: Unit) -> Bar {
        if !is_shown {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
        let template = match unit {
            Unit::Bytes => "{prefix} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            Unit::Activations => {
                "{prefix} {wide_bar} {human_pos} of {human_len} activations, {rate} a second, {eta} left"
            }
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
        }));
        Bar(bar.with_prefix(activity))
    }
}

impl Progress for Bar {
    fn set(&self, done: u64) {
        self.0.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_terminal_to_itself() {
        let console = Console::new(false);
        assert!(console.shows_status(true) && console.beside(&[]).shows_status(true));
        assert!(!console.beside(&["cyclictest".into()]).shows_status(true));
        assert!(!console.shows_status(false) && !Console::new(true).shows_status(true));
    }

    #[test]
    fn names_cannot_write_to_the_terminal() {
        assert_eq!(shown("red\u{1b}[31m.data: one\n  two\r"), "red\\u{1b}[31m.data: one\n  two\\r");
    }

    #[test]
    fn the_status_line_shows_time_progress_and_losses() {
        let line =
            text(Duration::from_millis(3_400), Some(Duration::from_secs(10)), "17 threads, 12,345 jobs", 0);
        assert_eq!(line, "watching for 3s of 10s: 17 threads, 12,345 jobs, nothing lost (Ctrl-C to end)");
        assert!(
            text(Duration::from_secs(90), None, "17 threads", 1)
                .contains("1m 30s: 17 threads, 1 record LOST")
        );
    }
}
