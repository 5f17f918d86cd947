//! Job lists say what the jobs were: read back with other code than wrote them.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use proptest::prelude::*;
use punctual_model::{
    Call, Disturbance, Duration, FileClass, Instant, Job, Object, Release, Segment, Separator, Window,
};
use punctual_report::jobs::{Format, Row, Writer};
use std::io::{self, Write};

/// A row that owns its parts.
#[derive(Clone, Debug)]
struct Seen {
    numbers: [u32; 3],
    name: String,
    separator: Separator,
    primary: bool,
    number: u64,
    job: Job,
    segments: Vec<Segment>,
    expirations: u64,
    disturbance: Option<Disturbance>,
}

impl Seen {
    fn row(&self) -> Row<'_> {
        let [tid, pid, phase] = self.numbers;
        Row {
            tid,
            pid,
            phase,
            name: &self.name,
            separator: self.separator,
            primary: self.primary,
            number: self.number,
            job: &self.job,
            segments: &self.segments,
            expirations: self.expirations,
            disturbance: self.disturbance,
            late: None,
        }
    }

    /// What every row must say, as text; where a value is unknown, nothing. Written out once more, not by the
    /// code under test.
    fn expected(&self) -> [String; 19] {
        let job = &self.job;
        [
            self.name.clone(),
            self.numbers[1].to_string(),
            self.numbers[0].to_string(),
            self.numbers[2].to_string(),
            self.separator.to_string(),
            self.primary.to_string(),
            self.number.to_string(),
            job.release.arrival.map_or(String::new(), |arrival| arrival.ns().to_string()),
            job.release.window.earliest().ns().to_string(),
            job.release.window.latest().ns().to_string(),
            job.start.ns().to_string(),
            job.end.ns().to_string(),
            job.cost.ns().to_string(),
            job.cost.ns().saturating_sub(job.end.ns() - job.start.ns()).to_string(),
            job.suspended.ns().to_string(),
            job.response().ns().to_string(),
            self.segments.len().to_string(),
            Some(self.expirations)
                .filter(|number| *number > 0)
                .map_or(String::new(), |number| number.to_string()),
            self.disturbance.map_or(String::new(), |disturbance| format!("{disturbance:?}").to_lowercase()),
        ]
    }
}

const NAMES: [&str; 19] = [
    "thread",
    "pid",
    "tid",
    "phase",
    "separator",
    "primary",
    "job",
    "arrival_ns",
    "release_earliest_ns",
    "release_latest_ns",
    "start_ns",
    "end_ns",
    "cost_ns",
    "cost_outside_ns",
    "suspended_ns",
    "response_ns",
    "segments",
    "expirations",
    "disturbance",
];

fn separator() -> impl Strategy<Value = Separator> {
    prop_oneof![
        Just(Separator::SUSPENSION),
        any::<u64>()
            .prop_map(|address| Separator { call: Call::FutexWait, object: Object::address(address) }),
        (any::<i32>(), any::<u64>()).prop_map(|(fd, identity)| Separator {
            call: Call::Read,
            object: Object::File { class: FileClass::Pipe, fd, identity }
        }),
    ]
}

fn seen() -> impl Strategy<Value = Seen> {
    let name = prop_oneof![Just("worker".to_owned()), "[a-c,\"\r\n=;é\u{0}]{0,15}", any::<String>()];
    let instants =
        (proptest::option::of(0..1u64 << 60), 0..1u64 << 60, 0..1u64 << 40, 0..1u64 << 40, 0..1u64 << 40);
    let all = &[None, Some(Disturbance::Signal), Some(Disturbance::Ending), Some(Disturbance::Stall)][..];
    let circumstances = (0..3u64, prop::sample::select(all));
    let spans = (0..1u64 << 63, 0..1u64 << 63, 0..9usize);
    (any::<[u32; 3]>(), name, separator(), any::<bool>(), 0..1u64 << 63, instants, spans, circumstances)
        .prop_map(
            |(
                numbers,
                name,
                separator,
                primary,
                number,
                instants,
                (cost, suspended, segments),
                (expirations, disturbance),
            )| {
                let (arrival, earliest, width, start, length) = instants;
                let window =
                    Window::new(Instant::from_ns(earliest), Instant::from_ns(earliest + width)).unwrap();
                let start = Instant::from_ns(earliest + start);
                let release = Release { arrival: arrival.map(Instant::from_ns), window };
                let (cost, suspended) = (Duration::from_ns(cost), Duration::from_ns(suspended));
                let job = Job { release, start, end: start + Duration::from_ns(length), cost, suspended };
                Seen {
                    numbers,
                    name,
                    separator,
                    primary,
                    number,
                    job,
                    segments: vec![Segment::default(); segments],
                    expirations,
                    disturbance,
                }
            },
        )
}

fn written(format: Format, rows: &[Seen]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), format, "CLOCK_BOOTTIME", false).unwrap();
    for row in rows {
        writer.row(&row.row()).unwrap();
    }
    writer.finish().unwrap()
}

