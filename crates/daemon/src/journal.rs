//! The journal survives the daemon: each spec, its thread and the thread's earlier scheduling, in a mapped
//! file of fixed slots. A record survives a kill at any instruction, and costs no system call.
//!
//! A slot has two cells, written in turn, each with a sequence number and a checksum. So one of them is
//! always intact.

use crate::record::{ENCODED, Record};
use crate::text::trusted;
use memmap2::MmapMut;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Offset of a cell's content, after checksum (4), length (4) and sequence number (8).
const CONTENT: usize = 16;
/// Bytes of a cell: 1,024.
const CELL: usize = CONTENT + ENCODED;
const SLOT: usize = 2 * CELL;
/// The most specs.
pub const SLOTS: usize = 1 << 16;
/// Slots allocated at once, so that a full `/run` is an error and not a signal at a later write.
const CHUNK: usize = 256;
const MAGIC: &[u8; 8] = b"punctual";
const VERSION: u32 = 6;
/// Spec numbers reserved at once.
const NUMBERS: u64 = 1024;

/// A failure of the journal: the operation, the file, the reason.
#[derive(Debug)]
pub struct Error {
    what: String,
    error: io::Error,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.error)
    }
}

impl std::error::Error for Error {}

fn failed(what: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = format!("{what} {}", path.display());
    move |error| Error { what, error }
}

/// The journal of a running daemon, locked against others.
#[derive(Debug)]
pub struct Journal {
    map: MmapMut,
    file: File,
    path: PathBuf,
    head: Head,
    /// Slots without a spec.
    free: Vec<usize>,
    /// The last sequence number written to the head and to each slot.
    sequences: Vec<u64>,
    /// The next spec number; lower ones are never given again.
    next_number: u64,
    /// Holds the lock.
    _lock: File,
}

/// The head of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    boot: u128,
    /// Chunks of slots in use.
    chunks: u64,
    /// Numbers of specs below it may have been given.
    numbers: u64,
    /// The value of `sched_rt_runtime_us` before it was set to −1.
    rt_runtime: Option<i64>,
}

impl Head {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; ENCODED];
        let length = postcard::to_slice(&(MAGIC, VERSION, self), &mut bytes).expect("it is small").len();
        bytes.truncate(length);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (magic, rest): ([u8; 8], _) = postcard::take_from_bytes(bytes).ok()?;
        let (version, rest): (u32, _) = postcard::take_from_bytes(rest).ok()?;
        let head: Head =
            (magic == *MAGIC && version == VERSION).then(|| postcard::from_bytes(rest).ok())??;
        Some(Self { chunks: head.chunks.min((SLOTS / CHUNK) as u64), ..head })
    }
}

/// What an earlier daemon left.
#[derive(Debug, Default)]
pub struct Left {
    /// Specs, with the slots that they are in.
    pub records: Vec<(usize, Record)>,
    /// Slots that cannot be read, a journal of another version.
    pub warnings: Vec<String>,
}

