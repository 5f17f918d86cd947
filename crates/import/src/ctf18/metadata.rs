//! The file `metadata`: text, or text in packets as LTTng writes it.

/// What a packet of metadata begins with.
const MAGIC: u32 = 0x75D1_1D57;
/// Bytes of its header: magic, UUID, checksum, sizes, and how it is packed.
const HEADER: usize = 37;

/// The text; or says why there is none.
pub fn text(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let Some(magic) = bytes.first_chunk::<4>() else { return Ok(bytes.to_vec()) };
    let is_big = match (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)) {
        (MAGIC, _) => false,
        (_, MAGIC) => true,
        _ => return Ok(bytes.to_vec()),
    };
    let mut text = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let packet = &bytes[at..];
        let (content, size) = packet_sizes(packet, is_big).map_err(|why| format!("byte {at}: {why}"))?;
        text.extend_from_slice(&packet[HEADER..content]);
        at += size;
    }
    Ok(text)
}

/// Bytes in use, and in all.
fn packet_sizes(packet: &[u8], is_big: bool) -> Result<(usize, usize), &'static str> {
    let header: &[u8; HEADER] = packet.first_chunk().ok_or("a packet of metadata is cut off")?;
    let word = |at: usize| {
        let word = [header[at], header[at + 1], header[at + 2], header[at + 3]];
        if is_big { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    if word(0) != MAGIC {
        return Err("a packet of metadata should begin here");
    }
    if header[32..35] != [0; 3] {
        return Err("packets of metadata are compressed or encrypted, which is not read here");
    }
    let (content, size) = (word(24) as usize / 8, word(28) as usize / 8);
    if content < HEADER || content > size {
        return Err("a packet of metadata has an impossible size");
    }
    if content > packet.len() {
        return Err("the last packet of metadata is cut off");
    }
    Ok((content, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(text: &str, is_big: bool) -> Vec<u8> {
        let word = |word: u32| if is_big { word.to_be_bytes() } else { word.to_le_bytes() };
        let mut bytes = word(MAGIC).to_vec();
        bytes.extend([7; 16]);
        bytes.extend([word(0), word(8 * (HEADER + text.len()) as u32), word(8 * 256)].concat());
        bytes.extend([0, 0, 0, 1, 8]);
        bytes.extend(text.as_bytes());
        bytes.resize(256, 0);
        bytes
    }

    #[test]
    fn packets_are_put_together() {
        assert_eq!(text(b"/* CTF 1.8 */"), Ok(b"/* CTF 1.8 */".to_vec()));
        for is_big in [false, true] {
            let bytes = [packet("trace { ma", is_big), packet("jor = 1; };", is_big)].concat();
            assert_eq!(text(&bytes), Ok(b"trace { major = 1; };".to_vec()));
            let mut padded_last = bytes.clone();
            padded_last.truncate(256 + HEADER + 11);
            assert_eq!(text(&padded_last), Ok(b"trace { major = 1; };".to_vec()));
            assert!(text(&bytes[..256 + HEADER + 3]).is_err_and(|why| why.starts_with("byte 256")));
            assert!(text(&bytes[..256 + 9]).is_err());
        }
        let mut compressed = packet("x", false);
        compressed[32] = 1;
        assert!(text(&compressed).is_err_and(|why| why.contains("compressed")));
    }
}
