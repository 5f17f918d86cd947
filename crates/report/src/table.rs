//! Tables without borders: plain text that a person reads and `awk` splits.
//!
//! Where the page has a width, a table fits into it: remarks go below their rows first, then heads fold, then
//! columns of words, and what still does not fit is left out and named. Words are never broken.

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

/// What a remark below its row begins with.
const REMARK: &str = "    ";

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// The table as text, followed by a line that names the columns that did not fit.
    pub(crate) fn text(&self, page: &Page) -> String {
        let (mut text, left_out) = self.print(page);
        if !left_out.is_empty() {
            let line = format!("(not shown at this width: {})", left_out.join(", "));
            text += &crate::paragraph(&line, page);
        }
        text
    }

    /// The table as text, and the titles of the columns that did not fit. Columns without content are left
    /// out.
    pub(crate) fn print(&self, page: &Page) -> (String, Vec<&'static str>) {
        let filled: Vec<usize> = (0..self.columns.len())
            .filter(|&index| self.rows.iter().any(|row| !row[index].0.is_empty()))
            .collect();
        let Some(limit) = page.width.map(usize::from) else {
            return (self.grid(&filled, &self.natural(&filled), &[], page), Vec::new());
        };
        if self.width(&self.natural(&filled)) <= limit {
            return (self.grid(&filled, &self.natural(&filled), &[], page), Vec::new());
        }
        let (below, beside): (Vec<usize>, Vec<usize>) =
            filled.iter().partition(|&&index| self.columns[index].fit == Fit::Below);
        let shown = self.chosen(&beside, limit);
        // Lines that the terminal wraps are better than words cut apart.
        let widths = self.fitted(&shown, limit).unwrap_or_else(|| self.natural(&shown));
        let mut left_out = Vec::new();
        for &index in beside.iter().filter(|index| !shown.contains(index)) {
            let title = self.columns[index].title;
            left_out.extend((!left_out.contains(&title)).then_some(title));
        }
        (self.grid(&shown, &widths, &below, page), left_out)
    }

    /// The columns that fit: those of the highest order go first, until the others fit; of those that went,
    /// the ones that fit nevertheless come back.
    fn chosen(&self, all: &[usize], limit: usize) -> Vec<usize> {
        let order = |index: usize| match self.columns[index].fit {
            Fit::Drop(order) => Some(order),
            Fit::Keep | Fit::Fold | Fit::Below => None,
        };
        let (mut shown, mut dropped) = (all.to_vec(), Vec::new());
        while self.fitted(&shown, limit).is_none() {
            let Some(last) = shown.iter().filter_map(|&index| order(index)).max() else { return shown };
            shown.retain(|&index| order(index) != Some(last));
            dropped.push(last);
        }
        for last in dropped.into_iter().rev() {
            let is_shown = |index: &usize| shown.contains(index) || order(*index) == Some(last);
            let more: Vec<usize> = all.iter().copied().filter(is_shown).collect();
            if self.fitted(&more, limit).is_some() {
                shown = more;
            }
        }
        shown
    }

    /// The width of all columns, with the gaps between them.
    fn width(&self, widths: &[usize]) -> usize {
        widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    /// Widths at which nothing is folded.
    fn natural(&self, shown: &[usize]) -> Vec<usize> {
        let title = |index: usize| display_width(self.columns[index].title);
        shown.iter().map(|&index| title(index).max(self.widest_cell(index))).collect()
    }

    /// Widths at which the table fits into `limit`; none where it does not.
    fn fitted(&self, shown: &[usize], limit: usize) -> Option<Vec<usize>> {
        let natural = self.natural(shown);
        if self.width(&natural) <= limit {
            return Some(natural);
        }
        let least = |&index: &usize| {
            let head = longest_word(self.columns[index].title);
            match self.columns[index].fit {
                Fit::Fold => head.max(self.longest_word(index)),
                Fit::Keep | Fit::Drop(_) | Fit::Below => head.max(self.widest_cell(index)),
            }
        };
        let mut widths: Vec<usize> = shown.iter().map(least).collect();
        let mut spare = limit.checked_sub(self.width(&widths))?;
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

    /// Rows with the columns `shown`, and below each row what the columns `below` have of it.
    fn grid(&self, shown: &[usize], widths: &[usize], below: &[usize], page: &Page) -> String {
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
            // A row may have only what stands below it.
            let is_empty = !below.is_empty() && shown.iter().all(|&index| row[index].0.is_empty());
            let height = if is_empty { 0 } else { cells.iter().map(Vec::len).max().unwrap_or(0) };
            for line in 0..height {
                let cell = |at: usize| {
                    let part = cells[at].get(line).map_or("", String::as_str);
                    (part, row[shown[at]].1.code())
                };
                self.line(shown, widths, cell, page, &mut text);
            }
            for (remarks, tone) in below.iter().map(|&index| &row[index]).filter(|(it, _)| !it.is_empty()) {
                let line = crate::indented(&format!("{REMARK}{remarks}"), REMARK.len(), page);
                line.lines().for_each(|line| text += &(coloured(line, *tone, page) + "\n"));
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
                    Some(code) => *text += &in_colour(part, code),
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

fn in_colour(text: &str, code: &str) -> String {
    format!("\x1b[{code}m{text}\x1b[0m")
}

fn coloured(text: &str, tone: Tone, page: &Page) -> String {
    tone.code().filter(|_| page.colour).map_or_else(|| text.to_owned(), |code| in_colour(text, code))
}

fn longest_word(text: &str) -> usize {
    crate::joined(text).split(' ').map(display_width).max().unwrap_or(0)
}

/// Lines of at most `width`; of one word that is longer, as long as that is.
fn fold(text: &str, width: usize) -> Vec<String> {
    if display_width(text) <= width {
        return vec![text.to_owned()];
    }
    crate::folded(text, crate::wrapped(width))
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
    fn remarks_that_do_not_fit_stand_below_their_rows() {
        let mut table = table();
        table.columns[3].fit = Fit::Below;
        table.rows[0][3].1 = Tone::Warning;
        let at = |width| table.text(&Page { width: Some(width), colour: false });
        assert_eq!(at(39), super::tests::at(None), "they fit");
        let below =
            "Thread   Max cost   Jobs\ncontrol    800 µs  2,000\n    nothing lost\na            1 ms\n";
        assert_eq!((at(37).as_str(), at(24).as_str()), (below, below));
        let coloured = table.text(&Page { width: Some(30), colour: true });
        assert!(coloured.contains("\n\x1b[33m    nothing lost\x1b[0m\n"), "{coloured:?}");
    }

    /// Where a wide column went, a narrow one that went before it may fit again.
    #[test]
    fn columns_come_back_where_there_is_room() {
        let mut table = Table::new(&[
            words("Thread", Fit::Keep),
            figures("Jobs", Fit::Drop(2)),
            words("Separator", Fit::Drop(1)),
        ]);
        let row = ["control", "2,000", "clock_nanosleep absolute"];
        table.rows = vec![row.map(|cell| (cell.to_owned(), Tone::Plain)).to_vec()];
        let (text, left_out) = table.print(&Page { width: Some(30), colour: false });
        assert_eq!((text.as_str(), left_out), ("Thread    Jobs\ncontrol  2,000\n", vec!["Separator"]));
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
