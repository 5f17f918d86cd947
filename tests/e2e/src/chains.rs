//! `punctual chains`: graphs, times and chains of synthetic traces.

use crate::run::{Ended, binary, directory, punctual, run, workload};
use crate::tool::tool;
use crate::{Outcome, Result, Test, ensure, fail, skip};
use punctual_model::TimingModel;
use punctual_model::dataflow::{Dataflow, WorstPath};
use punctual_trace::flow::{About, ByteOrder, Connection, Kind, Writer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const ALL: &[(&str, Test)] = &[
    ("chains::tables_of_a_program", text),
    ("chains::the_model_agrees_with_the_programs_log", model),
    ("chains::a_requested_chain", asked),
    ("chains::no_such_task", no_such_task),
    ("chains::not_connected", not_connected),
    ("chains::not_a_trace", none),
    ("chains::truncated_traces", cut),
    ("chains::discarded_events_are_counted", discarded),
    ("chains::graphviz_draws_the_graph", graphviz),
    ("chains::standard_output_is_appended_to", standard_output),
    ("chains::other_commands_refer_to_chains", elsewhere),
    ("chains::too_many_paths", too_many),
    ("chains::buffering_of_inputs_is_followed", buffering),
    ("chains::rounds_of_a_barrier_are_followed", rounds),
    ("chains::a_contract_is_checked_datum_by_datum", contract),
];

const ROUNDS: u64 = 50;

/// cam pushes an image each millisecond; navi joins it with a tick that comes 300 µs later, and moto does
/// what navi says.
fn make(folder: &Path, byte_order: ByteOrder, lose: bool) -> Result {
    use Kind::{Activation, Push, Start, Stop};
    let names = |names: &[&str]| {
        names.iter().enumerate().map(|(number, name)| (number as u16, (*name).to_owned())).collect()
    };
    let connection = |(channel, task)| Connection { channel, task }.into();
    let about = About {
        byte_order,
        tasks: names(&["cam", "navi", "moto"]),
        channels: names(&["start", "image", "tick", "way"]),
        inputs: [(0, 0), (1, 1), (2, 1), (3, 2)].map(connection).to_vec(),
        program: Some("rover".into()),
        policy: Some("fifo".into()),
        executors: Some(2),
        ..About::default()
    };
    // Microseconds within the round; two executors and a timer.
    let round = [
        (0, 2, Push, 0),
        (0, 2, Activation, 0),
        (10, 0, Start, 0),
        (110, 0, Push, 1),
        (120, 0, Stop, 0),
        (300, 2, Push, 2),
        (300, 2, Activation, 1),
        (320, 1, Start, 1),
        (400, 1, Push, 3),
        (400, 1, Activation, 2),
        (410, 1, Stop, 1),
        (450, 0, Start, 2),
        (500, 0, Stop, 2),
    ];
    let mut writer = Writer::create(folder, &about, 3, 128)?;
    for number in 0..ROUNDS {
        for (us, producer, kind, object) in round {
            // The last navi is slow.
            let late = if number == ROUNDS - 1 && us >= 400 { 70 } else { 0 };
            if lose && number == 20 && producer == 1 {
                writer.discard(1, 1)?;
            } else {
                writer.event(
                    producer,
                    1_000_000_000 + (number * 1_000 + us + late) * 1_000,
                    kind,
                    object,
                    number,
                )?;
            }
        }
    }
    Ok(writer.finish()?)
}

/// A trace shows each violation with its instance, and as many as its model says.
fn contract() -> Result<Outcome> {
    let directory = directory()?;
    let trace = make_trace(directory.path())?;
    let (contract, model) = (directory.path().join("rover.toml"), directory.path().join("rover.timing.json"));
    let chain = "[[chain]]\ntasks = [\"cam\", \"navi\", \"moto\"]\n";
    let other = "[[chain]]\ntasks = [\"cam\", \"moto\"]\nreaction_time = \"1ms\"\n";
    fs::write(&contract, format!("{chain}reaction_time = \"550us\"\ndata_age = \"570us\"\n{other}"))?;
    let mut chains = punctual(["chains", "--quiet"]);
    chains.arg(&trace).arg("-o").arg(&model);
    run(chains)?.expect_code(0)?;
    let mut check = punctual(["check", "--json"]);
    check.arg(&contract).args([&trace, &model]);
    let ended = run(check)?;
    ended.expect_code(8)?;
    let document = ended.json()?;
    let [traced, modelled] = [0, 1].map(|input| &document["inputs"][input]);
    let terms = &traced["tasks"][0]["terms"];
    ensure!(traced["violations"] == 1 && modelled["violations"] == 1, "{document:#}");
    let found = &terms[0]["examples"][0];
    ensure!(found["job"] == ROUNDS - 1 && found["value"] == 570_000, "{found:#}");
    ensure!(found["thread"].is_null() && terms[1]["worst"] == 570_000, "{traced:#}");
    ensure!(terms[0]["worst"] == modelled["tasks"][0]["terms"][0]["worst"], "{document:#}");
    ensure!(traced["tasks"][0]["jobs"] == ROUNDS, "{traced:#}");
    // The other chain is not there, and that is said of both.
    for input in [traced, modelled] {
        ensure!(input["notes"].to_string().contains("was not observed"), "{input:#}");
    }
    Ok(Outcome::Completed)
}

pub fn make_trace(directory: &Path) -> Result<PathBuf> {
    let folder = directory.join("rover.trace");
    make(&folder, ByteOrder::Little, false)?;
    Ok(folder)
}

fn chains(folder: &Path, options: &[&str]) -> Result<Ended> {
    let mut chains = punctual(["chains"]);
    chains.arg(folder).args(options);
    run(chains)
}

fn found(folder: &Path, options: &[&str]) -> Result<Dataflow> {
    let ended = chains(folder, &[options, &["--json"]].concat())?;
    ended.expect_code(0)?;
    let model = TimingModel::from_json(&ended.stdout).map_err(|error| format!("{error}: {}", ended.all()))?;
    match model.dataflow {
        Some(flow) => Ok(flow),
        None => fail("no dataflow in the model"),
    }
}

pub fn expect_error(ended: &Ended, code: i32, expected: &[&str]) -> Result {
    ended.expect_code(code)?;
    ensure!(ended.stdout.is_empty(), "something was printed: {}", ended.all());
    ensure!(ended.stderr.lines().count() == 1, "more than a line: {}", ended.all());
    for expected in expected {
        ensure!(ended.stderr.contains(expected), "it does not say {expected:?}: {}", ended.all());
    }
    Ok(())
}

fn text() -> Result<Outcome> {
    let directory = directory()?;
    let ended = chains(&make_trace(directory.path())?, &[])?;
    ended.expect_code(0)?;
    let expected = [
        "Dataflow program rover (policy fifo, 2 executors): 650 events in",
        "cam        image        50  navi  never activates navi",
        "cam → navi → moto  reaction     50  500 µs",
        "The trace does not say how these inputs buffer data, or what they held when it began: image → navi, \
         way → moto.",
        "navi  #49  waited 190 µs on the channel, for other inputs; queued 20 µs, executed 150 µs until it \
         pushed on way",
    ];
    let flat = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in expected {
        let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
        ensure!(flat.contains(&expected), "it does not say {expected:?}: {}", ended.all());
    }
    Ok(Outcome::Completed)
}

fn model() -> Result<Outcome> {
    let directory = directory()?;
    for (name, order) in [("little", ByteOrder::Little), ("big", ByteOrder::Big)] {
        let folder = directory.path().join(name);
        make(&folder, order, false)?;
        let flow = found(&folder, &[])?;
        ensure!(flow.events == 13 * ROUNDS && flow.discarded_events == 0, "{flow:#?}");
        let [chain] = &flow.chains[..] else { return fail(format!("{:#?}", flow.chains)) };
        ensure!(chain.sources == ROUNDS && chain.sinks == ROUNDS && chain.overwritten == 0, "{chain:#?}");
        let (Some(reaction), Some(age)) = (&chain.reaction, &chain.age) else {
            return fail(format!("{chain:#?}"));
        };
        ensure!(reaction.distribution == age.distribution, "{chain:#?}");
        ensure!(
            reaction.distribution.min_ns.ns() == 500_000 && reaction.distribution.max_ns.ns() == 570_000,
            "{chain:#?}"
        );
        let WorstPath { queuing_ns, execution_ns, waiting_ns, path, .. } = &reaction.worst;
        let parts = [queuing_ns.ns(), execution_ns.ns(), waiting_ns.ns()];
        ensure!(parts == [80_000, 300_000, 190_000] && path.len() == 3, "{chain:#?}");
    }
    Ok(Outcome::Completed)
}

fn asked() -> Result<Outcome> {
    let directory = directory()?;
    let folder = make_trace(directory.path())?;
    let flow = found(&folder, &["--chain", "cam,navi", "--chain", "navi, moto"])?;
    let names: Vec<String> = flow.chains.iter().map(|chain| chain.tasks.join(" ")).collect();
    ensure!(names == ["cam navi", "navi moto"], "{names:?}");
    // To a file, which show reads.
    let file = directory.path().join("rover.timing.json");
    let mut command = punctual(["chains", "-o"]);
    command.arg(&file).arg(&folder);
    let ended = run(command)?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("Wrote "), "{}", ended.all());
    let mut show = punctual(["show"]);
    show.arg(&file);
    let shown = run(show)?;
    shown.expect_code(0)?;
    ensure!(shown.stdout == chains(&folder, &[])?.stdout, "{}", shown.all());
    ensure!(shown.stdout == ended.stdout, "-o swallowed the tables: {}", ended.all());
    Ok(Outcome::Completed)
}

