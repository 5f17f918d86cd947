//! Random separators, streams and whole models, for the laws.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use punctual_model::dataflow::*;
use punctual_model::*;

/// Whatever the type can hold.
pub fn separator() -> impl Strategy<Value = Separator> {
    (select(Call::ALL), object()).prop_map(|(call, object)| Separator { call, object })
}

fn object() -> impl Strategy<Value = Object> {
    let clock = prop_oneof![-1..13_i32, any::<i32>()];
    let identity = prop_oneof![Just(0), 1..1_u64 << 30, any::<u64>()];
    prop_oneof![
        Just(Object::None),
        (clock, any::<bool>()).prop_map(|(id, absolute)| Object::Clock { id, absolute }),
        (select(FileClass::ALL), any::<i32>(), identity).prop_map(|(class, fd, identity)| Object::File {
            class,
            fd,
            identity
        }),
        (any::<u64>(), option::of(name())).prop_map(|(address, name)| Object::Address { address, name }),
        any::<i32>().prop_map(Object::Id),
        Just(Object::Others),
    ]
}

/// Of few texts: a process has room for many names, not for all.
fn name() -> impl Strategy<Value = ObjectName> {
    let text = ("[a-z]{1,2}(\\.so)?", prop_oneof!["\\+0x[0-9]0", ":[a-c]{1,2}", ":[a-c]\\+0x8"]);
    text.prop_map(|(module, place)| ObjectName::new(&format!("{module}{place}")).expect("a name"))
}

pub fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![0..1_000_u64, 0..10_000_000_000_u64, any::<u64>()].prop_map(Duration::from_ns)
}

/// Releases in order, of which some are windows.
pub fn releases(most: usize) -> impl Strategy<Value = Vec<Release>> {
    // Gap from the last sure release, width of the window, and whether to fall back on the window before, as
    // back to back jobs do.
    let step = (0..40_u64, prop_oneof![3 => Just(0), 1 => 0..60_u64], prop::bool::weighted(0.2));
    vec(step, 1..most).prop_map(|steps| {
        let (mut earliest, mut latest) = (100, 100);
        let releases = steps.into_iter().map(|(gap, width, is_back_to_back)| {
            earliest = if is_back_to_back { earliest } else { latest + gap };
            latest = latest.max(earliest) + width;
            let window = Window::new(Instant::from_ns(earliest), Instant::from_ns(latest))
                .expect("earliest <= latest");
            Release { arrival: None, window }
        });
        releases.collect()
    })
}

/// An instant inside each window, in order.
pub fn placement(releases: &[Release], choices: &[u64]) -> Vec<u64> {
    let mut before = 0;
    let instants = releases.iter().zip(choices.iter().cycle()).map(|(release, choice)| {
        let (earliest, latest) = (release.window.earliest().ns().max(before), release.window.latest().ns());
        before = earliest + choice % (latest - earliest + 1);
        before
    });
    instants.collect()
}

/// Releases seen exactly at these instants.
pub fn exactly(instants: &[u64]) -> Vec<Release> {
    instants.iter().map(|ns| Release { arrival: None, window: Window::at(Instant::from_ns(*ns)) }).collect()
}

pub fn spans(ns: &[u64]) -> Vec<Duration> {
    ns.iter().copied().map(Duration::from_ns).collect()
}

/// The tightest curve that placements of these releases obey, from its definition.
pub fn curve_of(releases: &[Release], horizon: usize) -> Curve {
    let over = |gaps: usize| releases.windows(gaps + 1).map(move |run| (run[0].window, run[gaps].window));
    let gaps = 1..=horizon.min(releases.len().saturating_sub(1));
    Curve {
        delta_min_ns: gaps
            .clone()
            .filter_map(|n| over(n).map(|(a, b)| b.earliest().since(a.latest())).min())
            .collect(),
        delta_max_ns: gaps
            .filter_map(|n| over(n).map(|(a, b)| b.latest().since(a.earliest())).max())
            .collect(),
    }
}

/// Numbers that never decrease.
fn rising(length: usize) -> impl Strategy<Value = Vec<Duration>> {
    vec(0..1_u64 << 40, length).prop_map(|mut values| {
        values.sort_unstable();
        spans(&values)
    })
}

fn curve() -> impl Strategy<Value = Curve> {
    (0..40_usize).prop_flat_map(|length| (rising(length), rising(length))).prop_map(|(one, other)| Curve {
        delta_min_ns: one.iter().zip(&other).map(|(a, b)| *a.min(b)).collect(),
        delta_max_ns: one.iter().zip(&other).map(|(a, b)| *a.max(b)).collect(),
    })
}

