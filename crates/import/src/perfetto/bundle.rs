//! The events of one processor that were read together: messages, and switches and wake-ups in columns
//! (`compact_sched`).

use super::wire::{Fields, Malformed, Value, numbers};
use std::ops::Range;

/// Columns of the compact switches and wake-ups, by their fields' numbers.
const COLUMNS: usize = 13;

/// Events of one processor, in order of time.
#[derive(Default)]
pub struct Bundle {
    /// Events are missing before the first one.
    pub follows_loss: bool,
    /// Something in it could not be read by the recorder, so events are missing.
    pub is_damaged: bool,
    /// When the bundle before ended, if it is known; 0 is the beginning of the recording.
    pub follows: Option<u64>,
    /// Events without a time, which are not read.
    pub untimed: u64,
    bytes: Vec<u8>,
    places: Vec<Place>,
    columns: [Vec<u64>; COLUMNS],
    names: Vec<Range<usize>>,
}

/// Where an event is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub at: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Message { start: u32, end: u32 },
    Switch(u32),
    Waking(u32),
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    Message(&'a [u8]),
    Switch(Switch<'a>),
    Waking(Waking<'a>),
}

impl Event<'_> {
    /// The number of its kind.
    pub fn kind(self) -> Option<u32> {
        match self {
            Event::Message(message) => kind(message),
            Event::Switch(_) => Some(super::events::SWITCH),
            Event::Waking(_) => Some(super::events::WAKING),
        }
    }
}

/// A compact switch: who left is told by the switch before.
#[derive(Clone, Copy, Debug)]
pub struct Switch<'a> {
    pub state: i64,
    pub next: Who<'a>,
}

/// A compact wake-up (`sched_waking`).
#[derive(Clone, Copy, Debug)]
pub struct Waking<'a> {
    pub woken: Who<'a>,
    /// As the kernel has them; older recorders leave them out.
    pub flags: Option<u64>,
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    pub tid: i32,
    pub priority: i32,
    pub name: &'a [u8],
}

