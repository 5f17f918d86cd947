//! Draws a screen: a head of two lines, the body, a line of keys.

use super::columns::{Column, GAP, Widths};
use super::{Body, Foot, Head, LiveTask, Screen, Tasks, Trend, details, help};
use crate::figures::{LIVE, Value, trend_title};
use crate::number::{count, counted};
use crate::{text, visible};
use punctual_model::Duration;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use textwrap::core::display_width;

/// Lines of the head.
const HEAD: u16 = 2;

/// How many threads fit on a screen of so many lines, or lines of a page about one.
pub fn rows_on(height: u16) -> usize {
    usize::from(height.saturating_sub(HEAD + 2))
}

/// The colours, or what stands for them.
#[derive(Clone, Copy)]
pub(super) struct Ink {
    pub colour: bool,
}

impl Ink {
    fn tinted(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    pub fn good(self, text: &str) -> Span<'static> {
        Span::styled(text.to_owned(), self.tinted(Color::Green))
    }

    fn warning(self) -> Style {
        self.tinted(Color::Yellow)
    }

    fn alarm(self) -> Style {
        self.tinted(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub fn bad(self, text: &str) -> Span<'static> {
        Span::styled(text.to_owned(), self.alarm())
    }

    fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

/// Draws a screen on all of a buffer.
pub fn draw(screen: &Screen<'_>, widths: &mut Widths, buffer: &mut Buffer) {
    let area = buffer.area;
    let ink = Ink { colour: screen.colour };
    let mut lines = head(screen, ink);
    let (width, height) = (usize::from(area.width), rows_on(area.height));
    match &screen.body {
        Body::Tasks(tasks) => lines.extend(table(tasks, widths, area.width, ink)),
        Body::Details(of, tab, from) => {
            lines.push(details::tabs(*tab));
            lines.extend(page(details::lines(of, *tab, width, height, ink), *from, height));
        }
        Body::Help(from) => {
            lines.push(Line::from(" Help ").style(Modifier::REVERSED));
            lines.extend(page(help::lines(width), *from, height));
        }
    }
    for (y, line) in (area.y..area.bottom().saturating_sub(1)).zip(&lines) {
        buffer.set_line(area.x, y, line, area.width);
    }
    let last = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
    if last.height > 0 && area.height > 1 {
        buffer.set_line(last.x, last.y, &foot(screen, width), last.width);
    }
}

/// How many lines the page on the screen has, if it is wide and high like this.
pub fn lines(screen: &Screen<'_>, width: u16, height: usize) -> usize {
    let (width, ink) = (usize::from(width), Ink { colour: false });
    match &screen.body {
        Body::Tasks(tasks) => tasks.total,
        Body::Details(of, tab, _) => details::lines(of, *tab, width, height, ink).len(),
        Body::Help(_) => help::lines(width).len(),
    }
}

/// The lines from `from` on; the last page is a whole one.
fn page(lines: Vec<Line<'static>>, from: usize, height: usize) -> Vec<Line<'static>> {
    let from = from.min(lines.len().saturating_sub(height));
    lines.into_iter().skip(from).take(height).collect()
}

fn head(screen: &Screen<'_>, ink: Ink) -> Vec<Line<'static>> {
    let Head { target, observed, threads, jobs, lost, untracked, is_frozen, has_ended } = screen.head;
    let mut first = vec![Span::styled("punctual top", Modifier::BOLD)];
    for (is_so, what) in [(*is_frozen, "FROZEN"), (*has_ended, "ENDED")] {
        if is_so {
            first.extend([Span::from("  "), Span::styled(format!(" {what} "), Modifier::REVERSED)]);
        }
    }
    first.push(Span::from(format!("  {target}")));
    let mut second = vec![Span::from(format!(
        "{}, {}, {}, ",
        seconds(*observed),
        counted(*threads, "thread"),
        counted(*jobs, "job")
    ))];
    second.push(match lost {
        0 => Span::from("nothing lost"),
        lost => ink.bad(&format!("{} LOST", counted(*lost, "record"))),
    });
    if *untracked > 0 {
        second.push(ink.bad(&format!(", {} NOT WATCHED", counted(*untracked, "thread"))));
    }
    match &screen.body {
        Body::Tasks(tasks) => second.extend(shown(tasks)),
        Body::Details(details, ..) => {
            let LiveTask { name, tid, pid, .. } = &details.task;
            let gone = if details.task.has_ended { ", which has ended" } else { "" };
            second = vec![
                Span::styled(visible(name), Modifier::BOLD),
                Span::from(format!(" (thread {tid} of process {pid}{gone})")),
            ];
        }
        Body::Help(_) => {}
    }
    vec![Line::from(first), Line::from(second)]
}

/// What is left out of the list, and where in it the screen is.
fn shown(tasks: &Tasks<'_>) -> Vec<Span<'static>> {
    let mut text = String::new();
    if !tasks.filter.is_empty() {
        text += &format!("; only those with '{}'", visible(tasks.filter));
    }
    if tasks.without_jobs > 0 {
        text += &format!("; {} without jobs hidden", count(tasks.without_jobs as u64));
    }
    if tasks.total > tasks.rows.len() {
        let last = tasks.above + tasks.rows.len();
        text += &format!("; {} to {last} of {}", tasks.above + 1, count(tasks.total as u64));
    }
    vec![Span::from(text)]
}

/// Whole seconds, minutes and hours: `1 h 02 min 03 s`.
fn seconds(time: Duration) -> String {
    let seconds = time.ns() / 1_000_000_000;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, s) => format!("{h} h {m:02} min {s:02} s"),
    }
}

fn table(tasks: &Tasks<'_>, widths: &mut Widths, screen: u16, ink: Ink) -> Vec<Line<'static>> {
    let cells: Vec<Vec<String>> =
        tasks.rows.iter().map(|row| LIVE.iter().map(|entry| text::cell(entry, row)).collect()).collect();
    let has_bounds = tasks.rows.iter().any(|row| row.bound.is_some());
    let widest = |figure: usize| {
        if LIVE[figure].figure.field == "of_bound" && !has_bounds {
            return 0;
        }
        // Room for the mark of the order.
        let title = display_width(LIVE[figure].figure.title) + usize::from(figure == tasks.sorted_by);
        cells.iter().map(|row| display_width(&row[figure])).max().unwrap_or(0).max(title)
    };
    widths.widen(screen, &(0..LIVE.len()).map(widest).collect::<Vec<_>>());
    let (columns, trend) = widths.columns(tasks.sorted_by);
    let mut lines = vec![titles(tasks, &columns, trend)];
    for (number, (task, cells)) in tasks.rows.iter().zip(&cells).enumerate() {
        let mut spans = Vec::new();
        for column in &columns {
            let entry = column.entry();
            let text = pad(&cells[column.figure], column.width, entry.figure.unit.is_number());
            let tone = tone(entry.figure.field, (entry.value)(task), ink);
            spans.extend([Span::styled(text, tone), Span::from(" ".repeat(GAP))]);
        }
        spans.push(ink.good(&sparkline(task, tasks.trend, trend)));
        let mut line = Line::from(spans);
        if task.has_ended {
            line = line.patch_style(ink.faint());
        }
        if tasks.selected == Some(number) {
            let text = line.to_string();
            let rest = usize::from(screen).saturating_sub(display_width(&text));
            line.push_span(" ".repeat(rest));
            line = line.patch_style(Modifier::REVERSED);
        }
        lines.push(line);
    }
    if tasks.rows.is_empty() {
        lines.push(Line::from(match (tasks.filter.is_empty(), tasks.without_jobs) {
            (false, _) => "No thread matches the filter; Esc shows all.",
            (true, 0) => "No thread has run yet.",
            (true, _) => "No thread has had two jobs yet; a shows the others.",
        }));
    }
    lines
}

fn titles(tasks: &Tasks<'_>, columns: &[Column], trend: usize) -> Line<'static> {
    let mut text = String::new();
    for column in columns {
        let figure = column.entry().figure;
        let mark = match (column.figure == tasks.sorted_by, tasks.is_descending) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        text += &pad(&format!("{}{mark}", figure.title), column.width, figure.unit.is_number());
        text += &" ".repeat(GAP);
    }
    text += &within(&pad(trend_title(tasks.trend), trend, false), trend);
    Line::from(text).style(Modifier::BOLD | Modifier::UNDERLINED)
}

/// Red where a deadline was missed, yellow where little is left.
fn tone(field: &str, value: Option<Value>, ink: Ink) -> Style {
    match (field, value) {
        ("late", Some(Value::Count(late))) if late > 0 => ink.alarm(),
        ("of_deadline" | "of_bound", Some(Value::Share(share))) if share > 10_000 => ink.alarm(),
        ("of_deadline", Some(Value::Share(share))) if share > 8_000 => ink.warning(),
        _ => Style::new(),
    }
}

/// The last seconds, the present one at the right; as high as the greatest of them.
fn sparkline(task: &LiveTask, trend: Trend, width: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let times = match trend {
        Trend::Response => &task.responses,
        Trend::Cost => &task.costs,
    };
    let times = &times[times.len().saturating_sub(width)..];
    let greatest = times.iter().flatten().map(|time| time.ns()).max().unwrap_or(0).max(1);
    let height = |time: &Option<Duration>| match time {
        Some(time) => HEIGHTS[(u128::from(time.ns()) * 7 / u128::from(greatest)) as usize],
        None => ' ',
    };
    let drawn: String = times.iter().map(height).collect();
    pad(&drawn, width, true)
}

fn foot(screen: &Screen<'_>, width: usize) -> Line<'static> {
    let keys = match &screen.body {
        Body::Tasks(_) => "? help  / filter  ←→ sort  Enter details  Space freeze  s save  q quit",
        Body::Details(..) => "Esc back  Tab next page  ↑↓ scroll  Space freeze  s save  q quit",
        Body::Help(_) => "Esc back  ↑↓ scroll  q quit",
    };
    match screen.foot {
        Foot::Keys => Line::from(within(keys, width)).style(Modifier::DIM),
        Foot::Message(text) => Line::from(within(&visible(text), width)).style(Modifier::BOLD),
        Foot::Filter(text) => Line::from(vec![
            Span::styled("filter: ", Modifier::BOLD),
            Span::from(visible(text)),
            Span::styled(" ", Modifier::REVERSED),
        ]),
    }
}

/// Text filled with spaces to a width.
pub(super) fn pad(text: &str, width: usize, right: bool) -> String {
    let spaces = " ".repeat(width.saturating_sub(display_width(text)));
    if right { spaces + text } else { text.to_owned() + &spaces }
}

/// The beginning of a text that fits into a width; what is cut off is marked.
pub(super) fn within(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if display_width(&kept) + 2 > width {
            break;
        }
        kept.push(c);
    }
    if width > 0 { kept + "…" } else { kept }
}
