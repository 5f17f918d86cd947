//! LiME's recordings: a folder with `<tid>-<version>.events.json` and `<tid>-<version>.infos.json`. A version
//! is what is a task here: the next one of the same thread begins where its parameters change.

mod event;
mod infos;

use super::account::{self, NO_WAKES};
use super::error::{Error, ErrorKind};
use super::notes::Notes;
use super::objects::{Objects, Problem};
use super::summary::Imported;
use super::thread::Out;
use super::thread::{Thread, Unseen};
use super::why_not;
use event::{Event, Line};
use infos::Infos;
use punctual_model::Instant;
use punctual_trace::account::{Lack, Use};
use punctual_trace::{About, Begin, Record, TaskRecord, Totals};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::path::{Path, PathBuf};

/// What its recordings never have.
const LACKS: [Lack; 3] = [
    Lack::fact(
        Use::ExecutionTimes,
        "the kernel's own account",
        "time between switches; too high where a switch is missing",
    ),
    Lack::fact(Use::Releases, "who woke whom", "causes of late jobs end at the sleep"),
    Lack::fact(Use::Threads, "machine, kernel, lost events", "a gap goes unnoticed"),
];

/// Records what LiME does not.
const COMMAND: &str = "punctual record -- PROGRAM";

/// A folder that LiME recorded.
pub struct Folder {
    threads: Vec<Follow>,
    about: About,
    bytes: u64,
    notes: Notes,
}

/// One thread's files, read as they are needed.
struct Follow {
    tid: u32,
    /// The versions to come, the next one last.
    versions: Vec<PathBuf>,
    current: Option<Current>,
    thread: Option<Thread>,
    /// What the thread was by the version before.
    was: Option<Infos>,
    last: Instant,
    /// Bytes of the files that have been read to their end.
    done: u64,
    /// Events that could not be read.
    broken: u64,
    /// Of threads that have ended.
    unseen: Unseen,
}

/// The version that is being read.
struct Current {
    objects: Objects,
    /// Known until it is told.
    infos: Option<Infos>,
    /// What the thread is, from when it was told.
    task: Option<TaskRecord>,
    next: Option<(Instant, Event)>,
}

/// The files of a recording.
struct Listing {
    /// By thread: version, and path.
    files: BTreeMap<u32, Vec<(u64, PathBuf)>>,
    /// Of all of them.
    bytes: u64,
    /// How many files have events as protobuf, which is not read.
    protobuf: u64,
}

