//! Contracts as files; a timing model is one, too: what was observed, as agreed on.

use crate::error::{Error, Result};
use crate::model_file::{display_name, parse_model, read_text};
use punctual_conformance::{Contract, Faulty};
use punctual_model::TimingModel;
use std::path::Path;

/// What a file says of the timing of threads.
pub enum Agreement {
    /// What was observed.
    Model(Box<TimingModel>),
    /// What was agreed on.
    Contract(Contract),
}

/// Reads a contract or a timing model; `-` is standard input. A timing model is JSON, so it begins with a
/// brace.
pub fn read_agreement(path: &Path) -> Result<Agreement> {
    let text = read_text(path)?;
    let is_contract = match path.extension() {
        Some(extension) => extension == "toml",
        None => !text.trim_start().starts_with('{'),
    };
    match is_contract {
        true => parse_contract(&text, path).map(Agreement::Contract),
        false => Ok(Agreement::Model(Box::new(parse_model(&text, path)?))),
    }
}

/// Reads a contract. A timing model is one of what was observed, without a margin.
pub fn read_contract(path: &Path) -> Result<Contract> {
    Ok(match read_agreement(path)? {
        Agreement::Contract(contract) => contract,
        Agreement::Model(model) => Contract::from(&*model),
    })
}

fn parse_contract(text: &str, path: &Path) -> Result<Contract> {
    Contract::parse(text).map_err(|Faulty { line, problem }| {
        let name = display_name(path);
        Error::file(format!("{name} is not a valid contract")).because(format!("line {line}: {problem}"))
    })
}
