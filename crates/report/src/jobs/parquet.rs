//! A job list as an Apache Parquet file: column by column in groups of rows, so that memory holds one group
//! at most.
//!
//! All numbers are signed, so that differences of two columns (arrival to release, say) are right in every
//! tool that reads them.

use super::column::{COLUMNS, Kind, Value};
use super::row::{Error, Row};
use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use punctual_model::Separator;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

/// Rows of a group: some ten megabytes in memory. A file can have 32,767 groups, which is two thousand
/// million jobs.
const GROUP_ROWS: usize = 1 << 16;

/// The entries of one column that are still to be written.
enum Pending {
    Text(Vec<ByteArray>),
    Number(Vec<i64>),
    /// The numbers that are known, and for every row whether it is (1) or not (0), as Parquet wants them.
    Known(Vec<i64>, Vec<i16>),
    Flag(Vec<bool>),
}

pub struct List<W: Write + Send> {
    out: SerializedFileWriter<W>,
    columns: Vec<Pending>,
    group_rows: usize,
    rows: usize,
    /// Texts of this group, so that each is held once.
    names: HashMap<String, ByteArray>,
    separators: HashMap<Separator, ByteArray>,
}

impl<W: Write + Send> List<W> {
    pub fn new(out: W, clock: &str) -> Result<Self, Error> {
        Self::in_groups(out, clock, GROUP_ROWS)
    }

    pub fn in_groups(out: W, clock: &str, group_rows: usize) -> Result<Self, Error> {
        let out = SerializedFileWriter::new(out, schema().map_err(failed)?, Arc::new(properties(clock)))
            .map_err(failed)?;
        let columns = COLUMNS
            .iter()
            .map(|column| match column.kind {
                Kind::Text => Pending::Text(Vec::new()),
                Kind::Number => Pending::Number(Vec::new()),
                Kind::Known => Pending::Known(Vec::new(), Vec::new()),
                Kind::Flag => Pending::Flag(Vec::new()),
            })
            .collect();
        Ok(Self { out, columns, group_rows, rows: 0, names: HashMap::new(), separators: HashMap::new() })
    }

    pub fn row(&mut self, row: &Row) -> Result<(), Error> {
        // All that can fail comes first, so that no column is ever longer than another.
        let mut numbers = [0; COLUMNS.len()];
        for (column, number) in COLUMNS.iter().zip(&mut numbers) {
            if let Value::Number(value) = (column.value)(row) {
                *number = i64::try_from(value).map_err(|_| {
                    Error::write(format!(
                        "job {} of thread {} has a {} of {value}, and a Parquet file's numbers end at {}",
                        row.number,
                        row.tid,
                        column.name,
                        i64::MAX
                    ))
                })?;
            }
        }
        for ((column, pending), number) in COLUMNS.iter().zip(&mut self.columns).zip(numbers) {
            match (pending, (column.value)(row)) {
                (Pending::Text(texts), Value::Text(text)) => texts.push(interned(&mut self.names, &text)),
                (Pending::Text(texts), Value::Separator(separator)) => {
                    texts.push(
                        self.separators
                            .entry(separator)
                            .or_insert_with(|| separator.to_string().into_bytes().into())
                            .clone(),
                    );
                }
                (Pending::Number(numbers), Value::Number(_)) => numbers.push(number),
                (Pending::Known(numbers, known), Value::Number(_)) => {
                    numbers.push(number);
                    known.push(1);
                }
                (Pending::Known(_, known), Value::Unknown) => known.push(0),
                (Pending::Flag(flags), Value::Flag(flag)) => flags.push(flag),
                (_, value) => unreachable!("column {} gave {value:?}", column.name),
            }
        }
        self.rows += 1;
        if self.rows >= self.group_rows { self.write_group() } else { Ok(()) }
    }

    pub fn finish(mut self) -> Result<W, Error> {
        self.write_group()?;
        self.out.into_inner().map_err(failed)
    }

    fn write_group(&mut self) -> Result<(), Error> {
        if self.rows > 0 {
            write_columns(&mut self.out, &self.columns).map_err(failed)?;
        }
        for pending in &mut self.columns {
            match pending {
                Pending::Text(texts) => texts.clear(),
                Pending::Number(numbers) => numbers.clear(),
                Pending::Known(numbers, known) => {
                    numbers.clear();
                    known.clear();
                }
                Pending::Flag(flags) => flags.clear(),
            }
        }
        self.names.clear();
        self.separators.clear();
        self.rows = 0;
        Ok(())
    }
}

/// What the writer below said is enough; the library puts its own word before it.
fn failed(error: ParquetError) -> Error {
    match error {
        ParquetError::External(error) => Error::write(error),
        error => Error::write(error),
    }
}

fn interned(texts: &mut HashMap<String, ByteArray>, text: &str) -> ByteArray {
    if let Some(known) = texts.get(text) {
        return known.clone();
    }
    let bytes = ByteArray::from(text.as_bytes().to_vec());
    texts.insert(text.to_owned(), bytes.clone());
    bytes
}

fn write_columns<W: Write + Send>(
    out: &mut SerializedFileWriter<W>,
    columns: &[Pending],
) -> Result<(), ParquetError> {
    let mut group = out.next_row_group()?;
    for pending in columns {
        let Some(mut column) = group.next_column()? else { break };
        match pending {
            Pending::Text(texts) => column.typed::<ByteArrayType>().write_batch(texts, None, None)?,
            Pending::Number(numbers) => column.typed::<Int64Type>().write_batch(numbers, None, None)?,
            Pending::Known(numbers, known) => {
                column.typed::<Int64Type>().write_batch(numbers, Some(known), None)?
            }
            Pending::Flag(flags) => column.typed::<BoolType>().write_batch(flags, None, None)?,
        };
        column.close()?;
    }
    group.close().map(|_| ())
}

fn schema() -> Result<Arc<Type>, ParquetError> {
    let fields = COLUMNS
        .iter()
        .map(|column| {
            let (physical, repetition) = match column.kind {
                Kind::Text => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
                Kind::Number => (Physical::INT64, Repetition::REQUIRED),
                Kind::Known => (Physical::INT64, Repetition::OPTIONAL),
                Kind::Flag => (Physical::BOOLEAN, Repetition::REQUIRED),
            };
            let field = Type::primitive_type_builder(column.name, physical).with_repetition(repetition);
            let field = if column.kind == Kind::Text {
                field.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8)
            } else {
                field
            };
            field.build().map(Arc::new)
        })
        .collect::<Result<_, _>>()?;
    Type::group_type_builder("jobs").with_fields(fields).build().map(Arc::new)
}

fn properties(clock: &str) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("punctual {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![
            KeyValue::new("punctual.clock".to_owned(), clock.to_owned()),
            KeyValue::new("punctual.unit".to_owned(), "ns".to_owned()),
        ]));
    // Instants grow and never repeat: a dictionary of them is larger than they are, their differences are
    // small.
    for column in COLUMNS.iter().filter(|column| column.name.ends_with("_ns") || column.name == "job") {
        let path = ColumnPath::from(column.name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}
