//! CRC-32 (IEEE 802.3) of packets and metadata, and which single byte would explain one that does not match.

/// More explanations than this are none.
const MOST: usize = 4;

/// A byte that may have been changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    pub offset: usize,
    /// What it is now, and was before, differ in these bits.
    pub bits: u8,
}

/// The checksum of these bytes, the four at `field` counted as 0.
pub fn of(bytes: &[u8], field: usize) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes.get(..field).unwrap_or(bytes));
    if let Some(behind) = bytes.get(field + 4..) {
        hasher.update(&[0; 4]);
        hasher.update(behind);
    }
    hasher.finalize()
}

/// Which single byte of `length` may have been changed if the checksum differs in these bits: mostly one or
/// none, more by chance.
///
/// A CRC is linear: the difference of two checksums is what the difference of the two texts makes of a
/// register of zeros. A byte that differs sets the register to an entry of the table, and the zeros behind it
/// only shift that. So the difference is shifted back, byte by byte from the end, and wherever it is an entry
/// of the table a change of that byte explains it.
pub fn explain(difference: u32, length: usize) -> Vec<Changed> {
    let table = table();
    let mut by_top = [0_u8; 256];
    for (byte, entry) in (0..=255_u8).zip(table) {
        by_top[(entry >> 24) as usize] = byte;
    }
    let mut found = Vec::new();
    let mut register = difference;
    for offset in (0..length).rev() {
        let byte = by_top[(register >> 24) as usize];
        if table[usize::from(byte)] == register && byte != 0 {
            found.push(Changed { offset, bits: byte });
            if found.len() > MOST {
                return Vec::new();
            }
        }
        register = ((register ^ table[usize::from(byte)]) << 8) | u32::from(byte);
    }
    found
}

/// What a register of zeros becomes with each byte.
fn table() -> [u32; 256] {
    let mut table = [0; 256];
    for (byte, entry) in (0..256).zip(&mut table) {
        *entry = (0..8)
            .fold(byte, |register: u32, _| (register >> 1) ^ if register & 1 == 1 { 0xEDB8_8320 } else { 0 });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_is_found() {
        let text: Vec<u8> = (0..1000_u32).map(|i| (i * 7 % 251) as u8).collect();
        for offset in [0, 1, 4, 500, 998, 999] {
            for bits in [1, 0x80, 0xff] {
                let mut changed = text.clone();
                changed[offset] ^= bits;
                let difference = of(&text, 2000) ^ of(&changed, 2000);
                assert_eq!(explain(difference, text.len()), [Changed { offset, bits }]);
            }
        }
    }

    #[test]
    fn the_field_itself_counts_as_zeros() {
        assert_eq!(of(b"abcd\x01\x02\x03\x04efgh", 4), crc32fast::hash(b"abcd\0\0\0\0efgh"));
    }
}
