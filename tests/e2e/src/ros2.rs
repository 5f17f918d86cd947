//! A trace of ROS 2, imported and followed by the commands: each passage through each chain is that of the
//! program's own books.

use crate::run::{directory, punctual, run};
use crate::{Outcome, Result, Test, ensure};
use punctual_test_lttng::ros2::Tracer;
use punctual_test_lttng::services::Services;
use punctual_test_lttng::system::{Books, System};
use std::fs;
use std::path::Path;

pub const ALL: &[(&str, Test)] = &[
    ("import::chains_of_ros2_are_those_of_the_books", topics),
    ("import::chains_of_ros2_go_through_services", services),
];

fn topics() -> Result<Outcome> {
    agrees(|folder| System::new(Tracer::Jazzy, 11).write(folder, Tracer::Jazzy.layout(), 40_000))
}

fn services() -> Result<Outcome> {
    agrees(|folder| Services::new(11).write(folder, Tracer::Jazzy.layout(), 300))
}

fn agrees(write: impl FnOnce(&Path) -> std::io::Result<Books>) -> Result<Outcome> {
    let directory = directory()?;
    let (session, trace) = (directory.path().join("session"), directory.path().join("trace"));
    let passages = directory.path().join("passages.csv");
    let books = write(&session.join("ust/uid/0/64-bit"))?;
    let mut import = punctual(["import"]);
    import.arg(&session).arg("-o").arg(&trace);
    run(import)?.expect_code(0)?;
    let mut chains = punctual(["chains"]);
    chains.arg(&trace).arg("--passages-out").arg(&passages);
    run(chains)?.expect_code(0)?;
    let found = fs::read_to_string(&passages)?;
    // Without an import of its own it is the same.
    let at_once = directory.path().join("at_once.csv");
    let mut chains = punctual(["chains"]);
    chains.arg(&session).arg("--passages-out").arg(&at_once);
    run(chains)?.expect_code(0)?;
    ensure!(fs::read_to_string(&at_once)? == found, "chains of the session differ from those of the import");
    for chain in &books.chains {
        let name = chain.tasks.join(" → ");
        for (latency, mut expected) in [("reaction", chain.reactions()), ("age", chain.ages())] {
            let mut seen: Vec<(u64, u64)> = found
                .lines()
                .map(|line| line.split(',').collect::<Vec<&str>>())
                .filter(|cells| cells.len() == 7 && cells[0] == name && cells[1] == latency)
                .map(|cells| -> Result<(u64, u64)> { Ok((cells[3].parse()?, cells[5].parse()?)) })
                .collect::<Result<_>>()?;
            seen.sort_unstable();
            expected.sort_unstable();
            ensure!(expected.len() > 50, "only {} passages of {name}", expected.len());
            ensure!(seen == expected, "{latency} of {name}: {} for {}", seen.len(), expected.len());
        }
    }
    Ok(Outcome::Completed)
}
