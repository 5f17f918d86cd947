//! What timing models and contracts say of each task, joined by its name: what was agreed on replaces what
//! was observed.

use super::{Options, ThreadPattern};
use crate::error::{Error, Result};
use crate::filter::ThreadFilter;
use crate::monitor::Monitor;
use crate::specs::{self, Choice, Quantile};
use punctual_client::Parameters;
use punctual_conformance::{Contract, ContractTask};
use punctual_model::table::{Clock, Table, TableTask};
use punctual_model::{Duration, Platform, TimingModel};
use punctual_report::time_table::TaskRow;
use punctual_tables::making::{SlotError, Timing, in_slots};

/// A thread with fewer jobs than this says little about its period and cost.
const LEAST_JOBS: u64 = 10;

/// Everything that the inputs say.
#[derive(Default)]
pub(super) struct Declared {
    pub slot: Option<Duration>,
    pub processors: Vec<u32>,
    pub clock: Option<Clock>,
    pub migration: bool,
    pub platform: Option<Platform>,
    /// The names of all threads, whether they get a place or not.
    threads: Vec<String>,
    observed: Vec<Observed>,
    agreed: Vec<ContractTask>,
    /// Of contracts: all of their tasks must be there.
    chains: Vec<Vec<String>>,
    /// Those for which a contract has times.
    timed: Vec<Vec<String>>,
    /// Of dataflow programs: those that are about tasks of the table.
    traced: Vec<Vec<String>>,
}

/// A task as a timing model has it, with the margin.
struct Observed {
    name: String,
    period: Duration,
    wcet: Duration,
}

impl Declared {
    pub fn add_contract(&mut self, contract: Contract, file: &str) -> Result<()> {
        if let Some(task) =
            contract.tasks.iter().find(|task| self.agreed.iter().any(|it| it.name == task.name))
        {
            return Err(Error::usage(format!(
                "{file} declares {}, which an earlier contract declares, too",
                task.name
            )));
        }
        self.slot = contract.slot.or(self.slot);
        self.clock = contract.clock.or(self.clock);
        self.migration |= contract.migration;
        if !contract.processors.is_empty() {
            self.processors = contract.processors;
        }
        if let Some(task) = contract.tasks.iter().find(|task| task.pattern().table().is_none()) {
            return Err(Error::usage(format!("{file}: the threads of {} are those of a unit", task.name))
                .advise("a table knows threads by comm, command and cgroup"));
        }
        self.agreed.extend(contract.tasks);
        // Those with times are about a dataflow program, whose tasks need not be in the table.
        let (timed, ordered): (Vec<_>, Vec<_>) =
            contract.chains.into_iter().partition(|chain| chain.has_times());
        self.timed.extend(timed.iter().map(|chain| chain.tasks.clone()));
        self.traced.extend(timed.into_iter().map(|chain| chain.tasks));
        self.chains.extend(ordered.into_iter().map(|chain| chain.tasks));
        Ok(())
    }

    pub fn add_model(
        &mut self,
        model: &TimingModel,
        file: &str,
        options: &Options,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.platform = self.platform.take().or(model.platform.clone());
        let chains = model.dataflow.iter().flat_map(|program| &program.chains);
        self.traced.extend(chains.map(|chain| chain.tasks.clone()));
        self.threads.extend(model.tasks().iter().map(|task| task.name.clone()));
        let choice = Choice {
            margin: options.margin,
            quantile: Quantile::ALL,
            min_jobs: LEAST_JOBS,
            only: options.threads.clone(),
            without: ThreadFilter::default(),
            keep_priorities: false,
        };
        let needs = specs::needs(model, &choice, &Parameters::default());
        for thread in &needs.unserved {
            monitor.warn(&format!(
                "{} of {file} is left out of the table: {}. Declare it in a contract to include it",
                thread.name,
                thread.reason.explanation(),
            ));
        }
        for need in needs.needs {
            if self.observed.iter().any(|it| it.name == need.name) {
                let problem = format!("{file} has more than one thread named {}", need.name);
                return Err(Error::usage(problem)
                    .advise("select one with --thread, or tell them apart with thread = {…} in a contract"));
            }
            let Parameters { period: Some(period), runtime: Some(wcet), .. } = need.parameters else {
                continue;
            };
            self.observed.push(Observed { name: need.name, period, wcet });
        }
        Ok(())
    }

