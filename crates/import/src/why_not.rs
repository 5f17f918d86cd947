//! Why a file or folder is no trace that can be read, and what makes one of it.

use super::error::{Error, ErrorKind};
use super::perfetto;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a file that are looked at.
const MOST: u64 = 64 << 10;

/// How packed files begin, and what unpacks them.
const PACKED: &[(&[u8], &str)] = &[
    (&[0x1f, 0x8b], "gzip: gunzip"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz: unxz"),
    (b"BZh", "bzip2: bunzip2"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd: unzstd"),
    (b"PK\x03\x04", "zip: unzip"),
];

/// How packets of CTF begin, in either order of bytes.
const OF_CTF: [[u8; 4]; 2] = [[0xc1, 0x1f, 0xfc, 0xc1], [0xc1, 0xfc, 0x1f, 0xc1]];

/// Why no format fits a file.
pub fn file(path: &Path) -> Error {
    match begin(path) {
        Ok((bytes, length)) => {
            Error::new(ErrorKind::NotATrace, format!("{} {}", path.display(), reason(&bytes, length)))
        }
        Err(error) => Error::io(path, &error),
    }
}

/// The first bytes, and how many there are.
fn begin(path: &Path) -> io::Result<(Vec<u8>, u64)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok((bytes, length))
}

fn reason(bytes: &[u8], length: u64) -> String {
    if bytes.is_empty() {
        return "is empty: whatever should have written it failed, or has not begun".to_owned();
    }
    if let Some((_, what)) = PACKED.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        let (format, command) = what.split_once(": ").unwrap_or((what, ""));
        return format!("is packed with {format}: unpack it first ({command})");
    }
    if is_utf16(bytes) {
        return "is a text in UTF-16: convert it first (iconv -f UTF-16 -t UTF-8)".to_owned();
    }
    let text = String::from_utf8_lossy(bytes);
    if text.lines().any(is_of_latency_format) {
        return "is in ftrace's latency format, which is not read: write it without (echo 0 \
                >/sys/kernel/tracing/options/latency-format, or trace-cmd report without -l)"
            .to_owned();
    }
    if OF_CTF.iter().any(|magic| bytes.starts_with(magic)) {
        return "is one stream of a trace in CTF: name the folder with its metadata".to_owned();
    }
    if let Some(why) = perfetto::why_broken(bytes, length) {
        return why.to_owned();
    }
    "is neither a perf.data file, nor a trace.dat file, nor a trace of Perfetto, nor a text of ftrace or \
     perf script, nor a folder of LTTng or LiME"
        .to_owned()
}

/// By its mark, or as every other byte of the first ones is zero.
fn is_utf16(bytes: &[u8]) -> bool {
    let zeros = |from: usize| bytes.iter().skip(from).step_by(2).take(32).filter(|byte| **byte == 0).count();
    let is_marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    is_marked || bytes.len() >= 64 && (zeros(0) == 0 && zeros(1) == 32 || zeros(0) == 32 && zeros(1) == 0)
}

/// The header of such a text; or an event, which has the processor and flags in one word: `bash-65 1d.h2.`
fn is_of_latency_format(line: &str) -> bool {
    if line.starts_with("# latency trace v") {
        return true;
    }
    let is_of = |words: &[&str]| {
        let [thread, cpu, time, event] = *words else { return false };
        let flags = cpu.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let is_thread = thread.rsplit_once('-').is_some_and(|(_, tid)| tid.parse::<u32>().is_ok());
        let time = time.trim_end_matches(['!', '+', '#', '*', '@', '$', ':']);
        let time = time.trim_end_matches("us").replace('.', "");
        let is_time = !time.is_empty() && time.bytes().all(|digit| digit.is_ascii_digit());
        let is_cpu = (1..=4).contains(&(cpu.len() - flags.len())) && (3..=8).contains(&flags.len());
        is_thread && is_cpu && !flags.contains(':') && is_time && event.ends_with(':')
    };
    let words: Vec<&str> = line.split_ascii_whitespace().take(12).collect();
    words.windows(4).any(is_of)
}

/// Why no format fits a folder, if there are traces in it that lack something.
pub fn folder(path: &Path) -> Option<String> {
    let stream = stream_below(path)?;
    let within = stream.strip_prefix(path).unwrap_or(&stream).display();
    Some(format!(
        "{} has streams of LTTng or another tracer in CTF ({within}), but no file named metadata beside \
         them, without which they cannot be read: copy the whole folder of the session",
        path.display()
    ))
}

/// A file of packets in this folder or below.
fn stream_below(top: &Path) -> Option<PathBuf> {
    const MOST_DEEP: usize = 10;
    const MOST_ENTRIES: usize = 10_000;
    let (mut open, mut seen) = (vec![(top.to_owned(), 0)], 0);
    while let Some((folder, depth)) = open.pop() {
        for entry in fs::read_dir(&folder).ok()?.flatten() {
            seen += 1;
            let kind = entry.file_type().ok().filter(|_| seen <= MOST_ENTRIES)?;
            if kind.is_dir() && depth < MOST_DEEP {
                open.push((entry.path(), depth + 1));
            }
            if kind.is_file() && is_stream(&entry.path()) {
                return Some(entry.path());
            }
        }
    }
    None
}

fn is_stream(path: &Path) -> bool {
    let mut magic = [0; 4];
    let is_read = File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok();
    is_read && OF_CTF.contains(&magic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_has_its_reason() {
        let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let line = "  <idle>-0     [001] d..2. 15737.407162: sched_switch: a ==> b\n";
        let marked = [&[0xff, 0xfe][..], &utf16(line)].concat();
        let latency = "# tracer: nop\n#\n# latency trace v1.1.5 on 6.1.0\n";
        let lines =
            ["  <idle>-0         0d..2.   12us : sched_switch: a", "a b-1  0d..2. 12us!: sched_waking: a"];
        let report = "          <idle>-0       1d..2. 15737.407162: sched_switch:  a ==> b";
        for (bytes, why) in [
            (&b""[..], "is empty"),
            (&[0x1f, 0x8b, 8, 0], "packed with gzip: unpack it first (gunzip)"),
            (&[0x28, 0xb5, 0x2f, 0xfd], "packed with zstd"),
            (&utf16(line), "UTF-16"),
            (&marked, "UTF-16"),
            (latency.as_bytes(), "latency format"),
            (lines[1].as_bytes(), "latency format"),
            (report.as_bytes(), "latency format"),
            (&[0xc1, 0x1f, 0xfc, 0xc1, 0], "one stream of a trace in CTF"),
            (b"nothing", "is neither"),
            (&[&[0x0a, 0xe7, 0x5c, 0x92, 0x03][..], &[1; 60]].concat(), "cut off in its first packet"),
            (&[&[0x0a, 0x81, 0x01, 0x18, 0x00][..], &[0; 127]].concat(), "first packet is damaged"),
            (b"\n\n\n\n", "is neither"),
            (&[0; 100], "is neither"),
            (line.as_bytes(), "is neither"),
            ("a b-c 1: 2 d: 12: e:".as_bytes(), "is neither"),
        ] {
            let given = reason(bytes, bytes.len() as u64);
            assert!(given.contains(why), "{why}: {given}");
        }
    }
}