impl Journal {
    /// Opens the journal in a folder, or creates one, and returns its content. Refuses a folder that another
    /// daemon uses.
    pub fn open(folder: &Path) -> Result<(Self, Left), Error> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(folder)
            .map_err(failed("creating the state folder", folder))?;
        // Anyone who could write here could make this daemon reschedule any thread.
        let about = fs::metadata(folder).map_err(failed("looking at the state folder", folder))?;
        trusted(&about).map_err(|why| failed("the state folder", folder)(io::Error::other(why)))?;
        let lock = lock(folder)?;
        let path = folder.join("journal");
        let file = private().open(&path).map_err(failed("opening", &path))?;
        file.set_len((SLOT * (1 + SLOTS)) as u64).map_err(failed("sizing", &path))?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, SLOT as u64)
            .map_err(|error| failed("taking room for", &path)(error.into()))?;
        // SAFETY: the file is this process's alone, by the lock; whoever else truncates it has to be root,
        // and gets what they asked for.
        let map = unsafe { MmapMut::map_mut(&file) }.map_err(failed("mapping", &path))?;
        let boot = boot_id()?;
        let mut left = Left::default();
        let head = head(&map[..SLOT], boot, &path, &mut left);
        let mut journal = Self {
            map,
            file,
            path,
            next_number: head.numbers,
            head,
            free: Vec::new(),
            sequences: vec![0],
            _lock: lock,
        };
        journal.sequences[0] = last(&journal.map[..SLOT]);
        journal.look(&mut left);
        journal.set_head(head);
        Ok((journal, left))
    }

    fn look(&mut self, left: &mut Left) {
        let slots = self.head.chunks as usize * CHUNK;
        self.sequences.resize(1 + slots, 0);
        for slot in (0..slots).rev() {
            self.sequences[1 + slot] = last(self.cells(slot));
            let cells = self.cells(slot);
            match read(cells) {
                None if cells.iter().all(|&byte| byte == 0) => self.free.push(slot),
                Some([]) => self.free.push(slot),
                content => match content.and_then(Record::decode) {
                    Some(record) => left.records.push((slot, record)),
                    None => {
                        left.warnings.push(format!(
                            "slot {slot} of {} is damaged: its spec is lost",
                            self.path.display()
                        ));
                        self.free.push(slot);
                    }
                },
            }
        }
        left.records.reverse();
    }

    fn cells(&self, slot: usize) -> &[u8] {
        &self.map[(1 + slot) * SLOT..][..SLOT]
    }

    fn set_head(&mut self, head: Head) {
        self.head = head;
        self.put(0, &head.encode());
    }

    fn put(&mut self, at: usize, content: &[u8]) {
        self.sequences[at] += 1;
        write(&mut self.map[at * SLOT..][..SLOT], self.sequences[at], content);
    }

    /// A new spec number.
    pub fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        if self.next_number >= self.head.numbers {
            self.set_head(Head { numbers: self.next_number + NUMBERS, ..self.head });
        }
        number
    }

    /// A free slot. Fails if all are taken, or the file system is full.
    pub fn take(&mut self) -> Result<usize, Error> {
        if self.free.is_empty() {
            let chunk = self.head.chunks as usize;
            if (chunk + 1) * CHUNK > SLOTS {
                return Err(failed("all slots are taken in", &self.path)(io::ErrorKind::StorageFull.into()));
            }
            let from = (SLOT * (1 + chunk * CHUNK)) as u64;
            rustix::fs::fallocate(
                &self.file,
                rustix::fs::FallocateFlags::empty(),
                from,
                (SLOT * CHUNK) as u64,
            )
            .map_err(|error| failed("taking room for", &self.path)(error.into()))?;
            // It may hold records of an earlier boot or another version.
            self.map[from as usize..][..SLOT * CHUNK].fill(0);
            self.sequences.resize(1 + (chunk + 1) * CHUNK, 0);
            self.set_head(Head { chunks: chunk as u64 + 1, ..self.head });
            self.free.extend((chunk * CHUNK..(chunk + 1) * CHUNK).rev());
        }
        Ok(self.free.pop().expect("a chunk was added just now"))
    }

    /// Writes a slot. Once this returns, the record survives this process.
    pub fn write(&mut self, slot: usize, record: &Record) {
        let mut content = [0; ENCODED];
        let length = record.encode(&mut content);
        self.put(1 + slot, &content[..length]);
    }

    /// Frees a slot.
    pub fn clear(&mut self, slot: usize) {
        self.put(1 + slot, &[]);
        self.free.push(slot);
    }

    /// What `sched_rt_runtime_us` was before the daemon changed it.
    pub fn rt_runtime(&self) -> Option<i64> {
        self.head.rt_runtime
    }

    /// Notes it: call this before changing it, and after restoring it.
    pub fn set_rt_runtime(&mut self, before: Option<i64>) {
        self.set_head(Head { rt_runtime: before, ..self.head });
    }
}

/// How files are opened that only this daemon may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    options
}

