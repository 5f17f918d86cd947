//! Writes a trace of ROS 2: `punctual-test-lttng DIR EVENTS [SEED]`.

use punctual_test_lttng::ros2::Tracer;
use punctual_test_lttng::system::System;
use std::path::Path;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| arguments.get(place).and_then(|number| number.parse().ok());
    let (Some(folder), Some(events)) = (arguments.first(), number(1)) else {
        eprintln!("usage: punctual-test-lttng DIR EVENTS [SEED]");
        std::process::exit(2);
    };
    let tracer = Tracer::Jazzy;
    let layout = punctual_test_lttng::ctf::Layout { packet_bytes: 256 << 10, ..tracer.layout() };
    let written = System::new(tracer, number(2).unwrap_or(0)).write(Path::new(folder), layout, events);
    match written {
        Ok(books) => println!("{} events", books.events),
        Err(error) => {
            eprintln!("cannot write {folder}: {error}");
            std::process::exit(1);
        }
    }
}
