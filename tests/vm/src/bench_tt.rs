//! How late the slots of a table begin where instructions count: runs `bench-tt` in a machine and puts its
//! tables into `docs/benchmarks.md`. Figures on real time are those of the same program on this machine.

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::{bench, matrix, programs};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

const MARKS: (&str, &str) = ("<!-- tt-lab -->\n", "<!-- /tt-lab -->\n");

/// What processors of the table need besides an isolated partition, which the dispatcher makes.
const APPEND: &str = "irqaffinity=0 rcu_nocbs=1,2";

/// How long the other processor may keep the table's waiting: as processors of hardware do not.
const TURN_US: u32 = 10;

/// Measures, prints, publishes.
pub fn run(name: &str, memory_mib: u64, limit: Duration) -> Result {
    let kernel = matrix::get(name).map_err(|missing| Error(format!("{name}: {}", missing.reason)))?;
    let mut root = programs::root_to_measure(kernel.arch)?;
    let program = programs::optimized("bench-tt")?;
    root.program(Path::new("/usr/local/bin/bench-tt"), &program)?;
    // The second processor is for everything but the table.
    let machine = Machine {
        kernel: &kernel,
        processors: 2,
        memory_mib,
        counting: true,
        turn_us: Some(TURN_US),
        limit,
        append: APPEND,
    };
    let folder = crate::folder("bench-tt")?;
    let mut output = Vec::new();
    let job = ["bench-tt", "rows", "sched-ext", "user-space"].map(str::to_owned);
    let ended = machine.run(&mut root, &job, &folder, &mut |is_error, bytes| {
        if is_error {
            eprint!("{}", String::from_utf8_lossy(bytes));
        }
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
    let table = table(&output).ok_or_else(|| Error(format!("there are no rows in\n{output}")))?;
    let text = format!(
        "Measured by `make bench-tt` in {}, Linux {}.\nOne processor is for the table and one for the rest \
         (`{APPEND}`); they take turns of at most {TURN_US} µs.\n\n{table}",
        bench::qemu(),
        ended.release.unwrap_or_default()
    );
    println!("{text}");
    bench::publish(&text, MARKS)
}

/// The table whose lines the program printed.
fn table(output: &str) -> Option<String> {
    let head = output.lines().find_map(|line| line.strip_prefix("head "))?;
    let rows: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("row ")).collect();
    let line = |cells: &str| format!("| {} |\n", cells.replace('|', " | "));
    let mut table = line(head) + &line(&vec!["---"; head.split('|').count()].join("|"));
    for row in &rows {
        let _ = write!(table, "{}", line(row));
    }
    (!rows.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_a_table() {
        let table = super::table("noise\nhead dispatch|p50\nrow sched_ext|6.0\n");
        assert_eq!(table.as_deref(), Some("| dispatch | p50 |\n| --- | --- |\n| sched_ext | 6.0 |\n"));
        assert_eq!(super::table("head a|b\n"), None);
    }
}
