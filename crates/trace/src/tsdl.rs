//! Reads the values in a CTF trace's `metadata`, and quotes strings for it. The file is written in TSDL;
//! this parser knows blocks, assignments and enumerations, and skips the rest.
//!
//! It never gives up: a damaged or truncated text yields every value that can still be read, together with
//! the first syntax error.

mod lexer;

use lexer::lossy;
pub use lexer::{Lexer, SyntaxError, Token, number};
use std::fmt::Write as _;

/// The name of the file in a trace's folder.
pub const METADATA: &str = "metadata";
/// Deepest nesting of blocks. Our own metadata nests three deep.
const MAX_NESTING: usize = 32;
/// Blocks that stand at the outermost level only: where one begins, every block before it has ended.
const OUTERMOST: [&[u8]; 5] = [b"trace", b"env", b"clock", b"stream", b"event"];

/// A string literal. TSDL's are those of C, so NULs are left out.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars().filter(|letter| *letter != '\0') {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\u{1}'..'\u{20}' | '\u{7f}' => {
                let _ = write!(quoted, "\\{:03o}", letter as u32);
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// What is assigned to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string, without its quotes.
    Text(String),
    /// A name or a number.
    Word(String),
}

impl Value {
    /// Without its quotes.
    pub fn as_str(&self) -> &str {
        match self {
            Value::Text(text) | Value::Word(text) => text,
        }
    }
}

/// The values in the file.
#[derive(Debug, Default)]
pub struct Values {
    /// `block.key` and its value, for every assignment directly in an outermost block.
    assignments: Vec<(String, Value)>,
    /// Enumerations by name, in order of appearance.
    enumerations: Vec<(String, Vec<(String, u64)>)>,
    /// The first syntax error.
    pub error: Option<SyntaxError>,
}

impl Values {
    /// Reads as much of the file as makes sense.
    pub fn parse(bytes: &[u8]) -> Values {
        let mut parser = Parser { lexer: Lexer::new(bytes), values: Values::default(), block: None };
        parser.statements();
        Values { error: parser.lexer.error, ..parser.values }
    }

