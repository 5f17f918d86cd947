//! Which columns fit, and how wide they are. A column that was once wider stays as wide, so that the table
//! stands still while its figures change.

use crate::figures::{Entry, Fit, LIVE, Live};

/// Space between two columns.
pub(super) const GAP: usize = 1;
/// Seconds that are drawn at least, and at most.
const TREND: std::ops::RangeInclusive<usize> = 8..=60;

/// The widths of the columns so far.
#[derive(Clone, Debug, Default)]
pub struct Widths {
    screen: u16,
    seen: Vec<usize>,
}

/// A column on the screen.
pub(super) struct Column {
    /// Which of the figures.
    pub figure: usize,
    pub width: usize,
}

impl Column {
    pub fn entry(&self) -> &'static Entry<Live> {
        &LIVE[self.figure]
    }
}

impl Widths {
    /// Takes a screen of this width and the widths of what is on it: those of each figure's widest cell; 0
    /// for a figure that is not to be shown.
    pub(super) fn widen(&mut self, screen: u16, cells: &[usize]) {
        if self.screen != screen || self.seen.len() != cells.len() {
            self.screen = screen;
            self.seen = cells.to_vec();
        }
        for (seen, cell) in self.seen.iter_mut().zip(cells) {
            *seen = (*seen).max(*cell);
        }
    }

    /// The columns that fit, and what is left for the trend. The one that is sorted by is always there.
    pub(super) fn columns(&self, sorted_by: usize) -> (Vec<Column>, usize) {
        let has_cells = |figure: &usize| self.seen[*figure] > 0 || *figure == sorted_by;
        let mut shown: Vec<usize> = (0..LIVE.len()).filter(has_cells).collect();
        let limit = usize::from(self.screen).saturating_sub(GAP + TREND.start());
        let order = |figure: usize| match LIVE[figure].figure.table {
            Some(Fit::Drop(order)) if figure != sorted_by => Some(order),
            _ => None,
        };
        let width = |shown: &[usize]| shown.iter().map(|&figure| self.seen[figure] + GAP).sum::<usize>();
        let mut dropped = Vec::new();
        while width(&shown) > limit + GAP {
            let Some(last) =
                shown.iter().copied().filter(|&it| order(it).is_some()).max_by_key(|&it| order(it))
            else {
                break;
            };
            shown.retain(|&figure| figure != last);
            dropped.push(last);
        }
        // A narrow column may fit where a wider one did not.
        for figure in dropped.into_iter().rev() {
            if width(&shown) + self.seen[figure] + GAP <= limit + GAP {
                shown.push(figure);
            }
        }
        shown.sort_unstable();
        let trend = usize::from(self.screen).saturating_sub(width(&shown)).min(*TREND.end());
        let columns = shown.into_iter().map(|figure| Column { figure, width: self.seen[figure] }).collect();
        (columns, trend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(screen: u16, sorted_by: &str) -> (Vec<&'static str>, usize) {
        let mut widths = Widths::default();
        widths.widen(screen, &[8; 16]);
        let sorted_by = LIVE.iter().position(|it| it.figure.title == sorted_by).expect("a figure");
        let (columns, trend) = widths.columns(sorted_by);
        (columns.iter().map(|column| column.entry().figure.title).collect(), trend)
    }

    #[test]
    fn a_narrow_screen_keeps_what_matters_most() {
        assert_eq!(LIVE.len(), 16, "the widths above are as many");
        let (columns, trend) = titles(80, "R/D");
        assert_eq!(columns, ["Thread", "TID", "Policy", "Period", "U", "Max R", "R/D", "Late"]);
        assert_eq!(trend, 8);
        assert_eq!(titles(200, "R/D").0.len(), LIVE.len());
        assert_eq!(titles(50, "R/D").0, ["Thread", "Period", "Max R", "R/D", "Late"]);
    }

    #[test]
    fn the_column_that_is_sorted_by_is_shown() {
        assert!(titles(50, "Jobs").0.contains(&"Jobs"));
    }

    #[test]
    fn columns_do_not_shrink_until_the_screen_does() {
        let mut widths = Widths::default();
        widths.widen(80, &[8; 16]);
        widths.widen(80, &[5; 16]);
        assert_eq!(widths.seen, [8; 16]);
        widths.widen(79, &[5; 16]);
        assert_eq!(widths.seen, [5; 16]);
    }
}
