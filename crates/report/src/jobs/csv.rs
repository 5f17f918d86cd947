//! A job list as comma-separated values.

use super::column::{Schema, Value};
use super::row::Error;
use csv::Writer;
use std::io::Write;

pub struct List<W: Write> {
    out: Writer<W>,
    /// One entry, as text.
    text: Vec<u8>,
}

impl<W: Write> List<W> {
    pub fn new(out: W, schema: &Schema) -> Result<Self, Error> {
        let mut out = Writer::from_writer(out);
        out.write_record(schema.columns.iter().map(|(name, _)| *name)).map_err(Error::write)?;
        Ok(Self { out, text: Vec::new() })
    }

    pub fn row(&mut self, values: &[Value<'_>]) -> Result<(), Error> {
        for value in values {
            self.text.clear();
            match value {
                Value::Text(text) => self.text.write_all(text.as_bytes()),
                Value::Separator(separator) => write!(self.text, "{separator}"),
                Value::Number(number) => write!(self.text, "{number}"),
                Value::Flag(flag) => write!(self.text, "{flag}"),
                Value::Unknown => Ok(()),
            }
            .map_err(Error::write)?;
            self.out.write_field(&self.text).map_err(Error::write)?;
        }
        self.out.write_record(None::<&[u8]>).map_err(Error::write)
    }

    pub fn finish(self) -> Result<W, Error> {
        self.out.into_inner().map_err(|error| Error::write(error.error()))
    }
}
