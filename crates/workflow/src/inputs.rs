//! Input folders: recordings of threads, and the trace of a dataflow program.

use crate::error::{Error, Result};
use crate::probes;
use crate::recording::{Recording, TimeRange};
use punctual_trace::ErrorKind;
use punctual_trace::flow::Reader;
use std::path::{Path, PathBuf};

/// Begins a warning about threads and a dataflow program observed at different times.
pub(crate) const DIFFERENT_TIMES: &str =
    "the threads were observed at another time than the dataflow program was traced";

/// Input folders, sorted by what they hold.
#[derive(Default)]
pub(crate) struct Inputs {
    pub recordings: Vec<Recording>,
    /// The trace of a dataflow program, and its path.
    pub flow: Option<(Reader, PathBuf)>,
}

impl Inputs {
    /// Opens all folders. `product` is made of them and shows at most one dataflow program.
    pub fn open<'a>(
        folders: impl IntoIterator<Item = &'a PathBuf>,
        range: &TimeRange,
        product: &str,
    ) -> Result<Inputs> {
        let mut inputs = Inputs::default();
        // What record has written of both is as good as both.
        let parts = |path: &'a PathBuf| probes::parts(path).map_or_else(|| vec![path.clone()], Vec::from);
        for path in folders.into_iter().flat_map(parts) {
            if path.is_file() && path.to_string_lossy().ends_with(".timing.json") {
                return Err(Error::file(format!(
                    "{} is a timing model; {product} is made of recordings and traces, which are folders",
                    path.display()
                )));
            }
            match (open_trace(&path), &inputs.flow) {
                (Ok(_), Some((_, first))) => {
                    let (first, second) = (first.display(), path.display());
                    return Err(Error::usage(format!(
                        "{first} and {second} are both traces of dataflow programs; {product} shows one"
                    )));
                }
                (Ok(reader), None) => inputs.flow = Some((reader, path)),
                (Err(error), _) => {
                    inputs.recordings.push(error.map_or_else(|| Recording::open(&path, range), Err)?)
                }
            }
        }
        Ok(inputs)
    }
}

/// Opens the trace of a dataflow program. Fails without an error if `path` is not one: it may be a recording.
pub(crate) fn open_trace(path: &Path) -> Result<Reader, Option<Error>> {
    Reader::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotATrace | ErrorKind::NotFound => None,
        _ => Some(error.into()),
    })
}

/// Why the times of a recording and of a trace cannot be compared, if they cannot.
pub(crate) fn clock_mismatch(recording: &Recording, trace: &Reader) -> Option<String> {
    let (recorded, traced) = (recording.about(), trace.about());
    if recorded.clock != traced.clock {
        return Some(format!("its clock is {}, that of the trace is {}", recorded.clock, traced.clock));
    }
    // The clock's zero is when the machine started; the time of day may have been set meanwhile.
    let zeros = recorded.clock_zero.zip(traced.clock_zero.and_then(|zero| i64::try_from(zero).ok()));
    let is_other_boot = zeros.is_some_and(|(one, other)| one.abs_diff(other) > 60_000_000_000);
    is_other_boot.then(|| "the machine was restarted between it and the trace".to_owned())
}
