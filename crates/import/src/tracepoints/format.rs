//! Where the fields of a tracepoint are: the descriptions that perf and trace-cmd keep of them
//! (`/sys/kernel/tracing/events/…/format`, as text).

use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::HashMap;

/// A field of a tracepoint's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    offset: usize,
    size: usize,
    signed: bool,
}

/// Where the arguments of one system call are.
const ARGUMENTS: usize = 16;
const MOST_ARGUMENTS: usize = 6;

/// How the names of the tracepoints of one system call begin.
pub const ENTER_ONE: &str = "sys_enter_";
pub const EXIT_ONE: &str = "sys_exit_";

/// A tracepoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    pub name: String,
    fields: FxHashMap<String, Field>,
    /// Of a tracepoint of one system call: how many arguments it has.
    arguments: usize,
    /// How many of its events there were.
    pub hit: Cell<u64>,
    /// How many of them were not read.
    pub unread: Cell<u64>,
}

impl Format {
    /// Counts an event.
    pub fn count(&self) {
        self.hit.set(self.hit.get() + 1);
    }

    /// Counts an event that is not read.
    pub fn count_unread(&self) {
        self.unread.set(self.unread.get() + 1);
    }

    /// An argument of a system call, by a tracepoint of all of them or of this one; 0 beyond the last.
    pub fn argument(&self, index: usize, record: &[u8]) -> u64 {
        if index >= self.arguments {
            return self.element("args", index, record).unwrap_or(0);
        }
        let bytes = record.get(ARGUMENTS + 8 * index..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Counts the arguments, each of which has a field behind the number of the call.
    fn count_arguments(&mut self) {
        let has = |index: usize| {
            self.fields.values().any(|field| field.offset == ARGUMENTS + 8 * index && field.size == 8)
        };
        self.arguments = (0..MOST_ARGUMENTS).take_while(|index| has(*index)).count();
    }

    /// A number.
    pub fn number(&self, field: &str, record: &[u8]) -> Option<i64> {
        let signed = self.fields.get(field)?.signed;
        number(self.bytes(field, record)?, signed)
    }

    /// One number of an array of them.
    pub fn element(&self, field: &str, index: usize, record: &[u8]) -> Option<u64> {
        let all = self.bytes(field, record)?;
        Some(u64::from_le_bytes(all.get(8 * index..8 * index + 8)?.try_into().ok()?))
    }

    /// The last part of a path that the record has elsewhere (the field says where, and how long), of at most
    /// so many bytes.
    pub fn far_file_name(&self, field: &str, record: &[u8], most: usize) -> Option<String> {
        let place = self.number(field, record)? as u32;
        let (at, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let path = record.get(at..at + length)?.split(|byte| *byte == 0).next()?;
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        Some(until_zero(&name[..name.len().min(most)]))
    }

    /// A text with a zero at its end.
    pub fn text(&self, field: &str, record: &[u8]) -> Option<String> {
        Some(until_zero(self.bytes(field, record)?))
    }

    /// The same, unless it is this one.
    pub fn text_other_than(&self, known: &str, field: &str, record: &[u8]) -> Option<String> {
        let bytes = self.bytes(field, record)?;
        let is_same =
            bytes.strip_prefix(known.as_bytes()).is_some_and(|rest| rest.first().is_none_or(|it| *it == 0));
        (!is_same).then(|| until_zero(bytes))
    }

    fn bytes<'a>(&self, field: &str, record: &'a [u8]) -> Option<&'a [u8]> {
        let field = self.fields.get(field)?;
        record.get(field.offset..field.offset.checked_add(field.size)?)
    }
}

fn until_zero(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn number(bytes: &[u8], signed: bool) -> Option<i64> {
    let mut wide = [0; 8];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let unused = 64 - 8 * u32::try_from(bytes.len()).ok().filter(|length| *length > 0)?;
    let value = u64::from_le_bytes(wide) << unused;
    Some(if signed { (value as i64) >> unused } else { (value >> unused) as i64 })
}

/// Offset and size of a field in one of these descriptions.
pub fn place(description: &str, name: &str) -> Option<(usize, usize)> {
    let lines = description.lines().filter_map(|line| line.trim_start().strip_prefix("field:"));
    lines.filter_map(field).find(|(found, _)| found == name).map(|(_, field)| (field.offset, field.size))
}

/// All descriptions in a stretch of tracing data, by the number that records have.
pub fn formats(section: &[u8]) -> HashMap<u16, Format> {
    let text = String::from_utf8_lossy(section);
    let mut formats = HashMap::new();
    let mut current: Option<(Option<u16>, Format)> = None;
    for line in text.split('\n') {
        // A description follows binary data without a line's end.
        if let Some((_, name)) = line.rsplit_once("name: ").filter(|(_, name)| is_name(name)) {
            current = Some((None, Format { name: name.trim().to_owned(), ..Format::default() }));
            continue;
        }
        let Some((number, format)) = &mut current else { continue };
        if let Some(id) = line.strip_prefix("ID: ") {
            *number = id.trim().parse().ok();
        } else if let Some((name, field)) = line.trim_start().strip_prefix("field:").and_then(field) {
            format.fields.insert(name, field);
        } else if line.starts_with("print fmt:") {
            if let Some((Some(number), mut format)) = current.take() {
                if format.name.starts_with(ENTER_ONE) {
                    format.count_arguments();
                }
                formats.insert(number, format);
            }
        }
    }
    formats
}

/// Whether this is the name of a tracepoint. The line may be how one is printed: `"filename: 0x%08lx"`.
fn is_name(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || "_-.:".contains(letter))
}

/// A line of a description: declaration, offset, size and whether it is signed, with semicolons between.
fn field(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    // `char comm[16]`, and `__data_loc char[] filename`.
    let name = declaration.rsplit([' ', '*']).next()?.split('[').next()?.to_owned();
    let mut value = |name: &str| parts.next()?.strip_prefix(name)?.parse::<usize>().ok();
    let (offset, size) = (value("offset:")?, value("size:")?);
    let signed = value("signed:").is_some_and(|signed| signed == 1);
    Some((name, Field { offset, size, signed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTION: &[u8] = b"\x17\x08\x44tracing0.6\0\0\x01\0\0\0sched\0\x02\x03name: sched_waking\nID: \
        318\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\tfield:char \
        comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t \
        pid;\toffset:24;\tsize:4;\tsigned:1;\n\tfield:unsigned long \
        args[2];\toffset:28;\tsize:16;\tsigned:0;\n\tfield:__data_loc char[] \
        filename;\toffset:44;\tsize:4;\tsigned:0;\n\nprint fmt: \"name: 0x%lx\", REC->comm\n\xff\xfename: \
        broken\nID: x\n";

    #[test]
    fn fields_are_found_by_the_format_description() {
        let formats = formats(SECTION);
        assert_eq!(formats.len(), 1);
        let format = &formats[&318];
        let mut record = vec![0; 48];
        record[..2].copy_from_slice(&318_u16.to_le_bytes());
        record[8..12].copy_from_slice(b"task");
        record[24..28].copy_from_slice(&(-1_i32).to_le_bytes());
        record[36..44].copy_from_slice(&7_u64.to_le_bytes());
        assert_eq!(
            (format.name.as_str(), format.text("comm", &record).as_deref()),
            ("sched_waking", Some("task"))
        );
        assert_eq!(
            (format.number("pid", &record), format.number("common_type", &record)),
            (Some(-1), Some(318))
        );
        assert_eq!((format.element("args", 1, &record), format.element("args", 2, &record)), (Some(7), None));
        let file_name = |record: &[u8]| format.far_file_name("filename", record, 4);
        assert_eq!(file_name(&record).as_deref(), Some(""));
        record.extend(b"/bin/second\0");
        record[44..48].copy_from_slice(&(48 | 12_u32 << 16).to_le_bytes());
        assert_eq!((file_name(&record).as_deref(), file_name(&record[..50])), (Some("seco"), None));
        assert_eq!((format.number("pid", &record[..26]), format.number("none", &record)), (None, None));
    }
}
