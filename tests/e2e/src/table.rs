//! From threads that were just observed to a table that serves them, on this kernel.

use crate::run::{directory, punctual, run};
use crate::shared::DEMO;
use crate::{Outcome, Result, Test, ensure, fail};
use punctual_model::{TimingModel, check};
use std::fs;

pub const ALL: &[(&str, Test)] = &[("table::of_threads_that_were_just_observed", observed)];

/// Three threads of the demonstration with periods of 5, 10 and 20 ms.
fn observed() -> Result<Outcome> {
    let directory = directory()?;
    let file = |name: &str| directory.path().join(name).display().to_string();
    let observation = DEMO.get()?;
    let (model, table) = (observation.model().display().to_string(), file("demo.table.json"));
    // The disturbances of a noisy machine count as cost: budgets come from a contract here.
    let contract = file("demo.toml");
    fs::write(&contract, TASKS)?;
    let threads = ["--thread", "sleep-abs", "--thread", "timerfd-epoll", "--thread", "sleep-rel"];
    let mut make = punctual(["table", &model, &contract, "--slot", "1ms", "--cpus", "0-1", "-o", &table]);
    make.args(threads).arg("--shorten-periods");
    run(make)?.expect_code(0)?;
    let made = TimingModel::from_json(&fs::read_to_string(&table)?);
    let made = made.or_else(|error| fail(format!("the table is not valid: {error}")))?;
    let Some(time_table) = made.table else { return fail("there is no section table") };
    ensure!(time_table.tasks.len() == 3, "{} tasks", time_table.tasks.len());
    let found = check::table(&time_table);
    ensure!(found.is_empty(), "{found:?}");
    run(punctual(["table", "--from", &table]))?.expect_code(0)?;
    run(punctual(["report", "-q", &table, "-o", &file("demo.html")]))?.expect_code(0)?;
    run(punctual(["timeline", &table, "-o", &file("demo.perfetto-trace")]))?.expect_code(0)?;
    Ok(Outcome::Completed)
}

const TASKS: &str = r#"
[[task]]
name = "sleep-abs"
period = "5ms"
wcet = "1ms"

[[task]]
name = "timerfd-epoll"
period = "10ms"
wcet = "2ms"

[[task]]
name = "sleep-rel"
period = "20ms"
wcet = "2ms"
"#;
