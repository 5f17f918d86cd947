//! What the tests of a run say, read from what they print (libtest's format).

use std::collections::BTreeMap;

/// How a test ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Passed,
    /// With its message.
    Failed(String),
    /// With the reason.
    Skipped(String),
}

/// The tests of a run by name.
#[derive(Default)]
pub struct Results {
    pub tests: BTreeMap<String, Outcome>,
    /// How many there were to be run, once that was said; the sum where one program after the other says it.
    pub announced: Option<usize>,
    /// How many have ended.
    pub ended: usize,
    /// The test that runs, where tests run one after the other: what it prints itself may come between its
    /// name and its outcome.
    running: Option<String>,
    /// The test whose message is being read.
    failing: Option<String>,
}

impl Results {
    /// Takes in the next line.
    pub fn line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----")) {
            self.failing = Some(name.to_owned());
        } else if let Some((name, result)) =
            line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
        {
            match outcome(result) {
                Some(outcome) => self.end(name.trim_end().to_owned(), outcome),
                None => self.running = Some(name.trim_end().to_owned()),
            }
        } else if let (Some(_), Some(outcome)) = (&self.running, outcome(line)) {
            if let Some(name) = self.running.take() {
                self.end(name, outcome);
            }
        } else if let Some(number) = line
            .strip_prefix("running ")
            .and_then(|rest| rest.strip_suffix(" tests").or(rest.strip_suffix(" test")))
        {
            let number: Option<usize> = number.parse().ok();
            self.announced = number.map(|number| self.announced.unwrap_or(0) + number).or(self.announced);
        } else if line == "failures:" || line.starts_with("test result:") {
            self.failing = None;
        } else if let Some(Outcome::Failed(message)) =
            self.failing.as_ref().and_then(|name| self.tests.get_mut(name))
        {
            message.push_str(line);
            message.push('\n');
        }
    }

    fn end(&mut self, name: String, outcome: Outcome) {
        self.tests.insert(name, outcome);
        self.ended += 1;
    }

    /// Tests that ended so.
    pub fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.tests.values().filter(|outcome| is(outcome)).count()
    }
}

fn outcome(result: &str) -> Option<Outcome> {
    match result {
        "ok" => Some(Outcome::Passed),
        "FAILED" => Some(Outcome::Failed(String::new())),
        _ => {
            let reason = result.strip_prefix("ignored")?;
            Some(Outcome::Skipped(reason.trim().trim_start_matches('(').trim_end_matches(')').to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_reasons_and_messages_are_read() {
        let mut results = Results::default();
        let output = "running 3 tests\ntest driver::poll   ... ok\ntest loss::all ... ignored (needs root)\n\
            test demo::all ... FAILED\n\nfailures:\n\n---- demo::all ----\nno period\nat all\n\n\n\
            failures:\n    demo::all\n\ntest result: FAILED. 1 passed; 1 failed; 1 ignored\n";
        output.lines().for_each(|line| results.line(line));
        assert_eq!(results.announced, Some(3));
        ["test loss::more ... {\"rounds\": 3}", "something", "ok", "ok"]
            .iter()
            .for_each(|line| results.line(line));
        assert_eq!(results.tests["loss::more"], Outcome::Passed);
        assert_eq!(results.tests["driver::poll"], Outcome::Passed);
        assert_eq!(results.tests["loss::all"], Outcome::Skipped("needs root".into()));
        assert_eq!(results.tests["demo::all"], Outcome::Failed("no period\nat all\n\n\n".into()));
        // The next program.
        assert_eq!(results.ended, 4);
        ["running 2 tests", "test wire::more ... ok"].iter().for_each(|line| results.line(line));
        assert_eq!((results.announced, results.ended), (Some(5), 5));
    }
}
