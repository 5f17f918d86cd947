//! Measures time-triggered tables: how long it takes to make them, how many aperiodic jobs find room in them,
//! and what giving out slots costs the manager, with the task sets of the paper (Gala, Kadusale, Fohler,
//! Table I). `make bench-table` puts the tables into `docs/benchmarks.md`.

use punctual_bench::{Error, document};
use punctual_model::table::{Clock, OnOverrun};
use punctual_model::{Duration, Table, TableJob, TableTask, check};
use punctual_tables::making::{Request, make, replan};
use punctual_tables::slot_shifting::{JobId, Machine, Work};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use std::time::Instant;

const PROCESSORS: u32 = 15;
const SETS: u64 = 50;
/// The slots of each set, at least: with 50 sets 125,000 on each processor. A table is repeated until then.
const LEAST: u64 = 2_500;
/// Sets on which every arrival is also planned anew, which takes long.
const ANEW: u64 = 5;
/// Hyperperiods of 480 to 520 slots whose divisors from 15 to 50 are many.
const LENGTHS: [u64; 5] = [480, 486, 500, 504, 510];

/// Random numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// UUniFast (Bini and Buttazzo 2005): shares that sum up to `total`; discarded while one exceeds 1.
    fn shares(&mut self, count: usize, total: f64) -> Vec<f64> {
        loop {
            let mut sum = total;
            let mut shares = Vec::with_capacity(count);
            for left in (1..count).rev() {
                let next = sum * self.unit().powf(1.0 / left as f64);
                shares.push(sum - next);
                sum = next;
            }
            shares.push(sum);
            if shares.iter().all(|share| *share <= 1.0) {
                return shares;
            }
        }
    }
}

fn task(name: String, period: u64, wcet: u64) -> TableTask {
    TableTask {
        name,
        thread: None,
        period,
        wcet,
        offset: 0,
        deadline: period,
        processors: vec![],
        exclusive: false,
        after: vec![],
        on_overrun: OnOverrun::default(),
    }
}

/// Tasks for `processors` processors: periods of 15 to 50 slots that divide `length`, WCETs of 1 to 15 slots.
fn tasks(random: &mut Random, processors: u32, each: usize, utilization: f64, length: u64) -> Vec<TableTask> {
    let periods: Vec<u64> = (15..=50).filter(|period| length % period == 0).collect();
    let mut tasks = Vec::new();
    for processor in 0..processors {
        loop {
            let shares = random.shares(each, utilization);
            let parts: Vec<(u64, u64)> = shares
                .iter()
                .map(|share| {
                    let period = periods[random.within(0, periods.len() as u64 - 1) as usize];
                    (period, ((share * period as f64).round() as u64).clamp(1, 15))
                })
                .collect();
            let sum: f64 = parts.iter().map(|&(period, wcet)| wcet as f64 / period as f64).sum();
            // Rounding to slots changes the sum.
            if (sum - utilization).abs() < 0.02 {
                let named = parts.into_iter().enumerate();
                tasks.extend(
                    named.map(|(it, (period, wcet))| task(format!("t{processor}.{it}"), period, wcet)),
                );
                break;
            }
        }
    }
    tasks
}

fn request(processors: u32, migration: bool, tasks: Vec<TableTask>) -> Request {
    let slot = Duration::from_ms(3);
    Request { slot, clock: Clock::Monotonic, processors: (1..=processors).collect(), migration, tasks }
}

const COMMAND: &str = "make bench-table";

fn main() -> Result<(), Error> {
    making()?;
    acceptance()?;
    manager()
}