fn no_such_task() -> Result<Outcome> {
    let directory = directory()?;
    let ended = chains(&make_trace(directory.path())?, &["--chain", "cam,nav"])?;
    expect_error(&ended, 4, &["there is no task nav; there are cam, navi, moto"])?;
    Ok(Outcome::Completed)
}

fn not_connected() -> Result<Outcome> {
    let directory = directory()?;
    let folder = make_trace(directory.path())?;
    expect_error(
        &chains(&folder, &["--chain", "cam,moto"])?,
        2,
        &["cam and moto are not connected", "after cam can come navi"],
    )?;
    expect_error(&chains(&folder, &["--chain", "cam"])?, 2, &["a chain has at least two tasks"])?;
    Ok(Outcome::Completed)
}

fn none() -> Result<Outcome> {
    let directory = directory()?;
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recordings");
    let folders = fs::read_dir(recording)?.collect::<std::io::Result<Vec<_>>>()?;
    let Some(recording) =
        folders.iter().map(|entry| entry.path()).find(|path| path.join("metadata").is_file())
    else {
        return fail("there is no recording");
    };
    expect_error(
        &chains(&recording, &[])?,
        5,
        &["is not a trace of a dataflow program: it is a recording of threads"],
    )?;
    expect_error(&chains(directory.path(), &[])?, 5, &["it has no file named metadata"])?;
    expect_error(&chains(&directory.path().join("none"), &[])?, 5, &["no such file"])?;
    Ok(Outcome::Completed)
}

