//! Contracts of one run of a program that is disturbed now and then: further runs keep to them, and slower
//! programs do not. Runs are simulated, so that no machine has a say in it.

use crate::kept::{check, model};
use crate::records::begins;
use punctual_conformance::{Contract, Limits, Margin, Term, Verdict, check_model};
use punctual_model::{Call, Duration, Instant, Object, Percent, Separator, TimingModel, Window};
use punctual_trace::{Activation, Record, Resumed};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A sequence of numbers that look random (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }
}

/// A periodic program on a machine that disturbs it.
#[derive(Clone, Copy)]
struct Program {
    period: u64,
    cost: u64,
    jobs: u64,
    /// One job in so many is an outlier, and so is one release.
    one_in: u64,
}

/// Ten programs: from 1 to 50 ms, from few jobs to many. Of shorter jobs, 20 % is less than the kernel's
/// share varies by.
const PROGRAMS: [Program; 10] = {
    const fn program(period: u64, cost: u64, jobs: u64, one_in: u64) -> Program {
        Program { period, cost, jobs, one_in }
    }
    [
        program(MS, 200 * US, 1_500, 300),
        program(2 * MS, 300 * US, 1_000, 100),
        program(4 * MS, 150 * US, 500, 40),
        program(5 * MS, 200 * US, 400, 1_000),
        program(8 * MS, 2 * MS, 250, 60),
        program(10 * MS, MS, 200, 30),
        program(16_666_667, 300 * US, 120, 100),
        program(25 * MS, 400 * US, 80, 40),
        program(40 * MS, 10 * MS, 60, 100),
        program(50 * MS, 500 * US, 60, 100),
    ]
};

impl Program {
    /// The records of a run.
    fn run(self, seed: u64) -> Vec<Record> {
        let mut numbers = Numbers(seed.wrapping_mul(0x1234_5678_9abc_def1));
        let mut records = vec![begins(7, 0, 1_000)];
        let (mut now, mut cpu) = (10 * MS, 0);
        // A disturbance takes the processor during some jobs in a row.
        let mut disturbed = 0_u64;
        for job in 1..=self.jobs {
            if numbers.one_in(self.one_in * 4) {
                disturbed = 1 + numbers.below(4);
            }
            disturbed = disturbed.saturating_sub(1);
            let mut late = numbers.below(self.period / 100);
            if disturbed > 0 || numbers.one_in(self.one_in) {
                late += numbers.below(self.period);
            }
            let mut cost = self.cost + numbers.below(self.cost / 20);
            if disturbed > 0 || numbers.one_in(self.one_in) {
                cost += numbers.below(self.cost * 4);
            }
            let release = (10 * MS + job * self.period + late).max(now + 100);
            records.push(Record::Activation(Activation {
                tid: 7,
                sequence: job as u32,
                separator: Separator {
                    call: Call::ClockNanosleep,
                    object: Object::Clock { id: 1, absolute: true },
                },
                slept: true,
                stop: Instant::from_ns(now),
                cpu: Duration::from_ns(cpu),
                arrival: None,
                resumed: Some(Resumed::new(
                    Some(Window::at(Instant::from_ns(release))),
                    Instant::from_ns(release + 10),
                )),
            }));
            cpu += cost;
            now = release + 10 + cost + numbers.below(self.cost / 4);
        }
        let last = Instant::from_ns(now + self.period);
        records.push(Record::Exit { tid: 7, sequence: self.jobs as u32 + 1, at: last });
        records
    }

    fn slower(self, percent: u64) -> Program {
        Program { cost: self.cost * (100 + percent) / 100, ..self }
    }

    fn at_period(self, percent: u64) -> Program {
        Program { period: self.period * percent / 100, ..self }
    }
}

fn agreed(runs: &[Vec<Record>]) -> Contract {
    let models: Vec<TimingModel> = runs.iter().map(|run| model(run)).collect();
    let limits = Limits { margin: Margin::Percent(Percent::whole(20)), quantile: None };
    let contract = Contract::observed(&models, limits, &|_| true).contract;
    // As users have it.
    Contract::parse(&contract.to_toml()).expect("a contract")
}

