//! Writing a contract and reading it back.

use proptest::prelude::*;
use punctual_conformance::{
    Answer, Contract, ContractChain, ContractMode, ContractProcessor, ContractSource, ContractTask, Limits,
    Margin, MedianSeparation, Pattern,
};
use punctual_model::table::{Clock, OnOverrun};
use punctual_model::{Burst, Duration, Percent, Policy, Reservation};

fn some<T: std::fmt::Debug + Clone>(it: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::of(it)
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![any::<u64>(), 0..10_u64, (0..9_000_u64).prop_map(|ms| ms * 1_000_000)]
        .prop_map(Duration::from_ns)
}

fn positive() -> impl Strategy<Value = Duration> {
    time().prop_map(|time| time + Duration::from_ns(1))
}

/// Times for more in a row.
fn more_times(first: Duration, number: Option<u64>) -> Vec<Duration> {
    (1..number.unwrap_or(0)).map(|n| Duration::from_ns(first.ns().saturating_add(n * 1_000))).collect()
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z/:0-9-]{1,15}", "\\PC{1,8}", "[\u{0}-\u{9f}]{1,6}"]
}

fn glob() -> impl Strategy<Value = String> {
    name().prop_map(|name| glob::Pattern::escape(&name))
}

fn answer() -> impl Strategy<Value = Answer> {
    prop::sample::select(vec![Answer::Violation, Answer::Note, Answer::Ignore])
}

fn processors() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::btree_set(0..70_u32, 0..8).prop_map(|all| all.into_iter().collect())
}

fn thread() -> impl Strategy<Value = Pattern> {
    (some(glob()), some(glob()), some(glob()), name()).prop_map(|(comm, command, cgroup, unit)| Pattern {
        unit: comm.is_none().then_some(unit),
        comm,
        command,
        cgroup,
    })
}

/// None, or what is more than one period.
fn modes() -> impl Strategy<Value = Vec<ContractMode>> {
    let burst =
        some((2..100_u64, time())).prop_map(|it| it.map(|(jobs, within_ns)| Burst { jobs, within_ns }));
    let mode = (prop::collection::vec((positive(), time()), 1..4), any::<bool>(), burst, some(0..9_u64));
    let mode = mode.prop_map(|(sources, has_jitter, burst, skips)| {
        let burst = burst.filter(|_| sources.len() == 1);
        let source =
            |(period, jitter)| ContractSource { period, jitter: has_jitter.then_some(jitter), burst };
        ContractMode { sources: sources.into_iter().map(source).collect(), skips }
    });
    prop::collection::vec(mode, 0..4).prop_map(|mut modes| {
        let is_plain = |mode: &ContractMode| mode.sources.len() == 1 && mode.sources[0].burst.is_none();
        modes.truncate(if modes.len() == 1 && is_plain(&modes[0]) { 0 } else { modes.len() });
        modes
    })
}