/// How long making takes.
fn making() -> Result<(), Error> {
    let mut rows = Vec::new();
    for (processors, length, utilization, migration) in [
        (1, 500, 0.9, false),
        (4, 1_000, 0.8, false),
        (4, 1_000, 0.95, true),
        (15, 5_040, 0.8, false),
        (15, 5_040, 0.8, true),
        (15, 5_040, 0.97, true),
    ] {
        let mut random = Random(1);
        let tasks = tasks(&mut random, processors, 6, utilization, length);
        let request = request(processors, migration, tasks);
        let begin = Instant::now();
        let table = make(&request).map_err(|refusal| refusal.to_string())?;
        let took = begin.elapsed();
        assert_eq!(check::table(&table), [], "a table that is wrong");
        rows.push([
            processors.to_string(),
            table.slots.to_string(),
            table.tasks.len().to_string(),
            table.jobs.len().to_string(),
            format!("{:.0} %", utilization * 100.0),
            table.method.to_string(),
            format!("{:.1} ms", took.as_secs_f64() * 1e3),
        ]);
    }
    let head = ["processors", "slots", "tasks", "jobs", "utilization", "method", "made in"];
    document::publish("tt-making", COMMAND, &head, &rows)
}

/// An aperiodic job: when it comes, its WCET, and its deadline.
#[derive(Clone, Copy)]
struct Arrival {
    at: u64,
    wcet: u64,
    deadline: u64,
}

/// Streams of jobs with WCETs of 10 to 15 slots, which need half of all processors together; gaps from a half
/// to one and a half of the mean.
fn arrivals(random: &mut Random, processors: u32, until: u64, deadlines: (u64, u64)) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for share in random.shares(processors as usize, 0.5 * f64::from(processors)) {
        let mean = 12.5 / share.max(0.01);
        let mut at = mean * random.unit();
        while (at as u64) < until {
            let wcet = random.within(10, 15);
            let relative = random.within(deadlines.0, deadlines.1).max(wcet);
            arrivals.push(Arrival { at: at as u64, wcet, deadline: at as u64 + relative });
            at += mean * (0.5 + random.unit());
        }
    }
    arrivals.sort_by_key(|arrival| arrival.at);
    arrivals
}

#[derive(Default)]
struct Outcome {
    arrived: u64,
    accepted: u64,
    in_time: u64,
    slots: u64,
    /// Slots of jobs of the table that were not given by their deadlines.
    missed: u64,
}

/// The table of a set: 50 % of each processor, on average.
fn table_of(random: &mut Random, set: u64, processors: u32) -> Table {
    let length = LENGTHS[set as usize % LENGTHS.len()];
    loop {
        let tasks = tasks(random, processors, 5, 0.5, length);
        if let Ok(table) = make(&request(processors, false, tasks)) {
            return table;
        }
    }
}

fn acceptance() -> Result<(), Error> {
    let mut rows = Vec::new();
    for (name, deadlines) in [
        ("10–15 slots", (10, 15)),
        ("15–50 slots", (15, 50)),
        ("50–100 slots", (50, 100)),
        ("100–200 slots", (100, 200)),
    ] {
        let (mut shifted, mut few, mut background, mut anew) = Default::default();
        for set in 0..SETS {
            let mut random = Random(set + 1);
            let table = table_of(&mut random, set, PROCESSORS);
            let until = LEAST.next_multiple_of(table.slots);
            let jobs = arrivals(&mut random, PROCESSORS, until, deadlines);
            shift(&table, &jobs, until, &mut shifted);
            serve_in_background(&table, &jobs, until, &mut background);
            if set < ANEW {
                shift(&table, &jobs, until, &mut few);
                plan_anew(&table, &jobs, until, &mut anew);
            }
        }
        let percent = |part: u64, whole: u64| format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64);
        let Outcome { arrived, accepted, in_time, slots, missed } = shifted;
        rows.push([
            name.to_owned(),
            arrived.to_string(),
            percent(accepted, arrived),
            format!("{in_time} of {accepted}"),
            slots.to_string(),
            missed.to_string(),
            percent(background.in_time, background.arrived),
            percent(few.accepted, few.arrived),
            percent(anew.accepted, anew.arrived),
        ]);
    }
    let head = [
        "deadline of a job",
        "jobs",
        "accepted",
        "of these in time",
        "slots (processors × time)",
        "missed by the table",
        "background server, in time",
        &format!("accepted in {ANEW} sets"),
        "planned anew with migration",
    ];
    document::publish("tt-acceptance", COMMAND, &head, &rows)
}

