//! Traces of ROS 2, imported and followed: every end-to-end latency is that of the program's own books.

use punctual_extract::flow::{Analysis, Chains, EndToEndKind, Graph, GraphBuilder, Options};
use punctual_import::ErrorKind;
use punctual_import::ctf18;
use punctual_import::ros2::{Trace, Variables, Written};
use punctual_model::Dataflow;
use punctual_test_lttng::ctf::Layout;
use punctual_test_lttng::ros2::Tracer;
use punctual_test_lttng::services::Services;
use punctual_test_lttng::system::{Books, System, VARIABLES};
use punctual_trace::flow::Reader;
use std::path::Path;

/// What came of a trace.
struct Found {
    written: Written,
    dataflow: Dataflow,
    /// By chain: reaction times and data ages, as begin and end, in order of their ends.
    latencies: Vec<[Vec<(u64, u64)>; 2]>,
}

fn import(source: &Path, variables: &Variables, names: Option<&[Vec<&str>]>) -> Found {
    let place = tempfile::tempdir().unwrap();
    let reader = ctf18::Reader::open(source).unwrap();
    let written = Trace::new(source, reader).unwrap().write(place.path(), variables, &mut |_| {}).unwrap();
    let reader = Reader::open(place.path()).unwrap();
    let mut builder = GraphBuilder::new();
    reader.read(&mut |item| builder.item(&item), &mut |_| {}).unwrap();
    let graph: Graph = builder.finish(reader.about());
    let chains = names.map_or_else(|| Chains::all(&graph), |names| Chains::given(&graph, names).unwrap());
    let mut analysis = Analysis::new(&graph, &chains, &Options::default()).with_latencies();
    let mut latencies = vec![[Vec::new(), Vec::new()]; chains.len()];
    let totals = reader
        .read(
            &mut |item| {
                analysis.item(&item);
                for ended in analysis.ended() {
                    let kind = usize::from(ended.kind == EndToEndKind::Age);
                    latencies[ended.chain][kind].push((ended.from.ns(), ended.until.ns()));
                }
            },
            &mut |_| {},
        )
        .unwrap();
    assert_eq!(totals.events, written.events);
    Found { written, dataflow: analysis.finish(reader.about(), &totals), latencies }
}

fn simulated(tracer: Tracer, layout: Layout, seed: u64) -> (tempfile::TempDir, Books) {
    let place = tempfile::tempdir().unwrap();
    let books =
        System::new(tracer, seed).write(&place.path().join("ust/uid/0/64-bit"), layout, 60_000).unwrap();
    (place, books)
}

fn chains(books: &Books) -> Vec<Vec<&str>> {
    books.chains.iter().map(|chain| chain.tasks.clone()).collect()
}

/// Everything that the books say was found, and nothing else.
fn agrees(found: &Found, books: &Books) {
    for (chain, [reactions, ages]) in books.chains.iter().zip(&found.latencies) {
        let (mut expected, mut reactions) = (chain.reactions(), reactions.clone());
        expected.sort_unstable();
        reactions.sort_unstable();
        assert!(expected.len() > 100, "{:?}: {} reactions", chain.tasks, expected.len());
        assert_eq!(ages, &chain.ages(), "{:?}", chain.tasks);
        assert_eq!(reactions, expected, "{:?}", chain.tasks);
    }
    for task in &found.dataflow.tasks {
        let (count, least, most) = books.tasks[task.name.as_str()];
        let execution = task.execution.as_ref().expect("it ran");
        let seen = &execution.distribution;
        let seen = (seen.count, seen.min_ns.ns(), seen.max_ns.ns());
        assert_eq!(seen, (count, least, most), "{}", task.name);
        assert_eq!((task.unexplained, task.incomplete, task.missing_activations), (0, 0, 0), "{}", task.name);
    }
    assert_eq!(found.dataflow.tasks.len(), books.tasks.len());
    for channel in found.dataflow.channels.iter().filter(|channel| channel.name.starts_with('/')) {
        assert_eq!(channel.pushes, books.topics[channel.name.as_str()], "{}", channel.name);
        assert_eq!((channel.missing_pushes, channel.from_outside), (0, 0), "{}", channel.name);
    }
}

