//! Checks that a machine with `--icount` is deterministic: runs a command twice and compares every byte.

use crate::error::Result;
use crate::machine::Machine;
use crate::root::Root;
use std::process::ExitCode;

/// Prints whatever differs between two runs of a machine that is not deterministic: time, random numbers,
/// interrupts, addresses, durations; and runs Punctual, which loads programs and traces.
const EVERYTHING: &str = "date +%s.%N; cat /proc/sys/kernel/random/uuid /proc/uptime /proc/interrupts \
    /proc/meminfo /proc/self/maps \
    /proc/self/schedstat /proc/stat; head -c 64 /dev/urandom | hexdump; punctual doctor; \
    punctual extract --quiet --json -- /workloads/instructions --batches 3";

/// The output of a run.
#[derive(PartialEq)]
struct Run {
    code: u8,
    output: Vec<u8>,
    errors: Vec<u8>,
    kernel_log: String,
}

/// Succeeds if both runs printed the same and nothing was wrong; prints where they first differ.
pub fn check(machine: &Machine, root: &mut Root, words: &[String]) -> Result<ExitCode> {
    let default = ["sh", "-c", EVERYTHING].map(str::to_owned);
    let job = if words.is_empty() { &default } else { words };
    let first = run(machine, root, job)?;
    let second = run(machine, root, job)?;
    let parts = [
        ("output", first.output.as_slice(), second.output.as_slice()),
        ("errors", &first.errors, &second.errors),
        ("kernel log", first.kernel_log.as_bytes(), second.kernel_log.as_bytes()),
    ];
    for (name, first, second) in parts {
        println!("{name}: {}", compared(first, second));
    }
    println!("exit code: {} and {}", first.code, second.code);
    Ok(if first == second && first.code == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(machine: &Machine, root: &mut Root, job: &[String]) -> Result<Run> {
    let folder = crate::folder(&format!("repeat-{}", std::process::id()))?;
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let ended = machine.run(root, job, &folder, &mut |is_error, bytes| {
        if is_error { &mut errors } else { &mut output }.extend_from_slice(bytes);
        Ok(())
    })?;
    for fault in ended.faults() {
        eprintln!("lab: {fault}");
    }
    let _ = std::fs::remove_dir_all(&folder);
    let code = if ended.faults().is_empty() { ended.code() } else { 125 };
    Ok(Run { code, output, errors, kernel_log: ended.kernel_log })
}

/// Whether two outputs are equal, and if not, the first line where they differ.
fn compared(first: &[u8], second: &[u8]) -> String {
    if first == second {
        return format!("{} bytes, the same twice", first.len());
    }
    let lines = |bytes| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
    let (first, second) = (lines(first), lines(second));
    let number = first.iter().zip(&second).take_while(|(first, second)| first == second).count();
    let line = |lines: &[String]| lines.get(number).map_or("(nothing)", String::as_str).to_owned();
    format!("DIFFERENT in line {}:\n  {}\n  {}", number + 1, line(&first), line(&second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_differing_line_is_shown() {
        assert_eq!(compared(b"a\nb\n", b"a\nb\n"), "4 bytes, the same twice");
        assert_eq!(compared(b"a\nb\nc\n", b"a\nx\nc\n"), "DIFFERENT in line 2:\n  b\n  x");
        assert_eq!(compared(b"a\n", b"a\nb\n"), "DIFFERENT in line 2:\n  (nothing)\n  b");
    }
}
