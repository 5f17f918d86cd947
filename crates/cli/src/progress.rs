//! The progress line: on a terminal only, and gone when the observation ends.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use punctual_extract::Progress;
use punctual_report::counted;
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
            bar.set_style(ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        });
        let began = Instant::now();
        Line { bar, began, limit, next: began }
    }

    /// Shows how far it has come; `lost` is asked only when the line is drawn.
    pub fn update(&mut self, progress: Progress, lost: impl FnOnce() -> u64) {
        let Some(bar) = &self.bar else { return };
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        bar.set_message(text(now - self.began, self.limit, progress, lost()));
    }

    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn text(elapsed: Duration, limit: Option<Duration>, progress: Progress, lost: u64) -> String {
    let of = limit.map(|limit| format!(" of {}", humantime::format_duration(limit))).unwrap_or_default();
    let lost = match lost {
        0 => "nothing lost".to_string(),
        lost => format!("{} LOST", counted(lost, "record")),
    };
    format!(
        "watching for {}{of}: {}, {}, {lost} (Ctrl-C ends)",
        humantime::format_duration(Duration::from_secs(elapsed.as_secs())),
        counted(progress.threads as u64, "thread"),
        counted(progress.jobs, "job"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_has_come() {
        let progress = Progress { threads: 17, jobs: 12_345, gaps: 0, omitted: 0 };
        let line = text(Duration::from_millis(3_400), Some(Duration::from_secs(10)), progress, 0);
        assert_eq!(line, "watching for 3s of 10s: 17 threads, 12,345 jobs, nothing lost (Ctrl-C ends)");
        assert!(text(Duration::from_secs(90), None, progress, 1).contains("1m 30s: 17 threads, 12,345 jobs, 1 record LOST"));
    }
}