fn periodic() -> impl Strategy<Value = Periodic> {
    let on = select(&[PeriodicOn::Arrival, PeriodicOn::Release]);
    let choice = select(&[Choice::Rounded, Choice::Estimated, Choice::LeastJitter]);
    let period = (1..1_u64 << 40, option::of((2..1_000_u64, 0..1_000_u64)));
    let slips = (vec((any::<u64>(), any::<i64>()), 0..MAX_SLIPS + 1), any::<(u32, u32)>());
    (on, period, any::<i64>(), (duration(), duration()), choice, any::<bool>(), slips, option::of(typical()))
        .prop_map(
            |(
                on,
                (period, part),
                offset_ns,
                (jitter_ns, least_jitter_ns),
                choice,
                approximate,
                (slips, more),
                typical,
            )| {
                let mut slips: Vec<Slip> = slips
                    .into_iter()
                    .map(|(at, slip)| Slip { at_ns: Instant::from_ns(at), activations: slip >> 4 | 1 })
                    .collect();
                slips.sort_by_key(|slip| slip.at_ns);
                let sum = |sign: i64| {
                    slips.iter().map(|slip| u64::try_from(slip.activations * sign).unwrap_or(0)).sum::<u64>()
                };
                // There can only be more than are listed where the list is full.
                let more = if slips.len() == MAX_SLIPS { more } else { (0, 0) };
                Periodic {
                    on,
                    period_ns: Duration::from_ns(period),
                    period_exact: part.map(|(denominator, part)| {
                        let numerator = period * denominator + part % denominator;
                        Fraction { numerator, denominator }
                    }),
                    offset_ns,
                    jitter_ns,
                    least_jitter_ns,
                    choice,
                    approximate,
                    skipped: sum(1) + u64::from(more.0),
                    extra: sum(-1) + u64::from(more.1),
                    slips,
                    typical: typical
                        .map(|typical| Typical { jitter_ns: typical.jitter_ns.min(jitter_ns), ..typical }),
                }
            },
        )
}

fn typical() -> impl Strategy<Value = Typical> {
    let reason = option::of(select(&[Disturbance::Signal, Disturbance::Ending, Disturbance::Stall]));
    let left_out = (any::<u64>(), any::<i64>(), reason).prop_map(|(at, off, reason)| {
        let off_ns = if off == 0 { 1 } else { off };
        LeftOut { at_ns: Instant::from_ns(at), off_ns, reason }
    });
    (any::<i64>(), duration(), vec(left_out, 0..MAX_EARLY + 1)).prop_map(
        |(offset_ns, jitter_ns, mut left_out)| {
            left_out.sort_by_key(|release| release.at_ns);
            Typical { offset_ns, jitter_ns, left_out }
        },
    )
}

fn mode() -> impl Strategy<Value = Mode> {
    let burst = option::of((2..u64::MAX, duration()).prop_map(|(jobs, within_ns)| Burst { jobs, within_ns }));
    let source = (1..u64::MAX, any::<i64>(), duration(), any::<bool>(), any::<u64>(), burst).prop_map(
        |(period, offset_ns, jitter_ns, has_outliers, activations, burst)| Source {
            period_ns: Duration::from_ns(period),
            period_exact: None,
            offset_ns,
            jitter_ns,
            usual_jitter_ns: has_outliers.then_some(Duration::ZERO),
            activations,
            burst,
        },
    );
    (any::<u64>(), any::<u64>(), vec(source, 0..3)).prop_map(|(at, releases, sources)| Mode {
        from_ns: Instant::from_ns(at),
        until_ns: Instant::from_ns(at),
        releases,
        sources,
    })
}

fn percentiles() -> impl Strategy<Value = Percentiles> {
    let quantiles = || {
        option::of(rising(6).prop_map(|values| Quantiles {
            p10_ns: Some(values[0]),
            p25_ns: Some(values[1]),
            p50_ns: values[2],
            p90_ns: values[3],
            p99_ns: values[4],
            p999_ns: values[5],
        }))
    };
    (quantiles(), quantiles(), quantiles()).prop_map(|(lateness, cost, response)| Percentiles {
        lateness,
        cost,
        response,
    })
}

