//! Selects a part of a recording by time.

use super::reader::Reader;
use super::selection::Selection;
use crate::damage::Damages;
use crate::error::Error;
use crate::{Record, Roster, Totals};
use punctual_model::Instant;

impl Reader {
    /// Leaves out what came before `from` or after `until`, as if the recording began and ended there. Its
    /// first stretch begins with the state of each thread at `from` ([`Record::Known`]).
    ///
    /// Events are selected by their timestamps, which never decrease. So a thread's records stay together,
    /// without a gap at the border.
    ///
    /// Reads everything before `from`. A later call selects from the whole recording again.
    pub fn select(&mut self, from: Option<Instant>, until: Option<Instant>) -> Result<(), Error> {
        let stamps_ns = from.map_or(0, Instant::ns)..=until.map_or(u64::MAX, Instant::ns);
        let (begin, known) = match from {
            Some(from) => self.before(from)?,
            None => (0, Vec::new()),
        };
        // Backwards, since the headers of damaged packets may claim anything.
        let end = self
            .runs
            .iter()
            .rposition(|run| run.begin_ns <= *stamps_ns.end())
            .map_or(0, |last| last + 1)
            .max(begin);
        let before = begin.checked_sub(1).map_or(Totals::default(), |run| self.runs[run].totals);
        if let Some(last) = self.runs[..end].last() {
            self.totals = Totals {
                lost: last.totals.lost.saturating_sub(before.lost),
                // They stay untracked.
                untracked: last.totals.untracked,
                skipped: last.totals.skipped.saturating_sub(before.skipped),
                stolen: last.totals.stolen.saturating_sub(before.stolen),
            };
        }
        let (first, last) = self.whole;
        self.about.from = from.map_or(first, |from| from.max(first));
        self.until = until.map_or(last, |until| until.min(last)).max(self.about.from);
        self.selection = Selection { runs: begin..end, stamps_ns, known };
        Ok(())
    }

    /// The first run that has an event at `from` or later, and the state of the threads then.
    fn before(&mut self, from: Instant) -> Result<(usize, Vec<Record>), Error> {
        let mut roster = Roster::new();
        let behind = self.runs.iter().rposition(|run| run.begin_ns < from.ns()).map_or(0, |last| last + 1);
        let mut begin = behind;
        let mut all = Damages::default();
        for index in 0..behind {
            let mut damages = Damages::default();
            self.read_run(&self.runs[index], self.reached(index), &mut damages, &mut |at_ns, record| {
                if at_ns < from.ns() {
                    roster.record(record);
                } else {
                    begin = begin.min(index);
                }
            })?;
            // Damage in the selection is reported when it is read.
            if index < begin {
                all.extend(damages.into_list());
            }
        }
        self.damages.extend(all.into_list());
        Ok((begin, roster.known(from)))
    }
}