/// Takes the state folder for this process alone, as long as the file is open.
fn lock(folder: &Path) -> Result<File, Error> {
    let lock_path = folder.join("lock");
    let lock = private().open(&lock_path).map_err(failed("opening", &lock_path))?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
        rustix::io::Errno::AGAIN => failed("the state folder", folder)(io::Error::other(
            "another punctuald uses it; give this one another (--state)",
        )),
        _ => failed("locking", &lock_path)(error.into()),
    })?;
    Ok(lock)
}

/// The head of the journal in this slot; a new one if that is of an earlier boot, or cannot be read.
fn head(slot: &[u8], boot: u128, path: &Path, left: &mut Left) -> Head {
    match read(slot).map(Head::decode) {
        Some(Some(head)) if head.boot == boot => head,
        // The machine was rebooted: its threads are gone.
        Some(Some(head)) => Head { boot, chunks: 0, numbers: head.numbers, rt_runtime: None },
        Some(None) => {
            left.warnings.push(format!(
                "{} belongs to another version of punctuald: what that did is not undone",
                path.display()
            ));
            Head { boot, chunks: 0, numbers: 1, rt_runtime: None }
        }
        None => {
            if slot.iter().any(|&byte| byte != 0) {
                left.warnings.push(format!(
                    "{} is damaged: what the earlier daemon did is not undone",
                    path.display()
                ));
            }
            Head { boot, chunks: 0, numbers: 1, rt_runtime: None }
        }
    }
}

fn boot_id() -> Result<u128, Error> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(failed("reading", path))?;
    u128::from_str_radix(&text.trim_end().replace('-', ""), 16)
        .map_err(|_| failed("reading", path)(io::ErrorKind::InvalidData.into()))
}

/// The sequence number and content of an intact cell.
fn whole(cell: &[u8]) -> Option<(u64, &[u8])> {
    let checksum = u32::from_le_bytes(*cell.first_chunk()?);
    let length = u32::from_le_bytes(*cell.get(4..)?.first_chunk()?) as usize;
    let sequence = u64::from_le_bytes(*cell.get(8..)?.first_chunk()?);
    let checked = cell.get(4..CONTENT.checked_add(length)?)?;
    (sequence > 0 && crc32fast::hash(checked) == checksum)
        .then_some((sequence, &cell[CONTENT..CONTENT + length]))
}

/// The last content of a slot.
fn read(slot: &[u8]) -> Option<&[u8]> {
    let (first, second) = slot.split_at(CELL);
    match (whole(first), whole(second)) {
        (Some((a, content)), Some((b, _))) if a > b => Some(content),
        (_, Some((_, content))) | (Some((_, content)), None) => Some(content),
        (None, None) => None,
    }
}

/// The greatest sequence number of the intact cells. The next one goes to the other cell.
fn last(slot: &[u8]) -> u64 {
    let (first, second) = slot.split_at(CELL);
    let [a, b] = [first, second].map(|cell| whole(cell).map_or(0, |it| it.0));
    // Odd numbers belong to the first cell, even ones to the second. Skip a number that damage left in the
    // wrong cell.
    let greatest = a.max(b);
    if greatest > 0 && (greatest % 2 == 1) != (a > b) { greatest + 1 } else { greatest }
}

