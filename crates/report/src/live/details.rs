//! The pages about one thread.

use super::draw::{Ink, pad, within};
use super::{Counts, Details, LiveJob, Tab};
use crate::figures::{LIVE_JOBS, Unit};
use crate::number::{at_most, count, counted};
use crate::text;
use punctual_model::Duration;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use textwrap::core::display_width;

/// Fewest and most bars of a histogram.
const BARS: (usize, usize) = (4, 20);
/// The least width of a histogram beside others.
const BESIDE: usize = 26;

/// The lines of a page, for an area of this size.
pub(super) fn lines(
    details: &Details,
    tab: Tab,
    width: usize,
    height: usize,
    ink: Ink,
) -> Vec<Line<'static>> {
    match tab {
        Tab::Times => times(details, width, height, ink),
        Tab::Jobs => jobs(&details.jobs, ink),
        Tab::Description => description(&details.description, width),
        Tab::Causes => {
            let unseen = "Not observed. punctual top --causes explains late jobs.";
            description(details.causes.as_deref().unwrap_or(unseen), width)
        }
    }
}

/// The names of the pages, with the chosen one marked.
pub(super) fn tabs(chosen: Tab) -> Line<'static> {
    let mut spans = Vec::new();
    for tab in Tab::ALL {
        let style = if tab == chosen { Modifier::REVERSED } else { Modifier::empty() };
        spans.extend([Span::styled(format!(" {} ", tab.title()), style), Span::from(" ")]);
    }
    Line::from(spans)
}

fn times(details: &Details, width: usize, height: usize, ink: Ink) -> Vec<Line<'static>> {
    let all = [("Response", &details.response), ("Cost", &details.cost), ("Lateness", &details.lateness)];
    let each = (width + 1) / all.len();
    if each < BESIDE {
        // A title and a blank line belong to each.
        let bars = (height / all.len()).saturating_sub(2).clamp(BARS.0, BARS.1);
        return all.iter().flat_map(|(title, counts)| histogram(title, counts, bars, width, ink)).collect();
    }
    let bars = height.saturating_sub(1).clamp(BARS.0, BARS.1);
    let columns = all.map(|(title, counts)| histogram(title, counts, bars, each - 1, ink));
    let line = |number: usize| {
        let mut spans = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let line = column.get(number).cloned().unwrap_or_default();
            let gap = ((place + 1) * each).saturating_sub(place * each + line.width());
            let style = line.style;
            spans.extend(line.spans.into_iter().map(|span| span.patch_style(style)));
            spans.push(Span::from(" ".repeat(gap)));
        }
        Line::from(spans)
    };
    (0..=bars).map(line).collect()
}

/// A bar is as long as it is frequent; the longest ends at the right edge.
fn histogram(title: &str, counts: &Counts, bars: usize, width: usize, ink: Ink) -> Vec<Line<'static>> {
    let number = counts.iter().map(|(_, number)| number).sum();
    let heading = within(&format!("{title} of {}", counted(number, "job")), width);
    let mut lines = vec![Line::from(heading).style(Modifier::BOLD)];
    let bars = binned(counts, bars);
    let most = bars.iter().map(|(_, number)| *number).max().unwrap_or(0).max(1);
    let cells: Vec<(String, String)> = bars
        .iter()
        .map(|(end, number)| (format!("≤ {}", at_most(Duration::from_ns(*end))), count(*number)))
        .collect();
    let widest = |of: fn(&(String, String)) -> &String| {
        cells.iter().map(|cell| display_width(of(cell))).max().unwrap_or(0)
    };
    let (ends, numbers) = (widest(|cell| &cell.0), widest(|cell| &cell.1));
    let room = width.saturating_sub(ends + numbers + 2).max(1);
    for ((end, number), (_, times)) in cells.iter().zip(&bars) {
        let eighths = (u128::from(*times) * room as u128 * 8).div_ceil(u128::from(most)) as usize;
        lines.push(Line::from(vec![
            Span::from(format!("{} {} ", pad(end, ends, true), pad(number, numbers, true))),
            ink.good(&bar(eighths)),
        ]));
    }
    lines.push(Line::default());
    lines
}

