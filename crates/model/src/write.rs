//! Writing `*.timing.json`: indented, with numbers in rows, so that a curve of a thousand values does not
//! take a thousand lines.

use crate::file::TimingModel;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// Numbers in one row of an array.
const ROW: usize = 16;
const INDENT: &[u8] = b"  ";

impl TimingModel {
    /// The text of the whole file, with a newline at its end.
    pub fn to_json(&self) -> String {
        let mut text = Vec::new();
        self.write_json(&mut text)
            .expect("writing to memory does not fail, and these types have no maps and no floating point");
        String::from_utf8(text).expect("JSON is made of strings and ASCII")
    }

    /// Writes the text of the whole file. Fails only if the writer does.
    pub fn write_json(&self, mut writer: impl Write) -> io::Result<()> {
        self.serialize(&mut Serializer::with_formatter(&mut writer, Rows::default()))?;
        writer.write_all(b"\n")
    }
}

/// Breaks lines before everything except numbers in arrays, of which [`ROW`] share a line.
#[derive(Default)]
struct Rows {
    depth: usize,
    /// Numbers already in the row of the current array.
    in_row: usize,
    /// Inside an array, before a value that may be a number.
    element: Option<Position>,
    /// Whether the closing bracket of the current array or object goes on a line of its own.
    broken: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Position {
    First,
    Later,
}

impl Rows {
    fn new_line(&mut self, writer: &mut (impl Write + ?Sized)) -> io::Result<()> {
        self.broken = true;
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(INDENT))
    }

    /// Moves to the place of the next value.
    fn before(&mut self, writer: &mut (impl Write + ?Sized), is_number: bool) -> io::Result<()> {
        match self.element.take() {
            None => Ok(()),
            Some(Position::First) if is_number => {
                self.in_row = 1;
                Ok(())
            }
            Some(Position::Later) if is_number && self.in_row < ROW => {
                self.in_row += 1;
                writer.write_all(b" ")
            }
            Some(_) => {
                self.in_row = 1;
                self.new_line(writer)
            }
        }
    }

    fn open(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.before(writer, false)?;
        self.depth += 1;
        self.broken = false;
        writer.write_all(bracket)
    }

    fn close(&mut self, writer: &mut (impl Write + ?Sized), bracket: &[u8]) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.broken {
            self.new_line(writer)?;
        }
        // The enclosing array or object has this one on its own line, or there is none.
        self.broken = true;
        writer.write_all(bracket)
    }
}

impl Formatter for Rows {
    fn write_u64<W: Write + ?Sized>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        self.before(writer, true)?;
        write!(writer, "{value}")
    }

    fn write_i64<W: Write + ?Sized>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        self.before(writer, true)?;
        write!(writer, "{value}")
    }

    fn begin_string<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.before(writer, false)?;
        writer.write_all(b"\"")
    }

    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.element = None;
        self.close(writer, b"]")
    }

    fn begin_array_value<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.element = Some(if first { Position::First } else { Position::Later });
        if first { Ok(()) } else { writer.write_all(b",") }
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.new_line(writer)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
