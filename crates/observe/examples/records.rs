//! Prints every record of a command: `cargo run --example records -- COMMAND…`. For looking at what the
//! kernel side delivers.

use punctual_observe::{Attach, Observer, Options, Target};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command: Vec<_> = std::env::args_os().skip(1).collect();
    let target = if command.is_empty() { Target::AllRealTime } else { Target::Command(command) };
    let options = Options {
        target,
        include_best_effort: false,
        switches: std::env::var_os("SWITCHES").is_some(),
        attach: Attach::Auto,
        buffer_bytes: 4 << 20,
        all_threads: false,
        command_to_stderr: true,
    };
    let mut observer = Observer::start(&options)?;
    let mut print = |record: &punctual_trace::Record| println!("{record:?}");
    let end = std::time::Instant::now() + Duration::from_secs(10);
    while !observer.target_ended() && std::time::Instant::now() < end {
        observer.poll(Duration::from_millis(200), &mut print)?;
    }
    let summary = observer.finish(&mut print)?;
    eprintln!("{summary:?}");
    Ok(())
}
