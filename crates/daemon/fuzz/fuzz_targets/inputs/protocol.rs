//! Sends an input over three connections, in the pieces that it asks for, to a daemon that tells the kernel
//! nothing, since its clients have no threads. Called by the fuzzer and by `tests/fuzz.rs`.
//!
//! The first byte selects the daemon's setup. Of the others, those below 8 are events, not bytes that are
//! sent; but 0 ends a message.

#[path = "protocol/books.rs"]
mod books;
#[path = "protocol/daemon.rs"]
mod daemon;
#[path = "protocol/setup.rs"]
mod setup;

use daemon::Daemon;

/// What came so far goes over the socket, as one piece.
const CUT: u8 = 1;
/// What follows comes over the next connection.
const NEXT: u8 = 2;
/// The client closes its connection, and connects again.
const CLOSE: u8 = 3;
/// So many spaces come, which mean nothing in JSON, and make a message long.
const SPACES: u8 = 4;
const HOW_MANY: usize = 16 << 10;
/// The client stops reading, or goes on.
const DEAF: u8 = 5;
/// Another configuration.
const RELOAD: u8 = 6;
/// The process of the first spec ends.
const END: u8 = 7;

/// What one input may make in all, so that none takes for ever.
const MOST_BYTES: usize = 1 << 20;

pub fn read(data: &[u8]) {
    let Some((&setup, data)) = data.split_first() else { return };
    let mut daemon = Daemon::start(setup);
    let plain: Vec<u8> = data.iter().copied().filter(|byte| matches!(byte, 0 | 8..)).collect();
    plain.split(|byte| *byte == 0).for_each(|message| daemon.reads_alike(message));
    let (mut at, mut piece, mut bytes) = (0, Vec::new(), 0);
    for &byte in data {
        match byte {
            SPACES if bytes < MOST_BYTES => {
                piece.resize(piece.len() + HOW_MANY, b' ');
                bytes += HOW_MANY;
            }
            SPACES => {}
            0 | 8.. => piece.push(byte),
            _ => {
                daemon.receive(at, &piece);
                piece.clear();
                match byte {
                    NEXT => at = (at + 1) % daemon::CLIENTS,
                    CLOSE => daemon.close(at),
                    DEAF => daemon.deafen(at),
                    RELOAD => daemon.reload(),
                    END => daemon.end_process(),
                    _ => assert_eq!(byte, CUT),
                }
            }
        }
    }
    daemon.receive(at, &piece);
    daemon.end();
}
