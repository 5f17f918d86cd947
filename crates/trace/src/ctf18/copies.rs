//! Copies of a trace beside it, whose events would come twice: backups, and snapshots of one session.

use super::find::Found;
use crate::import::Error;
use crate::source::Stream;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::path::Path;

/// A trace and one of its streams, by their indices.
type Place = (usize, usize);

/// Bytes by which a stream is known: its first packet has a number and times.
const BEGINNING: u64 = 4096;

/// Leaves out streams that another trace of the same session begins with as well, unless theirs are shorter.
/// Returns what was left out, with what it is a copy of.
pub fn leave_out(found: &mut [Found]) -> Result<Vec<(String, String)>, Error> {
    let mut longest: FxHashMap<_, Place> = FxHashMap::default();
    let mut copies: Vec<(Place, Place)> = Vec::new();
    for trace in 0..found.len() {
        let session = found[trace].session;
        for (index, stream) in found[trace].streams.iter().enumerate() {
            let Some(beginning) = beginning(stream).map_err(|error| failed(stream, &error))? else {
                continue;
            };
            let Some(known) = longest.insert((session, beginning.clone()), (trace, index)) else { continue };
            let length = |(trace, index): Place| found[trace].streams[index].length;
            if length(known) >= stream.length {
                longest.insert((session, beginning), known);
                copies.push(((trace, index), known));
            } else {
                copies.push((known, (trace, index)));
            }
        }
    }
    let named = names(found, &copies);
    copies.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    for ((trace, index), _) in copies {
        found[trace].streams.remove(index);
    }
    Ok(named)
}

fn beginning(stream: &Stream) -> std::io::Result<Option<Vec<u8>>> {
    let length = stream.length.min(BEGINNING);
    let mut bytes = vec![0; length as usize];
    stream.open()?.read(0, &mut bytes)?;
    Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
}

fn failed(stream: &Stream, error: &std::io::Error) -> Error {
    Error::io(Path::new(&stream.name), error)
}

/// By their folders; by their files where both are in one.
fn names(found: &[Found], copies: &[(Place, Place)]) -> Vec<(String, String)> {
    let name = |(trace, index): Place, is_within: bool| match is_within {
        true => found[trace].streams[index].name.clone(),
        false => found[trace].folder.display().to_string(),
    };
    let named = |(copy, of): &(Place, Place)| (name(*copy, copy.0 == of.0), name(*of, copy.0 == of.0));
    copies.iter().map(named).collect::<BTreeSet<_>>().into_iter().collect()
}