/// A bar of so many eighths of a cell.
fn bar(eighths: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// Buckets of equal width from the least to the greatest time; of equal ratio where those are far apart. Each
/// has its greatest time.
fn binned(counts: &Counts, bins: usize) -> Vec<(u64, u64)> {
    let (Some((least, _)), Some((greatest, _))) = (counts.first(), counts.last()) else { return Vec::new() };
    let (least, greatest) = (*least as f64, *greatest as f64);
    let is_wide = greatest > 20.0 * least;
    // What is much less than the greatest is in the first bucket.
    let least = if is_wide { least.max(greatest / 4096.0) } else { least };
    let end = |bin: usize| {
        let share = (bin + 1) as f64 / bins as f64;
        match is_wide {
            true => least * (greatest / least).powf(share),
            false => least + (greatest - least) * share,
        }
    };
    let mut ends: Vec<u64> = (0..bins).map(|bin| end(bin).round() as u64).collect();
    if let (Some(last), Some((greatest, _))) = (ends.last_mut(), counts.last()) {
        *last = *greatest;
    }
    ends.dedup();
    let mut rest = counts.as_slice();
    let in_bin = |end: u64| {
        let inside = rest.iter().take_while(|(time, _)| *time <= end).count();
        let number = rest[..inside].iter().map(|(_, number)| number).sum();
        rest = &rest[inside..];
        (end, number)
    };
    ends.into_iter().map(in_bin).collect()
}

fn jobs(jobs: &[LiveJob], ink: Ink) -> Vec<Line<'static>> {
    let cells: Vec<Vec<String>> =
        jobs.iter().map(|job| LIVE_JOBS.iter().map(|entry| text::cell(entry, job)).collect()).collect();
    let width = |column: usize| {
        let title = display_width(LIVE_JOBS[column].figure.title);
        cells.iter().map(|row| display_width(&row[column])).max().unwrap_or(0).max(title)
    };
    let widths: Vec<usize> = (0..LIVE_JOBS.len()).map(width).collect();
    let line = |texts: Vec<&str>| {
        let cells = texts.iter().zip(LIVE_JOBS).zip(&widths).map(|((text, entry), width)| {
            let right = entry.figure.unit.is_number() || entry.figure.unit == Unit::Instant;
            pad(text, *width, right)
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head = line(LIVE_JOBS.iter().map(|entry| entry.figure.title).collect());
    let mut lines = vec![Line::from(head).style(Modifier::BOLD)];
    for (job, row) in jobs.iter().zip(&cells) {
        let text = line(row.iter().map(String::as_str).collect());
        lines.push(if job.is_late { Line::from(ink.bad(&text)) } else { Line::from(text) });
    }
    if jobs.is_empty() {
        lines.push(Line::from("No job has ended yet."));
    }
    lines
}

fn description(text: &str, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let indented = line.starts_with(' ');
        let text = within(line, width);
        let style = if indented || line.is_empty() { Modifier::empty() } else { Modifier::BOLD };
        lines.push(Line::from(text).style(style));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_one_bar() {
        let near: Counts = (0..100).map(|n| (1_000_000 + n * 1_000, n + 1)).collect();
        let far: Counts = vec![(0, 3), (900, 1), (1_000_000, 5), (70_000_000, 1)];
        for counts in [near, far, vec![(5_000, 7)], vec![(0, 2)]] {
            for bins in [1, 4, 7] {
                let bars = binned(&counts, bins);
                let all: u64 = counts.iter().map(|(_, number)| number).sum();
                assert_eq!(bars.iter().map(|(_, number)| number).sum::<u64>(), all, "{bars:?}");
                assert_eq!(bars.last().map(|(end, _)| end), counts.last().map(|(time, _)| time));
                assert!(bars.is_sorted() && bars.len() <= bins, "{bars:?}");
            }
        }
        assert_eq!(binned(&Vec::new(), 4), []);
    }

    #[test]
    fn bars_end_between_cells() {
        assert_eq!([0, 1, 8, 12].map(bar), ["", "▏", "█", "█▌"]);
    }
}
