//! What observing the scheduling latency costs: runs `guest/latency.sh` where instructions count and puts a
//! table into `docs/benchmarks.md`.

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::{bench, matrix, programs};
use std::fmt::Write;
use std::time::Duration;

const MARKS: (&str, &str) = ("<!-- latency-bench -->\n", "<!-- /latency-bench -->\n");

/// Measures, prints, publishes.
pub fn run(name: &str, memory_mib: u64, limit: Duration) -> Result {
    let kernel = matrix::get(name).map_err(|missing| Error(format!("{name}: {}", missing.reason)))?;
    let mut root = programs::root_to_measure(kernel.arch)?;
    let machine = Machine {
        kernel: &kernel,
        processors: 1,
        memory_mib,
        counting: true,
        turn_us: None,
        limit,
        append: "",
    };
    let folder = crate::folder("bench-latency")?;
    let mut output = Vec::new();
    let ended =
        machine.run(&mut root, &["bash".into(), "/lab/latency.sh".into()], &folder, &mut |_, bytes| {
            output.extend_from_slice(bytes);
            Ok(())
        })?;
    let output = String::from_utf8_lossy(&output);
    let faults = ended.faults();
    if ended.code() != 0 || !faults.is_empty() {
        let log = folder.join("kernel.log");
        let faults = faults.join("\n");
        return Err(Error(format!("{faults}\n{output}the kernel's log is in {}", log.display())));
    }
    let table = table(&output).map_err(|why| Error(format!("{why} in\n{output}")))?;
    let release = ended.release.unwrap_or_default();
    let text = format!(
        "Measured by `make bench-latency` in {}, Linux {release}, one processor that counts instructions.\n\n\
         {table}",
        bench::qemu()
    );
    println!("{text}");
    bench::publish(&text, MARKS)
}

/// A line of the script's output: seconds of hackbench, cyclictest's mean and greatest latency in µs.
struct Row<'a> {
    name: &'a str,
    hackbench: f64,
    mean: f64,
    max: f64,
}

fn row(line: &str) -> Option<Row<'_>> {
    let mut words = line.strip_prefix("row ")?.splitn(4, ' ');
    let mut number = || words.next()?.parse().ok();
    let (hackbench, mean, max) = (number()?, number()?, number()?);
    Some(Row { name: words.next()?, hackbench, mean, max })
}

/// Each beside the mean of the first and the last row, which are without an observer: hackbench differs by
/// more than a tenth from run to run.
fn table(output: &str) -> std::result::Result<String, &'static str> {
    let rows: Vec<Row<'_>> = output.lines().filter_map(row).collect();
    let [first, .., last] = rows.as_slice() else { return Err("there are no rows") };
    let mean = |figure: fn(&Row<'_>) -> f64| (figure(first) + figure(last)) / 2.0;
    let (hackbench, typical, greatest) =
        (mean(|row| row.hackbench), mean(|row| row.mean), mean(|row| row.max));
    let mut table = String::from(
        "| observer | hackbench | cyclictest, mean | cyclictest, greatest |\n|---|---|---|---|\n",
    );
    for row in &rows {
        let _ = writeln!(
            table,
            "| {} | {:.3} s, × {:.2} | {} µs, {:+} | {} µs, {:+} |",
            row.name,
            row.hackbench,
            row.hackbench / hackbench,
            row.mean,
            row.mean - typical,
            row.max,
            row.max - greatest,
        );
    }
    let mut data = output.lines().filter_map(data).peekable();
    if data.peek().is_some() {
        table.push_str("\nFrom the kernel to user space:\n\n");
    }
    data.for_each(|line| table.push_str(&line));
    Ok(table)
}

/// A line of how many interrupts were handed over, in how many nanoseconds, and at how many KB/s.
fn data(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("data ")?.splitn(4, ' ');
    let mut number = || words.next()?.parse::<f64>().ok();
    let (interrupts, ns, kilobytes) = (number()?, number()?, number()?);
    let per_second = interrupts * 1e9 / ns;
    let bytes = kilobytes * 1e3 / per_second;
    Some(format!(
        "- {}: {kilobytes:.1} KB/s, {per_second:.0} interrupts/s, {bytes:.1} bytes for each\n",
        words.next()?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ratios_to_those_without_an_observer() {
        let table = table(
            "row 0.180 3 4 nothing\nnoise\nrow 0.500 7 12 punctual latency\nrow 0.220 3 6 nothing, again\n",
        )
        .unwrap();
        assert!(table.contains("| nothing | 0.180 s, × 0.90 | 3 µs, +0 | 4 µs, -1 |"), "{table}");
        assert!(table.contains("| punctual latency | 0.500 s, × 2.50 | 7 µs, +4 | 12 µs, +7 |"), "{table}");
        assert!(super::table("row 1 2\n").is_err());
        assert_eq!(
            data("data 3000 1500000000 11.2 punctual latency").as_deref(),
            Some("- punctual latency: 11.2 KB/s, 2000 interrupts/s, 5.6 bytes for each\n")
        );
    }
}
