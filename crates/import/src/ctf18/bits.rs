//! Takes integers of any size off a packet, at any bit.

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The content of the packet has ended.
    End,
    /// It goes on behind the bytes at hand.
    More,
    /// The bytes cannot be what the metadata say.
    Nonsense(&'static str),
}

/// A part of a packet, and how far it has been read. Places are in bits from the packet's first.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a> {
    bytes: &'a [u8],
    /// Place of the first of these bytes.
    first: u64,
    at: u64,
    /// End of the content.
    end: u64,
}

impl<'a> Bits<'a> {
    /// `first` is a multiple of 8, and `at` not before it.
    pub fn new(bytes: &'a [u8], first: u64, at: u64, end: u64) -> Bits<'a> {
        Bits { bytes, first, at, end }
    }

    pub fn at(&self) -> u64 {
        self.at
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    #[inline]
    pub fn align(&mut self, align: u64) {
        self.at = self.at.saturating_add(align - 1) & !(align - 1);
    }

    /// Where in the bytes something of so many bits is that comes next.
    #[inline]
    fn claim(&mut self, bits: u64) -> Result<u64, Stop> {
        let (from, until) = (self.at, self.at.saturating_add(bits));
        if until > self.end {
            return Err(Stop::End);
        }
        if until > self.first + 8 * self.bytes.len() as u64 {
            return Err(Stop::More);
        }
        self.at = until;
        Ok(from - self.first)
    }

    /// An unsigned integer of 1 to 64 bits.
    #[inline]
    pub fn unsigned(&mut self, bits: u32, is_big: bool) -> Result<u64, Stop> {
        let place = self.claim(u64::from(bits))?;
        let (byte, bit) = ((place / 8) as usize, (place % 8) as u32);
        if bit == 0 && bits % 8 == 0 {
            return Ok(whole(&self.bytes[byte..byte + bits as usize / 8], is_big));
        }
        // At most nine bytes.
        let bytes = &self.bytes[byte..byte + (bit + bits).div_ceil(8) as usize];
        let mask = u64::MAX >> (64 - bits);
        let value = if is_big {
            let value = bytes.iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
            value >> (8 * bytes.len() as u32 - bit - bits)
        } else {
            let value = bytes.iter().rev().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
            value >> bit
        };
        Ok(value as u64 & mask)
    }

    /// An integer in LEB128, and how many bits of it there are: seven in each byte.
    pub fn variable(&mut self, signed: bool) -> Result<(u64, u32), Stop> {
        let (mut value, mut bits) = (0_u128, 0);
        loop {
            let byte = self.unsigned(8, false)?;
            value |= u128::from(byte & 0x7F) << bits;
            bits += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if bits >= 70 {
                return Err(Stop::Nonsense("an integer has more than 64 bits"));
            }
        }
        let unused = 128 - bits;
        let found = match signed {
            true => i64::try_from((value << unused) as i128 >> unused).ok().map(|value| value as u64),
            false => u64::try_from(value).ok(),
        };
        found.map(|value| (value, bits)).ok_or(Stop::Nonsense("an integer has more than 64 bits"))
    }

    /// So many whole bytes: their place among the bytes at hand.
    #[inline]
    pub fn bytes(&mut self, length: u64) -> Result<(usize, usize), Stop> {
        let place = self.claim(length.saturating_mul(8))?;
        Ok(((place / 8) as usize, length as usize))
    }

    /// Bytes up to a zero, which is passed over.
    #[inline]
    pub fn text(&mut self) -> Result<(usize, usize), Stop> {
        let from = ((self.at - self.first) / 8) as usize;
        let rest = self.bytes.get(from..).ok_or(Stop::More)?;
        let left = ((self.end.saturating_sub(self.at)) / 8).min(rest.len() as u64) as usize;
        match memchr::memchr(0, &rest[..left]) {
            Some(length) => {
                self.at += 8 * (length as u64 + 1);
                Ok((from, length))
            }
            None if left < rest.len() || self.end <= self.first + 8 * self.bytes.len() as u64 => {
                Err(Stop::End)
            }
            None => Err(Stop::More),
        }
    }
}

#[inline]
fn whole(bytes: &[u8], is_big: bool) -> u64 {
    if let (false, Ok(eight)) = (is_big, <[u8; 8]>::try_from(bytes)) {
        return u64::from_le_bytes(eight);
    }
    if let (false, Ok(four)) = (is_big, <[u8; 4]>::try_from(bytes)) {
        return u64::from(u32::from_le_bytes(four));
    }
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    if is_big { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One bit after the other, as the standard defines them.
    fn slow(bytes: &[u8], at: u64, bits: u32, is_big: bool) -> u64 {
        let bit = |at: u64| {
            let byte = bytes[(at / 8) as usize];
            u64::from(if is_big { byte >> (7 - at % 8) & 1 } else { byte >> (at % 8) & 1 })
        };
        (0..u64::from(bits)).fold(0, |value, index| match is_big {
            true => value << 1 | bit(at + index),
            false => value | bit(at + index) << index,
        })
    }

    proptest! {
        #[test]
        fn integers_are_where_the_standard_puts_them(
            bytes in proptest::collection::vec(any::<u8>(), 20),
            at in 0_u64..90,
            bits in 1_u32..=64,
            is_big in any::<bool>(),
        ) {
            let mut read = Bits::new(&bytes, 0, at, 160);
            let expected = slow(&bytes, at, bits, is_big);
            prop_assert_eq!(read.unsigned(bits, is_big), Ok(expected));
            prop_assert_eq!(read.at(), at + u64::from(bits));
        }
    }

    #[test]
    fn variable_integers_end_where_a_byte_says_so() {
        let read = |bytes: &[u8], signed| Bits::new(bytes, 0, 0, 8 * bytes.len() as u64).variable(signed);
        assert_eq!(read(&[0xE5, 0x8E, 0x26], false), Ok((624_485, 21)));
        assert_eq!(read(&[0xC0, 0xBB, 0x78], true), Ok((-123_456_i64 as u64, 21)));
        assert_eq!((read(&[0x7F], false), read(&[0x7F], true)), (Ok((127, 7)), Ok((u64::MAX, 7))));
        let most = [[0xFF; 9].as_slice(), &[1]].concat();
        assert_eq!(read(&most, false), Ok((u64::MAX, 70)));
        assert!(matches!(read(&most, true), Err(Stop::Nonsense(_))));
        let least = [[0x80; 9].as_slice(), &[0x7F]].concat();
        assert_eq!(read(&least, true), Ok((i64::MIN as u64, 70)));
        assert!(matches!(read(&least, false), Err(Stop::Nonsense(_))));
        assert!(matches!(read(&[0x80; 20], false), Err(Stop::Nonsense(_))));
        assert_eq!(read(&[0x80; 3], false), Err(Stop::End));
    }

    #[test]
    fn ends_are_told_apart() {
        let mut bits = Bits::new(b"ab\0c", 8, 8, 8 * 5);
        assert_eq!(bits.text(), Ok((0, 2)));
        assert_eq!(bits.text(), Err(Stop::End));
        assert_eq!(bits.bytes(1), Ok((3, 1)));
        assert_eq!(bits.bytes(1), Err(Stop::End));
        let mut bits = Bits::new(b"abc", 0, 8, 80);
        assert_eq!(
            (bits.text(), bits.bytes(3), bits.bytes(u64::MAX)),
            (Err(Stop::More), Err(Stop::More), Err(Stop::End))
        );
    }
}
