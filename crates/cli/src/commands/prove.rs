//! `punctual prove`

use super::options;
use crate::args;
use crate::failure::{Code, Failure};
use crate::output::print;
use crate::terminal;
use crate::values;
use punctual_report::{counted, proof as report};
use punctual_workflow::ThreadFilter;
use punctual_workflow::prove::{Change, Changed, Options, prove};

pub fn run(arguments: args::Prove) -> Result<(), Failure> {
    let deadline =
        |it: &values::Deadline| Ok((ThreadFilter::new(std::slice::from_ref(&it.thread))?, it.time));
    let change = |it: &values::Change| {
        let what = if it.is_period { Changed::Period } else { Changed::Wcet };
        Ok(Change { thread: ThreadFilter::new(std::slice::from_ref(&it.thread))?, what, parts: it.parts })
    };
    let proof = prove(&Options {
        deadlines: arguments.deadlines.iter().map(deadline).collect::<Result<_, Failure>>()?,
        changes: arguments.changes.iter().map(change).collect::<Result<_, Failure>>()?,
        margin: arguments.margin,
        threads: options::threads(&arguments.threads)?,
        sensitivity: arguments.sensitivity,
        assign: arguments.assign,
        platform: arguments.platform,
        model: arguments.model,
    })?;
    let page = terminal::page();
    let text = match (&arguments.task, arguments.json) {
        (Some(name), _) => {
            let named = (0..proof.system.tasks.len()).filter(|&task| proof.system.tasks[task].name == *name);
            let all: Vec<String> = named.map(|task| report::task(&proof, task, &page)).collect();
            if all.is_empty() {
                let message = format!("no real-time thread of the model is named {name}");
                return Err(Failure::new(Code::Target, message));
            }
            all.join("\n")
        }
        (None, true) => report::json(&proof),
        (None, false) => report::proof(&proof, &page),
    };
    print(&text)?;
    let missed = proof.missed();
    match missed {
        0 => Ok(()),
        number => {
            Err(Failure::new(Code::Refused, format!("{} not proven", counted(number as u64, "deadline"))))
        }
    }
}
