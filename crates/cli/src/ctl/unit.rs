//! `punctual ctl unit`: schedules the main process of a systemd unit as its files say.

use super::run::attach;
use crate::console;
use crate::failure::{Code, Failure};
use punctual_client::Client;
use punctual_report::daemon;
use punctual_workflow::unit::{self, Timing};
use std::process::Command;

/// What is to be done.
pub struct Plan {
    name: String,
    process: u32,
    timing: Timing,
}

impl Plan {
    /// Reads the unit's files; `None` if they declare nothing.
    pub fn new(name: String) -> Result<Option<Plan>, Failure> {
        let text = systemctl(&["cat", "--no-pager", "--", &name])?;
        let wrong = |why| Failure::new(Code::File, format!("unit {name}, [X-Punctual]: {why}"));
        let Some(timing) = unit::timing(&text).map_err(wrong)? else {
            console::message(&format!("unit {name} has no section [X-Punctual]: nothing to do"));
            return Ok(None);
        };
        let process = match std::env::var("MAINPID") {
            Ok(process) => process,
            Err(_) => systemctl(&["show", "--property=MainPID", "--value", "--", &name])?,
        };
        match process.trim().parse() {
            Ok(process) if process > 0 => Ok(Some(Plan { name, process, timing })),
            _ => Err(Failure::new(Code::Target, format!("unit {name} has no main process: is it running?"))),
        }
    }

    pub fn run(self, client: &mut Client) -> Result<(), Failure> {
        let parameters = &self.timing.parameters;
        let admission = match client.create_spec_of(Some(self.process), parameters, Some(&self.name)) {
            Ok(admission) => admission,
            Err(error) => return self.refused(error.into()),
        };
        match attach(client, admission.spec, self.process) {
            Ok(admission) => {
                let status = daemon::admission(&admission, parameters);
                tell_manager(&status);
                console::message(&format!("{}: {status}", self.name));
                Ok(())
            }
            Err(error) => {
                // Its process may have ended, and the spec with it.
                let _ = client.release_spec(admission.spec);
                self.refused(error.into())
            }
        }
    }

    /// Fails, or says why the unit runs without.
    pub fn refused(&self, failure: Failure) -> Result<(), Failure> {
        if self.timing.required {
            return Err(failure);
        }
        tell_manager(&format!("not scheduled by punctuald: {}", failure.message));
        console::message(&format!("{} runs without a spec: {}", self.name, failure.message));
        Ok(())
    }
}

/// What `systemctl status` shows, if the manager listens.
pub fn tell_manager(status: &str) {
    if let Err(error) = punctual_linux::service_manager::notify(&format!("STATUS={status}")) {
        console::message(&error.to_string());
    }
}

fn systemctl(arguments: &[&str]) -> Result<String, Failure> {
    let failed =
        |why: String| Failure::new(Code::Target, format!("systemctl {}: {why}", arguments.join(" ")));
    let output =
        Command::new("systemctl").args(arguments).output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
