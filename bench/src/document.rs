//! Tables of figures in `docs/benchmarks.md`: each between two marks, replaced as a whole.

use crate::Error;
use std::fs;
use std::path::Path;

const DOCUMENT: &str = "docs/benchmarks.md";
/// The width of its text.
const COLUMNS: usize = 110;

/// Prints the table and puts it in its place in the document.
pub fn publish<const N: usize>(
    section: &str,
    command: &str,
    head: &[&str; N],
    rows: &[[String; N]],
) -> Result<(), Error> {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let measured = format!("Measured by `{command}` on {}.", machine());
    let mut table = textwrap::fill(&measured, COLUMNS) + "\n\n";
    table += &line(head.to_vec());
    table += &line(vec!["---"; N]);
    for row in rows {
        table += &line(row.iter().map(String::as_str).collect());
    }
    println!("{table}");
    let path = Path::new(DOCUMENT);
    let (open, close) = (format!("<!-- {section} -->\n"), format!("<!-- /{section} -->\n"));
    let text = fs::read_to_string(path)?;
    let (before, rest) =
        text.split_once(&open).ok_or(format!("{DOCUMENT} lacks the mark {}", open.trim()))?;
    let (_, after) = rest.split_once(&close).ok_or(format!("{DOCUMENT} lacks the mark {}", close.trim()))?;
    fs::write(path, format!("{before}{open}{table}{close}{after}"))?;
    Ok(())
}

fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let model = read("/proc/cpuinfo");
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("a processor", |line| line.trim_start_matches(['\t', ':', ' ']));
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let virtual_machine =
        if read("/proc/cpuinfo").contains(" hypervisor") { ", a virtual machine" } else { "" };
    let system = read("/etc/os-release");
    let system = system
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or("Linux", |name| name.trim_matches('"'));
    format!(
        "{model}, {cpus} processors{virtual_machine}, Linux {}, {system}",
        read("/proc/sys/kernel/osrelease").trim()
    )
}
