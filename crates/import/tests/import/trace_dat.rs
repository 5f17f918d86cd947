//! Makes files of trace-cmd, event by event, so that what is in them is known.

use super::perf_file::FORMATS;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// An event: nanoseconds, processor, thread, and its bytes.
pub type Event = (u64, u32, i32, Vec<u8>);

/// A kind of file.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Six,
    /// With sections and data packed by this.
    Seven(&'static str),
}

/// Pages of the events of one processor. `lost` are the events before which some were lost.
pub fn pages(events: &[&Event], lost: &[usize]) -> Vec<u8> {
    const MISSED: u64 = 1 << 31;
    let mut pages: Vec<(u64, bool, Vec<u8>)> = Vec::new();
    let mut before = 0;
    for (number, (ns, _, tid, bytes)) in events.iter().enumerate() {
        let is_lost = lost.contains(&number);
        let mut event = bytes.clone();
        event.resize(event.len().max(8).next_multiple_of(4), 0);
        event[4..8].copy_from_slice(&tid.to_le_bytes());
        let is_full = pages.last().is_none_or(|(_, _, page)| page.len() + event.len() + 24 > PAGE - 16);
        if is_lost || is_full {
            pages.push((*ns, is_lost, Vec::new()));
            before = *ns;
        }
        let Some((_, _, page)) = pages.last_mut() else { continue };
        let mut delta = ns - before;
        before = *ns;
        let mut put = |word: u32| page.extend(word.to_le_bytes());
        if delta >= 1 << 27 {
            put(30 | ((delta & 0x7ff_ffff) as u32) << 5);
            put((delta >> 27) as u32);
            delta = 0;
        }
        match event.len() / 4 {
            // As long ones are written.
            words @ (10..=12 | 29..) => {
                put((delta as u32) << 5);
                put(4 * words as u32 + 4);
            }
            words => put(words as u32 | (delta as u32) << 5),
        }
        page.extend(event);
    }
    let whole = |(ns, is_lost, mut page): (u64, bool, Vec<u8>)| {
        let used = page.len() as u64 | if is_lost { MISSED } else { 0 };
        page.splice(0..0, [ns.to_le_bytes(), used.to_le_bytes()].concat());
        page.resize(PAGE, 0);
        page
    };
    pages.into_iter().flat_map(whole).collect()
}

fn sized(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
}

/// The layout of pages and events, as the kernel describes it.
fn layout() -> Vec<u8> {
    let page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
                \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    let event = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\
                 \tarray       :   32 bits\n\n\tdata max type_len  == 28\n";
    [&b"header_page\0"[..], &sized(page), b"header_event\0", &sized(event)].concat()
}

/// The creation of a thread.
const BORN: &str = "name: task_newtask\nID: 305\nformat:
\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;
\tfield:unsigned long clone_flags;\toffset:16;\tsize:8;\tsigned:0;

print fmt: \"\"
";

/// The execution of a program, and another name.
const EXECUTED: &str = "name: sched_process_exec\nID: 308\nformat:
\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;
\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;
\tfield:pid_t old_pid;\toffset:16;\tsize:4;\tsigned:1;

print fmt: \"\"
";
const RENAMED: &str = "name: task_rename\nID: 309\nformat:
\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;
\tfield:char newcomm[16];\toffset:28;\tsize:16;\tsigned:0;

print fmt: \"\"
";

/// A thread executes this file; it had the other number before.
pub fn executed(us: u64, (tid, before): (i32, i32), file: &str) -> Event {
    let mut bytes = [&308_u16.to_le_bytes()[..], &[0; 6]].concat();
    let place = 20 | (file.len() as u32 + 1) << 16;
    bytes.extend(place.to_le_bytes());
    bytes.extend([tid, before].map(i32::to_le_bytes).concat());
    bytes.extend(file.bytes().chain([0]));
    (us * 1_000, 0, tid, bytes)
}

/// One thread gives another, or itself, a name.
pub fn renamed(us: u64, by: i32, tid: i32, name: &str) -> Event {
    let mut bytes = [&309_u16.to_le_bytes()[..], &[0; 6], &tid.to_le_bytes()].concat();
    bytes.resize(28, 0);
    bytes.extend(name.bytes());
    bytes.resize(48, 0);
    (us * 1_000, 0, by, bytes)
}

