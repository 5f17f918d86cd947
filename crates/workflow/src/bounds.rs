//! Proven bounds of response times, as `punctual prove --json` printed them, for those who watch.

use crate::error::{Error, Result};
use crate::model_file::{display_name, read_text};
use punctual_conformance::Contract;
use punctual_model::{Duration, Platform};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::path::Path;

/// The bound of each task, by its name; and where the observations were made that they rest on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    tasks: FxHashMap<String, Option<Duration>>,
    observed_on: Vec<Platform>,
}

#[derive(Deserialize)]
struct Document {
    tasks: Vec<Proven>,
    #[serde(default)]
    observed_on: Vec<Platform>,
}

#[derive(Deserialize)]
struct Proven {
    name: String,
    response_ns: Option<Duration>,
}

impl Bounds {
    /// The bound of the task with this name; of several, the greatest, since a job does not say which one it
    /// is of. `None` if one of them has no bound.
    pub fn of(&self, name: &str) -> Option<Duration> {
        *self.tasks.get(name)?
    }

    /// Has a contract say what was proven of its tasks. Returns the names of those of which nothing was.
    pub(crate) fn apply(&self, contract: &mut Contract) -> Vec<String> {
        if self.tasks.is_empty() {
            return Vec::new();
        }
        let mut unproven = Vec::new();
        for task in &mut contract.tasks {
            task.proven = self.of(&task.name);
            if task.proven.is_none() {
                unproven.push(task.name.clone());
            }
        }
        unproven
    }

    /// The names of which something was proven.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().filter(|(_, bound)| bound.is_some()).map(|(name, _)| name.as_str())
    }

    /// Says in what the platform whose threads are compared with the bounds differs from one that they were
    /// observed on; `None` if in nothing that is known.
    pub(crate) fn doubt(&self, threads: &Platform) -> Option<String> {
        let mut differences: Vec<_> =
            self.observed_on.iter().filter_map(|platform| platform.differs_from(threads)).collect();
        differences.dedup();
        (!differences.is_empty()).then(|| {
            format!(
                "the proven bounds rest on observations that were made elsewhere ({}), and may not hold \
                 here; observe and prove again",
                differences.join("; ")
            )
        })
    }

    fn new(document: Document) -> Bounds {
        let mut tasks = FxHashMap::default();
        for Proven { name, response_ns } in document.tasks {
            let bound = tasks.entry(name).or_insert(response_ns);
            *bound = bound.zip(response_ns).map(|(one, other)| one.max(other));
        }
        Bounds { tasks, observed_on: document.observed_on }
    }
}

/// Reads what `punctual prove --json` printed; `-` is standard input.
///
/// # Errors
/// If the file cannot be read, is something else, or has no bound at all.
pub fn read_bounds(path: &Path) -> Result<Bounds> {
    parse_bounds(&read_text(path)?, &display_name(path))
}

/// The same from its text. `name` is what to call it in messages.
///
/// # Errors
/// If it is something else, or has no bound at all.
pub fn parse_bounds(text: &str, name: &str) -> Result<Bounds> {
    let unusable = || {
        Error::file(format!("{name} has no proven bounds"))
            .advise("punctual prove --json MODEL > FILE makes them")
    };
    let document: Document =
        serde_json::from_str(text).map_err(|error| unusable().because(error.to_string()))?;
    let bounds = Bounds::new(document);
    match bounds.tasks.values().any(Option::is_some) {
        true => Ok(bounds),
        false => Err(unusable()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tasks_of_one_name_have_the_greatest_of_their_bounds() {
        let document = json!({"holds": true, "tasks": [
            {"name": "a", "response_ns": 5, "tid": 1}, {"name": "a", "response_ns": 7}, {"name": "b"},
            {"name": "c", "response_ns": 9}, {"name": "c", "response_ns": null},
        ]});
        let bounds = Bounds::new(serde_json::from_value(document).expect("a proof"));
        let found = ["a", "b", "c", "d"].map(|name| bounds.of(name));
        assert_eq!(found, [Some(Duration::from_ns(7)), None, None, None]);
    }

    #[test]
    fn contracts_say_what_was_proven_of_their_tasks() {
        let document = json!({"tasks": [{"name": "a", "response_ns": 5}, {"name": "c", "response_ns": 9}]});
        let bounds = Bounds::new(serde_json::from_value(document).expect("a proof"));
        let mut contract =
            Contract::parse("[[task]]\nname = \"a\"\n[[task]]\nname = \"b\"\n").expect("two tasks");
        assert_eq!(Bounds::default().apply(&mut contract), Vec::<String>::new());
        assert_eq!(bounds.apply(&mut contract), ["b"]);
        let proven: Vec<_> = contract.tasks.iter().map(|task| task.proven.map(Duration::ns)).collect();
        assert_eq!(proven, [Some(5), None]);
    }

    #[test]
    fn bounds_of_another_kernel_or_machine_are_doubted() {
        let platform =
            |kernel: &str, cpus| Platform { kernel: kernel.into(), machine: "x86_64".into(), cpus };
        let document = |observed_on: &[Platform]| {
            let tasks = json!([{"name": "a", "response_ns": 5}]);
            serde_json::from_value(json!({"tasks": tasks, "observed_on": observed_on})).expect("a proof")
        };
        let doubt =
            |observed_on: &[Platform]| Bounds::new(document(observed_on)).doubt(&platform("6.1.1", 2));
        assert_eq!(doubt(&[]), None);
        assert_eq!(doubt(&[platform("6.1.1", 2), platform("", 0)]), None);
        let said = doubt(&[platform("6.1.1", 2), platform("6.1.0", 4)]).expect("a doubt");
        assert!(said.contains("(kernel 6.1.0, not 6.1.1; 4 processors online, not 2)"), "{said}");
        // Bounds that an earlier version wrote.
        let earlier = serde_json::from_value(json!({"tasks": [{"name": "a", "response_ns": 5}]}));
        assert_eq!(Bounds::new(earlier.expect("a proof")).doubt(&platform("6.1.1", 2)), None);
    }

    #[test]
    fn a_file_without_bounds_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("proof.json");
        for text in ["", "{}", r#"{"tasks":[]}"#, r#"{"tasks":[{"name":"a","response_ns":null}]}"#] {
            std::fs::write(&file, text).expect("written");
            let error = read_bounds(&file).expect_err("nothing to compare with");
            assert!(format!("{error:#}").contains("has no proven bounds"), "{text}: {error:#}");
        }
        std::fs::write(&file, r#"{"tasks":[{"name":"a","response_ns":3}]}"#).expect("written");
        assert_eq!(read_bounds(&file).expect("a bound").of("a"), Some(Duration::from_ns(3)));
    }
}