    /// Fails if a pattern matches no thread of any model.
    pub fn check_patterns(&self, filter: &ThreadFilter) -> Result<()> {
        match filter.unmatched(self.threads.iter().map(String::as_str)) {
            Some(pattern) => {
                Err(Error::target(format!("no thread of the timing models matches '{pattern}'")))
            }
            None => Ok(()),
        }
    }

    /// All tasks in slots: those of models, then those that only contracts have.
    pub fn tasks(&self, slot: Duration, shorten: bool, monitor: &dyn Monitor) -> Result<Vec<TableTask>> {
        let observed = self.observed.iter().map(|task| task.name.as_str());
        let agreed = self.agreed.iter().map(|task| task.name.as_str());
        let mut names: Vec<&str> = observed.collect();
        names.extend(agreed.filter(|name| !self.observed.iter().any(|task| task.name == *name)));
        if names.is_empty() {
            return Err(Error::target("no tasks for a table")
                .advise("a table needs threads with a period and a cost; a contract can declare them"));
        }
        let tasks: Vec<(TableTask, u64)> =
            names.iter().map(|name| self.task(name, slot, shorten, monitor)).collect::<Result<_>>()?;
        let (tasks, skipped): (Vec<TableTask>, Vec<u64>) = tasks.into_iter().unzip();
        self.ordered(tasks, &skipped, slot)
    }

    /// A task, and how many periods it begins later than the table.
    fn task(
        &self,
        name: &str,
        slot: Duration,
        shorten: bool,
        monitor: &dyn Monitor,
    ) -> Result<(TableTask, u64)> {
        let observed = self.observed.iter().find(|task| task.name == name);
        let agreed = self.agreed.iter().find(|task| task.name == name).cloned().unwrap_or_default();
        let known = |what: &str, agreed: Option<Duration>, observed: Option<Duration>| {
            agreed.or(observed).ok_or_else(|| {
                Error::usage(format!("the {what} of {name} is unknown"))
                    .advise(format!("write {what} = \"…\" in its contract, or give a timing model of it"))
            })
        };
        if let Some(threads) = agreed.threads.filter(|threads| *threads != 1) {
            monitor.warn(&format!("{name} has {threads} threads; the table has slots for one"));
        }
        if agreed.jitter.is_some_and(|jitter| !jitter.is_zero()) {
            monitor.warn(&format!("{name}: the table has activations without jitter"));
        }
        if !agreed.modes.is_empty() {
            let problem = format!("{name} has several periods, bursts or modes; a table needs one period");
            return Err(Error::usage(problem).advise("declare one task for each period, or leave it out"));
        }
        let period = known("period", agreed.period, observed.map(|task| task.period))?;
        let wcet = known("wcet", agreed.wcet, observed.map(|task| task.wcet))?;
        let deadline = agreed.deadline.unwrap_or(period);
        let timing = Timing { period, wcet, offset: agreed.offset.unwrap_or_default(), deadline };
        let slots = in_slots(timing, slot, shorten).map_err(|error| {
            let advice = match error {
                SlotError::Deadline => "a job must end before the next one of its task begins",
                SlotError::Wcet { .. } if wcet > deadline => "its WCET is longer than its deadline",
                _ => "choose another length with --slot, or the next shorter period with --shorten-periods",
            };
            let error_of = Error::usage(format!("{name} does not fit into slots of {slot}")).because(error);
            error_of.advise(advice)
        })?;
        let length = Duration::from_ns(slots.period * slot.ns());
        if length != period {
            monitor.warn(&format!("{name}: the table has a period of {length} instead of {period}"));
        }
        let task = TableTask {
            name: name.to_owned(),
            thread: agreed
                .thread
                .and_then(|thread| thread.table())
                .or_else(|| observed.map(|task| pattern(&task.name))),
            period: slots.period,
            wcet: slots.wcet,
            offset: slots.offset,
            deadline: slots.deadline,
            processors: agreed.processors,
            exclusive: agreed.exclusive,
            after: Vec::new(),
            on_overrun: agreed.on_overrun.unwrap_or_default(),
        };
        Ok((task, slots.skipped))
    }

