//! What is compared.

use punctual_model::TimingModel;

/// A run that is compared: its model, and what the user calls it.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its file or folder, for people.
    pub name: String,
    /// What was made of it.
    pub model: TimingModel,
}

/// Why inputs cannot be compared: of everything that can be, the number of the first input that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NothingInCommon(pub Vec<(&'static str, Option<usize>)>);
