//! A table as jobs of single processors: the job of a table that changes its processor, or that goes on at
//! the table's beginning, is a job of its own for each part. The windows of the parts share out that of the
//! job, so that no two parts can run at once and every order that the table keeps is kept.

use super::PlannedJob;
use punctual_model::{Table, TableJob};

/// A part of a job of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The job's place in the table.
    pub job: usize,
    /// The processor's place in the table.
    pub processor: usize,
    /// Its window and slots; its task is the piece's own place.
    pub planned: PlannedJob,
    /// Whether the next piece is the same job's, and whether that is in the next repetition.
    pub next: Option<Repetition>,
}

/// Where the rest of a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repetition {
    Same,
    Next,
}

/// All pieces, by job and time.
pub(super) fn pieces(table: &Table) -> Vec<Piece> {
    let mut slots: Vec<Vec<(u64, usize)>> = vec![Vec::new(); table.jobs.len()];
    for run in &table.runs {
        let processor = table.processors.partition_point(|&number| number < run.processor);
        let job = &table.jobs[run.job];
        let inside = (run.from..run.to).filter_map(|slot| job.unwrapped(slot, table.slots));
        slots[run.job].extend(inside.map(|slot| (slot, processor)));
    }
    let mut pieces = Vec::new();
    for (job, mut slots) in slots.into_iter().enumerate() {
        slots.sort_unstable();
        add(&mut pieces, job, &table.jobs[job], &slots, table.slots);
    }
    pieces
}

/// The pieces of one job, whose slots count from the repetition of its activation.
fn add(pieces: &mut Vec<Piece>, job: usize, window: &TableJob, slots: &[(u64, usize)], length: u64) {
    let repetition = |slot: u64| slot / length;
    let parts: Vec<&[(u64, usize)]> =
        slots.chunk_by(|one, other| one.1 == other.1 && repetition(one.0) == repetition(other.0)).collect();
    let mut from = window.release;
    for (number, part) in parts.iter().enumerate() {
        let start = repetition(part[0].0) * length;
        let (until, next) = match parts.get(number + 1) {
            None => (window.deadline, None),
            Some(later) if repetition(later[0].0) > repetition(part[0].0) => {
                (start + length, Some(Repetition::Next))
            }
            Some(later) => (later[0].0, Some(Repetition::Same)),
        };
        let planned = PlannedJob {
            task: pieces.len(),
            earliest: from.max(start) - start,
            deadline: until.min(start + length) - start,
            wcet: part.len() as u64,
        };
        pieces.push(Piece { job, processor: part[0].1, planned, next });
        from = until;
    }
}
