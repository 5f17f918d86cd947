//! Reads what PID 1 of a machine sends; see `guest/init.c`.

use std::io::{self, Read};

/// One packet of the channel.
#[derive(Debug, PartialEq)]
pub enum Packet {
    /// Standard output of the job.
    Output(Vec<u8>),
    /// Standard error of the job.
    Errors(Vec<u8>),
    /// A record of the kernel's log, as `/dev/kmsg` has it.
    Log(Vec<u8>),
    /// The kernel's release.
    Release(String),
    /// An error of PID 1.
    Complaint(String),
    /// How the job ended: its wait status. The last packet.
    Status(i32),
}

/// The next packet; `None` at the end of the channel, which is the end of the machine.
pub fn next(channel: &mut impl Read) -> io::Result<Option<Packet>> {
    let mut header = [0; 5];
    match channel.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]);
    // PID 1 sends what it reads at once; anything larger is not one of its packets.
    if length > 64 << 10 {
        return Err(not_ours(format!("a packet of {length} bytes")));
    }
    let mut bytes = vec![0; length as usize];
    match channel.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(match header[0] {
        b'o' => Packet::Output(bytes),
        b'e' => Packet::Errors(bytes),
        b'k' => Packet::Log(bytes),
        b'r' => Packet::Release(text(bytes)),
        b'!' => Packet::Complaint(text(bytes)),
        b's' => match <[u8; 4]>::try_from(bytes.as_slice()) {
            Ok(status) => Packet::Status(i32::from_le_bytes(status)),
            Err(_) => return Err(not_ours(format!("a status of {length} bytes"))),
        },
        other => return Err(not_ours(format!("a packet of type {other:#x}"))),
    }))
}

fn not_ours(what: String) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the channel has {what}: something else than PID 1 writes to it"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_one_by_one_until_the_machine_is_gone() {
        let mut bytes: &[u8] = b"r\x03\0\0\x006.1o\x05\0\0\0hellos\x04\0\0\0\0\x02\0\0o\xff\0\0\0cut";
        assert_eq!(next(&mut bytes).unwrap(), Some(Packet::Release("6.1".into())));
        assert_eq!(next(&mut bytes).unwrap(), Some(Packet::Output(b"hello".to_vec())));
        assert_eq!(next(&mut bytes).unwrap(), Some(Packet::Status(2 << 8)));
        assert_eq!(next(&mut bytes).unwrap(), None, "a packet that was cut off says nothing");
    }

    #[test]
    fn invalid_packets_are_errors() {
        assert!(next(&mut &b"[    0.000000] Linux version 6.1"[..]).is_err());
        assert!(next(&mut &b"z\x01\0\0\0a"[..]).is_err());
        assert!(next(&mut &b"s\x01\0\0\0a"[..]).is_err());
    }
}
