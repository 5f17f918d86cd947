//! The processor time that extraction of arrays takes: `crates/python/bench/extract.py` compares its own.
//!
//! `cargo run --release -p punctual-extract --example bench_arrays -- RELEASES COSTS`: files of 64-bit
//! numbers in this machine's order. Prints nanoseconds.

use punctual_extract::stream::{Circumstances, Options, Stream};
use punctual_model::{Duration, Instant, Job, Release, Segment, Separator, Window};
use std::hint::black_box;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut numbers = || -> Result<Vec<u64>, Box<dyn std::error::Error>> {
        let bytes = std::fs::read(arguments.next().ok_or("which file?")?)?;
        Ok(bytes.chunks_exact(8).map(|it| u64::from_ne_bytes(it.try_into().expect("eight bytes"))).collect())
    };
    let (releases, costs) = (numbers()?, numbers()?);
    let begin = processor_time_ns()?;
    let mut stream = Stream::new(&Options::default());
    for (release, cost) in releases.iter().zip(&costs) {
        let (at, cost) = (Instant::from_ns(*release), Duration::from_ns(*cost));
        let release = Release { arrival: None, window: Window::at(at) };
        stream.release(&release, Circumstances::default());
        let job = Job { release, start: at, end: at + cost, cost, suspended: Duration::ZERO };
        stream.complete(&job, &[Segment { suspended: Duration::ZERO, cost }]);
    }
    black_box(stream.to_model(Separator::SUSPENSION));
    println!("{}", processor_time_ns()? - begin);
    Ok(())
}

/// Of this thread: other work on the machine hardly counts.
fn processor_time_ns() -> Result<u64, Box<dyn std::error::Error>> {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(account.split(' ').next().ok_or("no account of processor time")?.parse()?)
}