/// Writes the cell that does not hold the last content, which stays until the new one is complete.
fn write(slot: &mut [u8], sequence: u64, content: &[u8]) {
    let (first, second) = slot.split_at_mut(CELL);
    let cell = if sequence % 2 == 1 { first } else { second };
    let mut head = [0; CONTENT];
    head[4..8].copy_from_slice(&(content.len() as u32).to_le_bytes());
    head[8..].copy_from_slice(&sequence.to_le_bytes());
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&head[4..]);
    checksum.update(content);
    head[..4].copy_from_slice(&checksum.finalize().to_le_bytes());
    cell[CONTENT..][..content.len()].copy_from_slice(content);
    cell[..CONTENT].copy_from_slice(&head);
    // The kernel is called next, but not before this is in the map.
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::example;
    use proptest::prelude::*;

    #[test]
    fn records_survive_reopening() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, left) = Journal::open(folder.path()).unwrap();
        assert!(left.records.is_empty() && left.warnings.is_empty());
        let mut slots = Vec::new();
        let mut last = 0;
        for _ in 0..CHUNK + 3 {
            let slot = journal.take().unwrap();
            last = journal.number();
            journal.write(slot, &Record { spec: last, ..example() });
            slots.push(slot);
        }
        journal.clear(slots[1]);
        journal.set_rt_runtime(Some(950_000));
        drop(journal);
        let (mut journal, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left.warnings, [""; 0]);
        assert_eq!(left.records.len(), CHUNK + 2);
        assert!(left.records.iter().all(|(slot, _)| slots.contains(slot) && *slot != slots[1]));
        assert_eq!(left.records[0].1, Record { spec: left.records[0].1.spec, ..example() });
        assert_eq!(journal.rt_runtime(), Some(950_000));
        assert!(journal.number() > last, "numbers are not given again");
    }

    #[test]
    fn a_damaged_header_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        drop(Journal::open(folder.path()).unwrap());
        let file = OpenOptions::new().write(true).open(folder.path().join("journal")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[0x5a; SLOT], 0).unwrap();
        let (_, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left.warnings.len(), 1, "{:?}", left.warnings);
        assert!(left.warnings[0].contains("journal is damaged"), "{:?}", left.warnings);
    }

    #[test]
    fn links_and_folders_writable_by_others_are_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        fs::create_dir(&state).unwrap();
        fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Journal::open(&state).unwrap_err().to_string().contains("is writable by others"));
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
        let precious = folder.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        symlink(&precious, state.join("journal")).unwrap();
        Journal::open(&state).unwrap_err();
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }

    #[test]
    fn a_folder_is_used_by_one_daemon_only() {
        let folder = tempfile::tempdir().unwrap();
        let _first = Journal::open(folder.path()).unwrap();
        let error = Journal::open(folder.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("the state folder") && error.contains(": another punctuald uses it"),
            "{error}"
        );
    }

    #[test]
    fn a_reboot_starts_an_empty_journal() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(folder.path()).unwrap();
        let slot = journal.take().unwrap();
        journal.write(slot, &example());
        let number = journal.number();
        journal.set_head(Head { boot: 0, ..journal.head });
        drop(journal);
        let (mut journal, left) = Journal::open(folder.path()).unwrap();
        assert!(left.records.is_empty());
        assert!(journal.number() > number);
        assert_eq!(
            read(journal.cells(journal.free.last().copied().unwrap_or(0))).and_then(Record::decode),
            read(journal.cells(0)).and_then(Record::decode)
        );
        journal.take().unwrap();
        assert!(read(journal.cells(0)).is_none(), "the slot of then is cleared before it counts");
    }

    proptest! {
        /// Killed while a cell is written: what is read is the content before or the one after, never
        /// anything else.
        #[test]
        fn a_torn_write_leaves_the_old_or_the_new_record(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..6),
            torn in 0usize..220,
            order in any::<bool>(),
        ) {
            let mut slot = vec![0; SLOT];
            let (last, before) = contents.split_last().unwrap();
            for content in before {
                let sequence = super::last(&slot) + 1;
                write(&mut slot, sequence, content);
            }
            let old = read(&slot).map(<[u8]>::to_vec);
            let was = slot.clone();
            let sequence = super::last(&slot) + 1;
            write(&mut slot, sequence, last);
            // Some of the bytes that changed are not there yet.
            let changed: Vec<usize> = (0..SLOT).filter(|&at| slot[at] != was[at]).collect();
            let keep = torn.min(changed.len());
            let missing = if order { &changed[keep..] } else { &changed[..changed.len() - keep] };
            for &at in missing {
                slot[at] = was[at];
            }
            let found = read(&slot).map(<[u8]>::to_vec);
            prop_assert!(found == old || found.as_deref() == Some(&last[..]));
        }

        #[test]
        fn damage_causes_no_panic(bytes in prop::collection::vec(any::<u8>(), SLOT)) {
            let _ = read(&bytes).and_then(Record::decode);
            let _ = Record::decode(&bytes);
            let _ = Head::decode(&bytes);
        }
    }
}
