//! Tables without borders: plain text that a person reads and `awk` splits, folded to the page's width where
//! there is one.

use crate::Page;
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table as Grid, Width,
    presets,
};

/// How a column behaves where the page is narrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Always whole.
    Keep,
    /// Its words may go over several lines.
    Fold,
    /// Left out, the highest number first.
    Drop(u8),
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) right: bool,
    pub(crate) fit: Fit,
}

/// Words, to the left.
pub(crate) const fn words(title: &'static str, fit: Fit) -> Column {
    Column { title, right: false, fit }
}

/// Figures, to the right.
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

    /// The table as text, and the titles of the columns that did not fit. Columns without any content are
    /// left out.
    pub(crate) fn print(&self, page: &Page) -> (String, Vec<&'static str>) {
        let mut shown: Vec<usize> = (0..self.columns.len())
            .filter(|&index| self.rows.iter().any(|row| !row[index].0.is_empty()))
            .collect();
        let mut left_out = Vec::new();
        while page.width.is_some_and(|width| self.least_width(&shown) > usize::from(width)) {
            let droppable = |&index: &usize| match self.columns[index].fit {
                Fit::Drop(order) => Some((order, index)),
                Fit::Keep | Fit::Fold => None,
            };
            let Some((_, index)) = shown.iter().filter_map(droppable).max() else {
                // Nothing more to leave out: a line that the terminal wraps is better than words cut apart.
                return (self.grid(&shown, &Page { width: None, ..*page }), left_out);
            };
            shown.retain(|&kept| kept != index);
            left_out.push(self.columns[index].title);
        }
        (self.grid(&shown, page), left_out)
    }

    fn least_width(&self, shown: &[usize]) -> usize {
        let natural = self.layout(shown).column_max_content_widths();
        let least = shown.iter().zip(natural).map(|(&index, width)| match self.columns[index].fit {
            Fit::Fold => self.longest_word(index),
            Fit::Keep | Fit::Drop(_) => usize::from(width),
        });
        least.sum::<usize>() + GAP * shown.len().saturating_sub(1)
    }

    fn longest_word(&self, index: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[index].0.as_str()).chain([self.columns[index].title]);
        cells.flat_map(str::split_whitespace).map(|word| word.chars().count()).max().unwrap_or(0)
    }

    fn layout(&self, shown: &[usize]) -> Grid {
        let mut grid = Grid::new();
        grid.load_preset(presets::NOTHING);
        grid.set_header(
            shown.iter().map(|&index| Cell::new(self.columns[index].title).add_attribute(Attribute::Bold)),
        );
        for row in &self.rows {
            grid.add_row(shown.iter().map(|&index| {
                let (text, tone) = &row[index];
                match tone {
                    Tone::Plain => Cell::new(text),
                    Tone::Good => Cell::new(text).fg(Color::Green),
                    Tone::Warning => Cell::new(text).fg(Color::Yellow),
                    Tone::Bad => Cell::new(text).fg(Color::Red),
                }
            }));
        }
        grid
    }

    fn grid(&self, shown: &[usize], page: &Page) -> String {
        let mut grid = self.layout(shown);
        if page.colour {
            grid.enforce_styling();
        } else {
            grid.force_no_tty();
        }
        grid.set_content_arrangement(match page.width {
            Some(_) => ContentArrangement::Dynamic,
            None => ContentArrangement::Disabled,
        });
        if let Some(width) = page.width {
            grid.set_width(width);
        }
        let last = shown.len().saturating_sub(1);
        for (at, &index) in shown.iter().enumerate() {
            let Some(column) = grid.column_mut(at) else { continue };
            column.set_padding((0, if at == last { 0 } else { GAP as u16 }));
            if self.columns[index].right {
                column.set_cell_alignment(CellAlignment::Right);
            }
            column.set_constraint(match self.columns[index].fit {
                Fit::Fold => {
                    let gap = if at == last { 0 } else { GAP };
                    ColumnConstraint::LowerBoundary(Width::Fixed((self.longest_word(index) + gap) as u16))
                }
                Fit::Keep | Fit::Drop(_) => ColumnConstraint::ContentWidth,
            });
        }
        let lines: Vec<String> = grid.lines().map(|line| line.trim_end().to_string()).collect();
        lines.join("\n") + "\n"
    }
}
