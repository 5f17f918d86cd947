//! Writes a recording's files, in a thread of its own, so that the recorder does not wait for the disk.

use super::Dropped;
use super::layout::{self, CRC, HEADER};
use crate::error::Error;
use crate::source::create_folder;
use crate::tsdl::METADATA;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Written data is synced to disk within this time.
const SYNC: Duration = Duration::from_secs(1);

/// A packet to write, complete except for its checksum.
pub struct Packet {
    pub bytes: Vec<u8>,
    pub activations: u64,
    /// Whether it begins a file.
    pub begins_file: bool,
}

/// What is on disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    pub bytes: u64,
    pub packets: u64,
    pub activations: u64,
    pub dropped: Dropped,
}

/// Makes the folder and writes the metadata, and syncs both to disk first.
pub fn create(folder: &Path, metadata: &str) -> Result<(), Error> {
    let is_new = create_folder(folder)?;
    let path = folder.join(METADATA);
    let failed = |error: io::Error| Error::io("write", &path, &error);
    let mut file = File::create_new(&path).map_err(failed)?;
    if let Err(error) = file.write_all(metadata.as_bytes()).and_then(|()| file.sync_all()) {
        // Allow another attempt.
        let _ = fs::remove_file(&path);
        let _ = is_new.then(|| fs::remove_dir(folder));
        return Err(failed(error));
    }
    sync_folder(folder)?;
    // The folder's own name is in its parent.
    match folder.parent() {
        Some(parent) if parent.as_os_str().is_empty() => sync_folder(Path::new(".")),
        Some(parent) => sync_folder(parent),
        None => Ok(()),
    }
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| Error::io("write", folder, &error))
}

/// The current file, or one before it.
struct Part {
    path: PathBuf,
    bytes: u64,
    packets: u64,
    activations: u64,
}

/// The writing thread.
pub struct Writer {
    folder: PathBuf,
    limit: Option<u64>,
    /// All files on disk, oldest first; the last is the current one.
    parts: VecDeque<Part>,
    file: Option<File>,
    begun: u64,
    written: Written,
    unsynced: Option<Instant>,
}

impl Writer {
    /// `metadata_bytes` count towards the limit.
    pub fn new(folder: &Path, limit: Option<u64>, metadata_bytes: u64) -> Writer {
        let written = Written { bytes: metadata_bytes, ..Written::default() };
        Writer {
            folder: folder.to_owned(),
            limit,
            parts: VecDeque::new(),
            file: None,
            begun: 0,
            written,
            unsynced: None,
        }
    }

    /// Writes packets until the sender is gone, and sends their buffers back. After an error, the file ends
    /// with its last complete packet.
    pub fn run(mut self, packets: &Receiver<Packet>, empty: &Sender<Vec<u8>>) -> Result<Written, Error> {
        loop {
            let left = self.unsynced.map(|since| SYNC.saturating_sub(since.elapsed()));
            let next = match left {
                Some(left) => packets.recv_timeout(left),
                None => packets.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(mut packet) => {
                    self.packet(&mut packet)?;
                    // After the last packet, nobody receives it.
                    let _ = empty.send(packet.bytes);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.unsynced.is_some_and(|since| since.elapsed() >= SYNC) {
                self.sync()?;
            }
        }
        self.sync()?;
        Ok(self.written)
    }

    fn packet(&mut self, packet: &mut Packet) -> Result<(), Error> {
        let crc = layout::checksum(&packet.bytes);
        packet.bytes[CRC..HEADER].copy_from_slice(&crc.to_le_bytes());
        let bytes = packet.bytes.len() as u64;
        let stays = usize::from(!packet.begins_file);
        while self.parts.len() > stays && self.limit.is_some_and(|limit| self.written.bytes + bytes > limit) {
            self.delete_oldest()?;
        }
        if packet.begins_file || self.file.is_none() {
            self.begin_file()?;
        }
        let (Some(part), Some(file)) = (self.parts.back_mut(), &mut self.file) else { return Ok(()) };
        if let Err(error) = file.write_all(&packet.bytes) {
            let error = Error::io("write", &part.path, &error);
            // A partial packet is useless to readers; if it cannot be cut off, they skip it.
            let _ = file.set_len(part.bytes);
            let _ = file.sync_data();
            return Err(error.and(&match self.written.packets {
                0 => "; nothing was written before: there is nothing to read".to_owned(),
                1 => "; the packet written before can be read: the recording is whole until then".to_owned(),
                packets => format!(
                    "; the {packets} packets written before can be read: the recording is whole until then"
                ),
            }));
        }
        part.bytes += bytes;
        part.packets += 1;
        part.activations += packet.activations;
        self.written.bytes += bytes;
        self.written.packets += 1;
        self.written.activations += packet.activations;
        self.unsynced.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn begin_file(&mut self) -> Result<(), Error> {
        self.sync()?;
        let path = self.folder.join(format!("stream_{}", self.begun));
        self.file = Some(File::create_new(&path).map_err(|error| Error::io("write", &path, &error))?);
        self.parts.push_back(Part { path, bytes: 0, packets: 0, activations: 0 });
        self.begun += 1;
        sync_folder(&self.folder)
    }

    fn delete_oldest(&mut self) -> Result<(), Error> {
        let Some(part) = self.parts.pop_front() else { return Ok(()) };
        if self.parts.is_empty() {
            self.file = None;
        }
        fs::remove_file(&part.path).map_err(|error| Error::io("delete", &part.path, &error))?;
        self.written.bytes -= part.bytes;
        self.written.packets -= part.packets;
        self.written.activations -= part.activations;
        self.written.dropped.packets += part.packets;
        self.written.dropped.activations += part.activations;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Error> {
        if let (Some(file), Some(part), Some(_)) = (&self.file, self.parts.back(), self.unsynced.take()) {
            file.sync_data().map_err(|error| Error::io("write", &part.path, &error))?;
        }
        Ok(())
    }
}