/// What the manager costs: giving out the next slot of all processors, and the test of a job, while jobs
/// arrive as in the paper's sets.
fn manager() -> Result<(), Error> {
    let mut rows = Vec::new();
    for processors in [1, 4, PROCESSORS] {
        let (mut slots, mut tests) = (Vec::new(), Vec::new());
        for set in 0..SETS {
            let mut random = Random(set + 1);
            let table = table_of(&mut random, set, processors);
            let until = LEAST.next_multiple_of(table.slots);
            let jobs = arrivals(&mut random, processors, until, (50, 100));
            let mut coming = jobs.iter().filter(|job| job.deadline <= until).peekable();
            let mut machine = Machine::new(&table).map_err(|error| error.to_string())?;
            for now in 0..until {
                while let Some(job) = coming.next_if(|job| job.at == now) {
                    let wcet = NonZeroU64::new(job.wcet).ok_or("a job without work")?;
                    let begin = Instant::now();
                    let _ = std::hint::black_box(machine.accept(wcet, job.deadline));
                    tests.push(begin.elapsed().as_nanos() as u64);
                }
                let begin = Instant::now();
                std::hint::black_box(machine.next_slot());
                slots.push(begin.elapsed().as_nanos() as u64);
            }
        }
        let mut row = vec![processors.to_string(), slots.len().to_string()];
        for times in [&mut slots, &mut tests] {
            times.sort_unstable();
            let at = |share: f64| times[((times.len() as f64 * share) as usize).min(times.len() - 1)];
            row.extend([0.5, 0.99, 0.9999, 1.0].map(|share| format!("{:.2}", at(share) as f64 / 1e3)));
        }
        rows.push(<[String; 10]>::try_from(row).map_err(|_| "a row is short")?);
    }
    let head = [
        "processors",
        "slots",
        "a slot of all of them, µs: p50",
        "p99",
        "p99.99",
        "greatest",
        "test of a job, µs: p50",
        "p99",
        "p99.99",
        "greatest",
    ];
    document::publish("tt-manager", COMMAND, &head, &rows)
}

/// Slot shifting. Jobs that cannot end before `until` are left out, by all methods.
fn shift(table: &Table, arrivals: &[Arrival], until: u64, outcome: &mut Outcome) {
    let mut machine = Machine::new(table).expect("a table that was checked");
    let mut left: BTreeMap<(u32, JobId), (u64, u64)> = BTreeMap::new();
    let mut given: BTreeMap<(u64, usize), u64> = BTreeMap::new();
    let mut coming = arrivals.iter().filter(|job| job.deadline <= until).peekable();
    for now in 0..until {
        while let Some(job) = coming.next_if(|job| job.at == now) {
            outcome.arrived += 1;
            let wcet = NonZeroU64::new(job.wcet).expect("not zero");
            if let Ok(accepted) = machine.accept(wcet, job.deadline) {
                outcome.accepted += 1;
                left.insert((accepted.processor, accepted.job), (job.wcet, job.deadline));
            }
        }
        for served in machine.next_slot().into_iter().flatten() {
            match served.work {
                Work::Planned { job, .. } => *given.entry((now / table.slots, job)).or_default() += 1,
                Work::Aperiodic(job) => {
                    let (slots, deadline) = left.get_mut(&(served.processor, job)).expect("accepted");
                    *slots -= 1;
                    outcome.in_time += u64::from(*slots == 0 && now < *deadline);
                }
                Work::Added(_) => {}
            }
        }
    }
    // A slot after a deadline would be in another window, or none: `Processor` gives none.
    for repetition in 0..until / table.slots {
        for (place, job) in table.jobs.iter().enumerate() {
            outcome.missed += job.slots - given.get(&(repetition, place)).copied().unwrap_or(0);
        }
    }
    outcome.slots += until * table.processors.len() as u64;
}

