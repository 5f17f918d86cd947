//! Arguments that several commands share, as options of `workflow`.

use crate::args;
use crate::failure::{Code, Failure};
use punctual_extract::StreamOptions;
use punctual_observe::{Attach, Options, Output, Switches, Target};
use punctual_workflow::{ThreadFilter, TimeRange, Watch};

/// `buffer_bytes` is the default.
pub fn watch(arguments: &args::Watch, buffer_bytes: u32) -> Result<Watch, Failure> {
    if arguments.target.command.is_empty() && std::env::args_os().next_back().is_some_and(|last| last == "--")
    {
        return Err(Failure::new(
            Code::Usage,
            "no command after --; name one, or leave out -- to watch all real-time threads",
        ));
    }
    let observe = Options {
        target: target(&arguments.target),
        include_best_effort: arguments.include_best_effort,
        switches: Switches::None,
        attach: match arguments.attach {
            args::Attach::Auto => Attach::Auto,
            args::Attach::Fentry => Attach::Fentry,
            args::Attach::Tracepoint => Attach::Tracepoint,
        },
        buffer_bytes: arguments.buffer.unwrap_or(buffer_bytes),
        command_output: Output::Shared,
    };
    Ok(Watch { observe, limit: arguments.duration })
}

fn target(target: &args::Target) -> Target {
    match &target.cgroup {
        Some(path) => Target::Cgroup(path.clone()),
        None if !target.pid.is_empty() => Target::Pids(target.pid.clone()),
        None if !target.command.is_empty() => Target::Command(target.command.clone()),
        None => Target::AllRealTime,
    }
}

pub fn threads(arguments: &args::Threads) -> Result<ThreadFilter, Failure> {
    Ok(ThreadFilter::new(&arguments.thread)?)
}

pub fn models(arguments: &args::Models) -> punctual_extract::Options {
    punctual_extract::Options {
        stream: StreamOptions {
            curve_horizon: arguments.curve_horizon as usize,
            wcet_horizon: arguments.wcet_horizon as usize,
            ..StreamOptions::default()
        },
        merge_transitions: arguments.merge_transitions,
    }
}

pub fn range(arguments: &args::Range) -> TimeRange {
    TimeRange { from: arguments.from, until: arguments.until }
}