/// The rest of a truncated stream is used, and what is missing is reported.
fn cut() -> Result<Outcome> {
    let directory = directory()?;
    let folder = make_trace(directory.path())?;
    let stream = folder.join("stream_1");
    let whole = fs::read(&stream)?;
    for length in [0, 1, 47, 127, 128, 129, 1_000, whole.len() - 1] {
        fs::write(&stream, &whole[..length])?;
        let ended = chains(&folder, &["--json"])?;
        ended.expect_code(0)?;
        ensure!(ended.stderr.contains("cut off") == (length % 128 != 0), "{length}: {}", ended.all());
        TimingModel::from_json(&ended.stdout)?;
    }
    Ok(Outcome::Completed)
}

fn discarded() -> Result<Outcome> {
    let directory = directory()?;
    let folder = directory.path().join("lossy");
    make(&folder, ByteOrder::Little, true)?;
    let flow = found(&folder, &[])?;
    let [chain] = &flow.chains[..] else { return fail(format!("{:#?}", flow.chains)) };
    ensure!(flow.discarded_events == 4, "{flow:#?}");
    // Of navi 20 only the activation is left; of moto 20 the activation is missing.
    let navi = &flow.tasks[1];
    ensure!(navi.executions == ROUNDS - 1 && navi.incomplete == 1, "{navi:#?}");
    ensure!(flow.tasks[2].missing_activations == 1, "{:#?}", flow.tasks[2]);
    let reacted = chain.reaction.as_ref().map_or(0, |reaction| reaction.distribution.count);
    ensure!(chain.lost > 0 && reacted + chain.lost == ROUNDS && reacted >= ROUNDS - 3, "{chain:#?}");
    let ended = chains(&folder, &[])?;
    ensure!(ended.stderr.contains("4 events discarded by the tracer"), "{}", ended.all());
    Ok(Outcome::Completed)
}