    /// The value of `block.key`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.assignments.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The same, if it is a string.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            Value::Word(_) => None,
        }
    }

    /// The same, if it is a name or a number.
    pub fn word(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Word(word) => Some(word),
            Value::Text(_) => None,
        }
    }

    /// The same, if it is a number.
    pub fn number(&self, key: &str) -> Option<u64> {
        number(self.word(key)?)
    }

    /// All assignments whose key is `prefix` and a number, in order of appearance.
    pub fn numbered<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (u32, &'a Value)> + 'a {
        self.assignments
            .iter()
            .filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?.parse().ok()?, value)))
    }

    /// Labels and values of the first enumeration of this name.
    pub fn enumeration(&self, name: &str) -> &[(String, u64)] {
        self.enumerations.iter().find(|(found, _)| found == name).map_or(&[], |(_, labels)| labels)
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    values: Values,
    /// The outermost block that is open, and how many are open in all.
    block: Option<(&'a [u8], usize)>,
}

impl<'a> Parser<'a> {
    fn statements(&mut self) {
        while let Some(token) = self.lexer.token() {
            match token {
                Token::Word(b"enum") => self.enumeration(),
                Token::Word(word) => self.word(word),
                Token::Sign(b'{') => self.open(b""),
                Token::Sign(b'}') => self.close(),
                Token::Text(_) | Token::Sign(_) => {}
            }
            if self.block.as_ref().is_some_and(|(_, depth)| *depth > MAX_NESTING) {
                return self.lexer.fail(self.lexer.at, "blocks are nested too deep");
            }
        }
        if self.block.is_some() {
            self.lexer.fail(self.lexer.bytes.len(), "a block does not end");
        }
    }

    /// `WORD {`, `WORD = VALUE ;`, or a word of something that is skipped.
    fn word(&mut self, mut key: &'a [u8]) {
        if self.lexer.accept(b'{') {
            return self.open(key);
        }
        while self.lexer.accept(b'=') {
            let value = match self.lexer.token() {
                Some(value @ (Token::Text(_) | Token::Word(_))) => value,
                Some(Token::Sign(b'{')) => return self.open(b""),
                Some(Token::Sign(b'}')) => return self.close(),
                Some(Token::Sign(_)) | None => return,
            };
            if self.lexer.accept(b';') {
                if let Some((block, 1)) = self.block {
                    let key = format!("{}.{}", lossy(block), lossy(key));
                    let value = match value {
                        Token::Text(text) => Value::Text(text),
                        Token::Word(word) => Value::Word(lossy(word)),
                        Token::Sign(_) => return,
                    };
                    self.values.assignments.push((key, value));
                }
                return;
            }
            // The value is damaged, and this is the next line's key.
            match value {
                Token::Word(word) => key = word,
                Token::Text(_) | Token::Sign(_) => return,
            }
        }
    }

    fn open(&mut self, name: &'a [u8]) {
        if self.block.is_some() && OUTERMOST.contains(&name) {
            self.lexer.fail(self.lexer.at, "the block before this one does not end");
            self.block = None;
        }
        match &mut self.block {
            Some((_, depth)) => *depth += 1,
            None => self.block = Some((name, 1)),
        }
    }

    fn close(&mut self) {
        match &mut self.block {
            Some((_, 1)) => self.block = None,
            Some((_, depth)) => *depth -= 1,
            None => self.lexer.fail(self.lexer.at - 1, "this closes no block"),
        }
    }

    /// The rest of `enum [NAME] [: TYPE] { LABEL [= NUMBER], … } [:=] [NAME]`.
    fn enumeration(&mut self) {
        let mut name = self.lexer.accept_word();
        if self.lexer.accept(b':') {
            // The type: a name, or an integer with its properties in a block.
            let mut is_written_out = false;
            while let Some(word) = self.lexer.accept_word() {
                is_written_out |= word == b"integer";
            }
            if is_written_out && self.lexer.accept(b'{') {
                while !matches!(self.lexer.token(), None | Some(Token::Sign(b'}'))) {}
            }
        }
        if !self.lexer.accept(b'{') {
            // A use of one that is declared elsewhere: `enum channel channel;`.
            return;
        }
        let labels = self.labels();
        if !self.lexer.accept(b'}') {
            self.lexer.fail(self.lexer.at, "an enumeration does not end");
        }
        let _is_alias = self.lexer.accept(b':') && self.lexer.accept(b'=');
        name = name.or_else(|| self.lexer.accept_word());
        self.values.enumerations.extend(name.map(|name| (lossy(name), labels)));
    }

    fn labels(&mut self) -> Vec<(String, u64)> {
        let (mut labels, mut next) = (Vec::new(), 0_u64);
        while let Some(label) = self.lexer.accept_label() {
            if self.lexer.accept(b'=') {
                next = self.lexer.accept_word().and_then(|word| number(&lossy(word))).unwrap_or(next);
            }
            // Of a range, `= 3 ... 5`, the first number counts.
            while !matches!(self.lexer.peek(), None | Some(b',' | b'}')) {
                self.lexer.token();
            }
            labels.push((label, next));
            next = next.saturating_add(1);
            self.lexer.accept(b',');
        }
        labels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"/* CTF 1.8 */
trace { major = 1; byte_order = be; packet.header := struct { integer { size = 32; } magic; }; };
env { domain = "dataflow"; tracer_major = 1; producer_1 = "a; \"timer\" }"; producer_0 = "x"; }; // env
clock { name = monotonic; freq = 12000000; offset = 0x10; };
enum channel : integer { size = 16; } { "one", two = 5, "th\"ree", "four" = 9, };
typealias enum : uint16_t { a = 0, b = 1 } := task;
event { fields := struct { enum channel channel; }; };
"#;

    fn parse(text: &str) -> Values {
        Values::parse(text.as_bytes())
    }

    #[test]
    fn finds_values() {
        let values = parse(TEXT);
        assert_eq!(values.error, None);
        assert_eq!(values.word("trace.byte_order"), Some("be"));
        assert_eq!(
            (values.text("env.domain"), values.number("env.tracer_major")),
            (Some("dataflow"), Some(1))
        );
        assert_eq!(
            (values.number("clock.freq"), values.number("clock.offset")),
            (Some(12_000_000), Some(16))
        );
        let producers: Vec<_> = values.numbered("env.producer_").map(|(number, _)| number).collect();
        assert_eq!(producers, [1, 0]);
        assert_eq!(values.text("env.producer_1"), Some("a; \"timer\" }"));
        let channels = [("one", 0), ("two", 5), ("th\"ree", 6), ("four", 9)]
            .map(|(name, number)| (name.to_owned(), number));
        assert_eq!(values.enumeration("channel"), channels);
        assert_eq!(values.enumeration("task").len(), 2);
        assert_eq!(values.enumeration("magic"), []);
    }

    #[test]
    fn reads_a_truncated_text_up_to_the_cut() {
        for (end, _) in TEXT.char_indices().filter(|(end, _)| *end < TEXT.len() - 2) {
            let values = parse(&TEXT[..end]);
            assert!(values.number("clock.freq").is_none_or(|frequency| frequency == 12_000_000), "{end}");
        }
        let cut = parse(&TEXT[..TEXT.len() - 3]);
        assert_eq!(cut.error, Some(SyntaxError { offset: TEXT.len() - 3, what: "a block does not end" }));
    }

    #[test]
    fn reads_quoted_strings_back() {
        for text in ["", "plain", "\"quotes\" and \\", "line\nbreak", "\u{1}\u{7f}1", "ünïcode ☃"] {
            let values = parse(&format!("env {{ key = {}; }};", quoted(text)));
            assert_eq!((values.text("env.key"), values.error), (Some(text), None));
        }
        assert_eq!(quoted("a\0b"), "\"ab\"");
    }

    #[test]
    fn errors_have_offsets_and_cost_one_value() {
        let broken = [
            ("env {\n\ta = \"1;\n\tb = \"2\";\n\tc = 3;\n};\n", 11, "a string does not end"),
            ("env {\n\ta = ;\n\tb = \"2\";\n\tc = 3;\n};};\n", 33, "this closes no block"),
            ("x {\nenv {\n\tb = \"2\";\n\tc = 3;\n};\n", 9, "the block before this one does not end"),
            ("env {\n\tb = \"2\";\n\tc = 3;\n};\n/* x", 27, "a comment does not end"),
            (
                "env {\n\ta = \"\\9\\0x\";\n\tb = \"2\";\n\tc = 3;\n};\n",
                14,
                "an escape in a string is not one byte in octal",
            ),
        ];
        for (text, offset, what) in broken {
            let values = parse(text);
            assert_eq!(values.error, Some(SyntaxError { offset, what }), "{text:?}");
            assert_eq!((values.text("env.b"), values.number("env.c")), (Some("2"), Some(3)), "{text:?}");
        }
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |depth: usize| format!("env {{ a = 1; {}{}}};", "x {".repeat(depth), "};".repeat(depth));
        assert_eq!(parse(&nested(MAX_NESTING - 1)).error, None);
        let values = parse(&nested(100_000));
        assert_eq!(values.error.map(|error| error.what), Some("blocks are nested too deep"));
        assert_eq!(values.number("env.a"), Some(1));
    }
}