#[test]
fn every_latency_is_that_of_the_books() {
    for (seed, tracer) in
        [Tracer::Jazzy, Tracer::Caret, Tracer::Humble, Tracer::Jazzy].into_iter().enumerate()
    {
        let (place, books) = simulated(tracer, tracer.layout(), seed as u64);
        let found = import(place.path(), &Variables::Assumed, Some(&chains(&books)));
        assert!(books.dropped > 20, "queues overflow: {}", books.dropped);
        agrees(&found, &books);
        let assumed: Vec<(&str, &str)> =
            found.written.variables.iter().map(|(one, other)| (one.as_str(), other.as_str())).collect();
        assert_eq!(assumed, VARIABLES.iter().rev().copied().collect::<Vec<_>>());
        assert!(
            found.written.notes.iter().all(|note| note.contains("variables")),
            "{:?}",
            found.written.notes
        );
    }
}

#[test]
fn discarded_events_make_nothing_wrong() {
    let mut found_in_all = 0;
    for seed in 0..4 {
        let place = tempfile::tempdir().unwrap();
        let layout = Tracer::Jazzy.layout();
        let system = System::new(Tracer::Jazzy, seed).with_losses(3_000);
        let books = system.write(&place.path().join("trace"), layout, 60_000).unwrap();
        let found = import(place.path(), &Variables::Assumed, Some(&chains(&books)));
        assert!(found.dataflow.discarded_events > 0);
        let said = format!("{} × events that the tracer discarded", found.dataflow.discarded_events);
        assert!(found.written.notes.iter().any(|note| note.starts_with(&said)), "{:?}", found.written.notes);
        for (chain, [reactions, ages]) in books.chains.iter().zip(&found.latencies) {
            let wrong = |seen: &[(u64, u64)], truth: &[(u64, u64)]| {
                let wrong: Vec<_> = seen.iter().filter(|it| !truth.contains(it)).copied().collect();
                assert!(wrong.is_empty(), "{:?}: {} of {}: {wrong:?}", chain.tasks, wrong.len(), seen.len());
            };
            wrong(ages, &chain.ages());
            wrong(reactions, &chain.reactions());
            found_in_all += reactions.len();
        }
    }
    assert!(found_in_all > 100, "{found_in_all}");
}

#[test]
fn the_layout_of_the_trace_does_not_matter() {
    let big = Layout { is_big: true, ..Tracer::Jazzy.layout() };
    let large = Layout { has_large_headers: true, packet_bytes: 65_536, ..Tracer::Jazzy.layout() };
    let slow = Layout { clock: ("monotonic", 1_000_000_000), offset: 0, ..large.clone() };
    for layout in [big, large, slow] {
        let (place, books) = simulated(Tracer::Jazzy, layout, 7);
        agrees(&import(place.path(), &Variables::Assumed, Some(&chains(&books))), &books);
    }
}

#[test]
fn chains_are_found_without_being_named() {
    let (place, books) = simulated(Tracer::Jazzy, Tracer::Jazzy.layout(), 3);
    let found = import(place.path(), &Variables::Assumed, None);
    let mut expected = chains(&books);
    // The tracker's timer reads variables: it is no source.
    expected.sort();
    let mut seen: Vec<Vec<&str>> =
        found.dataflow.chains.iter().map(|chain| chain.tasks.iter().map(String::as_str).collect()).collect();
    seen.sort();
    assert_eq!(seen, expected);
}