impl Bundle {
    /// Reads one in place of what it was.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        self.clear();
        self.bytes.extend_from_slice(bytes);
        for field in Fields::of(bytes) {
            match field? {
                (2, Value::Bytes(event)) => self.place(bytes, event),
                (3, Value::Number(is_lost)) => self.follows_loss = is_lost != 0,
                (4, Value::Bytes(compact)) => self.columns(bytes, compact)?,
                (8, Value::Bytes(_)) => self.is_damaged = true,
                (10, Value::Number(end)) => self.follows = Some(end),
                _ => {}
            }
        }
        self.add_compact()?;
        // Each of the three parts is in order.
        self.places.sort_by_key(|place| place.at);
        Ok(())
    }

    /// Gives its memory back.
    pub fn free(&mut self) {
        *self = Bundle::default();
    }

    pub fn place_at(&self, index: usize) -> Option<Place> {
        self.places.get(index).copied()
    }

    /// The time of the last event.
    pub fn end(&self) -> Option<u64> {
        Some(self.places.last()?.at)
    }

    pub fn event(&self, place: Place) -> Event<'_> {
        match place.what {
            What::Message { start, end } => Event::Message(&self.bytes[start as usize..end as usize]),
            What::Switch(index) => {
                Event::Switch(Switch { state: self.value(2, index) as i64, next: self.who(index, [3, 4, 6]) })
            }
            What::Waking(index) => Event::Waking(Waking {
                woken: self.who(index, [8, 10, 11]),
                flags: self.columns[12].get(index as usize).copied(),
            }),
        }
    }

    fn clear(&mut self) {
        (self.follows_loss, self.is_damaged, self.follows, self.untimed) = (false, false, None, 0);
        self.bytes.clear();
        self.places.clear();
        self.columns.iter_mut().for_each(Vec::clear);
        self.names.clear();
    }

    fn place(&mut self, whole: &[u8], event: &[u8]) {
        match time(event) {
            Some(at) => {
                let Range { start, end } = range(whole, event);
                let what = What::Message { start: start as u32, end: end as u32 };
                self.places.push(Place { at, what });
            }
            None => self.untimed += 1,
        }
    }

    fn columns(&mut self, whole: &[u8], compact: &[u8]) -> Result<(), Malformed> {
        for field in Fields::of(compact) {
            match field? {
                (5, Value::Bytes(name)) => self.names.push(range(whole, name)),
                (number, value) => {
                    if let Some(column) = self.columns.get_mut(number as usize) {
                        numbers(value, |number| column.push(number))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_compact(&mut self) -> Result<(), Malformed> {
        // Who is woken at the instant of a switch may be the next thread.
        let has_flags = !self.columns[12].is_empty();
        let wakings = [8, 9, 10, 11, 12];
        self.add(7, &wakings[..if has_flags { 5 } else { 4 }], What::Waking)?;
        self.add(1, &[2, 3, 4, 6], What::Switch)
    }

    /// Adds events with these times, each since the one before, whose other columns are as long.
    fn add(&mut self, times: usize, others: &[usize], what: fn(u32) -> What) -> Result<(), Malformed> {
        let count = self.columns[times].len();
        if others.iter().any(|column| self.columns[*column].len() != count) {
            return Err(Malformed);
        }
        let mut at = 0_u64;
        for (since, index) in self.columns[times].iter().zip(0..) {
            at = at.saturating_add(*since);
            self.places.push(Place { at, what: what(index) });
        }
        Ok(())
    }

    fn value(&self, column: usize, index: u32) -> u64 {
        self.columns[column].get(index as usize).copied().unwrap_or(0)
    }

    fn who(&self, index: u32, [tid, priority, name]: [usize; 3]) -> Who<'_> {
        let name = self.names.get(self.value(name, index) as usize).cloned().unwrap_or(0..0);
        Who {
            tid: self.value(tid, index) as i32,
            priority: self.value(priority, index) as i32,
            name: &self.bytes[name],
        }
    }
}

/// Where a part is.
fn range(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    start..start + part.len()
}

/// The time of an event, which stands at its beginning.
fn time(event: &[u8]) -> Option<u64> {
    let timestamp = Fields::of(event).map_while(Result::ok).find(|(number, _)| *number == 1);
    timestamp.and_then(|(_, value)| value.number())
}

/// What is known of a bundle before it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outline {
    pub cpu: u32,
    /// The first event.
    pub first: Option<u64>,
    /// The last one; 0 if there is none.
    pub last: u64,
    pub follows_loss: bool,
    pub follows: Option<u64>,
    /// The clock, by its number; 0 is CLOCK_BOOTTIME.
    pub clock: u64,
    /// Switches or wake-ups are in columns.
    pub has_columns: bool,
}

/// Looks through a bundle; `each` gets the number of every kind of event in it, `describe` the descriptions
/// of kinds that the recorder does not know.
pub fn outline<'b>(
    bundle: &'b [u8],
    mut each: impl FnMut(u32),
    mut describe: impl FnMut(&'b [u8]),
) -> Result<Outline, Malformed> {
    let mut outline = Outline::default();
    for field in Fields::of(bundle) {
        match field? {
            (1, Value::Number(cpu)) => outline.cpu = cpu as u32,
            (2, Value::Bytes(event)) => {
                outline.reach(time(event));
                kind(event).into_iter().for_each(&mut each);
            }
            (3, Value::Number(is_lost)) => outline.follows_loss = is_lost != 0,
            (4, Value::Bytes(compact)) => outline.compact(compact, &mut each)?,
            (5, Value::Number(clock)) => outline.clock = clock,
            // Before version 47 the time up to which the recorder had read, as good for the first bundle.
            (9, Value::Number(end)) => outline.follows = outline.follows.or(Some(end)),
            (10, Value::Number(end)) => outline.follows = Some(end),
            (11, Value::Bytes(description)) => describe(description),
            _ => {}
        }
    }
    Ok(outline)
}

impl Outline {
    fn reach(&mut self, at: Option<u64>) {
        let Some(at) = at else { return };
        self.first = Some(self.first.map_or(at, |first| first.min(at)));
        self.last = self.last.max(at);
    }

    fn compact(&mut self, compact: &[u8], each: &mut impl FnMut(u32)) -> Result<(), Malformed> {
        for field in Fields::of(compact) {
            let (number, value) = field?;
            let kind = match number {
                1 => super::events::SWITCH,
                7 => super::events::WAKING,
                _ => continue,
            };
            let (mut first, mut last) = (None, 0_u64);
            numbers(value, |since| {
                last = last.saturating_add(since);
                first.get_or_insert(since);
            })?;
            self.reach(first);
            self.reach(first.map(|_| last));
            first.iter().for_each(|_| each(kind));
            self.has_columns |= first.is_some();
        }
        Ok(())
    }
}

/// The number of the kind of an event: that of its only message.
pub fn kind(event: &[u8]) -> Option<u32> {
    let fields = Fields::of(event).map_while(Result::ok);
    fields.filter(|(_, value)| value.bytes().is_some()).map(|(number, _)| number).next()
}