fn stream() -> impl Strategy<Value = Stream> {
    let counts = (any::<u32>(), any::<bool>(), any::<bool>(), any::<bool>());
    let arrival = (option::of(periodic()), option::of(duration()), option::of(curve()), vec(mode(), 0..3));
    let bound =
        (duration(), duration()).prop_map(|(suspended_ns, cost_ns)| SegmentBound { suspended_ns, cost_ns });
    let suspension = (duration(), vec(vec(bound, 1..4), 0..4));
    let execution = ((1..40_usize).prop_flat_map(rising), option::of(duration()));
    let models =
        (option::of(execution), option::of(suspension), option::of((duration(), option::of(duration()))));
    (separator(), counts, arrival, models, option::of(percentiles())).prop_map(
        |(
            separator,
            (jobs, more, windows, back),
            (periodic, sporadic, curve, mut modes),
            (execution, suspension, response),
            percentiles,
        )| {
            modes.sort_by_key(|mode| mode.from_ns);
            let late = periodic.as_ref().filter(|_| windows).map(|_| u64::from(jobs / 2));
            Stream {
                separator,
                jobs: jobs.into(),
                releases: u64::from(jobs) + u64::from(more),
                uncertain_releases: if windows { jobs.into() } else { 0 },
                back_to_back: if windows && back { jobs.into() } else { 0 },
                arrival: Arrival {
                    periodic,
                    sporadic: sporadic.map(|min_separation_ns| Sporadic { min_separation_ns }),
                    curve,
                    modes,
                },
                execution: execution.map(|(wcet_ns, mean_ns)| Execution { wcet_ns, mean_ns }),
                suspension: suspension.map(|(dynamic_ns, segmented)| Suspension { dynamic_ns, segmented }),
                response: response.map(|(max_ns, mean_ns)| Response {
                    max_ns,
                    certain_max_ns: windows.then_some(Duration::from_ns(max_ns.ns() / 2)),
                    mean_ns,
                }),
                late,
                percentiles,
            }
        },
    )
}

fn task() -> impl Strategy<Value = Task> {
    use EndedBy::*;
    let ended_by = select(&[ObservationEnd, PolicyChange, PriorityChange, AffinityChange, Exec, Exit, Loss]);
    let policy = select(&[
        Policy::Other,
        Policy::Fifo,
        Policy::Rr,
        Policy::Batch,
        Policy::Idle,
        Policy::Deadline,
        Policy::Ext,
    ]);
    let reservation = option::of((any::<u64>(), any::<u64>(), 1..u64::MAX));
    let scheduling = (policy, 0..100_u32, option::of(-20..20_i32), reservation, ended_by);
    let life = (any::<u64>(), any::<u64>());
    (
        ".{0,15}",
        any::<(u32, u32, u32)>(),
        scheduling,
        life,
        vec(stream().boxed(), 0..4),
        any::<(usize, bool)>(),
    )
        .prop_map(
            |(
                name,
                (pid, tid, phase),
                (policy, priority, nice, reservation, ended_by),
                (one, other),
                streams,
                (primary, capped),
            )| Task {
                command: format!("/usr/bin/{name} \"-x\" \\"),
                name,
                pid,
                tid,
                phase,
                policy,
                priority,
                nice,
                reservation: reservation.map(|(runtime, deadline, period)| Reservation {
                    runtime_ns: Duration::from_ns(runtime),
                    deadline_ns: Duration::from_ns(deadline),
                    period_ns: Duration::from_ns(period),
                }),
                affinity: "0-1,4".to_owned(),
                from_ns: Instant::from_ns(one.min(other)),
                until_ns: Instant::from_ns(one.max(other)),
                ended_by,
                primary: primary.checked_rem(streams.len()),
                primary_reason: capped.then(|| "has the least jitter".to_owned()),
                separators_capped: capped,
                merged_transitions: 0,
                open_ns: None,
                busy_ns: capped.then(|| Duration::from_ns(17)),
                recording: None,
                streams,
            },
        )
}

pub fn span() -> impl Strategy<Value = (Instant, Instant)> {
    let instants = (any::<u64>(), any::<u64>());
    instants.prop_map(|(one, other)| (Instant::from_ns(one.min(other)), Instant::from_ns(one.max(other))))
}