fn task() -> impl Strategy<Value = ContractTask> {
    let times = (some((positive(), some(time()))), some(positive()), some(time()), some(time()));
    let more = (some(time()), some(time()), some(time()), some((positive(), positive(), positive())));
    let scheduling = (some(prop::sample::select(Policy::ALL.to_vec())), some(1..100_u32), processors());
    let counts = (some(0..=i64::MAX as u64), some(0..9_u64), some(0..9_u64), some(answer()));
    let on_overrun =
        prop::sample::select(vec![OnOverrun::Continue, OnOverrun::Skip, OnOverrun::Stop, OnOverrun::Tell]);
    let table = (prop::collection::vec(name(), 0..3), any::<bool>(), some(on_overrun));
    let typical = (some(0..=50_000_u64), some(time()), some((time(), time())));
    let known = (some(thread()), some(glob()), modes());
    (known, times, more, scheduling, counts, table, typical).prop_map(
        |((thread, separator, modes), times, more, scheduling, counts, table, typical)| ContractTask {
            proven: None,
            name: String::new(),
            thread,
            threads: counts.2.filter(|threads| *threads > 0),
            separator,
            period: times.0.filter(|_| modes.is_empty()).map(|it| it.0),
            jitter: times.0.filter(|_| modes.is_empty()).and_then(|it| it.1),
            skips: counts.0.filter(|_| times.0.is_some() && modes.is_empty()),
            separation: times.1.filter(|_| modes.is_empty()),
            more_separations: (times.1.filter(|_| modes.is_empty()))
                .map(|first| more_times(first, counts.1))
                .unwrap_or_default(),
            modes,
            wcet: times.2,
            more_wcets: times.2.map(|first| more_times(first, counts.2)).unwrap_or_default(),
            response: times.3,
            deadline: more.0,
            suspension: more.1,
            suspensions: counts.1,
            policy: scheduling.0,
            priority: scheduling.1,
            reservation: more.3.filter(|_| scheduling.0.is_none_or(|it| it == Policy::Deadline)).map(
                |(runtime_ns, deadline_ns, period_ns)| Reservation { runtime_ns, deadline_ns, period_ns },
            ),
            missing: counts.3,
            offset: more.2,
            after: table.0,
            processors: scheduling.2,
            exclusive: table.1,
            on_overrun: table.2,
            may_exceed: typical.0.map(Percent::of_parts),
            quartile_cost: typical.1,
            median_separation: typical
                .2
                .map(|(one, other)| MedianSeparation { least: one.min(other), most: one.max(other) }),
        },
    )
}

fn contract() -> impl Strategy<Value = Contract> {
    let clock = some(prop::sample::select(vec![Clock::Monotonic, Clock::Tai]));
    let head = (
        some(positive()),
        processors(),
        clock,
        any::<bool>(),
        some(answer()),
        [some(answer()), some(answer())],
    );
    let tasks = prop::collection::btree_map(name(), task(), 0..4);
    let chain = (prop::collection::vec(name(), 1..4), some(time()), some(time()));
    let chains = prop::collection::vec(chain, 0..3);
    let latencies = prop::collection::btree_map(any::<u32>(), time(), 0..3);
    (head, tasks, chains, latencies).prop_map(|(head, tasks, chains, latencies)| Contract {
        slot: head.0,
        processors: head.1,
        clock: head.2,
        migration: head.3,
        unknown_threads: head.4,
        tasks_without_jobs: head.5[0],
        scheduling: head.5[1],
        tasks: tasks.into_iter().map(|(name, task)| ContractTask { name, ..task }).collect(),
        chains: chains
            .into_iter()
            .map(|(tasks, reaction_time, data_age)| ContractChain { tasks, reaction_time, data_age })
            .collect(),
        latencies: latencies.into_iter().map(|(cpu, latency)| ContractProcessor { cpu, latency }).collect(),
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(contract in contract()) {
        let text = contract.to_toml();
        let read = Contract::parse(&text).map_err(|it| TestCaseError::fail(format!("{it:?}\n{text}")))?;
        prop_assert_eq!(&read, &contract, "{}", text);
        prop_assert_eq!(read.to_toml(), text);
    }
}

#[test]
fn margins_are_safe_and_short() {
    let model = crate::kept::model(&crate::records::ordinary(3, 3_000));
    let limits = Limits { margin: Margin::Percent(Percent::whole(20)), quantile: None };
    let runs = [model];
    let [exact, wide] =
        [Limits::default(), limits].map(|limits| Contract::observed(&runs, limits, &|_| true).contract);
    let [model] = runs;
    assert_eq!(Contract::from(&model), exact);
    assert!(!exact.tasks.is_empty());
    for (exact, wide) in exact.tasks.iter().zip(&wide.tasks) {
        assert_eq!(exact.period, wide.period);
        let (wcet, most) = (exact.wcet.expect("jobs").ns(), wide.wcet.expect("jobs").ns());
        assert!(wcet * 6 / 5 <= most && most <= wcet * 6 / 5 + wcet / 100, "{wcet} {most}");
        assert!(wide.response >= exact.response && wide.jitter >= exact.jitter);
    }
}
