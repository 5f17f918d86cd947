//! What the sections of the page are drawn from, and what its head says.

use super::flow::states::States;
use super::jobs::Jobs;
use crate::dispatched::Dispatched;
use punctual_model::TimingModel;

/// What a page is drawn from.
pub(crate) struct Drawn<'a> {
    /// The model.
    pub model: &'a TimingModel,
    /// The positions of its tasks, in the order in which they are shown.
    pub order: Vec<usize>,
    /// The jobs that the model was made from, where they are known.
    pub jobs: Option<&'a Jobs>,
    /// The states of a dataflow program, where its trace is known.
    pub states: Option<&'a States>,
    /// What a dispatcher did with the table, where its recording is known.
    pub dispatched: Option<&'a Dispatched>,
}

/// A fact at the head of the page.
pub(crate) struct Fact {
    /// What it is about.
    pub name: &'static str,
    /// What is so.
    pub text: String,
    /// Whether it says that something was lost.
    pub is_loss: bool,
}

impl Fact {
    /// A fact that is no loss.
    pub fn new(name: &'static str, text: String) -> Fact {
        Fact { name, text, is_loss: false }
    }
}
