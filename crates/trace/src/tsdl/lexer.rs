//! Cuts TSDL into tokens.

/// Where the text stops making sense, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Byte in the file, from 0.
    pub offset: usize,
    /// Why.
    pub what: &'static str,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A name or a number.
    Word(&'a [u8]),
    /// A string, without its quotes.
    Text(String),
    /// Anything else.
    Sign(u8),
}

/// Cuts the text into tokens. Comments are left out.
pub struct Lexer<'a> {
    /// The text.
    pub bytes: &'a [u8],
    /// The byte that comes next.
    pub at: usize,
    /// The first error.
    pub error: Option<SyntaxError>,
}

impl<'a> Lexer<'a> {
    /// Begins with the first byte.
    pub fn new(bytes: &'a [u8]) -> Lexer<'a> {
        Lexer { bytes, at: 0, error: None }
    }

    /// Notes an error, unless there is one before it.
    pub fn fail(&mut self, offset: usize, what: &'static str) {
        self.error.get_or_insert(SyntaxError { offset, what });
    }

    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The byte that the next token begins with.
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            let rest = self.rest();
            let length = match rest {
                [b'/', b'*', comment @ ..] => match end_of_comment(comment) {
                    Some(end) => end + 2,
                    None => {
                        self.fail(self.at, "a comment does not end");
                        rest.len()
                    }
                },
                [b'/', b'/', ..] => memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                [first, ..] if first.is_ascii_whitespace() => 1,
                first => return first.first().copied(),
            };
            self.at += length;
        }
    }

    /// The next token.
    pub fn token(&mut self) -> Option<Token<'a>> {
        loop {
            match self.peek()? {
                b'"' => {
                    let string = self.string();
                    if string.is_some() {
                        return string.map(Token::Text);
                    }
                }
                first if is_part_of_word(first) => return self.accept_word().map(Token::Word),
                sign => {
                    self.at += 1;
                    return Some(Token::Sign(sign));
                }
            }
        }
    }

    /// Takes the sign if it comes next.
    pub fn accept(&mut self, sign: u8) -> bool {
        let is_next = self.peek() == Some(sign);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes a name or a number if one comes next.
    pub fn accept_word(&mut self) -> Option<&'a [u8]> {
        self.peek().filter(|first| is_part_of_word(*first))?;
        let rest = self.rest();
        let length = rest.iter().position(|byte| !is_part_of_word(*byte)).unwrap_or(rest.len());
        self.at += length;
        Some(&rest[..length])
    }

    /// Takes a name, a number or a string if one comes next.
    pub fn accept_label(&mut self) -> Option<String> {
        match self.peek() {
            Some(b'"') => self.string(),
            _ => self.accept_word().map(lossy),
        }
    }

    /// The string that begins here. One that does not end on its line is left out: at most that line is lost.
    pub fn string(&mut self) -> Option<String> {
        let (begin, mut plain) = (self.at, Vec::new());
        self.at += 1;
        loop {
            match self.rest() {
                [b'"', ..] => {
                    self.at += 1;
                    return Some(lossy(&plain));
                }
                [b'\\', b'n', ..] => {
                    plain.push(b'\n');
                    self.at += 2;
                }
                [b'\\', digits @ ..] if digits.first().is_some_and(|digit| (b'0'..=b'7').contains(digit)) => {
                    let digits =
                        digits.first_chunk::<3>().and_then(|digits| std::str::from_utf8(digits).ok());
                    match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
                        Some(byte) => {
                            plain.extend(char::from(byte).to_string().bytes());
                            self.at += 4;
                        }
                        None => {
                            self.fail(self.at, "an escape in a string is not one byte in octal");
                            self.at += 1;
                        }
                    }
                }
                [b'\\', byte, ..] if *byte != b'\n' => {
                    plain.push(*byte);
                    self.at += 2;
                }
                [] | [b'\n' | b'\\', ..] => {
                    self.fail(begin, "a string does not end");
                    self.at += usize::from(self.rest().first() == Some(&b'\\'));
                    return None;
                }
                [byte, ..] => {
                    plain.push(*byte);
                    self.at += 1;
                }
            }
        }
    }
}

pub fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Bytes of a comment after its opening, with its closing.
fn end_of_comment(comment: &[u8]) -> Option<usize> {
    let mut closings = memchr::memchr_iter(b'/', comment).filter(|at| *at > 0 && comment[at - 1] == b'*');
    closings.next().map(|at| at + 1)
}

fn is_part_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || matches!(byte, b'_' | b'.' | b'-' | b'+')
}

/// A number as C writes it; decimal or hexadecimal.
pub fn number(word: &str) -> Option<u64> {
    let word = word.trim_end_matches(['u', 'U', 'l', 'L']);
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}
