//! Reads the fields of an event, one after the other.

use super::layout::MAX_TEXT;

pub const TOO_EARLY: &str = "an instant before the clock's zero";

/// Takes fields off the front. Beyond the end they are 0, and `is_short` is set.
pub struct Fields<'a> {
    pub rest: &'a [u8],
    pub is_short: bool,
}

impl<'a> Fields<'a> {
    #[inline(always)]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], &'static str> {
        let (array, rest) = self.rest.split_first_chunk().ok_or("an event that is cut off")?;
        self.rest = rest;
        Ok(array)
    }

    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.rest.split_first_chunk() {
            Some((array, rest)) => {
                self.rest = rest;
                *array
            }
            None => {
                self.is_short = true;
                [0; N]
            }
        }
    }

    pub fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub fn text(&mut self) -> Result<String, &'static str> {
        let most = &self.rest[..self.rest.len().min(MAX_TEXT)];
        let end = most.iter().position(|byte| *byte == 0).ok_or("a text that does not end")?;
        let text = std::str::from_utf8(&self.rest[..end]).map_err(|_| "a text that is not UTF-8")?;
        self.rest = &self.rest[end + 1..];
        Ok(text.to_owned())
    }
}
