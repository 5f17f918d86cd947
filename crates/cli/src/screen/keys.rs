//! What is typed: the bytes of a terminal as keys.

use punctual_workflow::live::Key;

/// A key that was typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressed {
    /// For the view.
    Key(Key),
    /// Ctrl-Z, which is no signal on a raw terminal.
    Stop,
}

/// Whether the last key is not there as a whole, if more bytes follow at once.
pub fn is_open(bytes: &[u8]) -> bool {
    let cut = std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
    let escape = bytes.iter().rposition(|&byte| byte == ESCAPE).map(|at| &bytes[at + 1..]);
    cut || match escape {
        Some([] | [b'O' | b'[']) => true,
        Some([b'[', rest @ ..]) => !rest.iter().any(|byte| (0x40..=0x7e).contains(byte)),
        _ => false,
    }
}

const ESCAPE: u8 = 0x1b;

/// All keys, in order; what is none of the view's is left out. Whatever is typed together with Alt counts as
/// typed without.
pub fn keys(mut bytes: &[u8]) -> Vec<Pressed> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (key, length) = first(bytes);
        found.extend(key);
        bytes = &bytes[length.clamp(1, bytes.len())..];
    }
    found
}

/// The first key, and how many bytes it is.
fn first(bytes: &[u8]) -> (Option<Pressed>, usize) {
    let key = |key: Key| Some(Pressed::Key(key));
    match *bytes {
        [ESCAPE] => (key(Key::Escape), 1),
        // The first function keys of a console without graphics.
        [ESCAPE, b'[', b'[', last, ..] => (if last == b'A' { key(Key::Help) } else { None }, 4),
        [ESCAPE, b'[', ref rest @ ..] => {
            let is_last = |byte: &u8| (0x40..=0x7e).contains(byte);
            match rest.iter().position(is_last) {
                Some(end) => (sequence(&rest[..end], rest[end]).and_then(key), end + 3),
                None => (None, bytes.len()),
            }
        }
        [ESCAPE, b'O', last, ..] => (sequence(b"", last).and_then(key), 3),
        [ESCAPE, ..] | [] => (None, 1),
        [0x1a, ..] => (Some(Pressed::Stop), 1),
        [0x03, ..] => (key(Key::Interrupt), 1),
        [0x08 | 0x7f, ..] => (key(Key::Backspace), 1),
        [b'\n' | b'\r', ..] => (key(Key::Enter), 1),
        [b'\t', ..] => (key(Key::Tab), 1),
        _ => {
            let some = &bytes[..bytes.len().min(4)];
            let valid = some.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            let typed = valid.chars().next();
            let length = typed.map_or(1, char::len_utf8);
            (typed.filter(|it| !it.is_control()).and_then(|it| key(Key::Char(it))), length)
        }
    }
}

/// A key that terminals send as a sequence (xterm's, and those of its relatives), with numbers before its
/// last byte.
fn sequence(numbers: &[u8], last: u8) -> Option<Key> {
    let number = numbers.split(|&byte| byte == b';').next().unwrap_or_default();
    Some(match (last, number) {
        (b'A', _) => Key::Up,
        (b'B', _) => Key::Down,
        (b'C', _) => Key::Right,
        (b'D', _) => Key::Left,
        (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
        (b'F', _) | (b'~', b"4" | b"8") => Key::End,
        (b'~', b"5") => Key::PageUp,
        (b'~', b"6") => Key::PageDown,
        (b'P', _) | (b'~', b"11") => Key::Help,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(bytes: &[u8]) -> Vec<Key> {
        let key = |pressed| match pressed {
            Pressed::Key(key) => key,
            Pressed::Stop => panic!("{bytes:?}"),
        };
        keys(bytes).into_iter().map(key).collect()
    }

    #[test]
    fn what_terminals_send_is_keys() {
        assert_eq!(view("qé/".as_bytes()), [Key::Char('q'), Key::Char('é'), Key::Char('/')]);
        assert_eq!(
            view(b"\x1b[A\x1b[B\x1bOA\x1b[5~\x1b[6~"),
            [Key::Up, Key::Down, Key::Up, Key::PageUp, Key::PageDown]
        );
        assert_eq!(view(b"\x1b[H\x1b[F\x1b[1~\x1b[4~"), [Key::Home, Key::End, Key::Home, Key::End]);
        assert_eq!(
            view(b"\r\t\x7f\x08\x03"),
            [Key::Enter, Key::Tab, Key::Backspace, Key::Backspace, Key::Interrupt]
        );
        assert_eq!(view(b"\x1bOP\x1b[11~"), [Key::Help, Key::Help]);
        assert_eq!(view(b"\x1b"), [Key::Escape]);
        assert_eq!(view(b"\x1b[1;5A\x1b[[A\x1bq"), [Key::Up, Key::Help, Key::Char('q')]);
        assert_eq!(keys(b"\x1a"), [Pressed::Stop]);
        // Other controls, and what no terminal sends.
        assert_eq!(view(b"\x01\x1b[999~\xff\xfeq"), [Key::Char('q')]);
    }

    proptest::proptest! {
        #[test]
        fn whatever_comes_is_some_keys_or_none(bytes: Vec<u8>) {
            let _ = (keys(&bytes), is_open(&bytes));
        }
    }

    #[test]
    fn keys_that_are_cut_off_are_waited_for() {
        for whole in [&b"\x1b[A"[..], b"\x1bOP", b"\x1b[11~", "é".as_bytes(), "q😀".as_bytes()] {
            assert!(!is_open(whole), "{whole:?}");
            let last = whole.iter().rposition(|&byte| byte == ESCAPE || !byte.is_ascii()).unwrap();
            assert!(is_open(&whole[..whole.len() - 1]), "{whole:?} {last}");
        }
        assert!(!is_open(b"") && !is_open(b"q") && is_open(b"\x1b"));
    }
}
