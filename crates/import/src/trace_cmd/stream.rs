//! The events of one processor, page by page.

use super::super::bytes::{Bytes, Packing};
use super::file::{Cpu, Header, Layout};
use super::pages::Page;
use std::ops::Range;

/// What there is next of a processor.
pub enum Next {
    /// An event, whose bytes are in [`Stream::bytes`].
    Event { at: u64, place: Range<usize> },
    /// Events are missing before the next one: at least so many.
    Missed(u64),
    /// Something that cannot be read; events are missing.
    Damage(String),
}

/// The data of a processor, as far as they have been read.
pub struct Stream {
    pub cpu: u32,
    layout: Layout,
    packing: Option<Packing>,
    /// Most bytes of a block.
    most: u64,
    /// Where the data begin, where the next block is, and where they end.
    begin: u64,
    at: u64,
    end: u64,
    /// Packed blocks that follow.
    blocks: u32,
    block: Vec<u8>,
    /// Where the page in the block begins, and how far it has been read.
    from: usize,
    page: Page,
}

/// The number of packed blocks in front of them, which trace-cmd leaves out of their size.
const COUNT: u64 = 4;

/// Pages read at once, of data that are not packed.
const PAGES: u64 = 16;

/// Most bytes of an unpacked block: trace-cmd packs some pages at a time.
const MOST_BLOCK: u64 = 8 << 20;

/// Most bytes of the blocks of all processors together, as one of each is held.
const MOST_BLOCKS: u64 = 512 << 20;

/// Most bytes of the block of a processor; an error if there is not room for a page.
fn most_of_each(header: &Header) -> Result<u64, String> {
    let count = header.cpus.iter().filter(|cpu| cpu.size > 0).count() as u64;
    let most = (MOST_BLOCKS / count.max(1)).min(MOST_BLOCK);
    let page = header.layout.page;
    match page as u64 <= most {
        true => Ok(most),
        false => Err(format!("page size {page} is invalid for {count} processors: it is too large")),
    }
}

impl Stream {
    /// Of a processor.
    pub fn new(bytes: &Bytes, header: &Header, cpu: &Cpu) -> Result<Stream, String> {
        let most = most_of_each(header)?;
        let mut stream = Stream {
            cpu: cpu.number,
            layout: header.layout,
            packing: cpu.is_packed.then_some(header.packing),
            most,
            begin: cpu.offset,
            at: cpu.offset,
            end: cpu.offset + cpu.size + if cpu.is_packed { COUNT } else { 0 },
            blocks: 0,
            block: Vec::new(),
            from: 0,
            page: Page::default(),
        };
        if cpu.is_packed && cpu.size > 0 {
            stream.blocks = stream.word(bytes)?;
        }
        Ok(stream)
    }

    /// Bytes of it that have been read.
    pub fn done(&self) -> u64 {
        self.at - self.begin
    }

    /// The bytes of an event.
    pub fn bytes(&self, place: &Range<usize>) -> &[u8] {
        &self.block[self.from..][place.clone()]
    }

    /// Leaves out the events that are left of this page, and counts them; `None` if it cannot be read.
    pub fn count_rest(&mut self) -> Option<u64> {
        let page = self.block.get(self.from..).unwrap_or_default();
        self.page.count(&page[..page.len().min(self.layout.page)])
    }

    /// What comes next; `None` at the end.
    pub fn next(&mut self, bytes: &Bytes) -> Option<Next> {
        loop {
            let page = self.block.get(self.from..).unwrap_or_default();
            let page = &page[..page.len().min(self.layout.page)];
            match self.page.next(page) {
                Ok(Some((at, place))) => return Some(Next::Event { at, place }),
                Err(()) => return Some(Next::Damage("an event that does not fit into its page".to_owned())),
                Ok(None) => {}
            }
            self.from += self.layout.page;
            if self.from >= self.block.len() {
                self.from = 0;
                match self.fill(bytes) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.free();
                        return None;
                    }
                    Err(why) => {
                        // What follows cannot be found.
                        (self.at, self.blocks) = (self.end, 0);
                        self.free();
                        return Some(Next::Damage(why));
                    }
                }
            }
            let page = &self.block[self.from..self.block.len().min(self.from + self.layout.page)];
            self.page = Page::default();
            match Page::new(page, self.layout) {
                Some(page) => self.page = page,
                None => return Some(Next::Damage("a page that is longer than it can be".to_owned())),
            }
            if self.page.missed > 0 {
                return Some(Next::Missed(self.page.missed));
            }
        }
    }

    /// Forgets the block: none follows.
    fn free(&mut self) {
        self.block = Vec::new();
        self.page = Page::default();
    }

    /// Reads the next block; returns whether there is one.
    fn fill(&mut self, bytes: &Bytes) -> Result<bool, String> {
        let Some(packing) = self.packing else {
            let page = self.layout.page as u64;
            let length = (self.end - self.at).min((self.most / page).min(PAGES) * page);
            bytes.read_into(self.at, length, &mut self.block)?;
            self.at += length;
            return Ok(length > 0);
        };
        if self.blocks == 0 {
            return Ok(false);
        }
        self.blocks -= 1;
        let (packed, length) = (u64::from(self.word(bytes)?), u64::from(self.word(bytes)?));
        if packed > self.end - self.at || !(1..=self.most).contains(&length) {
            return Err(format!("byte {}: the size of a packed block is invalid", self.at));
        }
        let packed_bytes = bytes.read(self.at, packed)?;
        let at = self.at;
        self.at += packed;
        self.block = packing
            .unpack(&packed_bytes, length)
            .map_err(|why| format!("byte {at}: a packed block: {why}"))?;
        Ok(true)
    }

    fn word(&mut self, bytes: &Bytes) -> Result<u32, String> {
        if self.end - self.at < 4 {
            return Err(format!("byte {}: a packed block should be here", self.at));
        }
        let word = bytes.read(self.at, 4)?;
        self.at += 4;
        Ok(word.first_chunk().map_or(0, |word| u32::from_le_bytes(*word)))
    }
}