fn formats() -> Vec<u8> {
    let common = "format:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
    let known = FORMATS.split_inclusive("print fmt: \"\"\n").filter(|text| text.contains("ID:"));
    let all: Vec<&str> = known.chain([BORN, EXECUTED, RENAMED]).collect();
    let mut bytes = 1_u32.to_le_bytes().to_vec();
    bytes.extend(b"all\0");
    bytes.extend((all.len() as u32).to_le_bytes());
    all.iter().for_each(|text| bytes.extend(sized(&text.replace("format:\n", common))));
    bytes
}

const UNAME: &[u8] = b"Linux machine 6.12.0-rt x86_64\0";

/// A file of version 6 with this option, before the others.
pub fn with_option_in_6(bytes: Vec<u8>, option: &[u8]) -> Vec<u8> {
    const OPTIONS: &[u8] = b"options  \0";
    let at =
        bytes.windows(OPTIONS.len()).position(|bytes| bytes == OPTIONS).expect("options") + OPTIONS.len();
    let mut all = [&bytes[..at], option, &bytes[at..]].concat();
    // The data of processors stay where they were: the room in front of them is larger than that.
    const DATA: &[u8] = b"flyrecord\0";
    let data = all.windows(DATA.len()).position(|bytes| bytes == DATA).expect("data");
    let first = u64::from_le_bytes(all[data + 10..data + 18].try_into().expect("8 bytes")) as usize;
    all.drain(first..first + option.len());
    all
}

/// With another section of options, after the last, which gives none that follows.
pub fn with_options(mut bytes: Vec<u8>, options: &[u8], size: u64) -> Vec<u8> {
    let (end, at) = (bytes.len(), bytes.len() as u64);
    bytes[end - 8..].copy_from_slice(&at.to_le_bytes());
    bytes.extend([[0; 8], size.to_le_bytes()].concat());
    bytes.extend(options);
    bytes.extend(option(0, &[0; 8]));
    bytes
}

/// With the buffer of an instance.
pub fn with_instance(kind: Kind, bytes: Vec<u8>, name: &str, clock: &str, cpus: &[Vec<u8>]) -> Vec<u8> {
    let places = |mut place: u64| -> Vec<[u64; 2]> {
        let mut next = |data: &Vec<u8>| (place, place += data.len() as u64).0;
        cpus.iter().map(|data| [next(data), data.len() as u64]).collect()
    };
    if let Kind::Six = kind {
        let at = bytes.len() as u64;
        let named = [&at.to_le_bytes()[..], name.as_bytes(), b"\0"].concat();
        let mut all = with_option_in_6(bytes, &option(3, &named));
        let clock = sized(&format!("[{clock}]"));
        let data = at + 10 + 16 * cpus.len() as u64 + clock.len() as u64;
        all.extend(b"flyrecord\0");
        places(data).iter().flatten().for_each(|number| all.extend(number.to_le_bytes()));
        all.extend(clock);
        cpus.iter().for_each(|data| all.extend(data));
        return all;
    }
    let head = name.len() + clock.len() + 18;
    let size = head + 20 * cpus.len() + 6;
    let section = (bytes.len() + 16 + size + 14) as u64;
    let mut buffer = [&section.to_le_bytes()[..], name.as_bytes(), b"\0", clock.as_bytes(), b"\0"].concat();
    buffer.extend((PAGE as u32).to_le_bytes());
    buffer.extend((cpus.len() as u32).to_le_bytes());
    for (number, place) in places(section + 16).iter().enumerate() {
        buffer.extend((number as u32).to_le_bytes());
        place.iter().for_each(|number| buffer.extend(number.to_le_bytes()));
    }
    let mut all = with_options(bytes, &option(3, &buffer), size as u64 + 14);
    all.extend([[3, 0, 0, 0, 0, 0, 0, 0], [0; 8]].concat());
    cpus.iter().for_each(|data| all.extend(data));
    all
}

pub fn option(id: u16, data: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &(data.len() as u32).to_le_bytes(), data].concat()
}

fn pack(name: &str, bytes: &[u8]) -> Vec<u8> {
    match name {
        "zlib" => {
            use std::io::Write;
            let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            packer.write_all(bytes).expect("memory");
            packer.finish().expect("memory")
        }
        _ => {
            let mut packed = vec![0; zstd_safe::compress_bound(bytes.len())];
            let length = zstd_safe::compress(&mut packed[..], bytes, 3).expect("there is room");
            packed.truncate(length);
            packed
        }
    }
}

