//! Timing models as files, or on standard input.

use crate::agreement::{Agreement, read_agreement, read_contract};
use crate::destination::is_standard_stream;
use crate::error::{Error, Result, plain_reason};
use crate::inputs::open_trace;
use punctual_conformance::Contract;
use punctual_import::is_trace;
use punctual_model::TimingModel;
use std::borrow::Cow;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A timing model or contract that an operation is given.
#[derive(Clone, Debug)]
pub enum Given {
    /// A file; `-` is standard input.
    File(PathBuf),
    /// A timing model that was read already.
    Model(Box<TimingModel>),
}

impl Given {
    /// A timing model from its text.
    pub fn parse(text: &str) -> Result<Given> {
        let model = TimingModel::from_json(text);
        let model = model
            .map_err(|error| Error::file("the timing model is not usable").because(error.to_string()))?;
        Ok(Given::Model(Box::new(model)))
    }

    /// What to call it in messages.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Given::File(path) => display_name(path),
            Given::Model(_) => "the timing model".into(),
        }
    }

    /// The timing model.
    pub fn model(&self) -> Result<TimingModel> {
        match self {
            Given::File(path) => read_model(path),
            Given::Model(model) => Ok((**model).clone()),
        }
    }

    /// The timing model or contract.
    pub fn agreement(&self) -> Result<Agreement> {
        match self {
            Given::File(path) => read_agreement(path),
            Given::Model(model) => Ok(Agreement::Model(model.clone())),
        }
    }

    /// The contract; a timing model is one of what was observed, without a margin.
    pub fn contract(&self) -> Result<Contract> {
        match self {
            Given::File(path) => read_contract(path),
            Given::Model(model) => Ok(Contract::from(&**model)),
        }
    }
}

/// Reads a timing model; `-` is standard input.
pub fn read_model(path: &Path) -> Result<TimingModel> {
    parse_model(&read_text(path)?, path)
}

/// The text of a timing model.
pub(crate) fn parse_model(text: &str, path: &Path) -> Result<TimingModel> {
    TimingModel::from_json(text).map_err(|error| {
        let unusable = Error::file(format!("{} is not a usable timing model", display_name(path)));
        foreign(path, unusable, &error.to_string())
    })
}

/// Bytes of a text file at most: some files have no end.
const MOST_TEXT: u64 = 1 << 30;

/// Reads a text file; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    let read = if is_standard_stream(path) {
        io::stdin().take(MOST_TEXT + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MOST_TEXT + 1).read_to_end(&mut bytes))
    };
    let unreadable = || Error::file(format!("cannot read {}", display_name(path)));
    read.map_err(|error| unreadable().because(reason(path, &error)))?;
    if bytes.len() as u64 > MOST_TEXT {
        return Err(unreadable().because("it is longer than 1 GiB"));
    }
    String::from_utf8(bytes).map_err(|_| foreign(path, unreadable(), "it is not text"))
}

/// Why a file cannot be used: it may be another tool's trace.
fn foreign(path: &Path, error: Error, why: &str) -> Error {
    match is_trace(path) {
        true => error.because("it is another tool's trace").advise("punctual import makes a recording of it"),
        false => error.because(why),
    }
}

/// A folder is usually a recording or trace given in place of its model.
fn reason(path: &Path, error: &io::Error) -> String {
    if error.kind() != io::ErrorKind::IsADirectory {
        return plain_reason(error);
    }
    let folder = path.display();
    if open_trace(path).is_ok() {
        return format!(
            "it is the trace of a dataflow program, not a timing model; punctual chains {folder} shows it, \
             and with -o FILE.timing.json makes its timing model"
        );
    }
    format!(
        "it is a folder; if it is a recording, punctual replay {folder} -o FILE.timing.json makes its timing \
         model"
    )
}

/// What to call an input in messages.
pub fn display_name(path: &Path) -> Cow<'_, str> {
    if is_standard_stream(path) { "standard input".into() } else { path.to_string_lossy() }
}