impl Listing {
    /// Of a folder with events of at least one thread.
    fn read(path: &Path) -> Result<Listing, Error> {
        let mut found = Listing { files: BTreeMap::new(), bytes: 0, protobuf: 0 };
        for entry in fs::read_dir(path).map_err(|error| Error::io(path, &error))? {
            let entry = entry.map_err(|error| Error::io(path, &error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            found.protobuf += u64::from(name.ends_with(".events.pb"));
            let name = name.strip_suffix(".events.json").and_then(|name| name.split_once('-'));
            let Some((Ok(tid), Ok(version))) = name.map(|(tid, version)| (tid.parse(), version.parse()))
            else {
                continue;
            };
            found.bytes += entry.metadata().map_or(0, |data| data.len());
            found.files.entry(tid).or_default().push((version, entry.path()));
        }
        if !found.files.is_empty() {
            return Ok(found);
        }
        if let Some(why) = why_not::folder(path) {
            return Err(Error::new(ErrorKind::NotATrace, why));
        }
        let why = match found.protobuf {
            0 => {
                "is no recording: it has neither LTTng's metadata, nor perf's data, nor LiME's \
                 <tid>-<version>.events.json"
            }
            _ => "holds LiME's events as protobuf (.events.pb), which is not read here; LiME writes JSON too",
        };
        Err(Error::new(ErrorKind::NotATrace, format!("{} {why}", path.display())))
    }
}

impl Folder {
    /// Finds the threads, and reads the first event of each.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        let Listing { files, bytes, protobuf } = Listing::read(path)?;
        let mut notes = Notes::default();
        if protobuf > 0 {
            notes.say(format!("events in protobuf are left out (files *.events.pb: {protobuf})"));
        }
        let mut threads = Vec::new();
        for (tid, mut versions) in files {
            versions.sort_unstable_by_key(|(version, _)| Reverse(*version));
            let versions = versions.into_iter().map(|(_, path)| path).collect();
            let zero = Instant::from_ns(0);
            let mut follow = Follow {
                tid,
                versions,
                current: None,
                thread: None,
                was: None,
                last: zero,
                done: 0,
                broken: 0,
                unseen: Unseen::default(),
            };
            follow.advance(&mut notes)?;
            // There may be very many threads, of which few live at a time.
            follow.rest();
            threads.push(follow);
        }
        let from = threads.iter().filter_map(Follow::next_at).min().unwrap_or(Instant::from_ns(0));
        let zero = |follow: &Follow| follow.current.as_ref()?.infos.as_ref()?.clock_zero();
        let about = About {
            clock_zero: threads.iter().find_map(zero),
            ..About::of_switches("LiME", "CLOCK_BOOTTIME", from)
        };
        Ok(Folder { threads, about, bytes, notes })
    }

    pub fn about(&self) -> &About {
        &self.about
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Merges the threads' events by time.
    pub fn run(
        mut self,
        each: &mut dyn FnMut(&Record) -> bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Imported, Error> {
        self.notes.say(
            "times are CLOCK_BOOTTIME; where a sleep until a time of CLOCK_MONOTONIC does not fit \
                that, its arrival is left out",
        );
        let (notes, threads) = (&mut self.notes, &mut self.threads);
        let mut order: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
        order.extend(
            threads
                .iter()
                .enumerate()
                .filter_map(|(index, follow)| Some(Reverse((follow.next_at()?, index)))),
        );
        let mut goes_on = true;
        let mut taken = 0_u64;
        let mut kinds = BTreeMap::new();
        while let Some(Reverse((_, index))) = order.pop() {
            let follow = &mut threads[index];
            if let Some((name, used_for)) = follow.next_kind() {
                kinds.entry(name).or_insert((0_u64, used_for)).0 += 1;
            }
            follow.take(notes, &mut |record| goes_on = goes_on && each(&record))?;
            if !goes_on {
                break;
            }
            order.extend(follow.next_at().map(|at| Reverse((at, index))));
            taken += 1;
            if taken % 65_536 == 0 {
                progress(threads.iter().map(Follow::position).sum());
            }
        }
        let until = threads.iter().map(|follow| follow.last).max().unwrap_or(self.about.from);
        let (mut lost, mut unseen) = (0, Unseen::default());
        for follow in threads {
            lost += follow.broken;
            unseen += follow.unseen;
            if let Some(thread) = &mut follow.thread {
                unseen += thread.unseen();
                thread.end(until, &mut |record| goes_on = goes_on && each(&record));
            }
        }
        notes.say_unseen(unseen);
        let totals = Totals { lost, ..Totals::default() };
        let no_wakes = (!kinds.contains_key("sched_wake_up")).then_some(NO_WAKES);
        let kinds = kinds.into_iter().map(|(name, (count, used_for))| (name, count, used_for));
        let account = account::of(kinds, LACKS.into_iter().chain(no_wakes), COMMAND);
        Ok(Imported { until, totals, account, notes: self.notes.into_list() })
    }
}

impl Follow {
    fn next_at(&self) -> Option<Instant> {
        self.current.as_ref()?.next.as_ref().map(|(at, _)| *at)
    }

    /// The kind of the event at hand.
    fn next_kind(&self) -> Option<(&'static str, Option<Use>)> {
        self.current.as_ref()?.next.as_ref().map(|(_, event)| event.kind())
    }

    fn position(&self) -> u64 {
        self.done + self.current.as_ref().map_or(0, |current| current.objects.position())
    }

    fn rest(&mut self) {
        if let Some(current) = &mut self.current {
            current.objects.rest();
        }
    }

    /// Takes the event at hand and reads the next one.
    fn take(&mut self, notes: &mut Notes, out: Out) -> Result<(), Error> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let Some((at, event)) = current.next.take() else { return Ok(()) };
        if let Some(infos) = current.infos.take() {
            let was = self.was.as_ref().filter(|_| self.thread.is_some());
            let task = infos.task(self.tid, at, was);
            current.task = Some(task.clone());
            match &mut self.thread {
                Some(thread) => thread.change(task, out),
                thread => *thread = Some(Thread::new(task, out)),
            }
            self.was = Some(infos);
        }
        if let (Some(thread), Some(task)) = (&mut self.thread, &current.task) {
            match event {
                Event::Exec => thread.change(TaskRecord { at, begin: Begin::Exec, ..task.clone() }, out),
                Event::Exit => {
                    thread.exit(at, out);
                    self.unseen += thread.unseen();
                }
                event => event.tell(thread, at, task.policy, notes, out),
            }
            if event == Event::Exit {
                self.thread = None;
            }
        }
        self.advance(notes)
    }

    /// Reads on to the next event, through the next versions where one has ended.
    fn advance(&mut self, notes: &mut Notes) -> Result<(), Error> {
        loop {
            if self.current.is_none() {
                let Some(path) = self.versions.pop() else { return Ok(()) };
                let infos = Infos::read(&path, notes)?;
                self.current = Some(Current {
                    objects: Objects::new(&path),
                    infos: Some(infos),
                    task: None,
                    next: None,
                });
            }
            let Some(current) = &mut self.current else { return Ok(()) };
            if let Some((at, event)) = read(&mut current.objects, self.last, &mut self.broken, notes)? {
                self.last = self.last.max(at);
                current.next = Some((at, event));
                return Ok(());
            }
            self.done += current.objects.position();
            self.current = None;
        }
    }
}

/// The next event of a file that is understood; `None` at its end. One that cannot be read is a gap.
fn read(
    objects: &mut Objects,
    last: Instant,
    broken: &mut u64,
    notes: &mut Notes,
) -> Result<Option<(Instant, Event)>, Error> {
    loop {
        let (at, line) = match objects.next() {
            Ok(Some((at, text))) => (at, Event::parse(text, notes)),
            Ok(None) => {
                if !objects.closed() {
                    notes.count("files of events that were not closed: LiME was interrupted");
                }
                return Ok(None);
            }
            Err(Problem::Io(error)) => return Err(Error::io(objects.path(), &error)),
            Err(Problem::CutOff(at)) => {
                notes.say(format!(
                    "{} ends in the middle of an event, at byte {at}: that one is left out",
                    name(objects)
                ));
                objects.give_up();
                return Ok(None);
            }
            Err(Problem::Nonsense(at)) => {
                notes.say(format!(
                    "{}, byte {at}: there should be an event; the rest of this file is left out",
                    name(objects)
                ));
                *broken += 1;
                objects.give_up();
                return Ok(Some((last, Event::Gap)));
            }
        };
        let (ts, event) = match line {
            Line::Event(ts, event) => (ts, event),
            Line::Nothing => continue,
            Line::Broken(why) => {
                notes.say(format!(
                    "{}, byte {at}: this event cannot be read: {why}; the thread's task ends there",
                    name(objects)
                ));
                *broken += 1;
                (0, Event::Gap)
            }
        };
        if ts == 0 && last.ns() == 0 {
            notes.count("events before the first that has a time: left out");
            continue;
        }
        // Some events have no time of their own.
        let at = if ts == 0 { last } else { Instant::from_ns(ts) };
        if at < last {
            notes.count("events out of order: taken at the time of the one before");
        }
        return Ok(Some((at.max(last), event)));
    }
}

fn name(objects: &Objects) -> std::borrow::Cow<'_, str> {
    objects.path().file_name().unwrap_or_default().to_string_lossy()
}
