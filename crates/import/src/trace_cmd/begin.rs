//! Where the events of the processors begin.

use super::super::bytes::Bytes;
use super::super::notes::Cut;
use super::file::{Cpu, Header, Statistics};
use super::stream::{Next, Stream};
use punctual_model::Instant;
use std::collections::BTreeSet;

/// Where the events of the processors begin.
pub struct Begin {
    /// The first event of all.
    pub first: Instant,
    /// The latest first event of the processors whose beginning is gone: written over in the ring buffer
    /// (`trace-cmd start`, then `extract`), or in the file (`trace-cmd record -m`).
    pub cut: Option<Cut>,
}

/// The first event of a processor.
struct First<'a> {
    at: u64,
    cpu: &'a Cpu,
    /// Whether events are said to be missing before it.
    is_cut: bool,
}

impl Begin {
    /// Looks at the first event of each processor. That of one that was idle comes late, and means nothing.
    pub fn find(bytes: &Bytes, header: &Header) -> Result<Begin, String> {
        let mut firsts = Vec::new();
        for cpu in &header.cpus {
            firsts.extend(First::find(bytes, header, cpu)?);
        }
        let first = firsts.iter().map(|first| first.at).min().unwrap_or(0);
        let mut lack = false;
        for it in firsts.iter_mut().filter(|it| !it.is_cut && it.at > first) {
            it.is_cut = lacks_events(bytes, header, it.cpu)?;
            lack |= it.is_cut;
        }
        // Whether the first one begins at its beginning matters only for what is said.
        for it in firsts.iter_mut().filter(|it| lack && !it.is_cut && it.at == first) {
            it.is_cut = lacks_events(bytes, header, it.cpu)?;
        }
        let cut = firsts.iter().filter(|first| first.is_cut);
        let numbers: BTreeSet<u32> = cut.clone().map(|first| first.cpu.number).collect();
        let at = cut.map(|first| first.at).max();
        let cut = at.map(|at| Cut::of_processors(&numbers, Instant::from_ns(at)));
        Ok(Begin { first: Instant::from_ns(first), cut })
    }
}

impl First<'_> {
    fn find<'a>(bytes: &Bytes, header: &Header, cpu: &'a Cpu) -> Result<Option<First<'a>>, String> {
        let mut stream = Stream::new(bytes, header, cpu)?;
        let mut is_cut = header.statistics(cpu).is_some_and(|it| it.overrun > 0);
        loop {
            match stream.next(bytes) {
                Some(Next::Event { at, .. }) => return Ok(Some(First { at, cpu, is_cut })),
                Some(Next::Missed(_)) => is_cut = true,
                Some(Next::Damage(_)) => {}
                None => return Ok(None),
            }
        }
    }
}

/// Whether the kernel handed out more events of a processor than the file has: `trace-cmd record -m` keeps
/// the newest. Those still in the ring buffer when it was asked may have been written afterwards or not.
fn lacks_events(bytes: &Bytes, header: &Header, cpu: &Cpu) -> Result<bool, String> {
    let Some(Statistics { read, entries, .. }) = header.statistics(cpu).filter(|it| it.read > 0) else {
        return Ok(false);
    };
    let all = read.saturating_add(*entries);
    let mut stream = Stream::new(bytes, header, cpu)?;
    let mut count = 0_u64;
    while count < all {
        match stream.next(bytes) {
            Some(Next::Event { .. }) => match stream.count_rest() {
                Some(rest) => count += 1 + rest,
                // How many it had is not known.
                None => return Ok(false),
            },
            Some(Next::Missed(_)) => {}
            Some(Next::Damage(_)) => return Ok(false),
            None => return Ok(count != *read),
        }
    }
    Ok(false)
}
