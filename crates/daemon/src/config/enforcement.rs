//! The section `[enforcement]`.

use crate::enforce::{self, Accounting, Changes, Overruns, Policy};
use serde::Deserialize;
use std::ops::Range;
use toml::Spanned;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct EnforcementTable {
    overruns: Option<Spanned<String>>,
    changes: Option<Spanned<String>>,
    measuring: Option<Spanned<String>>,
}

const OVERRUNS: [(&str, Overruns); 4] = [
    ("count", Overruns::Count),
    ("warn", Overruns::Warn),
    ("demote", Overruns::Demote),
    ("detach", Overruns::Detach),
];

const CHANGES: [(&str, Changes); 3] =
    [("show", Changes::Show), ("put-back", Changes::PutBack), ("detach", Changes::Detach)];

impl EnforcementTable {
    /// What it says, and what is wrong with it, by place.
    pub(super) fn policy(self) -> (Policy, Vec<(Range<usize>, String)>) {
        let mut wrong = Vec::new();
        let auto = (enforce::must_poll(), Accounting::IfRefused);
        let measuring = [
            ("auto", auto),
            ("events", (false, Accounting::Never)),
            ("polling", (true, Accounting::Never)),
            ("accounting", (true, Accounting::Always)),
        ];
        let (polls, accounting) = choice("measuring", self.measuring, &measuring, &mut wrong).unwrap_or(auto);
        let policy = Policy {
            overruns: choice("overruns", self.overruns, &OVERRUNS, &mut wrong).unwrap_or_default(),
            changes: choice("changes", self.changes, &CHANGES, &mut wrong).unwrap_or_default(),
            polls,
            accounting,
        };
        (policy, wrong)
    }
}

fn choice<T: Copy>(
    key: &str,
    given: Option<Spanned<String>>,
    choices: &[(&str, T)],
    wrong: &mut Vec<(Range<usize>, String)>,
) -> Option<T> {
    let given = given?;
    let found = choices.iter().find(|(name, _)| name == given.get_ref()).map(|(_, choice)| *choice);
    if found.is_none() {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let message = format!("{key} '{}' is unknown; expected {}", given.get_ref(), names.join(", "));
        wrong.push((given.span(), message));
    }
    found
}
