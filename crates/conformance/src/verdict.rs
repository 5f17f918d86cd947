//! What came of a check: how each term of each task stands, and what is to be mentioned.

use crate::checker::Sources;
use crate::contract::{Answer, ContractTask};
use crate::violation::{Term, Violation};
use punctual_model::Duration;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Violations of a term that are kept as examples: the first ones.
pub const MAX_EXAMPLES: usize = 10;

/// Names of unknown threads that are kept.
pub const MAX_UNKNOWN: usize = 100;

/// How a term stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The term.
    pub term: Term,
    /// What was agreed on.
    pub agreed: u64,
    /// The worst that was certainly reached; `None` if nothing was.
    pub worst: Option<u64>,
    /// How often it was broken.
    pub violations: u64,
    /// How many jobs exceeded it that the contract lets exceed it.
    pub tolerated: u64,
    /// The first [`MAX_EXAMPLES`] violations.
    pub examples: Vec<Violation>,
    /// The number of the record that shows each example, to merge lists in order.
    pub(crate) places: Places,
}

/// Numbers of records. All are equal: a watch and a check number the same records differently, and their
/// verdicts are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(pub Vec<u64>);

impl PartialEq for Places {
    fn eq(&self, _: &Places) -> bool {
        true
    }
}

impl Eq for Places {}

/// How a task, chain or processor stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Its name.
    pub task: Arc<str>,
    /// Threads that belonged to it, one after the other.
    pub threads: u64,
    /// Jobs that were judged.
    pub jobs: u64,
    /// Whether there were jobs at separators that the contract does not name.
    pub has_others: bool,
    /// Whether some of these may be at one that the contract names, but the records do not name the address.
    pub has_unnamed: bool,
    /// The processor time of a thread that never waited, so that it had no jobs.
    pub busy: Option<Duration>,
    /// Its terms.
    pub standings: Vec<Standing>,
}

/// Something to be mentioned that is no violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The task or thread; empty if it is about all.
    pub task: Arc<str>,
    /// What.
    pub text: String,
}

/// What came of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The tasks of the contract in its order, then chains and processors.
    pub tallies: Vec<Tally>,
    /// Real-time threads that belong to no task: how many, by name.
    pub unknown: BTreeMap<String, u64>,
    /// Those of them that are violations.
    pub unknown_violations: u64,
    /// What is to be mentioned.
    pub notes: Vec<Note>,
    /// Places where records were missing: nothing is judged across them.
    pub gaps: u64,
    /// Records known to be lost.
    pub lost: u64,
    /// Violations that a watch reported for a separator that it later rejected. They do not count.
    pub withdrawn: u64,
}

impl Verdict {
    /// All violations.
    pub fn violations(&self) -> u64 {
        let all = self.tallies.iter().map(Tally::violations);
        all.fold(self.unknown_violations, u64::saturating_add)
    }
}

impl Tally {
    /// Nothing yet, of a task.
    pub(crate) fn of(task: &ContractTask) -> Tally {
        let sources = Sources::of(task);
        let (least, most) = sources.as_ref().map_or((None, None), Sources::widest);
        let late = task.jitter.or(sources.as_ref().map(|it| it.jitter));
        let time = |duration: Option<Duration>| duration.map(|it| it.ns());
        let period = time(task.period).filter(|_| task.jitter.is_some());
        let all = [
            (Term::Wcet, time(task.wcet)),
            (Term::Response, time(task.response)),
            (Term::Deadline, time(task.deadline)),
            (Term::Bound, time(task.proven)),
            (Term::Suspension, time(task.suspension)),
            (Term::Early, period),
            (Term::Late, time(late).filter(|_| period.is_some() || sources.is_some())),
            (Term::Skipped, period.map(|_| task.skips.unwrap_or(0))),
            (Term::Overdue, time(late).filter(|_| period.is_some() || sources.is_some())),
            (Term::Separation, time(task.separation)),
            (Term::WcetOfSeveral, time(task.more_wcets.last().copied())),
            (Term::SeparationOfSeveral, time(task.more_separations.last().copied().max(least))),
            (Term::GapOfSeveral, time(most)),
            (Term::QuartileCost, time(task.quartile_cost)),
            (Term::Frequent, time(task.median_separation.map(|it| it.least))),
            (Term::Rare, time(task.median_separation.map(|it| it.most))),
        ];
        Tally::new(&task.name, all)
    }

    pub(crate) fn new(name: &str, terms: impl IntoIterator<Item = (Term, Option<u64>)>) -> Tally {
        let standing = |(term, agreed): (Term, Option<u64>)| Some(Standing::new(term, agreed?));
        Tally {
            task: name.into(),
            threads: 0,
            jobs: 0,
            has_others: false,
            has_unnamed: false,
            busy: None,
            standings: terms.into_iter().filter_map(standing).collect(),
        }
    }

