//! Tables without borders: plain text that a person reads and `awk` splits.
//!
//! Where the page has a width, a table fits into it: heads fold first, then columns of words, and what still
//! does not fit is left out and named. Words are never broken.

use crate::figures::{Entry, Fit, Section, Unit};
use crate::{Page, text};
use textwrap::core::display_width;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) right: bool,
    pub(crate) fit: Fit,
}

/// A column of words, aligned left.
pub(crate) const fn words(title: &'static str, fit: Fit) -> Column {
    Column { title, right: false, fit }
}

/// A column of figures, aligned right.
pub(crate) const fn figures(title: &'static str, fit: Fit) -> Column {
    Column { title, right: true, fit }
}

/// What a cell means, for its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Warning,
    Bad,
}

impl Tone {
    /// The SGR code of the colour.
    fn code(self) -> Option<&'static str> {
        match self {
            Tone::Plain => None,
            Tone::Good => Some("32"),
            Tone::Warning => Some("33"),
            Tone::Bad => Some("31"),
        }
    }
}

impl Unit {
    /// A column of values in this unit.
    pub(crate) const fn column(self, title: &'static str, fit: Fit) -> Column {
        Column { title, right: self.is_number(), fit }
    }
}

/// Columns and rows of text.
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<(String, Tone)>>,
}

const GAP: usize = 2;

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// The table as text, followed by a line that names the columns that did not fit.
    pub(crate) fn text(&self, page: &Page) -> String {
        let (mut text, mut left_out) = self.print(page);
        if !left_out.is_empty() {
            left_out.dedup();
            let line = format!("(not shown at this width: {})", left_out.join(", "));
            text += &crate::paragraph(&line, page);
        }
        text
    }

    /// The table as text, and the titles of the columns that did not fit. Columns without content are left
    /// out.
    pub(crate) fn print(&self, page: &Page) -> (String, Vec<&'static str>) {
        let mut shown: Vec<usize> = (0..self.columns.len())
            .filter(|&index| self.rows.iter().any(|row| !row[index].0.is_empty()))
            .collect();
        let mut left_out = Vec::new();
        let Some(limit) = page.width.map(usize::from) else {
            return (self.grid(&shown, &self.natural(&shown), page), left_out);
        };
        loop {
            if let Some(widths) = self.fitted(&shown, limit) {
                return (self.grid(&shown, &widths, page), left_out);
            }
            let order = |index: usize| match self.columns[index].fit {
                Fit::Drop(order) => Some(order),
                Fit::Keep | Fit::Fold => None,
            };
            let Some(last) = shown.iter().filter_map(|&index| order(index)).max() else {
                // Lines that the terminal wraps are better than words cut apart.
                return (self.grid(&shown, &self.natural(&shown), page), left_out);
            };
            let (dropped, kept) = shown.iter().partition(|&&index| order(index) == Some(last));
            let dropped: Vec<usize> = dropped;
            left_out.extend(dropped.iter().map(|&index| self.columns[index].title));
            shown = kept;
        }
    }

    /// Widths at which nothing is folded.
    fn natural(&self, shown: &[usize]) -> Vec<usize> {
        let title = |index: usize| display_width(self.columns[index].title);
        shown.iter().map(|&index| title(index).max(self.widest_cell(index))).collect()
    }

    /// Widths at which the table fits into `limit`; none where it does not.
    fn fitted(&self, shown: &[usize], limit: usize) -> Option<Vec<usize>> {
        let gaps = GAP * shown.len().saturating_sub(1);
        let total = |widths: &[usize]| widths.iter().sum::<usize>() + gaps;
        let natural = self.natural(shown);
        if total(&natural) <= limit {
            return Some(natural);
        }
        let least = |&index: &usize| {
            let head = longest_word(self.columns[index].title);
            match self.columns[index].fit {
                Fit::Fold => head.max(self.longest_word(index)),
                Fit::Keep | Fit::Drop(_) => head.max(self.widest_cell(index)),
            }
        };
        let mut widths: Vec<usize> = shown.iter().map(least).collect();
        let mut spare = limit.checked_sub(total(&widths))?;
        // Columns of words get what is left, the last one first: notes fold worse than names.
        for (at, &index) in shown.iter().enumerate().rev() {
            if self.columns[index].fit == Fit::Fold {
                let more = spare.min(natural[at] - widths[at]);
                widths[at] += more;
                spare -= more;
            }
        }
        Some(widths)
    }

    fn widest_cell(&self, index: usize) -> usize {
        self.rows.iter().map(|row| display_width(&row[index].0)).max().unwrap_or(0)
    }

    fn longest_word(&self, index: usize) -> usize {
        self.rows.iter().map(|row| longest_word(&row[index].0)).max().unwrap_or(0)
    }

    fn grid(&self, shown: &[usize], widths: &[usize], page: &Page) -> String {
        let heads: Vec<Vec<String>> =
            shown.iter().zip(widths).map(|(&index, &width)| fold(self.columns[index].title, width)).collect();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for line in 0..height {
            // Heads stand on the rows.
            let cell = |at: usize| {
                let lines = &heads[at];
                let begin = height - lines.len();
                (line.checked_sub(begin).map_or("", |line| lines[line].as_str()), Some("1"))
            };
            self.line(shown, widths, cell, page, &mut text);
        }
        for row in &self.rows {
            let cells: Vec<Vec<String>> =
                shown.iter().zip(widths).map(|(&index, &width)| fold(&row[index].0, width)).collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
                let cell = |at: usize| {
                    let part = cells[at].get(line).map_or("", String::as_str);
                    (part, row[shown[at]].1.code())
                };
                self.line(shown, widths, cell, page, &mut text);
            }
        }
        text
    }

    fn line<'a>(
        &self,
        shown: &[usize],
        widths: &[usize],
        cell: impl Fn(usize) -> (&'a str, Option<&'static str>),
        page: &Page,
        text: &mut String,
    ) {
        let mut pending = 0;
        for (at, (&index, &width)) in shown.iter().zip(widths).enumerate() {
            let (part, code) = cell(at);
            let padding = width - display_width(part).min(width);
            let (before, after) = if self.columns[index].right { (padding, 0) } else { (0, padding) };
            // Spaces are written only where something follows them.
            if !part.is_empty() {
                text.extend(std::iter::repeat_n(' ', pending + before));
                match code.filter(|_| page.colour) {
                    Some(code) => *text += &format!("\x1b[{code}m{part}\x1b[0m"),
                    None => *text += part,
                }
                pending = after + GAP;
            } else {
                pending += width + GAP;
            }
        }
        text.push('\n');
    }
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(display_width).max().unwrap_or(0)
}

