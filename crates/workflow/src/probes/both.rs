//! A dataflow program and its threads, recorded at the same time by one command: two folders in one.

use super::{ProgramTracer, Traced};
use crate::error::{Error, Result};
use crate::monitor::{Monitor, Progress, Silent, Unit, Watching};
use crate::record::{self, Recorded};
use punctual_observe::Target;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Where the trace of the program is in a folder of both.
pub const TRACE: &str = "flow";
/// Where the recording of its threads is.
pub const RECORDING: &str = "threads";

/// Both parts of a folder that [`trace_and_record`] wrote; `None` if it is something else.
pub fn parts(folder: &Path) -> Option<[PathBuf; 2]> {
    let parts = [TRACE, RECORDING].map(|name| folder.join(name));
    let is_both = !folder.join("metadata").exists() && parts.iter().all(|it| it.join("metadata").exists());
    is_both.then_some(parts)
}

/// Makes the folder for both parts, if it does not exist. One that is a recording itself is refused.
pub fn make_folder(folder: &Path) -> Result<()> {
    if folder.join("metadata").exists() {
        return Err(Error::file(format!("cannot write to {}", folder.display()))
            .because("it holds a recording or a trace, and two are to be written")
            .advise("choose another place"));
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::io("make", folder.display(), &error))
        }
        _ => Ok(()),
    }
}

/// Warnings of the recording; only the trace shows its progress.
struct Beside<'a>(&'a dyn Monitor);

impl Monitor for Beside<'_> {
    fn warn(&self, message: &str) {
        self.0.warn(message);
    }

    fn hint(&self, message: &str) {
        self.0.hint(message);
    }

    fn begin(&self, _: &'static str, _: u64, _: Unit) -> Box<dyn Progress> {
        Box::new(Silent)
    }

    fn watching(&self, _: Option<Duration>) -> Box<dyn Watching> {
        Box::new(Silent)
    }
}

/// Traces a program and records its threads meanwhile: both from its first instruction on, if it is a
/// command. `threads` says how; its target is replaced.
pub fn trace_and_record(
    tracer: ProgramTracer,
    mut threads: record::Options,
    stop: &AtomicBool,
    monitor: &dyn Monitor,
) -> Result<(Traced, Recorded)> {
    let held = tracer.hold()?;
    threads.watch.observe.target = Target::Pids(vec![held.process()]);
    let (done, (send, receive)) = (AtomicBool::new(false), mpsc::channel());
    std::thread::scope(|scope| {
        let done = &done;
        let recording = scope.spawn(move || {
            record::record_from(threads, done, &Beside(monitor), || {
                // Nobody waits for it if the trace has failed.
                let _ = send.send(());
            })
        });
        // Fails if the recording has ended before it began.
        let traced = receive.recv().is_ok().then(|| tracer.run(held, stop, monitor));
        done.store(true, Ordering::Relaxed);
        let recorded = match recording.join() {
            Ok(recorded) => recorded,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        match traced {
            Some(traced) => Ok((traced?, recorded?)),
            None => recorded.and_then(|_| Err(Error::target("the recording ended before it began"))),
        }
    })
}
