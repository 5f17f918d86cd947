//! Job lists: every job that was seen, one a row, as CSV or Parquet; and the same of a dataflow program's
//! instances and of data that passed its chains. The columns are declared once, in `column.rs` and `flow.rs`.
//!
//! Rows leave as they come: a list may be far longer than memory.

use column::{CAUSES, COLUMNS, Schema};
use csv::List as Csv;
use parquet::List as Parquet;
use std::io::Write;
use std::path::Path;

mod column;
mod csv;
mod flow;
mod parquet;
mod row;

pub use column::{Kind, Value};
pub use flow::{Instance, InstanceWriter, Passage, PassageWriter};
pub use row::{Error, Row};

/// How a job list is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values (RFC 4180) with a line of column names.
    Csv,
    /// Apache Parquet, compressed with Snappy.
    Parquet,
}

impl Format {
    /// The format that the extension of a file's name asks for, in whatever case.
    pub fn from_file_name(file: &Path) -> Result<Format, Error> {
        match file.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase()).as_deref() {
            Some("csv") => Ok(Format::Csv),
            Some("parquet") => Ok(Format::Parquet),
            _ => Err(Error(format!(
                "{}: unknown format of a job list; the name must end in .csv or .parquet",
                file.display()
            ))),
        }
    }
}

/// The name and kind of each column, in order.
pub fn columns() -> impl Iterator<Item = (&'static str, Kind)> {
    COLUMNS.iter().map(|column| (column.name, column.kind))
}

/// Writes a job list, row by row. Holds at most one row group of a Parquet file.
pub struct Writer<W: Write + Send> {
    list: List<W>,
    causes: bool,
}

// One of them at a time.
#[allow(clippy::large_enum_variant)]
enum List<W: Write + Send> {
    Csv(Csv<W>),
    Parquet(Box<Parquet<W>>),
}

impl<W: Write + Send> List<W> {
    fn new(out: W, format: Format, clock: &str, schema: Schema) -> Result<Self, Error> {
        Ok(match format {
            Format::Csv => List::Csv(Csv::new(out, &schema)?),
            Format::Parquet => List::Parquet(Box::new(Parquet::new(out, clock, schema)?)),
        })
    }

    /// Adds a row with a value for each column. `what` is what the row is of, for messages.
    fn row(&mut self, values: &[Value<'_>], what: &dyn Fn() -> String) -> Result<(), Error> {
        match self {
            List::Csv(list) => list.row(values),
            List::Parquet(list) => list.row(values, what),
        }
    }

    fn finish(self) -> Result<W, Error> {
        match self {
            List::Csv(list) => list.finish(),
            List::Parquet(list) => list.finish(),
        }
    }
}

impl<W: Write + Send> Writer<W> {
    /// A list without rows. `clock` is what all its instants are on; a Parquet file says so, a CSV file has
    /// no place for it. With `causes`, it has the columns of late jobs.
    pub fn new(out: W, format: Format, clock: &str, causes: bool) -> Result<Self, Error> {
        Ok(Self { list: List::new(out, format, clock, schema(causes))?, causes })
    }

    /// A Parquet file in groups of at most `rows`, for many files at once: each holds one group in memory.
    pub fn in_groups(out: W, clock: &str, rows: usize, causes: bool) -> Result<Self, Error> {
        let list = List::Parquet(Box::new(Parquet::in_groups(out, clock, schema(causes), rows)?));
        Ok(Self { list, causes })
    }

    /// Adds one job.
    pub fn row(&mut self, row: &Row) -> Result<(), Error> {
        let what = || row.to_string();
        match self.causes {
            true => self.list.row(&row.values_and_causes(), &what),
            false => self.list.row(&row.values(), &what),
        }
    }

    /// Writes what is still to be written. Without this a Parquet file cannot be read.
    pub fn finish(self) -> Result<W, Error> {
        self.list.finish()
    }
}

fn schema(causes: bool) -> Schema {
    let more = CAUSES.iter().filter(|_| causes).map(|column| (column.name, column.kind));
    Schema { name: "jobs", columns: columns().chain(more).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_name_determines_the_format() {
        assert_eq!(Format::from_file_name(Path::new("a/jobs.csv")).unwrap(), Format::Csv);
        assert_eq!(Format::from_file_name(Path::new("jobs.PARQUET")).unwrap(), Format::Parquet);
        for name in ["jobs", "jobs.json", ".csv", ""] {
            let error = Format::from_file_name(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(".csv") && error.contains(".parquet"), "{error}");
        }
    }
}
