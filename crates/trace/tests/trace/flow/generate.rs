//! Small traces for the tests.

use punctual_model::Instant;
use punctual_trace::flow::{
    About, Arming, Barrier, ByteOrder, Connection, Event, Input, Item, Kind, Opening, Reader, Totals, Writer,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Two channels, two tasks, two executors and a timer.
pub fn some_about(byte_order: ByteOrder) -> About {
    let names = |names: &[&str]| {
        names.iter().enumerate().map(|(number, name)| (number as u16, (*name).to_owned())).collect()
    };
    About {
        byte_order,
        clock_zero: Some(1_700_000_000_000_000_123),
        channels: names(&["tick", "odd \"name\" \\ /* */ // };"]),
        tasks: names(&["cam1", "navi"]),
        program: Some("test".into()),
        platform: Some("Linux, \"x86\"".into()),
        policy: Some("fifo".into()),
        executors: Some(2),
        producers: [(0, "executor 0".into()), (2, "timer".into())].into(),
        threads: [(0, 4711)].into(),
        inputs: vec![
            Connection { channel: 0, task: 0 }.into(),
            Input {
                connection: Connection { channel: 1, task: 1 },
                arming: Some(Arming { threshold: 3, pending: 2, ..Arming::default() }),
            },
            Input {
                connection: Connection { channel: 1, task: 1 },
                arming: Some(Arming {
                    threshold: 7,
                    synchronised: false,
                    optional: true,
                    is_final: true,
                    pending: 0,
                }),
            },
        ],
        has_all_inputs: true,
        assumed: [Connection { channel: 1, task: 1 }].into(),
        openings: vec![
            Opening { before: [0, 1].into(), behind: [1].into(), why: "a \"reason\"".into() },
            Opening { behind: [65_535].into(), ..Opening::default() },
        ],
        barriers: BTreeMap::from([(1, Barrier { count: 3, arrived: 2 })]),
        ..About::default()
    }
}

pub fn event(at: u64, producer: u32, kind: Kind, object: u16, number: u64) -> Event {
    Event { at: Instant::from_ns(at), producer, kind, object, number }
}

/// `rounds` of: the timer pushes, cam1 runs on executor 0 and pushes, navi runs on executor 1; in order.
pub fn rounds(rounds: u64) -> Vec<Event> {
    let round = |number: u64| {
        let at = 1_000 + number * 1_000;
        [
            event(at, 2, Kind::Push, 0, number),
            event(at, 2, Kind::Activation, 0, number),
            event(at + 5, 0, Kind::Start, 0, number),
            event(at + 20, 0, Kind::Push, 1, number),
            event(at + 21, 0, Kind::Activation, 1, number),
            event(at + 25, 1, Kind::Start, 1, number),
            event(at + 25 + number % 7, 0, Kind::Stop, 0, number),
            event(at + 50, 1, Kind::Stop, 1, number),
        ]
    };
    let mut events: Vec<Event> = (0..rounds).flat_map(round).collect();
    events.sort_by_key(|event| (event.at, [2, 3, 4, 1][event.kind as usize]));
    events
}

pub fn write(folder: &Path, about: &About, packet_bytes: usize, events: &[Event]) {
    let producers = events.iter().map(|event| event.producer + 1).max().unwrap_or(0);
    let mut writer = Writer::create(folder, about, producers as usize, packet_bytes).unwrap();
    for event in events {
        writer.event(event.producer as usize, event.at.ns(), event.kind, event.object, event.number).unwrap();
    }
    writer.finish().unwrap();
}

pub fn read(reader: &Reader) -> (Vec<Item>, Totals) {
    let mut items = Vec::new();
    let totals = reader.read(&mut |item| items.push(item), &mut |_| {}).unwrap();
    (items, totals)
}

pub fn events(items: &[Item]) -> Vec<Event> {
    let event = |item: &Item| match item {
        Item::Event(event) => Some(*event),
        Item::Gap(_) | Item::Count(_) | Item::Take(_) => None,
    };
    items.iter().filter_map(event).collect()
}

/// The files of a folder: metadata, and the streams in order.
pub fn files(folder: &Path) -> (Vec<u8>, Vec<(u64, Vec<u8>)>) {
    let streams = (0..)
        .map_while(|number| Some((number, std::fs::read(folder.join(format!("stream_{number}"))).ok()?)));
    (std::fs::read(folder.join("metadata")).unwrap(), streams.collect())
}