/// A packed stretch, with both sizes in front.
fn packed(name: &str, bytes: &[u8]) -> Vec<u8> {
    let packed = pack(name, bytes);
    let sizes = [packed.len() as u32, bytes.len() as u32].map(u32::to_le_bytes).concat();
    [sizes, packed].concat()
}

/// The whole file, with the data of each processor.
pub fn file(kind: Kind, clock: &str, cpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"\x17\x08\x44tracing".to_vec();
    bytes.extend(if let Kind::Six = kind { b"6\0" } else { b"7\0" });
    bytes.extend([0, 8]);
    bytes.extend((PAGE as u32).to_le_bytes());
    match kind {
        Kind::Six => six(bytes, clock, cpus),
        Kind::Seven(packing) => seven(bytes, packing, clock, cpus),
    }
}

fn six(mut bytes: Vec<u8>, clock: &str, cpus: &[Vec<u8>]) -> Vec<u8> {
    bytes.extend(layout());
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(formats());
    bytes.extend([0; 16]);
    bytes.extend((cpus.len() as u32).to_le_bytes());
    bytes.extend(b"options  \0");
    bytes.extend(option(4, format!("local global [{clock}] boot\0").as_bytes()));
    bytes.extend(option(5, UNAME));
    bytes.extend(0_u16.to_le_bytes());
    bytes.extend(b"flyrecord\0");
    let mut place = (bytes.len() + 16 * cpus.len()).next_multiple_of(PAGE);
    let from = place;
    for data in cpus {
        bytes.extend([place as u64, data.len() as u64].map(u64::to_le_bytes).concat());
        place += data.len();
    }
    bytes.resize(from, 0);
    cpus.iter().for_each(|data| bytes.extend(data));
    bytes
}

fn seven(mut bytes: Vec<u8>, packing: &str, clock: &str, cpus: &[Vec<u8>]) -> Vec<u8> {
    let is_packed = packing != "none";
    bytes.extend(format!("{packing}\0001\0").into_bytes());
    let options_at = bytes.len();
    bytes.extend([0; 8]);
    let head = |id: u16, flags: u16, size: usize| {
        [&id.to_le_bytes()[..], &flags.to_le_bytes(), &[0; 4], &(size as u64).to_le_bytes()].concat()
    };
    let mut places = Vec::new();
    for (id, section) in [(16, layout()), (18, formats())] {
        places.push((id, bytes.len() as u64));
        let section = if is_packed { packed(packing, &section) } else { section };
        bytes.extend(head(id, is_packed.into(), section.len()));
        bytes.extend(section);
    }
    let section = bytes.len() as u64;
    bytes.extend(head(3, is_packed.into(), 0));
    bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
    let mut buffer = [&section.to_le_bytes()[..], b"\0", clock.as_bytes(), b"\0"].concat();
    buffer.extend((PAGE as u32).to_le_bytes());
    buffer.extend((cpus.len() as u32).to_le_bytes());
    for (number, data) in cpus.iter().enumerate() {
        let blocks: Vec<Vec<u8>> = data.chunks(2 * PAGE).map(|block| packed(packing, block)).collect();
        let data = match is_packed {
            true => [(blocks.len() as u32).to_le_bytes().to_vec(), blocks.concat()].concat(),
            false => data.clone(),
        };
        buffer.extend((number as u32).to_le_bytes());
        // trace-cmd leaves out the number of blocks.
        let size = data.len() - if is_packed { 4 } else { 0 };
        buffer.extend([bytes.len() as u64, size as u64].map(u64::to_le_bytes).concat());
        bytes.extend(data);
    }
    let first = bytes.len() as u64;
    let mut options: Vec<u8> = places.iter().flat_map(|(id, at)| option(*id, &at.to_le_bytes())).collect();
    options.extend(option(5, UNAME));
    // The buffers are in a second list.
    let second = first + 16 + options.len() as u64 + 14;
    options.extend(option(0, &second.to_le_bytes()));
    bytes.extend(head(0, 0, options.len()));
    bytes.extend(options);
    let options = [option(3, &buffer), option(0, &0_u64.to_le_bytes())].concat();
    bytes.extend(head(0, 0, options.len()));
    bytes.extend(options);
    bytes[options_at..options_at + 8].copy_from_slice(&first.to_le_bytes());
    bytes
}
