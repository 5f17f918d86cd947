//! Folders that were given: recordings of threads, and the trace of a dataflow program.

use crate::args::Stretch;
use crate::failure::{Code, Failure};
use crate::recording::Recording;
use punctual_trace::ErrorKind;
use punctual_trace::flow::Reader;
use std::path::{Path, PathBuf};

/// Begins a warning where both stand beside each other all the same.
pub const AT_ANOTHER_TIME: &str =
    "the threads were observed at another time than the dataflow program was traced";

/// What the folders of a command line are.
#[derive(Default)]
pub struct Given {
    pub recordings: Vec<Recording>,
    /// The trace of a dataflow program, and where it is.
    pub flow: Option<(Reader, PathBuf)>,
}

impl Given {
    /// `what` is made of them: something that shows one dataflow program.
    pub fn open<'a>(
        folders: impl IntoIterator<Item = &'a PathBuf>,
        stretch: &Stretch,
        what: &str,
    ) -> Result<Given, Failure> {
        let mut given = Given::default();
        for path in folders {
            if path.is_file() && path.to_string_lossy().ends_with(".timing.json") {
                let message = format!(
                    "{} is a timing model; {what} is made of recordings and traces, which are folders",
                    path.display()
                );
                return Err(Failure::new(Code::File, message));
            }
            match (trace(path), &given.flow) {
                (Ok(_), Some((_, first))) => {
                    let (first, second) = (first.display(), path.display());
                    let message =
                        format!("{first} and {second} are two traces of dataflow programs; {what} shows one");
                    return Err(Failure::new(Code::Usage, message));
                }
                (Ok(reader), None) => given.flow = Some((reader, path.clone())),
                (Err(error), _) => {
                    given.recordings.push(error.map_or_else(|| Recording::open(path, stretch), Err)?)
                }
            }
        }
        Ok(given)
    }
}

/// The trace of a dataflow program; nothing where it is none, which leaves it to be a recording of threads,
/// and an error if it is one that cannot be read.
pub fn trace(path: &Path) -> Result<Reader, Option<Failure>> {
    Reader::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotATrace | ErrorKind::NotFound => None,
        _ => Some(error.into()),
    })
}

/// Why instants of the one cannot stand beside those of the other, if so.
pub fn apart(recording: &Recording, trace: &Reader) -> Option<String> {
    let (about, of_trace) = (recording.about(), trace.about());
    if about.clock != of_trace.clock {
        return Some(format!("its clock is {}, that of the trace is {}", about.clock, of_trace.clock));
    }
    // The zero of such a clock is when the machine started; the time of day may have been set meanwhile.
    let zeros = about.clock_zero.zip(of_trace.clock_zero.and_then(|zero| i64::try_from(zero).ok()));
    let is_other = zeros.is_some_and(|(one, other)| one.abs_diff(other) > 60_000_000_000);
    is_other.then(|| "it is of another start of the machine than the trace".to_owned())
}
