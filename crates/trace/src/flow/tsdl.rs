//! As much of TSDL, the language of `metadata`, as it takes to find values in it: words, blocks, assignments
//! and enumerations. What a block means is not known here, and a text that was cut off is read as far as it
//! goes.

use crate::ctf::metadata::unquoted;

/// A word of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or a number.
    Word(String),
    Text(String),
    Sign(char),
}

/// What stands in the text.
#[derive(Debug, Default)]
pub struct Values {
    /// `block.key` and its value, for every assignment in a block of the outermost level.
    assignments: Vec<(String, Value)>,
    /// Enumerations by name, in order.
    enumerations: Vec<(String, Vec<(String, u64)>)>,
    /// Whether everything that begins also ends.
    pub is_whole: bool,
}

/// What is assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    Text(String),
    /// Anything else.
    Word(String),
}

impl Values {
    pub fn read(text: &str) -> Values {
        let (tokens, is_whole) = tokens(text);
        let mut values = Values { is_whole, ..Values::default() };
        let mut blocks: Vec<String> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at..] {
                [Token::Word(word), ..] if word == "enum" => at = values.enumeration(&tokens, at + 1),
                [Token::Word(key), Token::Sign('='), value, Token::Sign(';'), ..] => {
                    if let [block] = &blocks[..] {
                        let value = match value {
                            Token::Text(text) => Some(Value::Text(text.clone())),
                            Token::Word(word) => Some(Value::Word(word.clone())),
                            Token::Sign(_) => None,
                        };
                        values.assignments.extend(value.map(|value| (format!("{block}.{key}"), value)));
                    }
                    at += 4;
                }
                [Token::Word(name), Token::Sign('{'), ..] => {
                    blocks.push(name.clone());
                    at += 2;
                }
                [Token::Sign('{'), ..] => {
                    blocks.push(String::new());
                    at += 1;
                }
                [Token::Sign('}'), ..] => {
                    values.is_whole &= blocks.pop().is_some();
                    at += 1;
                }
                _ => at += 1,
            }
        }
        values.is_whole &= blocks.is_empty();
        values
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.assignments.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            Value::Word(_) => None,
        }
    }

    pub fn word(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Word(word) => Some(word),
            Value::Text(_) => None,
        }
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        number(self.word(key)?)
    }

    /// All assignments in a block whose key is `prefix` and a number, in order of the text.
    pub fn numbered<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (u32, &'a Value)> + 'a {
        self.assignments
            .iter()
            .filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?.parse().ok()?, value)))
    }

    /// The labels of the first enumeration of this name, and what they stand for.
    pub fn enumeration_of(&self, name: &str) -> &[(String, u64)] {
        self.enumerations.iter().find(|(found, _)| found == name).map_or(&[], |(_, labels)| labels)
    }

    /// Reads `[NAME] [: TYPE] { LABEL [= NUMBER], … } [:=] [NAME]`; where it goes on behind.
    fn enumeration(&mut self, tokens: &[Token], mut at: usize) -> usize {
        let mut name = None;
        if let Some(Token::Word(word)) = tokens.get(at) {
            name = Some(word.clone());
            at += 1;
        }
        if tokens.get(at) == Some(&Token::Sign(':')) {
            at += 1;
            // The type: words, and for one written out a block of its own.
            let is_written_out = tokens.get(at) == Some(&Token::Word("integer".into()));
            while matches!(tokens.get(at), Some(Token::Word(_))) {
                at += 1;
            }
            if is_written_out && tokens.get(at) == Some(&Token::Sign('{')) {
                while !matches!(tokens.get(at), None | Some(Token::Sign('}'))) {
                    at += 1;
                }
                at += 1;
            }
        }
        if tokens.get(at) != Some(&Token::Sign('{')) {
            // It is only named here: `enum channel channel;`.
            return at;
        }
        at += 1;
        let (mut labels, mut next) = (Vec::new(), 0_u64);
        while let Some(Token::Word(label) | Token::Text(label)) = tokens.get(at) {
            at += 1;
            if let Some([Token::Sign('='), Token::Word(word)]) = tokens.get(at..at + 2) {
                next = number(word).unwrap_or(next);
                at += 2;
            }
            // A range, `= 3 ... 5`, stands for its first number here.
            while !matches!(tokens.get(at), None | Some(Token::Sign(',' | '}'))) {
                at += 1;
            }
            labels.push((label.clone(), next));
            next = next.saturating_add(1);
            if tokens.get(at) == Some(&Token::Sign(',')) {
                at += 1;
            }
        }
        if tokens.get(at) == Some(&Token::Sign('}')) {
            at += 1;
        } else {
            self.is_whole = false;
        }
        let is_alias = tokens.get(at..at + 2) == Some(&[Token::Sign(':'), Token::Sign('=')]);
        at += if is_alias { 2 } else { 0 };
        if let (None, Some(Token::Word(word))) = (&name, tokens.get(at)) {
            name = Some(word.clone());
        }
        self.enumerations.extend(name.map(|name| (name, labels)));
        at
    }
}

fn number(word: &str) -> Option<u64> {
    let word = word.trim_end_matches(['u', 'U', 'l', 'L']);
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The words of the text without comments, and whether its last text and comment end.
fn tokens(text: &str) -> (Vec<Token>, bool) {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(letter) = rest.chars().next() {
        let length = if rest.starts_with("/*") {
            match rest.find("*/") {
                Some(end) => end + 2,
                None => return (tokens, false),
            }
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if letter == '"' {
            let Some(length) = quoted_length(rest) else { return (tokens, false) };
            match unquoted(&rest[..length]) {
                Some(plain) => tokens.push(Token::Text(plain)),
                None => return (tokens, false),
            }
            length
        } else if is_part_of_word(letter) {
            let length = rest.find(|letter| !is_part_of_word(letter)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..length].to_owned()));
            length
        } else {
            if !letter.is_whitespace() {
                tokens.push(Token::Sign(letter));
            }
            letter.len_utf8()
        };
        rest = &rest[length..];
    }
    (tokens, true)
}

fn is_part_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-' | '+')
}

fn quoted_length(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|(_, letter)| {
        let ends = *letter == '"' && !is_escaped;
        is_escaped = *letter == '\\' && !is_escaped;
        ends
    });
    end.map(|(at, _)| at + 1)
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

    #[test]
    fn values_are_found() {
        let values = Values::read(TEXT);
        assert!(values.is_whole);
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
        assert_eq!(values.enumeration_of("channel"), channels);
        assert_eq!(values.enumeration_of("task").len(), 2);
        assert_eq!(values.enumeration_of("magic"), []);
    }

    #[test]
    fn a_text_that_was_cut_off_is_read_as_far_as_it_goes() {
        for (end, _) in TEXT.char_indices().filter(|(end, _)| *end < TEXT.len() - 2) {
            let values = Values::read(&TEXT[..end]);
            assert!(values.number("clock.freq").is_none_or(|frequency| frequency == 12_000_000), "{end}");
        }
        assert!(!Values::read(&TEXT[..TEXT.len() - 3]).is_whole);
    }
}