    /// Why no jobs were judged.
    pub(crate) fn why_no_jobs(&self) -> Cow<'static, str> {
        match (self.has_others, self.has_unnamed, self.busy) {
            (true, true, _) => {
                "no job that ends at its separator; the records have no names of the addresses waited on"
                    .into()
            }
            (true, false, _) => "no job that ends at its separator".into(),
            (false, _, Some(busy)) => {
                let ms = Duration::from_ms(busy.ns() / 1_000_000);
                format!("no job was judged: it never waits, and used {ms} of processor time").into()
            }
            (false, _, None) => "no job".into(),
        }
    }

    /// All violations.
    pub fn violations(&self) -> u64 {
        self.standings.iter().map(|it| it.violations).fold(0, u64::saturating_add)
    }

    /// How a term stands, if it was agreed on.
    pub fn standing(&self, term: Term) -> Option<&Standing> {
        self.standings.iter().find(|it| it.term == term)
    }

    /// Takes a violation of a term that is there in any case, such as [`Term::Missing`].
    pub(crate) fn add(&mut self, violation: Violation, place: u64) {
        self.standing_of(violation.term, violation.agreed).count(violation, place);
    }

    fn standing_of(&mut self, term: Term, agreed: u64) -> &mut Standing {
        let position = self.standings.iter().position(|it| it.term == term);
        let position = position.unwrap_or_else(|| {
            self.standings.push(Standing::new(term, agreed));
            self.standings.len() - 1
        });
        &mut self.standings[position]
    }

    /// Adds the tally of other jobs of the same task, whose first `agreed` terms are the same. Examples, and
    /// terms after those, are kept in the order of the records.
    pub(crate) fn join(&mut self, theirs: Tally, agreed: usize) {
        self.threads = self.threads.saturating_add(theirs.threads);
        self.jobs = self.jobs.saturating_add(theirs.jobs);
        self.has_others |= theirs.has_others;
        self.has_unnamed |= theirs.has_unnamed;
        self.busy = self.busy.max(theirs.busy);
        for theirs in theirs.standings {
            self.standing_of(theirs.term, theirs.agreed).join(theirs);
        }
        self.standings[agreed..].sort_by_key(|it| it.places.0.first().copied());
    }

    /// What is to be done about something out of order: a violation, which is returned, or a note.
    pub(crate) fn answer(
        &mut self,
        answer: Answer,
        term: Term,
        text: &str,
        notes: &mut Vec<Note>,
    ) -> Option<Violation> {
        match answer {
            Answer::Ignore => None,
            Answer::Note => {
                notes.push(Note { task: self.task.clone(), text: text.to_owned() });
                None
            }
            Answer::Violation => {
                let violation =
                    Violation { task: self.task.clone(), term, subject: None, value: 0, agreed: 1 };
                self.add(violation.clone(), u64::MAX);
                Some(violation)
            }
        }
    }

    /// Notes about terms that so few jobs cannot break.
    pub(crate) fn not_judged(&self) -> impl Iterator<Item = Note> {
        let too_few = |standing: &Standing| {
            let least = standing.term.of_most()?.least_jobs();
            let name = standing.term.name().replace('_', " ");
            let text = format!("too few jobs to judge {name}: {} of {least}", self.jobs);
            (0 < self.jobs && self.jobs < least as u64).then(|| Note { task: self.task.clone(), text })
        };
        self.standings.iter().filter_map(too_few)
    }
}

impl Standing {
    pub(crate) fn new(term: Term, agreed: u64) -> Standing {
        let (worst, violations, tolerated, examples) = (None, 0, 0, Vec::new());
        Standing { term, agreed, worst, violations, tolerated, examples, places: Places::default() }
    }

    /// Takes a value; returns whether it breaks the term.
    pub(crate) fn see(&mut self, value: u64) -> bool {
        self.worst = Some(match (self.worst, self.term.is_lower_bound()) {
            (None, _) => value,
            (Some(worst), true) => worst.min(value),
            (Some(worst), false) => worst.max(value),
        });
        self.is_beyond(value)
    }

    /// Whether a value is beyond the limit.
    pub(crate) fn is_beyond(&self, value: u64) -> bool {
        match self.term.is_lower_bound() {
            true => value < self.agreed,
            false => value > self.agreed,
        }
    }

    /// A violation that was counted while its job was open, as it is now.
    pub(crate) fn amend(&mut self, violation: Violation) {
        let of = |it: &Violation| it.subject.as_ref().map(|it| (it.tid, it.phase, it.job));
        if let Some(example) =
            self.examples.iter_mut().rev().find(|it| it.is_open() && of(it) == of(&violation))
        {
            *example = violation;
        }
    }

    /// A violation, found in the record at `place`.
    pub(crate) fn count(&mut self, violation: Violation, place: u64) {
        self.violations = self.violations.saturating_add(1);
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(violation);
            self.places.0.push(place);
        }
    }

    fn join(&mut self, theirs: Standing) {
        if let Some(worst) = theirs.worst {
            self.see(worst);
        }
        self.violations = self.violations.saturating_add(theirs.violations);
        self.tolerated = self.tolerated.saturating_add(theirs.tolerated);
        let own = self.places.0.drain(..).zip(self.examples.drain(..));
        let mut all: Vec<(u64, Violation)> =
            own.chain(theirs.places.0.into_iter().zip(theirs.examples)).collect();
        all.sort_by_key(|(place, _)| *place);
        all.truncate(MAX_EXAMPLES);
        (self.places.0, self.examples) = all.into_iter().unzip();
    }
}
