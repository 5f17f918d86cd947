//! A job list as an Apache Parquet file: column by column in groups of rows, so that memory holds one group
//! at most.
//!
//! All numbers are signed, so that differences of two columns (arrival to release, say) are right in every
//! tool that reads them.

use super::column::{Kind, Schema, Value};
use super::row::Error;
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
    schema: Schema,
    columns: Vec<Pending>,
    group_rows: usize,
    /// The numbers of a row.
    numbers: Vec<i64>,
    rows: usize,
    /// Texts of this group, so that each is held once.
    names: HashMap<String, ByteArray>,
    separators: HashMap<Separator, ByteArray>,
}

impl<W: Write + Send> List<W> {
    pub fn new(out: W, clock: &str, schema: Schema) -> Result<Self, Error> {
        Self::in_groups(out, clock, schema, GROUP_ROWS)
    }

    pub fn in_groups(out: W, clock: &str, schema: Schema, group_rows: usize) -> Result<Self, Error> {
        let types = types(&schema).map_err(failed)?;
        let properties = Arc::new(properties(clock, &schema));
        let out = SerializedFileWriter::new(out, types, properties).map_err(failed)?;
        let columns = schema
            .columns
            .iter()
            .map(|(_, kind)| match kind {
                Kind::Text => Pending::Text(Vec::new()),
                Kind::Number => Pending::Number(Vec::new()),
                Kind::Known => Pending::Known(Vec::new(), Vec::new()),
                Kind::Flag => Pending::Flag(Vec::new()),
            })
            .collect();
        let numbers = vec![0; schema.columns.len()];
        let (names, separators) = (HashMap::new(), HashMap::new());
        Ok(Self { out, schema, columns, group_rows, numbers, rows: 0, names, separators })
    }

    /// `what` is what the row is of, for messages.
    pub fn row(&mut self, values: &[Value<'_>], what: &dyn Fn() -> String) -> Result<(), Error> {
        // All that can fail comes first, so that no column is ever longer than another.
        for ((value, (name, _)), number) in values.iter().zip(&self.schema.columns).zip(&mut self.numbers) {
            if let Value::Number(value) = value {
                *number = i64::try_from(*value).map_err(|_| Error::too_large(what(), name, *value))?;
            }
        }
        let columns = values.iter().zip(&mut self.columns).zip(&self.schema.columns);
        for (((value, pending), (name, _)), number) in columns.zip(self.numbers.iter().copied()) {
            match (pending, value) {
                (Pending::Text(texts), Value::Text(text)) => texts.push(interned(&mut self.names, text)),
                (Pending::Text(texts), Value::Separator(separator)) => {
                    texts.push(
                        self.separators
                            .entry(*separator)
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
                (Pending::Flag(flags), Value::Flag(flag)) => flags.push(*flag),
                (_, value) => unreachable!("column {name} gave {value:?}"),
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

fn types(schema: &Schema) -> Result<Arc<Type>, ParquetError> {
    let fields = schema
        .columns
        .iter()
        .map(|(name, kind)| {
            let (physical, repetition) = match kind {
                Kind::Text => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
                Kind::Number => (Physical::INT64, Repetition::REQUIRED),
                Kind::Known => (Physical::INT64, Repetition::OPTIONAL),
                Kind::Flag => (Physical::BOOLEAN, Repetition::REQUIRED),
            };
            let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
            let field = if *kind == Kind::Text {
                field.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8)
            } else {
                field
            };
            field.build().map(Arc::new)
        })
        .collect::<Result<_, _>>()?;
    Type::group_type_builder(schema.name).with_fields(fields).build().map(Arc::new)
}

fn properties(clock: &str, schema: &Schema) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("punctual {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![
            KeyValue::new("punctual.clock".to_owned(), clock.to_owned()),
            KeyValue::new("punctual.unit".to_owned(), "ns".to_owned()),
        ]));
    // Instants grow and never repeat: a dictionary of them is larger than they are, their differences are
    // small.
    let is_growing = |name: &str| name.ends_with("_ns") || name == "job" || name == "instance";
    let numbers = schema.columns.iter().filter(|(name, kind)| *kind != Kind::Text && is_growing(name));
    for (name, _) in numbers {
        let path = ColumnPath::from(*name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}
