//! `punctual record`

use super::{flow_probes, options};
use crate::args::{self, Detail};
use crate::console::Console;
use crate::failure::{Code, Failure};
use crate::stop;
use punctual_observe::Switches;
use punctual_report::shell_word;
use punctual_workflow::RecordingFolder;
use punctual_workflow::record::{BUFFER_BYTES, Options, Recorded, dated_path, record};

pub fn run(arguments: args::Record) -> Result<(), Failure> {
    let output = arguments.output.clone().unwrap_or_else(dated_path);
    if !arguments.flow_probes.is_empty() {
        return flow_probes::trace(arguments, &output);
    }
    let folder = RecordingFolder::new(&output, arguments.force)?;
    let console = Console::new(arguments.watch.quiet).beside(&arguments.watch.target.command);
    let mut watch = options::watch(&arguments.watch, BUFFER_BYTES)?;
    watch.observe.switches = match (arguments.detail == Detail::Switches, arguments.all_threads) {
        (false, false) => Switches::None,
        (true, false) => Switches::Watched,
        (true, true) => Switches::All,
        (false, true) => {
            let message = "--all-threads records context switches; it needs --detail switches";
            return Err(Failure::new(Code::Usage, message));
        }
    };
    let threads = options::threads(&arguments.watch.threads)?;
    let options = Options { watch, threads, folder, limit: arguments.limit };
    let recorded = record(options, &*stop::on_signals()?, &console)?;
    console.note(&summary(&recorded, arguments.all_threads));
    Ok(())
}

/// Where a recording is, how much is in it, and what to do with it. `explains` is whether it has the switches
/// of all threads.
pub fn summary(recorded: &Recorded, explains: bool) -> String {
    let path = shell_word(&recorded.path);
    let more = if explains { format!("; punctual why {path} explains late jobs") } else { String::new() };
    format!("{recorded} punctual replay {path} extracts its models{more}.")
}
