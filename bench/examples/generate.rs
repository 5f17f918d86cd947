//! Writes the recording of `make bench-replay` to a folder, to look at or to profile with: `cargo run
//! --release -p punctual-bench --example generate -- DIR [ACTIVATIONS [THREADS [MACHINE]]]`. Each machine has
//! jobs of its own: the tests of the Python package merge them.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (activations, threads, machine) = (number(10_000_000)?, number(20)?, number(0)?);
    let (threads, machine) = (u32::try_from(threads)?, u32::try_from(machine)?);
    let recorded = punctual_bench::trace::write_of(folder.as_ref(), activations, threads, machine)?;
    println!("{recorded:?}");
    Ok(())
}