#[test]
fn variables_that_are_declared_replace_those_assumed() {
    let (place, books) = simulated(Tracer::Jazzy, Tracer::Jazzy.layout(), 4);
    let pair = |(writer, reader): (&str, &str)| (writer.to_owned(), reader.to_owned());
    let declared = Variables::Declared(VARIABLES.iter().map(|it| pair(*it)).collect());
    agrees(&import(place.path(), &declared, Some(&chains(&books))), &books);
    let none = import(place.path(), &Variables::Declared(Vec::new()), None);
    let tasks: Vec<Vec<String>> = none.dataflow.chains.iter().map(|chain| chain.tasks.clone()).collect();
    assert!(
        tasks.contains(
            &["/tracker:timer-20ms", "/planner:/tracks", "/actuator:/cmd"].map(str::to_owned).to_vec()
        ),
        "{tasks:?}"
    );
    assert!(none.written.variables.is_empty());
}

/// By the order of publications and time stamps, which need not be right.
#[test]
fn without_time_stamps_chains_are_assumed() {
    let (place, books) = simulated(Tracer::Iron, Tracer::Iron.layout(), 5);
    let found = import(place.path(), &declared(), Some(&chains(&books)));
    agrees(&found, &books);
    assert_eq!(whole_and_not(&found)[0], Vec::<String>::new());
    let lacks = &found.written.account.lacks;
    assert!(lacks.iter().any(|lack| lack.what == "time stamps of publications"), "{lacks:?}");
    // On another clock no message is near, and none is assumed.
    let layout = Layout { offset: 0, ..Tracer::Iron.layout() };
    let (place, books) = simulated(Tracer::Iron, layout, 5);
    let found = import(place.path(), &declared(), Some(&chains(&books)));
    assert!(found.latencies.iter().flatten().all(Vec::is_empty), "{:?}", found.latencies);
}

fn declared() -> Variables {
    Variables::Declared(VARIABLES.iter().map(|(one, other)| ((*one).into(), (*other).into())).collect())
}

/// Chains that are called end-to-end, and all others.
fn whole_and_not(found: &Found) -> [Vec<String>; 2] {
    let of = |is_whole: bool| {
        let chains = found.dataflow.chains.iter();
        chains
            .filter(|chain| (chain.end_to_end == Some(true)) == is_whole)
            .map(|chain| chain.tasks.join(" "))
            .collect()
    };
    [of(true), of(false)]
}

fn imported(system: System) -> Found {
    let place = tempfile::tempdir().unwrap();
    system.write(&place.path().join("trace"), Tracer::Jazzy.layout(), 10_000).unwrap();
    import(place.path(), &declared(), None)
}

const IMU: &str = "/sensors/imu:timer-5ms /planner:/imu /planner:/tracks /actuator:/cmd";

#[test]
fn whole_chains_are_called_end_to_end() {
    let found = imported(System::new(Tracer::Jazzy, 1));
    assert_eq!(found.dataflow.openings, []);
    let [whole, parts] = whole_and_not(&found);
    assert_eq!((whole.len(), parts.len()), (3, 0), "{parts:?}");
}

/// What is assumed is told, and no chain through it is end-to-end; what the user declares is true.
#[test]
fn chains_through_assumed_variables_are_not_called_end_to_end() {
    let place = tempfile::tempdir().unwrap();
    System::new(Tracer::Jazzy, 1).write(place.path(), Tracer::Jazzy.layout(), 10_000).unwrap();
    let found = import(place.path(), &Variables::Assumed, None);
    let [whole, parts] = whole_and_not(&found);
    assert_eq!((whole.len(), parts.len()), (0, 3));
    let assumed: Vec<(&str, &str)> = found
        .dataflow
        .channels
        .iter()
        .flat_map(|channel| channel.activates.iter().map(|to| (channel.pushed_by[0].task.as_str(), to)))
        .filter(|(_, to)| to.assumed)
        .map(|(from, to)| (from, to.task.as_str()))
        .collect();
    assert_eq!(assumed, VARIABLES.iter().rev().copied().collect::<Vec<_>>());
    let [opening] = &found.dataflow.openings[..] else { panic!("{:?}", found.dataflow.openings) };
    let several = ["/tracker:/objects", "/tracker:timer-20ms", "/planner:/tracks", "/planner:/imu"];
    assert_eq!((&opening.before, &opening.behind), (&opening.behind, &several.map(str::to_owned).to_vec()));
    // Whoever says that there are none has cut the chains.
    let found = import(place.path(), &Variables::Declared(Vec::new()), None);
    let [whole, parts] = whole_and_not(&found);
    assert_eq!((found.dataflow.openings, parts), (Vec::new(), Vec::new()));
    assert!(whole.contains(&"/tracker:timer-20ms /planner:/tracks /actuator:/cmd".to_owned()), "{whole:?}");
}

