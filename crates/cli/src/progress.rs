//! Progress lines: on a terminal only, and gone when what they are about ends.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use punctual_report::counted;
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// The terminal's line, or nothing.
pub struct Line {
    bar: Option<ProgressBar>,
    began: Instant,
    limit: Option<Duration>,
    next: Instant,
}

/// Often enough to look alive, seldom enough to cost nothing.
const EVERY: Duration = Duration::from_millis(200);

impl Line {
    pub fn new(quiet: bool, limit: Option<Duration>) -> Line {
        let bar = (!quiet && stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_spinner()),
            );
            bar
        });
        let began = Instant::now();
        Line { bar, began, limit, next: began }
    }

    /// Shows how far it has come and how many records were lost; asked only when the line is drawn.
    pub fn update(&mut self, progress: impl FnOnce() -> (String, u64)) {
        let Some(bar) = &self.bar else { return };
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        let (progress, lost) = progress();
        bar.set_message(text(now - self.began, self.limit, &progress, lost));
    }

    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn text(elapsed: Duration, limit: Option<Duration>, progress: &str, lost: u64) -> String {
    let of = limit.map(|limit| format!(" of {}", humantime::format_duration(limit))).unwrap_or_default();
    let lost = match lost {
        0 => "nothing lost".to_string(),
        lost => format!("{} LOST", counted(lost, "record")),
    };
    let elapsed = humantime::format_duration(Duration::from_secs(elapsed.as_secs()));
    format!("watching for {elapsed}{of}: {progress}, {lost} (Ctrl-C ends)")
}

/// The bar of something whose length is known, with its rate and the time that is left; on a terminal only.
pub struct Bar(ProgressBar);

impl Bar {
    /// `unit` is what is counted, as a plural.
    pub fn new(quiet: bool, what: &'static str, length: u64, unit: &str) -> Bar {
        if quiet || !stderr().is_terminal() {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(5));
        let template = match unit {
            "bytes" => "{prefix} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left".to_owned(),
            unit => format!(
                "{{prefix}} {{wide_bar}} {{human_pos}} of {{human_len}} {unit}, {{rate}} a second, {{eta}} left"
            ),
        };
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
            let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
        }));
        Bar(bar.with_prefix(what))
    }

    pub fn set(&self, position: u64) {
        self.0.set_position(position);
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
    fn the_line_says_how_far_it_has_come() {
        let line =
            text(Duration::from_millis(3_400), Some(Duration::from_secs(10)), "17 threads, 12,345 jobs", 0);
        assert_eq!(line, "watching for 3s of 10s: 17 threads, 12,345 jobs, nothing lost (Ctrl-C ends)");
        assert!(
            text(Duration::from_secs(90), None, "17 threads", 1)
                .contains("1m 30s: 17 threads, 1 record LOST")
        );
    }
}
