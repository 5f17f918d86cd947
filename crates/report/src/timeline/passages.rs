//! Rows of chains: the way of each datum through a dataflow program, as one slice from the activation of the
//! source's instance to the end of the sink's.
//!
//! Data of one chain overtake and overlap each other, so a chain has as many rows as data are on their way at
//! the same time.

use super::Error;
use super::packets::{Argument, Packets};
use super::proto::Track;
use crate::jobs::Passage;
use punctual_model::Instant;

/// Rows of a chain; data that would need more are left out.
pub(super) const MOST_ROWS: usize = 256;

/// The rows of all chains.
pub(super) struct Passages {
    group: u64,
    chains: Vec<Chain>,
}

struct Chain {
    tasks: String,
    latency: &'static str,
    rows: Vec<Row>,
}

struct Row {
    track: u64,
    free: Instant,
}

impl Passages {
    /// None yet, in this group of tracks.
    pub(super) fn new(group: u64) -> Self {
        Self { group, chains: Vec::new() }
    }

    /// Shows one, in the first row where there is room; returns whether there was any.
    pub(super) fn show<W: std::io::Write>(
        &mut self,
        passage: &Passage<'_>,
        packets: &mut Packets<W>,
    ) -> Result<bool, Error> {
        let is_its = |chain: &Chain| chain.tasks == passage.chain && chain.latency == passage.latency;
        let place = match self.chains.iter().position(is_its) {
            Some(place) => place,
            None => {
                let (tasks, latency) = (passage.chain.to_owned(), passage.latency);
                self.chains.push(Chain { tasks, latency, rows: Vec::new() });
                self.chains.len() - 1
            }
        };
        let chain = &mut self.chains[place];
        let row = match chain.rows.iter().position(|row| row.free <= passage.from) {
            Some(row) => row,
            None if chain.rows.len() == MOST_ROWS => return Ok(false),
            None => {
                let track = packets.new_track();
                let shown = Track {
                    id: track,
                    parent: Some(self.group),
                    name: Some(format!("{}: {}", chain.tasks, chain.latency)),
                    rank: Some(i32::try_from(place).unwrap_or(i32::MAX)),
                    ..Track::default()
                };
                packets.track(passage.from, shown)?;
                chain.rows.push(Row { track, free: passage.from });
                chain.rows.len() - 1
            }
        };
        let row = &mut chain.rows[row];
        row.free = passage.until;
        let arguments = vec![
            Argument::number("source instance", passage.source),
            Argument::number("sink instance", passage.sink),
        ];
        let label = format!("{} → {}", passage.source, passage.sink);
        packets.slice(row.track, "passage", label, (passage.from, passage.until), arguments)?;
        Ok(true)
    }
}