/// A file that a shell redirects to belongs to the shell: its earlier content stays.
fn standard_output() -> Result<Outcome> {
    let directory = directory()?;
    let folder = make_trace(directory.path())?;
    for (place, options) in [
        ("-", "chains -q --graph"),
        ("/dev/stdout", "chains -q --graph"),
        ("-", "timeline -q -o"),
        ("/dev/stdout", "report -q -o"),
    ] {
        let file = directory.path().join("redirected");
        fs::write(&file, "before\n")?;
        let (binary, into) = (binary(), file.display().to_string());
        let line =
            format!("({} {options} {place} {}; echo behind) >>{into}", binary.display(), folder.display());
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]);
        run(shell)?.expect_code(0)?;
        let bytes = fs::read(&file)?;
        ensure!(
            bytes.starts_with(b"before\n") && bytes.ends_with(b"behind\n") && bytes.len() > 100,
            "{line}: {} bytes",
            bytes.len()
        );
    }
    Ok(Outcome::Completed)
}

fn graphviz() -> Result<Outcome> {
    let directory = directory()?;
    let folder = make_trace(directory.path())?;
    let file = directory.path().join("rover.dot");
    let name = file.display().to_string();
    chains(&folder, &["-q", "--graph", &name])?.expect_code(0)?;
    let text = fs::read_to_string(&file)?;
    ensure!(
        text.starts_with("digraph \"rover\" {") && text.contains("\"channel 1\" -> \"task 1\""),
        "{text}"
    );
    chains(&folder, &["-q", "--graph", &name])?.expect_code(5)?;
    chains(&folder, &["--json", "--graph", "-"])?.expect_code(2)?;
    let Some(mut dot) = tool("dot", &["-Tsvg"]) else {
        return skip("there is no dot; package graphviz has it");
    };
    dot.arg(&file);
    let ended = run(dot)?;
    ended.expect_code(0)?;
    ensure!(ended.stdout.contains("<svg") && ended.stdout.contains("navi"), "{}", ended.all());
    Ok(Outcome::Completed)
}

fn elsewhere() -> Result<Outcome> {
    let directory = directory()?;
    let folder = make_trace(directory.path())?;
    let mut replay = punctual(["replay"]);
    replay.arg(&folder);
    expect_error(&run(replay)?, 5, &["is the trace of a dataflow program, which punctual chains reads"])?;
    Ok(Outcome::Completed)
}

/// Nine layers of two tasks, each connected with both of the next: 512 paths.
fn too_many() -> Result<Outcome> {
    let directory = directory()?;
    let folder = directory.path().join("wide");
    let mut writer = Writer::create(&folder, &About::default(), 1, 4_096)?;
    let mut at = 0;
    let mut event = |kind, object, number| {
        at += 1;
        writer.event(0, at, kind, object, number)
    };
    for layer in 0..9_u16 {
        for from in [2 * layer, 2 * layer + 1] {
            event(Kind::Start, from, 0)?;
            event(Kind::Push, from, 0)?;
            event(Kind::Activation, 2 * layer + 2, u64::from(from % 2))?;
            event(Kind::Activation, 2 * layer + 3, u64::from(from % 2))?;
            event(Kind::Stop, from, 0)?;
        }
    }
    writer.finish()?;
    let ended = chains(&folder, &["--json"])?;
    ended.expect_code(0)?;
    ensure!(ended.stderr.contains("more than 256 paths"), "{}", ended.all());
    let chain: Vec<String> = (0..10).map(|layer| format!("task {}", 2 * layer)).collect();
    let flow = found(&folder, &["--chain", &chain.join(",")])?;
    ensure!(flow.chains.len() == 1 && !flow.chains_omitted, "{:#?}", flow.chains);
    Ok(Outcome::Completed)
}

