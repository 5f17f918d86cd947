//! Threads with several rates, bursts or modes: what releases their jobs in each configuration. No figure
//! compares that.

use super::configuration::Configuration;
use super::input::Input;
use crate::derived::primary;
use crate::modes;
use crate::number::period;
use crate::shape::Shape;
use crate::visible;
use std::collections::BTreeSet;

/// A sentence on each thread that has modes in some run.
pub(super) fn all(inputs: &[Input], configurations: &[Configuration]) -> Vec<String> {
    let has_modes = |input: &&Input| {
        let tasks = input.model.tasks().iter();
        tasks.filter_map(primary).any(|stream| !stream.arrival.modes.is_empty())
    };
    let tasks = inputs.iter().filter(has_modes).flat_map(|input| input.model.tasks());
    let is_one = |task: &&punctual_model::Task| {
        primary(task).is_some_and(|stream| matches!(Shape::new(stream), Shape::Modes(_)))
    };
    let names: BTreeSet<&str> = tasks.filter(is_one).map(|task| task.name.as_str()).collect();
    names.into_iter().map(|name| sentence(name, inputs, configurations)).collect()
}

fn sentence(name: &str, inputs: &[Input], configurations: &[Configuration]) -> String {
    let in_run = |run: usize| inputs[run].model.tasks().iter().find(|task| task.name == name).map(words);
    let each = configurations.iter().filter_map(|configuration| {
        let texts: BTreeSet<String> = configuration.runs.iter().filter_map(|run| in_run(*run)).collect();
        let texts: Vec<String> = texts.into_iter().collect();
        (!texts.is_empty()).then(|| (&configuration.label, texts.join(" or ")))
    });
    let each: Vec<(&String, String)> = each.collect();
    let name = visible(name);
    match &each[..] {
        [(_, first), others @ ..] if others.iter().all(|(_, text)| text == first) => {
            format!("Releases of {name}: {first}, in all.")
        }
        each => {
            let each: Vec<String> = each.iter().map(|(label, text)| format!("{text} ({label})")).collect();
            format!("Releases of {name}: {}.", each.join("; "))
        }
    }
}

/// `5 ms + 7 ms`; of another kind, its period, or that it has none.
fn words(task: &punctual_model::Task) -> String {
    match primary(task).map(Shape::new) {
        Some(Shape::Modes(all)) => modes::short(all, task.from_ns),
        Some(Shape::Periodic(periodic)) => period(periodic),
        _ => "no period".into(),
    }
}
