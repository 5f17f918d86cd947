//! LiME's recordings: a folder with `<tid>-<version>.events.json` and `<tid>-<version>.infos.json`. A version is what is a task here: the
//! next one of the same thread begins where its parameters change.

mod event;
mod infos;

use super::Imported;
use super::error::{Error, ErrorKind};
use super::notes::Notes;
use super::objects::{Objects, Problem};
use super::thread::Thread;
use crate::{About, Record, Totals};
use event::Event;
use infos::Infos;
use punctual_model::{Instant, Platform, Policy};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::path::{Path, PathBuf};

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
}

/// The version that is being read.
struct Current {
    objects: Objects,
    /// Known until it is told.
    infos: Option<Infos>,
    policy: Policy,
    next: Option<(Instant, Event)>,
}

impl Folder {
    /// Finds the threads, and reads the first event of each.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        let mut files: BTreeMap<u32, Vec<(u64, PathBuf)>> = BTreeMap::new();
        let mut bytes = 0;
        for entry in fs::read_dir(path).map_err(|error| Error::io(path, &error))? {
            let entry = entry.map_err(|error| Error::io(path, &error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some((tid, version)) = name.strip_suffix(".events.json").and_then(|name| name.split_once('-')) else { continue };
            let (Ok(tid), Ok(version)) = (tid.parse(), version.parse()) else { continue };
            bytes += entry.metadata().map_or(0, |data| data.len());
            files.entry(tid).or_default().push((version, entry.path()));
        }
        if files.is_empty() {
            let why = format!("{} is no folder that LiME recorded: there is no <tid>-<version>.events.json in it", path.display());
            return Err(Error::new(ErrorKind::NotATrace, why));
        }
        let mut notes = Notes::default();
        let mut threads = Vec::new();
        for (tid, mut versions) in files {
            versions.sort_unstable_by_key(|(version, _)| Reverse(*version));
            let versions = versions.into_iter().map(|(_, path)| path).collect();
            let zero = Instant::from_ns(0);
            let mut follow = Follow { tid, versions, current: None, thread: None, was: None, last: zero, done: 0 };
            follow.advance(&mut notes)?;
            threads.push(follow);
        }
        let from = threads.iter().filter_map(Follow::next_at).min().unwrap_or(Instant::from_ns(0));
        let about = About {
            platform: Platform { kernel: String::new(), machine: String::new(), cpus: 0 },
            host: String::new(),
            source: "LiME".into(),
            clock: "CLOCK_BOOTTIME".into(),
            clock_zero: None,
            from,
            switches: true,
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
    pub fn run(mut self, each: &mut dyn FnMut(&Record) -> bool, progress: &mut dyn FnMut(u64)) -> Result<Imported, Error> {
        self.notes.say("LiME does not say: machine, kernel, who woke whom, how many events were lost");
        self.notes.say("processor time is the sum of the stretches between switches, not the kernel's account");
        self.notes
            .say("times are CLOCK_BOOTTIME; where a sleep until a time of CLOCK_MONOTONIC does not fit that, its arrival is left out");
        let (notes, threads) = (&mut self.notes, &mut self.threads);
        let mut order: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
        order.extend(threads.iter().enumerate().filter_map(|(index, follow)| Some(Reverse((follow.next_at()?, index)))));
        let mut goes_on = true;
        let mut out = |record: Record| goes_on = goes_on && each(&record);
        let mut taken = 0_u64;
        while let Some(Reverse((_, index))) = order.pop() {
            let follow = &mut threads[index];
            follow.take(notes, &mut out)?;
            order.extend(follow.next_at().map(|at| Reverse((at, index))));
            taken += 1;
            if taken % 65_536 == 0 {
                progress(threads.iter().map(Follow::position).sum());
            }
        }
        let until = threads.iter().map(|follow| follow.last).max().unwrap_or(self.about.from);
        for follow in threads {
            if let Some(thread) = &mut follow.thread {
                thread.end(until, &mut out);
            }
        }
        Ok(Imported { until, totals: Totals::default(), notes: self.notes.into_list() })
    }
}

impl Follow {
    fn next_at(&self) -> Option<Instant> {
        self.current.as_ref()?.next.as_ref().map(|(at, _)| *at)
    }

    fn position(&self) -> u64 {
        self.done + self.current.as_ref().map_or(0, |current| current.objects.position())
    }

    /// Takes the event at hand and reads the next one.
    fn take(&mut self, notes: &mut Notes, out: super::thread::Out) -> Result<(), Error> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let Some((at, event)) = current.next.take() else { return Ok(()) };
        if let Some(infos) = current.infos.take() {
            let task = infos.task(self.tid, at, self.was.as_ref());
            current.policy = task.policy;
            match &mut self.thread {
                Some(thread) => thread.change(task, out),
                thread => *thread = Some(Thread::new(task, out)),
            }
            self.was = Some(infos);
        }
        if let Some(thread) = &mut self.thread {
            event.tell(thread, at, current.policy, notes, out);
        }
        self.advance(notes)
    }

    /// Reads on to the next event, through the next versions where one has ended.
    fn advance(&mut self, notes: &mut Notes) -> Result<(), Error> {
        loop {
            if self.current.is_none() {
                let Some(path) = self.versions.pop() else { return Ok(()) };
                let infos = Infos::read(&path, notes)?;
                self.current = Some(Current { objects: Objects::new(&path), infos: Some(infos), policy: Policy::Fifo, next: None });
            }
            let Some(current) = &mut self.current else { return Ok(()) };
            if let Some((at, event)) = read(&mut current.objects, self.last, notes)? {
                self.last = self.last.max(at);
                current.next = Some((at, event));
                return Ok(());
            }
            self.done += current.objects.position();
            self.current = None;
        }
    }
}

/// The next event of a file that is understood; `None` at its end.
fn read(objects: &mut Objects, last: Instant, notes: &mut Notes) -> Result<Option<(Instant, Event)>, Error> {
    loop {
        let name = objects.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = match objects.next() {
            Ok(Some((_, text))) => text,
            Ok(None) => return Ok(None),
            Err(Problem::Io(error)) => return Err(Error::io(objects.path(), &error)),
            Err(Problem::CutOff(at)) => {
                notes.say(format!("{name} ends in the middle of an event, at byte {at}: that one is left out"));
                return Ok(None);
            }
            Err(Problem::Nonsense(at)) => {
                notes.say(format!("{name}, byte {at}: there should be an event; the rest of this file is left out"));
                return Ok(None);
            }
        };
        let Some((ts, event)) = Event::parse(text, notes) else { continue };
        // Some events have no time of their own.
        let at = if ts == 0 { last } else { Instant::from_ns(ts) };
        if at < last {
            notes.count("events out of order: taken at the time of the one before");
        }
        return Ok(Some((at.max(last), event)));
    }
}