fn threads() -> impl Strategy<Value = Threads> {
    (vec(task().boxed(), 0..3), span(), any::<[u64; 3]>()).prop_map(|(tasks, (from_ns, until_ns), counts)| {
        Threads {
            from_ns,
            until_ns,
            records: counts[0],
            lost_records: counts[1],
            untracked_threads: counts[2] % 3,
            skipped_events: counts[1] % 2,
            stolen_ns: Duration::from_ns(counts[2]),
            omitted_tasks: counts[0] % 2,
            clock_steps: (counts[1] % 3 == 0)
                .then(|| ClockStep { at_ns: until_ns, by_ns: counts[2] as i64 })
                .into_iter()
                .collect(),
            notes: (counts[2] % 5 == 0).then(|| "an event is missing".to_owned()).into_iter().collect(),
            tasks,
        }
    })
}

/// Whatever is valid: any section, and at least one.
pub fn model() -> impl Strategy<Value = TimingModel> {
    let sections = (
        option::of(threads().boxed()),
        option::of(crate::causes::section().boxed()),
        option::of(dataflow().boxed()),
        option::of(crate::latency::section().boxed()),
        option::of(crate::table::section().boxed()),
    );
    (sections, option::of(any::<u32>()))
        .prop_map(|((threads, causes, dataflow, latency, table), cpus)| TimingModel {
            platform: cpus.map(|cpus| Platform { kernel: "6.18.44".into(), machine: "x86_64".into(), cpus }),
            threads,
            causes,
            dataflow,
            latency,
            table,
            ..TimingModel::new("CLOCK_MONOTONIC")
        })
        .prop_filter("a section", |model| !model.sections().is_empty())
}

/// Six numbers that never decrease, as a distribution, with a mean or without one.
fn distribution() -> impl Strategy<Value = Distribution> {
    (1..u64::MAX, rising(6), option::of(0..6_usize)).prop_map(|(count, ends, mean)| Distribution {
        count,
        min_ns: ends[0],
        quartile_1_ns: ends[1],
        median_ns: ends[2],
        quartile_3_ns: ends[3],
        p95_ns: mean.map(|_| ends[3]),
        p99_ns: mean.map(|_| ends[4]),
        p999_ns: mean.map(|_| ends[5]),
        max_ns: ends[5],
        histogram: mean.map(|_| vec![Bin { until_ns: ends[5], count }]).unwrap_or_default(),
        mean_ns: mean.map(|index| ends[index]),
    })
}

fn flow_task(id: u32) -> impl Strategy<Value = FlowTask> {
    let arrival = (option::of(periodic()), option::of(duration()), option::of(curve()));
    let times = option::of((distribution(), distribution(), any::<(u64, u64)>()));
    (arrival, times, any::<(u64, u64, u64, u64)>()).prop_map(
        move |((periodic, sporadic, curve), times, counts)| {
            let executions = times.as_ref().map_or(0, |(execution, ..)| execution.count);
            let times = times.map(|(execution, queuing, (instance, at))| {
                let worst = Worst { instance, at_ns: Instant::from_ns(at) };
                let (count, mut histogram) = (execution.count, queuing.histogram);
                histogram.iter_mut().for_each(|bin| bin.count = count);
                let queuing = Distribution { count, histogram, ..queuing };
                (Times { distribution: execution, worst }, Times { distribution: queuing, worst })
            });
            let by_kernel = times.as_ref().filter(|_| counts.0 % 2 == 0).map(|(execution, _)| ByKernel {
                executions: execution.distribution.count,
                running: execution.distribution.clone(),
                preempted: execution.distribution.clone(),
                suspended: execution.distribution.clone(),
            });
            let (execution, queuing) = times.unzip();
            FlowTask {
                name: format!("t{id}"),
                id,
                activations: counts.0,
                executions,
                in_flight: counts.1,
                incomplete: counts.2,
                unexplained: counts.0 / 3,
                missing_activations: counts.3,
                execution,
                queuing,
                by_kernel,
                distances: curve.as_ref().map(Distance::samples).unwrap_or_default(),
                counts: curve.as_ref().map(Count::samples).unwrap_or_default(),
                arrival: Arrival {
                    periodic,
                    sporadic: sporadic.map(|min_separation_ns| Sporadic { min_separation_ns }),
                    curve,
                    modes: Vec::new(),
                },
            }
        },
    )
}

