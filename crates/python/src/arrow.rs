//! A stream of jobs in Arrow's columns, made by a thread that reads the recording meanwhile.

use crate::errors::defect_text;
use crate::run::Listener;
use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use punctual_report::jobs::{Error, Kind, Row, Value, columns};
use punctual_workflow::jobs::Jobs;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Jobs of a batch: some ten megabytes.
const BATCH: usize = 1 << 16;

/// A batch; `None` is the end.
type Next = Result<Option<RecordBatch>, String>;

/// The schema: the columns of `punctual jobs`, all numbers signed.
pub fn schema(clock: &str) -> SchemaRef {
    let field = |(name, kind)| match kind {
        Kind::Text => Field::new(name, DataType::Utf8, false),
        Kind::Number => Field::new(name, DataType::Int64, false),
        Kind::Known => Field::new(name, DataType::Int64, true),
        Kind::Flag => Field::new(name, DataType::Boolean, false),
    };
    let about = [("punctual.clock", clock), ("punctual.unit", "ns")];
    let about: HashMap<String, String> = about.map(|(key, value)| (key.into(), value.into())).into();
    Arc::new(Schema::new_with_metadata(columns().map(field).collect::<Vec<_>>(), about))
}

/// The jobs of a recording, batch by batch. Dropped early, it stops reading.
pub struct Batches {
    schema: SchemaRef,
    listener: Arc<Listener>,
    /// `None` after the end.
    batches: Option<Receiver<Next>>,
}

impl Batches {
    /// Begins to read.
    pub fn begin(jobs: Arc<Jobs>) -> io::Result<Batches> {
        let (schema, listener) = (schema(jobs.clock()), Arc::new(Listener::default()));
        let (send, batches) = sync_channel(1);
        let (columns, stopped) = (Arc::clone(&schema), Arc::clone(&listener));
        thread::Builder::new().name("punctual-jobs".into()).spawn(move || {
            let read = catch_unwind(AssertUnwindSafe(|| read(&jobs, columns, &stopped, &send)));
            let end = read.unwrap_or_else(|panic| Err(defect_text(&*panic)));
            // Nobody listens if the reader was dropped.
            let _ = send.send(end.map(|()| None));
        })?;
        Ok(Batches { schema, listener, batches: Some(batches) })
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.listener.stop();
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.batches.as_ref()?.recv();
        match next.unwrap_or_else(|_| Err("the jobs ended early".into())) {
            Ok(Some(batch)) => Some(Ok(batch)),
            Ok(None) => {
                self.batches = None;
                None
            }
            Err(message) => {
                self.batches = None;
                Some(Err(ArrowError::ExternalError(message.into())))
            }
        }
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Reads the jobs, and sends each batch as soon as it is full.
fn read(jobs: &Jobs, schema: SchemaRef, listener: &Listener, send: &SyncSender<Next>) -> Result<(), String> {
    let mut batch = Batch::new(schema);
    let mut broken = None;
    let mut each = |row: &Row<'_>| -> Result<(), String> {
        batch.row(row).map_err(|error| error.to_string())?;
        if batch.rows < BATCH {
            return Ok(());
        }
        let full = batch.take().map_err(|error| error.to_string())?;
        send.send(Ok(Some(full))).map_err(|_| "nobody takes the jobs".into())
    };
    let read = jobs.each(listener, &mut |row| {
        if broken.is_none() {
            broken = each(row).err();
            broken.iter().for_each(|_| listener.stop());
        }
    });
    if let Some(broken) = broken {
        return Err(broken);
    }
    read.map_err(|error| format!("{error:#}"))?;
    let last = batch.take().map_err(|error| error.to_string())?;
    // Whoever has gone wants no last batch.
    let _ = send.send(Ok(Some(last)));
    Ok(())
}

/// Rows, column by column.
struct Batch {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
}

enum Column {
    Text(StringBuilder),
    Number(Int64Builder),
    Flag(BooleanBuilder),
}

impl Batch {
    fn new(schema: SchemaRef) -> Batch {
        let column = |(_, kind)| match kind {
            Kind::Text => Column::Text(StringBuilder::new()),
            Kind::Number | Kind::Known => Column::Number(Int64Builder::new()),
            Kind::Flag => Column::Flag(BooleanBuilder::new()),
        };
        Batch { schema, columns: columns().map(column).collect(), rows: 0 }
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        for ((column, value), (name, _)) in self.columns.iter_mut().zip(row.values()).zip(columns()) {
            match (column, value) {
                (Column::Text(column), Value::Text(text)) => column.append_value(text),
                (Column::Text(column), Value::Separator(separator)) => {
                    let _ = write!(column, "{separator}");
                    column.append_value("");
                }
                (Column::Number(column), Value::Number(number)) => {
                    let signed = i64::try_from(number);
                    column.append_value(signed.map_err(|_| Error::too_large(row, name, number))?);
                }
                (Column::Number(column), Value::Unknown) => column.append_null(),
                (Column::Flag(column), Value::Flag(flag)) => column.append_value(flag),
                (_, value) => unreachable!("column {name} gave {value:?}"),
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// What it has, which it then has no more.
    fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let array = |column: &mut Column| -> ArrayRef {
            match column {
                Column::Text(column) => Arc::new(column.finish()),
                Column::Number(column) => Arc::new(column.finish()),
                Column::Flag(column) => Arc::new(column.finish()),
            }
        };
        let arrays = self.columns.iter_mut().map(array).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }
}