/// Lines of at most `width`; of one word that is longer, as long as that is.
fn fold(text: &str, width: usize) -> Vec<String> {
    if display_width(text) <= width {
        return vec![text.to_owned()];
    }
    textwrap::wrap(text, crate::wrapped(width)).into_iter().map(|line| line.into_owned()).collect()
}

/// A table for the terminal, with a row for each of `rows`.
pub(crate) fn of_figures<'a, S: Section + 'static>(
    list: &'static [Entry<S>],
    rows: impl Iterator<Item = S::Row<'a>>,
) -> Table {
    let rows: Vec<S::Row<'a>> = rows.collect();
    // Columns without a single value are left out.
    let has_value = |entry: &Entry<S>| rows.iter().any(|row| (entry.value)(row).is_some());
    let shown: Vec<(&Entry<S>, Fit)> = list
        .iter()
        .filter(|entry| has_value(entry))
        .filter_map(|entry| Some((entry, entry.figure.table?)))
        .collect();
    let columns: Vec<_> =
        shown.iter().map(|(entry, fit)| entry.figure.unit.column(entry.figure.title, *fit)).collect();
    let mut table = Table::new(&columns);
    for row in &rows {
        let cell = |(entry, _): &(&Entry<S>, Fit)| {
            let tone = if entry.figure.unit == Unit::Notes { Tone::Warning } else { Tone::Plain };
            (text::cell(entry, row), tone)
        };
        table.rows.push(shown.iter().map(cell).collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[
            words("Thread", Fit::Keep),
            figures("Max cost", Fit::Keep),
            figures("Jobs", Fit::Drop(1)),
            words("Notes", Fit::Fold),
        ]);
        let row = |cells: [&str; 4]| cells.map(|cell| (cell.to_owned(), Tone::Plain)).to_vec();
        table.rows = vec![row(["control", "800 µs", "2,000", "nothing lost"]), row(["a", "1 ms", "", ""])];
        table
    }

    fn at(width: Option<u16>) -> String {
        table().text(&Page { width, colour: false })
    }

    #[test]
    fn lines_break_between_words_only() {
        let whole =
            "Thread   Max cost   Jobs  Notes\ncontrol    800 µs  2,000  nothing lost\na            1 ms\n";
        assert_eq!(at(None), whole);
        assert_eq!(at(Some(39)), whole);
        let folded_head =
            "            Max\nThread     cost   Jobs  Notes\ncontrol  800 µs  2,000  nothing lost\n";
        assert!(at(Some(36)).starts_with(folded_head), "{}", at(Some(36)));
        let folded = at(Some(32));
        assert!(folded.contains("2,000  nothing\n") && folded.contains(" lost\n"), "{folded}");
        let dropped = at(Some(25));
        assert!(dropped.ends_with("(not shown at this width:\nJobs)\n"), "{dropped}");
        // Too narrow for anything: lines are long, words are whole.
        assert!(at(Some(10)).contains("control    800 µs  nothing lost\n"), "{}", at(Some(10)));
        for width in 24..60 {
            let text = at(Some(width));
            assert!(text.lines().all(|line| display_width(line) <= usize::from(width)), "{width}\n{text}");
        }
    }

    #[test]
    fn colours_take_no_room() {
        let mut table = table();
        table.rows[0][3].1 = Tone::Warning;
        let text = table.text(&Page { width: None, colour: true });
        assert!(
            text.contains("\x1b[33mnothing lost\x1b[0m\n") && text.starts_with("\x1b[1mThread\x1b[0m   ")
        );
    }
}