fn broken(verdict: &Verdict) -> Vec<Term> {
    let standings = verdict.tallies.iter().flat_map(|tally| &tally.standings);
    standings.filter(|it| it.violations > 0).map(|it| it.term).collect()
}

#[test]
fn further_runs_keep_to_the_contract_of_one_and_slower_ones_do_not() {
    let mut broken_by_chance = Vec::new();
    for (number, program) in PROGRAMS.into_iter().enumerate() {
        for first in 0..2 {
            let contract = agreed(&[program.run(first)]);
            let check = |program: Program, seed: u64| broken(&check(&contract, &program.run(seed)).1);
            for run in 100..110 {
                let broken = check(program, run);
                if !broken.is_empty() {
                    broken_by_chance.push((number, first, run, broken));
                }
            }
            for seed in 200..202 {
                for (changed, term) in [
                    (program.slower(20), Term::QuartileCost),
                    (program.at_period(120), Term::Rare),
                    (program.at_period(80), Term::Frequent),
                ] {
                    let broken = check(changed, seed);
                    assert!(broken.contains(&term), "{number}, {first}: {broken:?}\n{}", contract.to_toml());
                }
            }
        }
    }
    // Of 200.
    assert!(broken_by_chance.len() <= 2, "{broken_by_chance:?}");
}

/// The same by the models of the runs.
#[test]
fn models_tell_what_records_tell() {
    for (number, program) in PROGRAMS.into_iter().enumerate() {
        let contract = agreed(&[program.run(1)]);
        let check = |program: Program| broken(&check_model(&contract, &model(&program.run(2))));
        assert_eq!(check(program), [], "{number}");
        assert!(check(program.slower(20)).contains(&Term::QuartileCost), "{number}");
    }
}

/// Terms that so few jobs cannot break are noted.
#[test]
fn terms_with_too_few_jobs_are_noted() {
    let program = PROGRAMS[9];
    let contract = agreed(&[program.run(1)]);
    let notes = |jobs: u64| {
        let (_, verdict) = check(&contract, &Program { jobs, ..program }.slower(50).run(2));
        verdict.notes.into_iter().map(|note| note.text).collect::<Vec<_>>()
    };
    assert_eq!(notes(31), ["too few jobs to judge quartile cost: 30 of 49"]);
    assert_eq!(notes(60), Vec::<String>::new());
}

/// A thread of which many jobs are more than a period late has no period in a contract, which is told.
#[test]
fn a_period_that_is_not_agreed_on_is_named() {
    let program = Program { cost: 6 * MS, one_in: 8, jobs: 600, ..PROGRAMS[5] };
    let model = model(&program.run(1));
    let periodic = model.tasks()[0].streams[0].arrival.periodic.as_ref();
    assert_eq!(periodic.map(|it| it.period_ns), Some(Duration::from_ms(10)));
    let limits = Limits { margin: Margin::Percent(Percent::whole(20)), quantile: None };
    let observed = Contract::observed(&[model], limits, &|_| true);
    assert_eq!((observed.contract.tasks[0].period, observed.without_period.len()), (None, 1));
}

/// Without a margin nothing is tolerated, and nothing typical is agreed on.
#[test]
fn without_a_margin_a_contract_is_what_was_observed() {
    let contract = Contract::from(&model(&PROGRAMS[3].run(1)));
    let task = &contract.tasks[0];
    assert_eq!((task.may_exceed, task.quartile_cost, task.median_separation), (None, None, None));
}

/// A contract of several runs covers all; of more jobs, fewer may exceed the limits.
#[test]
fn several_runs_are_covered() {
    let program = PROGRAMS[9];
    let runs = [program.run(1), program.slower(50).run(2), program.run(3)];
    let (one, all) = (agreed(&runs[..1]), agreed(&runs));
    for run in &runs {
        assert_eq!(broken(&check(&all, run).1), []);
    }
    assert!(broken(&check(&one, &runs[1]).1).contains(&Term::QuartileCost));
    let (one, all) = (&one.tasks[0], &all.tasks[0]);
    assert!(all.wcet >= one.wcet && all.quartile_cost > one.quartile_cost && all.response >= one.response);
    assert!(all.may_exceed < one.may_exceed, "{:?} {:?}", all.may_exceed, one.may_exceed);
}