    /// Warns of what a contract demands and tables are not made for: response times, and times of chains.
    pub fn warn_of_times(&self, table: &Table, monitor: &dyn Monitor) {
        for row in TaskRow::all(table) {
            let name = &row.task().name;
            let agreed = self.agreed.iter().find(|task| task.name == *name).and_then(|task| task.response);
            let Some((agreed, slots)) = agreed.zip(row.response()) else { continue };
            let response = Duration::from_ns(slots.saturating_mul(table.slot_ns.ns()));
            if response > agreed {
                monitor.warn(&format!(
                    "{name}: the table has a response time of {response}, more than the {agreed} in its \
                     contract; deadline = \"{agreed}\" would enforce it"
                ));
            }
        }
        let is_here = |name: &String| table.tasks.iter().any(|task| task.name == *name);
        for chain in self.timed.iter().filter(|chain| chain.iter().all(is_here)) {
            let chain = chain.join(" -> ");
            monitor.warn(&format!(
                "{chain}: the table keeps this order, but the times of the chain were not checked"
            ));
        }
    }

    /// Adds the order that `after` and chains demand.
    fn ordered(&self, mut tasks: Vec<TableTask>, skipped: &[u64], slot: Duration) -> Result<Vec<TableTask>> {
        let place = |name: &str| tasks.iter().position(|task| task.name == name);
        let mut pairs = Vec::new();
        for task in &self.agreed {
            pairs.extend(task.after.iter().map(|before| (before.as_str(), task.name.as_str())));
        }
        let is_known = |chain: &&Vec<String>| chain.iter().all(|name| place(name).is_some());
        for chain in self.chains.iter().chain(self.traced.iter().filter(is_known)) {
            pairs.extend(chain.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str())));
        }
        let mut order = Vec::new();
        for (before, after) in pairs {
            let unknown = |name| {
                Error::usage(format!("no task is named {name}, which other tasks run after or before"))
            };
            let before = place(before).ok_or_else(|| unknown(before))?;
            order.push((before, place(after).ok_or_else(|| unknown(after))?));
        }
        for (before, after) in order {
            let (one, other) = (&tasks[before], &tasks[after]);
            if one.period != other.period {
                let problem = format!("{} cannot run after {}", other.name, one.name);
                let periods = format!("their periods are {} and {} slots", other.period, one.period);
                return Err(Error::usage(problem).because(periods));
            }
            if skipped[before] != skipped[after] {
                // The table would join activations of different numbers.
                let problem = format!("{} cannot run after {}", other.name, one.name);
                let why = format!(
                    "in slots of {slot}, {} first begins in period {}, and {} in period {}",
                    one.name,
                    skipped[before] + 1,
                    other.name,
                    skipped[after] + 1
                );
                return Err(Error::usage(problem)
                    .because(why)
                    .advise("choose offsets within the period, or another length with --slot"));
            }
            if !tasks[after].after.contains(&before) {
                tasks[after].after.push(before);
            }
        }
        match circle(&tasks) {
            Some(circle) => {
                let name = |at: usize| &tasks[circle[at % circle.len()]].name;
                let each = (0..circle.len()).map(|at| format!("{} runs after {}", name(at), name(at + 1)));
                let each: Vec<String> = each.collect();
                Err(Error::usage("tasks would wait for each other").because(each.join(", ")))
            }
            None => Ok(tasks),
        }
    }
}

/// Tasks each of which waits for the next, and the last for the first, if there are any.
fn circle(tasks: &[TableTask]) -> Option<Vec<usize>> {
    // A task that waits for none of those left is not part of a circle.
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    loop {
        let waits = |task: &usize| tasks[*task].after.iter().any(|before| left.contains(before));
        let waiting: Vec<usize> = left.iter().copied().filter(waits).collect();
        if waiting.len() == left.len() {
            break;
        }
        left = waiting;
    }
    // Every task left waits for another that is left, so following them comes back to one.
    let mut way = vec![*left.first()?];
    loop {
        let last = way[way.len() - 1];
        let next = *tasks[last].after.iter().find(|before| left.contains(before))?;
        match way.iter().position(|&task| task == next) {
            Some(from) => return Some(way.split_off(from)),
            None => way.push(next),
        }
    }
}

/// A glob that matches only this name.
fn pattern(name: &str) -> ThreadPattern {
    ThreadPattern { comm: Some(glob::Pattern::escape(name)), ..ThreadPattern::default() }
}