/// A program whose inputs buffer data, against its own log of what each instance read.
fn buffering() -> Result<Outcome> {
    let program = workload("backlog");
    if !Path::new(&program).exists() {
        return skip("there was no compiler for C++ for this machine");
    }
    let directory = directory()?;
    let folder = directory.path().join("trace");
    let mut command = Command::new(program);
    command.arg(&folder).arg("300");
    let ended = run(command)?;
    ended.expect_code(0)?;
    let flow = found(&folder, &[])?;
    ensure!(flow.tasks.iter().all(|task| task.unexplained == 0), "{:?}", flow.tasks);
    for (sink, is_newest) in [("sink", false), ("view", true)] {
        // `sink INSTANCE SOURCE`: the source's instance of the newest value that it had.
        let line = |line: &str| {
            let mut words = line.strip_prefix(sink)?.split_whitespace().map(|word| word.parse::<u64>().ok());
            Some((words.next()??, words.next()??))
        };
        let books: Vec<(u64, u64)> = ended.stdout.lines().filter_map(line).collect();
        let chain = flow.chains.iter().find(|chain| chain.tasks == ["source", sink]);
        let Some((chain, reaction, age)) =
            chain.and_then(|chain| Some((chain, chain.reaction.as_ref()?, chain.age.as_ref()?)))
        else {
            return fail(format!("no latencies to {sink}: {:?}", flow.chains));
        };
        ensure!(chain.lost + chain.sinks_lost + chain.incomplete + chain.sinks_incomplete == 0, "{chain:?}");
        let read =
            |instance: u64| books.iter().find(|(reader, _)| *reader == instance).map(|(_, source)| *source);
        let (source, instance) = (age.worst.source_instance, age.worst.path[1].instance);
        // Values may come between an instance's start and its reading.
        let is_right = |read: u64| if is_newest { read >= source } else { read == source };
        ensure!(
            read(instance).is_some_and(is_right),
            "{sink} {instance} has read {:?}, not {source}",
            read(instance)
        );
        let (source, instance) = (reaction.worst.source_instance, reaction.worst.path[1].instance);
        let first = books.iter().find(|(_, read)| *read >= source).map(|(reader, _)| *reader);
        let is_right = first == Some(instance) || is_newest && first.is_some_and(|first| first < instance);
        ensure!(is_right, "{source} was first read by {sink} {first:?}, not {instance}");
        if !is_newest {
            // Each instance has one, and those that arrived while the sink was busy waited for it.
            ensure!(
                age.distribution.count == books.len() as u64 && books.len() > 10,
                "{} of {}",
                age.distribution.count,
                books.len()
            );
            ensure!(age.worst.path[1].busy_ns.is_some(), "{:?}", age.worst);
        }
    }
    Ok(Outcome::Completed)
}

/// A barrier whose count changes, against the program's own log of how many instances took a round.
fn rounds() -> Result<Outcome> {
    let program = workload("rounds");
    if !Path::new(&program).exists() {
        return skip("there was no compiler for C++ for this machine");
    }
    let directory = directory()?;
    let folder = directory.path().join("trace");
    let mut command = Command::new(program);
    command.arg(&folder);
    let ended = run(command)?;
    ended.expect_code(0)?;
    let flow = found(&folder, &[])?;
    ensure!(flow.tasks.iter().all(|task| task.unexplained == 0), "{:?}", flow.tasks);
    for sink in ["with", "instead", "twice"] {
        // `with INSTANCE TAKEN`.
        let books: Vec<Vec<&str>> = ended.stdout.lines().map(|line| line.split(' ').collect()).collect();
        let taken: Vec<&str> =
            books.iter().filter(|words| words[0] == sink && words[2] != "0").map(|words| words[1]).collect();
        let Some(chain) = flow.chains.iter().find(|chain| chain.tasks == ["source", sink]) else {
            return fail(format!("no chain to {sink}: {:?}", flow.chains));
        };
        ensure!(
            taken.len() > 5 && chain.sinks == taken.len() as u64 && chain.lost + chain.sinks_lost == 0,
            "{taken:?}: {chain:?}"
        );
        let Some(age) = &chain.age else { return fail(format!("no age: {chain:?}")) };
        let worst = age.worst.path[1].instance.to_string();
        ensure!(taken.contains(&worst.as_str()), "{sink} {worst} has taken no round: {taken:?}");
    }
    Ok(Outcome::Completed)
}