#[test]
fn variables_that_cannot_be_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let (source, out) = (place.path().join("trace"), place.path().join("flow"));
    System::new(Tracer::Jazzy, 1).write(&source, Tracer::Jazzy.layout(), 2_000).unwrap();
    for (writer, reader, why) in [
        (
            "/sensors/imu:timer-5ms",
            "/planner:/tracks",
            "the writer is of node /sensors/imu and the reader of /planner",
        ),
        ("/planner:/imu", "/planner:/imu", "name two callbacks"),
        ("/planner:/imu", "/planner:/nothing", "no callback /planner:/nothing ran"),
    ] {
        let variables = Variables::Declared(vec![(writer.into(), reader.into())]);
        let trace = Trace::new(&source, ctf18::Reader::open(&source).unwrap()).unwrap();
        let error = trace.write(&out, &variables, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.kind() == ErrorKind::Usage, !why.starts_with("no callback"), "{error}");
        assert!(!out.exists());
    }
}

/// Without a publisher's making, a chain falls into two, neither of which is end-to-end.
#[test]
fn chains_of_an_unknown_publisher_are_not_called_end_to_end() {
    let system = System::new(Tracer::Jazzy, 1).without("ros2:rcl_publisher_init", "/detector:/image");
    let found = imported(system);
    let [whole, parts] = whole_and_not(&found);
    assert_eq!(whole, [IMU]);
    let halves = [
        "/camera:timer-10ms /detector:/image",
        "/camera2:timer-14ms /detector:/image",
        "/tracker:/objects /tracker:timer-20ms /planner:/tracks /actuator:/cmd",
    ];
    assert_eq!(parts, halves);
    let [opening] = &found.dataflow.openings[..] else { panic!("{:?}", found.dataflow.openings) };
    assert_eq!(
        (&opening.before[..], &opening.behind[..]),
        (&["/tracker:/objects".to_owned()][..], &["/detector:/image".to_owned()][..])
    );
    assert!(opening.why.contains("publishers"), "{}", opening.why);
}

#[test]
fn chains_of_an_unknown_subscription_are_not_called_end_to_end() {
    for class in ["ros2:rcl_subscription_init", "ros2:rclcpp_subscription_callback_added"] {
        let found = imported(System::new(Tracer::Jazzy, 1).without(class, "/detector:/image"));
        let [whole, parts] = whole_and_not(&found);
        assert_eq!(whole, [IMU], "{class}");
        assert!(parts.iter().all(|chain| chain.starts_with("callback-0x")), "{parts:?}");
        let whys: Vec<&str> = found.dataflow.openings.iter().map(|it| it.why.as_str()).collect();
        assert!(whys.iter().any(|why| why.contains("making is not in the trace")), "{whys:?}");
    }
}

/// A processor's file was lost: its index, or the number of the next one, shows it.
#[test]
fn where_a_stream_is_missing_no_chain_is_called_end_to_end() {
    let none = Variables::Declared(Vec::new());
    for (lost, has_its_index) in [("channel0_0", false), ("channel0_1", true), ("channel0_3", true)] {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("trace");
        System::new(Tracer::Jazzy, 1).write(&folder, Tracer::Jazzy.layout(), 10_000).unwrap();
        std::fs::create_dir(folder.join("index")).unwrap();
        for number in 0..4 {
            std::fs::write(folder.join(format!("index/channel0_{number}.idx")), "").unwrap();
        }
        assert!(!whole_and_not(&import(place.path(), &none, None))[0].is_empty());
        std::fs::remove_file(folder.join(lost)).unwrap();
        if !has_its_index {
            std::fs::remove_file(folder.join(format!("index/{lost}.idx"))).unwrap();
        }
        let found = import(place.path(), &none, None);
        assert_eq!(whole_and_not(&found)[0], Vec::<String>::new());
        assert!(found.written.notes[0].starts_with(lost), "{:?}", found.written.notes);
    }
}