/// Slots as in the table; what is idle goes to the job that came first, on whatever processor, until its
/// deadline.
fn serve_in_background(table: &Table, arrivals: &[Arrival], until: u64, outcome: &mut Outcome) {
    let mut queue: VecDeque<(u64, u64)> = VecDeque::new();
    let mut coming = arrivals.iter().filter(|job| job.deadline <= until).peekable();
    for now in 0..until {
        while let Some(job) = coming.next_if(|job| job.at == now) {
            outcome.arrived += 1;
            queue.push_back((job.wcet, job.deadline));
        }
        queue.retain(|&(_, deadline)| deadline > now);
        let is_idle = |processor: &&u32| table.job_at(**processor, now % table.slots).is_none();
        let idle = table.processors.iter().filter(is_idle).count();
        for (left, _) in queue.iter_mut().take(idle) {
            *left -= 1;
            outcome.in_time += u64::from(*left == 0);
        }
        queue.retain(|&(left, _)| left > 0);
    }
}

/// At each arrival all remaining jobs are planned anew, with migration: an upper bound for any test.
fn plan_anew(table: &Table, arrivals: &[Arrival], until: u64, outcome: &mut Outcome) {
    let mut jobs: Vec<TableJob> = Vec::new();
    for start in (0..until).step_by(table.slots as usize) {
        jobs.extend(table.jobs.iter().map(|job| TableJob {
            task: 0,
            release: job.release + start,
            deadline: job.deadline + start,
            slots: job.slots,
        }));
    }
    let mut coming = arrivals.iter().filter(|job| job.deadline <= until).peekable();
    // Which job has each slot of each processor, from `begun` on.
    let (mut plan, mut begun, mut end) = (Vec::new(), 0, 0);
    for now in 0..until {
        let mut due: Vec<Option<Arrival>> = Vec::new();
        while let Some(job) = coming.next_if(|job| job.at == now) {
            due.push(Some(*job));
        }
        if now == end {
            due.push(None);
        }
        for job in due {
            let latest =
                jobs.iter().filter(|job| job.slots > 0 && job.release <= now).map(|job| job.deadline);
            let latest = latest.chain(job.map(|job| job.deadline)).max().unwrap_or(now + 1);
            let boundary = latest.next_multiple_of(table.slots).max(now + 1);
            let mut places: Vec<usize> =
                (0..jobs.len()).filter(|&it| jobs[it].slots > 0 && jobs[it].deadline <= boundary).collect();
            if let Some(Arrival { wcet, deadline, .. }) = job {
                outcome.arrived += 1;
                places.push(jobs.len());
                jobs.push(TableJob { task: 0, release: now, deadline, slots: wcet });
            }
            let later = |it: &usize| {
                let TableJob { release, deadline, slots, .. } = jobs[*it];
                TableJob { task: 0, release: release.max(now) - now, deadline: deadline - now, slots }
            };
            let shifted: Vec<TableJob> = places.iter().map(later).collect();
            match replan(&shifted, &table.processors, boundary - now) {
                Some(runs) => {
                    outcome.accepted += u64::from(job.is_some());
                    plan = vec![Vec::new(); (boundary - now) as usize];
                    for run in runs {
                        (run.from..run.to).for_each(|slot| plan[slot as usize].push(places[run.job]));
                    }
                    (begun, end) = (now, boundary);
                }
                None => {
                    assert!(job.is_some(), "the table itself is feasible");
                    jobs.pop();
                }
            }
        }
        for &job in &plan[(now - begun) as usize] {
            jobs[job].slots -= 1;
        }
    }
}
