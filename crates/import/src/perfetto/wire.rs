//! The fields of a protocol buffer's message, one after the other and in place, so that a packet is read
//! without a tree of its messages.

use prost::encoding::{WireType, decode_varint};

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// A number, of a field that has one.
    pub fn number(self) -> Option<u64> {
        if let Value::Number(number) = self { Some(number) } else { None }
    }

    /// A message or a text.
    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Value::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// Bytes that are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// The fields of a message. The first that cannot be read is the last.
#[derive(Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message }
    }

    #[inline]
    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
        let value = match WireType::try_from(key & 7).ok()? {
            WireType::Varint => Value::Number(self.varint()?),
            WireType::SixtyFourBit => Value::Number(u64::from_le_bytes(*self.take(8)?.first_chunk()?)),
            WireType::ThirtyTwoBit => {
                Value::Number(u64::from(u32::from_le_bytes(*self.take(4)?.first_chunk()?)))
            }
            WireType::LengthDelimited => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some((number, value))
    }

    /// Most numbers have one byte.
    #[inline]
    fn varint(&mut self) -> Option<u64> {
        if let [byte @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Some(u64::from(*byte));
        }
        decode_varint(&mut self.rest).ok()
    }

    #[inline]
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or(Malformed))
    }
}

/// Hands on the numbers of a repeated field, which has them one by one or packed.
pub fn numbers(value: Value, mut each: impl FnMut(u64)) -> Result<(), Malformed> {
    match value {
        Value::Number(number) => each(number),
        Value::Bytes(mut packed) => {
            while !packed.is_empty() {
                each(decode_varint(&mut packed).map_err(|_| Malformed)?);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_up_to_the_first_that_is_broken() {
        let message = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0];
        let fields: Vec<_> = Fields::of(&message).collect();
        let expected =
            [(1, Value::Number(150)), (2, Value::Bytes(b"hi")), (3, Value::Number(1)), (4, Value::Number(2))];
        assert_eq!(fields, expected.map(Ok));
        for cut in [1, 2, 4, 5, 6, 9, 15] {
            assert_eq!(Fields::of(&message[..cut]).last(), Some(Err(Malformed)), "{cut}");
        }
        assert_eq!(Fields::of(&[0x0b]).collect::<Vec<_>>(), [Err(Malformed)]);
    }

    #[test]
    fn numbers_are_packed_or_not() {
        let all = |value| {
            let mut all = Vec::new();
            numbers(value, |number| all.push(number)).map(|()| all)
        };
        assert_eq!(all(Value::Number(7)), Ok(vec![7]));
        assert_eq!(all(Value::Bytes(&[1, 0x96, 0x01, 3])), Ok(vec![1, 150, 3]));
        assert_eq!(all(Value::Bytes(&[0x96])), Err(Malformed));
    }
}