/// As LTTng writes it, for a stream of packets of a page.
fn write_index(folder: &Path, stream: &str) -> u64 {
    let length = std::fs::metadata(folder.join(stream)).unwrap().len();
    let words = [0xC1F1_DCC1_u32, 1, 1, 72].map(u32::to_be_bytes).concat();
    let packets = (0..length / 4_096).flat_map(|packet| {
        let mut entry = [(packet * 4_096).to_be_bytes(), (8 * 4_096_u64).to_be_bytes()].concat();
        entry.resize(72, 0);
        entry
    });
    let index: Vec<u8> = words.into_iter().chain(packets).collect();
    std::fs::create_dir_all(folder.join("index")).unwrap();
    std::fs::write(folder.join(format!("index/{stream}.idx")), index).unwrap();
    length
}

/// Between two packets, so that it looks whole: the index tells.
#[test]
fn a_stream_that_is_cut_off_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("trace");
    let books = System::new(Tracer::Jazzy, 1).write(&folder, Tracer::Jazzy.layout(), 60_000).unwrap();
    let length = write_index(&folder, "channel0_2");
    let whole = import(place.path(), &declared(), Some(&chains(&books)));
    agrees(&whole, &books);
    let file = std::fs::File::options().write(true).open(folder.join("channel0_2")).unwrap();
    file.set_len(length / 2 / 4_096 * 4_096).unwrap();
    let found = import(place.path(), &declared(), Some(&chains(&books)));
    let says = |note: &String| note.contains("channel0_2") && note.contains("the file ends here");
    assert!(found.written.notes.iter().any(says), "{:?}", found.written.notes);
    for (chain, [reactions, ages]) in books.chains.iter().zip(&found.latencies) {
        assert!(ages.iter().all(|age| chain.ages().contains(age)), "{:?}", chain.tasks);
        assert!(reactions.iter().all(|it| chain.reactions().contains(it)), "{:?}", chain.tasks);
    }
    assert_eq!(whole_and_not(&found)[0], Vec::<String>::new());
}

#[test]
fn where_events_are_missing_no_chain_is_called_end_to_end() {
    let found = imported(System::new(Tracer::Jazzy, 1).with_losses(3_000));
    let [whole, parts] = whole_and_not(&found);
    assert_eq!((whole.len(), parts.len()), (0, 3));
    assert!(found.dataflow.openings[0].why.contains("missing"), "{:?}", found.dataflow.openings);
}

/// Request, service, response, the client's callback, and what that publishes.
#[test]
fn chains_go_through_services() {
    for seed in 0..3 {
        let place = tempfile::tempdir().unwrap();
        let books = Services::new(seed).write(place.path(), Tracer::Jazzy.layout(), 400).unwrap();
        let found = import(place.path(), &Variables::Assumed, Some(&chains(&books)));
        agrees(&found, &books);
        assert_eq!(found.written.notes, Vec::<String>::new());
    }
}

/// Until when a response is handled that a callback waits for, no event tells.
#[test]
fn responses_taken_within_callbacks_are_counted_and_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let system = Services::new(7).with_nested();
    let books = system.write(place.path(), Tracer::Jazzy.layout(), 200).unwrap();
    let found = import(place.path(), &Variables::Assumed, Some(&chains(&books)));
    agrees(&found, &books);
    let served = books.tasks["/server:service-/add"].0;
    let note = format!("{served} × responses taken within a callback");
    assert!(found.written.notes.iter().any(|it| it.starts_with(&note)), "{:?}", found.written.notes);
}