/// Through task 0, task 1 and again task 0, over the one channel.
fn latency() -> impl Strategy<Value = Latency> {
    (distribution(), rising(10), any::<(u64, u64)>()).prop_map(
        |(distribution, times, (source_instance, instance))| {
            let at = |index: usize| Instant::from_ns(times[index].ns());
            let step = |index: usize| PathStep {
                task: format!("t{}", index % 2),
                instance,
                busy_ns: (index == 1).then(|| at(4).since(at(3))),
                activation_ns: at(3 * index + 1),
                start_ns: at(3 * index + 2),
                until_ns: at(3 * index + 3),
                channel: (index < 2).then(|| "c".to_owned()),
            };
            let path = (0..3).map(step).collect();
            let none = Duration::ZERO;
            let mut worst = WorstPath {
                source_instance,
                from_ns: at(0),
                until_ns: at(9),
                queuing_ns: none,
                execution_ns: none,
                waiting_ns: none,
                path,
            };
            [worst.queuing_ns, worst.execution_ns, worst.waiting_ns] = worst.parts();
            let max_ns = worst.total();
            let least = |end: Duration| end.min(max_ns);
            let Distribution { count, min_ns, quartile_1_ns, median_ns, quartile_3_ns, .. } = distribution;
            let Distribution { mean_ns, p95_ns, p99_ns, p999_ns, .. } = distribution;
            let distribution = Distribution {
                count: count % (1 << 60) + 1,
                min_ns: least(min_ns),
                quartile_1_ns: least(quartile_1_ns),
                median_ns: least(median_ns),
                quartile_3_ns: least(quartile_3_ns),
                max_ns,
                mean_ns: mean_ns.map(least),
                p95_ns: p95_ns.map(least),
                p99_ns: p99_ns.map(least),
                p999_ns: p999_ns.map(least),
                histogram: Vec::new(),
            };
            Latency { distribution, worst, series: Vec::new(), alternatives: Vec::new() }
        },
    )
}

fn chain() -> impl Strategy<Value = Chain> {
    (option::of(latency()), option::of(latency()), any::<[u32; 8]>()).prop_map(|(reaction, age, counts)| {
        let [
            overwritten,
            overtaken,
            lost,
            incomplete,
            in_flight,
            sinks_lost,
            sinks_incomplete,
            sinks_in_flight,
        ] = counts.map(u64::from);
        let count =
            |latency: &Option<Latency>| latency.as_ref().map_or(0, |latency| latency.distribution.count);
        Chain {
            tasks: ["t0", "t1", "t0"].map(str::to_owned).to_vec(),
            sources: count(&reaction) + overtaken + lost + incomplete + in_flight,
            overwritten,
            overtaken,
            lost,
            incomplete,
            in_flight,
            sinks: count(&age) + sinks_lost + sinks_incomplete + sinks_in_flight,
            sinks_lost,
            sinks_incomplete,
            sinks_in_flight,
            end_to_end: [None, Some(true), Some(false)][incomplete as usize % 3],
            reaction,
            age,
        }
    })
}

fn dataflow() -> impl Strategy<Value = Dataflow> {
    let texts = (option::of(".{0,5}"), option::of(".{0,5}"), option::of(".{0,5}"), option::of(any::<u32>()));
    let tasks = (flow_task(0).boxed(), flow_task(1).boxed());
    (texts, span(), any::<[u64; 8]>(), tasks, vec(chain().boxed(), 0..3), any::<bool>()).prop_map(
        |((program, platform, policy, executors), span, counts, (one, other), chains, chains_omitted)| {
            Dataflow {
                from_ns: span.0,
                until_ns: span.1,
                program,
                platform,
                policy,
                executors,
                events: counts[0],
                discarded_events: counts[1],
                missing_packets: counts[2],
                damaged_packets: counts[3],
                connections: [None, Some(Connections::Seen), Some(Connections::Inferred)]
                    [counts[0] as usize % 3],
                openings: (0..counts[1] % 3)
                    .map(|number| Opening {
                        why: format!("reason {number}"),
                        before: ["t0", "t1"][..number as usize].iter().map(|it| it.to_string()).collect(),
                        behind: vec!["t1".to_owned()],
                    })
                    .collect(),
                channels: vec![Channel {
                    name: "c".to_owned(),
                    id: 7,
                    pushes: counts[4],
                    missing_pushes: counts[5],
                    from_outside: counts[6],
                    from_unknown: counts[7],
                    pushed_by: vec![PushedBy { task: "t0".to_owned(), pushes: counts[4] }],
                    activates: vec![Activates {
                        task: "t1".to_owned(),
                        activations: counts[5],
                        declared: chains_omitted,
                        assumed: counts[6] % 2 == 0,
                        keeps: [None, Some(Keeps::Queue), Some(Keeps::Newest)][counts[5] as usize % 3],
                    }],
                    barrier: chains_omitted,
                }],
                tasks: vec![one, other],
                chains,
                chains_omitted,
            }
        },
    )
}