fn parquet(bytes: Vec<u8>) -> SerializedFileReader<bytes::Bytes> {
    SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap()
}

fn parquet_rows(file: &SerializedFileReader<bytes::Bytes>) -> Vec<Vec<String>> {
    let text = |field: &Field| match field {
        Field::Str(text) => text.clone(),
        Field::Long(number) => number.to_string(),
        Field::Bool(flag) => flag.to_string(),
        Field::Null => String::new(),
        other => panic!("a field of another type: {other:?}"),
    };
    file.get_row_iter(None)
        .unwrap()
        .map(|row| row.unwrap().get_column_iter().map(|(_, field)| text(field)).collect())
        .collect()
}

proptest! {
    #[test]
    fn a_csv_file_has_all_values_of_the_jobs(rows in prop::collection::vec(seen(), 0..20)) {
        let bytes = written(Format::Csv, &rows);
        let mut file = csv::Reader::from_reader(bytes.as_slice());
        prop_assert_eq!(file.headers().unwrap(), &csv::StringRecord::from(NAMES.to_vec()));
        let read: Vec<Vec<String>> = file.records()
            .map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
        prop_assert_eq!(read, rows.iter().map(|row| row.expected().to_vec()).collect::<Vec<_>>());
    }

    #[test]
    fn a_parquet_file_has_all_values_of_the_jobs(rows in prop::collection::vec(seen(), 0..20)) {
        let file = parquet(written(Format::Parquet, &rows));
        let schema = file.metadata().file_metadata().schema_descr();
        prop_assert_eq!(schema.columns().iter().map(|column| column.name()).collect::<Vec<_>>(), NAMES);
        prop_assert_eq!(parquet_rows(&file), rows.iter().map(|row| row.expected().to_vec())
            .collect::<Vec<_>>());
    }
}

fn one(number: u64) -> Seen {
    let at = Instant::from_ns(1_000_000 * number);
    let release = Release { arrival: (number % 2 == 0).then_some(at), window: Window::at(at) };
    let job = Job {
        release,
        start: at,
        end: at + Duration::from_us(7),
        cost: Duration::from_us(7),
        suspended: Duration::ZERO,
    };
    let name = format!("worker {}", number % 3);
    Seen {
        numbers: [11, 10, 0],
        name,
        separator: Separator::SUSPENSION,
        primary: true,
        number,
        job,
        segments: vec![Segment::default()],
        expirations: 0,
        disturbance: None,
    }
}

#[test]
fn a_long_parquet_file_has_row_groups_of_bounded_size() {
    let rows: Vec<Seen> = (0..150_000).map(one).collect();
    let bytes = written(Format::Parquet, &rows);
    assert!(bytes.len() < rows.len() * 16, "{} bytes", bytes.len());
    let file = parquet(bytes);
    let groups: Vec<i64> = file.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [65_536, 65_536, 150_000 - 2 * 65_536]);
    for (read, row) in parquet_rows(&file).iter().zip(&rows) {
        assert_eq!(read[..], row.expected());
    }
}

#[test]
fn a_parquet_file_names_clock_and_unit() {
    let file = parquet(written(Format::Parquet, &[]));
    let about = file.metadata().file_metadata();
    let value_of = |key: &str| {
        about
            .key_value_metadata()
            .unwrap()
            .iter()
            .find(|entry| entry.key == key)
            .unwrap()
            .value
            .clone()
            .unwrap()
    };
    assert_eq!(
        (value_of("punctual.clock").as_str(), value_of("punctual.unit").as_str()),
        ("CLOCK_BOOTTIME", "ns")
    );
    assert!(about.created_by().unwrap().starts_with("punctual "));
}

#[test]
fn a_number_too_large_for_parquet_is_refused() {
    let mut late = one(1);
    late.job.end = Instant::from_ns(u64::MAX);
    let mut writer = Writer::new(Vec::new(), Format::Parquet, "CLOCK_MONOTONIC", false).unwrap();
    let error = writer.row(&late.row()).unwrap_err().to_string();
    assert!(error.contains("end_ns of 18446744073709551615") && error.contains("thread 11"), "{error}");
    writer.row(&one(2).row()).unwrap();
    assert_eq!(parquet_rows(&parquet(writer.finish().unwrap())), [one(2).expected().to_vec()]);
}

/// A disk with room for so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        let written = bytes.len().min(self.0);
        self.0 -= written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported() {
    for format in [Format::Csv, Format::Parquet] {
        let written = || {
            let mut writer = Writer::new(Full(1_000), format, "CLOCK_MONOTONIC", false)?;
            (0..70_000).try_for_each(|number| writer.row(&one(number).row()))?;
            writer.finish()
        };
        let error = written().err().unwrap().to_string();
        assert!(
            error.contains("cannot write the job list") && error.contains("no storage space"),
            "{format:?}: {error}"
        );
    }
}
