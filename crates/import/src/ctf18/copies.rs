//! Copies of a trace beside it, whose events would come twice: backups, and snapshots of one session.

use super::find::Found;
use crate::Error;
use punctual_trace::source::Stream;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A trace and one of its streams, by their indices.
type Place = (usize, usize);

/// Bytes by which a stream is known: its first packet has a number and times.
const BEGINNING: u64 = 4096;

/// A folder or file that is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copied {
    /// Its name.
    pub copy: String,
    /// What it is a copy of.
    pub of: String,
    /// It has less.
    pub is_shorter: bool,
}

/// Leaves out streams that another trace of the same session begins with as well, unless theirs are shorter.
/// Of streams of the same length, that of the trace is kept which has more in all.
pub fn leave_out(found: &mut [Found]) -> Result<Vec<Copied>, Error> {
    let mut copies = copies(found)?;
    let named = names(found, &copies);
    copies.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
    for ((trace, index), _) in copies {
        found[trace].streams.remove(index);
    }
    Ok(named)
}

/// Each copy, and what is kept of it.
fn copies(found: &[Found]) -> Result<Vec<(Place, Place)>, Error> {
    let sizes: Vec<u64> =
        found.iter().map(|found| found.streams.iter().map(|stream| stream.length).sum()).collect();
    let length = |(trace, index): Place| found[trace].streams[index].length;
    let mut copies = Vec::new();
    for places in groups(found)? {
        let best = |place: &Place| (Reverse(length(*place)), Reverse(sizes[place.0]), *place);
        let Some(kept) = places.iter().copied().min_by_key(best) else { continue };
        copies.extend(places.into_iter().filter(|place| *place != kept).map(|place| (place, kept)));
    }
    Ok(copies)
}

/// Streams of one session that begin alike.
fn groups(found: &[Found]) -> Result<Vec<Vec<Place>>, Error> {
    let mut groups: FxHashMap<_, Vec<Place>> = FxHashMap::default();
    let mut cut_off = Vec::new();
    for (trace, Found { session, streams, .. }) in found.iter().enumerate() {
        for (index, stream) in streams.iter().enumerate() {
            let beginning = beginning(stream).map_err(|error| failed(stream, &error))?;
            let is_cut_off = (1..BEGINNING).contains(&(beginning.len() as u64));
            if is_cut_off {
                cut_off.push((*session, beginning.clone(), (trace, index)));
            }
            if !beginning.is_empty() {
                groups.entry((*session, beginning)).or_default().push((trace, index));
            }
        }
    }
    // What is left of a file that was cut off early.
    for (session, beginning, place) in cut_off {
        let is_whole = |(of, other): &(_, Vec<u8>), places: &[Place]| {
            let is_longer = other.len() > beginning.len() && other.starts_with(&beginning);
            *of == session
                && is_longer
                && places.iter().any(|other| file(found, *other) == file(found, place))
        };
        if let Some((_, places)) = groups.iter_mut().find(|(key, places)| is_whole(key, places)) {
            places.push(place);
            groups.remove(&(session, beginning));
        }
    }
    Ok(groups.into_values().collect())
}

fn file(found: &[Found], (trace, index): Place) -> Option<&std::ffi::OsStr> {
    Path::new(&found[trace].streams[index].name).file_name()
}

fn beginning(stream: &Stream) -> std::io::Result<Vec<u8>> {
    let length = stream.length.min(BEGINNING);
    let mut bytes = vec![0; length as usize];
    stream.open()?.read(0, &mut bytes)?;
    Ok(bytes)
}

fn failed(stream: &Stream, error: &std::io::Error) -> Error {
    Error::io(Path::new(&stream.name), error)
}

/// By their folders; by their files where both are in one, or each folder has what is kept of the other.
fn names(found: &[Found], copies: &[(Place, Place)]) -> Vec<Copied> {
    let pairs: BTreeSet<(usize, usize)> = copies.iter().map(|(copy, of)| (copy.0, of.0)).collect();
    let stream = |(trace, index): Place| &found[trace].streams[index];
    let mut named = BTreeMap::<(String, String), bool>::new();
    for (copy, of) in copies {
        let names = match pairs.contains(&(of.0, copy.0)) {
            true => [copy, of].map(|place| stream(*place).name.clone()),
            false => [copy, of].map(|(trace, _)| found[*trace].folder.display().to_string()),
        };
        *named.entry(names.into()).or_default() |= stream(*copy).length < stream(*of).length;
    }
    named.into_iter().map(|((copy, of), is_shorter)| Copied { copy, of, is_shorter }).collect()
}
