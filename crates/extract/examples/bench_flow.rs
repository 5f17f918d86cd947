//! How long the analysis of a flow trace takes: the optical navigation of the paper's Fig. 2, two executors,
//! both passes.
//!
//! `cargo run --release --example bench_flow [EVENTS [FOLDER]]`; 10 million events unless said, in a folder
//! of its own that goes away. With FOLDER the trace stays there.

use punctual_extract::flow::{Analysis, Chains, GraphBuilder, Options};
use punctual_trace::flow::{About, Connection, Kind, Reader, Writer};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What happens in a period: when, by whom (two executors, a timer), what, of which object. Times are in
/// microseconds.
const ROUND: [(u64, usize, Kind, u16); 29] = {
    use Kind::{Activation, Push, Start, Stop};
    [
        (0, 2, Push, 0),
        (0, 2, Activation, 0),
        (2, 0, Start, 0),
        (3, 2, Push, 1),
        (3, 2, Activation, 1),
        (5, 1, Start, 1),
        (240, 0, Push, 2),
        (240, 0, Activation, 2),
        (250, 0, Stop, 0),
        (252, 0, Start, 2),
        (260, 1, Push, 3),
        (260, 1, Activation, 3),
        (262, 1, Stop, 1),
        (264, 1, Start, 3),
        (1_800, 1, Push, 5),
        (1_810, 1, Stop, 3),
        (2_700, 0, Push, 4),
        (2_700, 0, Activation, 4),
        (2_710, 0, Stop, 2),
        (2_713, 0, Start, 4),
        (3_150, 0, Push, 6),
        (3_150, 0, Activation, 5),
        (3_150, 0, Activation, 6),
        (3_152, 1, Start, 5),
        (3_160, 0, Stop, 4),
        (3_161, 0, Start, 6),
        (3_220, 1, Stop, 5),
        (3_231, 0, Stop, 6),
        // Somebody else.
        (3_300, 2, Push, 7),
    ]
};

fn about() -> About {
    let names = |names: &[&str]| {
        names.iter().enumerate().map(|(number, name)| (number as u16, (*name).to_owned())).collect()
    };
    let connection = |(channel, task)| Connection { channel, task }.into();
    About {
        tasks: names(&["cam1", "cam2", "craT", "feaT", "navi", "ter1", "ter2"]),
        channels: names(&["tik1", "tik2", "img1", "img2", "crat", "feat", "pose", "note"]),
        inputs: [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 4), (6, 5), (6, 6)].map(connection).to_vec(),
        program: Some("aton".into()),
        platform: Some("made up".into()),
        policy: Some("fifo".into()),
        executors: Some(2),
        producers: [(0, "executor 0".into()), (1, "executor 1".into()), (2, "timer".into())].into(),
        ..About::default()
    }
}

fn write(folder: &Path, events: u64) -> Result<(), Box<dyn Error>> {
    let mut writer = Writer::create(folder, &about(), 3, 64 << 10)?;
    let mut noise = 1_u64;
    for round in 0..events.div_ceil(ROUND.len() as u64) {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        for (us, producer, kind, object) in ROUND {
            let at = 1_000_000_000 + round * 10_000_000 + (noise >> 44) + us * (1_000 + (noise >> 57));
            writer.event(producer, at, kind, object, round)?;
        }
    }
    Ok(writer.finish()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let events: u64 = arguments.next().map_or(Ok(10_000_000), |events| events.parse())?;
    let keep = arguments.next().map(PathBuf::from);
    let folder = keep
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("punctual-bench-flow-{}", std::process::id())));
    write(&folder, events)?;
    let reader = Reader::open(&folder)?;

    let began = Instant::now();
    let mut builder = GraphBuilder::new();
    reader.read(&mut |item| builder.item(&item), &mut |_| {})?;
    let graph = builder.finish(reader.about());
    let first = began.elapsed();
    let chains = Chains::all(&graph);
    let mut analysis = Analysis::new(&graph, &chains, &Options::default());
    let totals = reader.read(&mut |item| analysis.item(&item), &mut |_| {})?;
    let flow = analysis.finish(reader.about(), &totals);
    let all = began.elapsed();
    println!(
        "{} events, {} chains: graph {first:.2?}, both passes {all:.2?}, {:.0} ns an event",
        totals.events,
        flow.chains.len(),
        all.as_secs_f64() * 1e9 / totals.events as f64
    );
    if keep.is_none() {
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(())
}
