//! All drivers in one observation: starting one for each would take most of the time.

use super::{DRIVERS, Done, list, period_us};
use crate::run::{Ended, Observed, directory, observe, workload};
use crate::{Result, fail};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Instant;

/// How many run at a time on each processor. They sleep most of the time.
const AT_A_TIME: usize = 4;

/// Runs each driver (a word of its name and one of its period) into a file of its name.
const SCRIPT: &str = r#"
drivers=$1 folder=$2 at_a_time=$3 running=0
shift 3
while [ $# -gt 0 ]; do
	"$drivers" run "$1" --period-us "$2" --jobs 50 >"$folder/$1" 2>"$folder/$1.errors" &
	running=$((running + 1)) && shift 2
	[ $((running % at_a_time)) != 0 ] || wait
done
wait
"#;

/// One observation of drivers.
pub struct All {
    began: Instant,
    observed: Observed,
    printed: BTreeMap<String, String>,
}

/// The observation of all drivers whose tests run, which is made once.
pub fn all() -> Result<&'static All> {
    static ALL: OnceLock<std::result::Result<All, String>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        wanted().and_then(|all| All::observe(DRIVERS, &all, &[])).map_err(|failure| failure.message)
    });
    all.as_ref().or_else(|message| fail(format!("the observation of all drivers: {message}")))
}

fn wanted() -> Result<Vec<String>> {
    let mut drivers = list(DRIVERS)?;
    drivers.retain(|driver| crate::is_wanted(&format!("driver::{driver}")));
    Ok(drivers)
}

impl All {
    /// Observes these drivers of a workload, with options of the command.
    pub fn observe(workload_name: &str, drivers: &[String], options: &[&str]) -> Result<All> {
        let began = Instant::now();
        let directory = directory()?;
        let (path, folder) = (workload(workload_name), directory.path().to_string_lossy().into_owned());
        let at_a_time = (AT_A_TIME * std::thread::available_parallelism()?.get()).to_string();
        let mut command = vec!["sh", "-c", SCRIPT, "sh", &path, &folder, &at_a_time];
        command.extend(drivers.iter().flat_map(|driver| [driver.as_str(), period_us(driver)]));
        let observed = observe(options, &command)?;
        let mut printed = BTreeMap::new();
        for driver in drivers {
            printed.insert(driver.clone(), std::fs::read_to_string(directory.path().join(driver))?);
        }
        Ok(All { began, observed, printed })
    }

    /// When the observation began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// The part of the observation about one driver, and the driver's report.
    pub fn of(&self, driver: &str) -> Result<(Observed, Done)> {
        let ended = &self.observed.ended;
        let stdout = self.printed.get(driver).cloned().unwrap_or_default();
        let ended = Ended { code: ended.code, stdout, stderr: ended.stderr.clone() };
        let done = Done { printed: ended.report()? };
        let pid = done.printed["pid"].as_u64();
        let mut model = self.observed.model.clone();
        if let Some(threads) = &mut model.threads {
            threads.tasks.retain(|task| Some(u64::from(task.pid)) == pid);
        }
        Ok((Observed { ended, model }, done))
    }
}
