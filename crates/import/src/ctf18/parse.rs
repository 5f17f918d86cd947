//! Parses TSDL whole: every type must be understood. Unknown attributes are passed over.

use super::document::{Clock, Document, EventClass, StreamClass};
use super::types::{self, Enumeration, Float, Integer, Label, Length, Location, MOST_NESTED, Roles, Type};
use punctual_trace::tsdl::{Lexer, Token, number};
use std::collections::HashMap;
use std::rc::Rc;

/// Where the text cannot be understood, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub offset: usize,
    pub what: String,
}

type Parsed<T> = Result<T, Problem>;

/// Reads the text of `metadata`.
pub fn parse(text: &[u8]) -> Parsed<Document> {
    let mut parser = Parser {
        lexer: Lexer::new(text),
        ahead: None,
        scopes: vec![HashMap::new()],
        nested: 0,
        document: Document::default(),
    };
    let parsed = parser.document();
    match (parser.lexer.error, parsed) {
        (Some(error), _) => Err(Problem { offset: error.offset, what: error.what.to_owned() }),
        (None, parsed) => parsed.map(|()| parser.document),
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: Option<Token<'a>>,
    /// Names of types, innermost scope last.
    scopes: Vec<HashMap<String, Type>>,
    nested: usize,
    document: Document,
}

/// What is assigned to a key in a block.
enum Setting {
    Value(String),
    Type(Type),
}

/// The assignments of a block, in order.
struct Block(Vec<(String, Setting)>);

impl Block {
    fn value(&self, key: &str) -> Option<&str> {
        self.0.iter().find_map(|(name, setting)| match setting {
            Setting::Value(value) if name == key => Some(value.as_str()),
            _ => None,
        })
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.value(key).and_then(number)
    }

    fn take(&mut self, key: &str) -> Option<Type> {
        let place =
            self.0.iter().position(|(name, setting)| name == key && matches!(setting, Setting::Type(_)))?;
        match self.0.swap_remove(place).1 {
            Setting::Type(found) => Some(found),
            Setting::Value(_) => None,
        }
    }
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, what: impl Into<String>) -> Parsed<T> {
        Err(Problem { offset: self.lexer.at, what: what.into() })
    }

    /// What was found here, or why it cannot be.
    fn here<T>(&self, found: Result<T, String>) -> Parsed<T> {
        found.map_err(|what| Problem { offset: self.lexer.at, what })
    }

    fn peek(&mut self) -> Option<&Token<'a>> {
        if self.ahead.is_none() {
            self.ahead = self.lexer.token();
        }
        self.ahead.as_ref()
    }

    fn take(&mut self) -> Option<Token<'a>> {
        self.peek();
        self.ahead.take()
    }

    fn accept(&mut self, sign: u8) -> bool {
        let is_next = self.peek() == Some(&Token::Sign(sign));
        if is_next {
            self.ahead = None;
        }
        is_next
    }

    fn expect(&mut self, sign: u8) -> Parsed<()> {
        match self.accept(sign) {
            true => Ok(()),
            false => self.fail(format!("there should be a {}", char::from(sign))),
        }
    }

    fn accept_word(&mut self, word: &[u8]) -> bool {
        let is_next = self.peek() == Some(&Token::Word(word));
        if is_next {
            self.ahead = None;
        }
        is_next
    }

    fn next_word(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        let word = String::from_utf8_lossy(word).into_owned();
        self.ahead = None;
        Some(word)
    }

    fn word(&mut self) -> Parsed<String> {
        match self.next_word() {
            Some(word) => Ok(word),
            None => self.fail("there should be a name"),
        }
    }

    fn enter(&mut self) -> Parsed<()> {
        self.nested += 1;
        if self.nested > MOST_NESTED {
            return self.fail("types are nested too deep");
        }
        self.scopes.push(HashMap::new());
        Ok(())
    }

    fn leave(&mut self) {
        self.nested -= 1;
        self.scopes.pop();
    }

    fn document(&mut self) -> Parsed<()> {
        while self.peek().is_some() {
            if self.accept(b';') || self.declaration()? {
                continue;
            }
            let kind = self.word()?;
            let block = self.block()?;
            match kind.as_str() {
                "trace" => self.trace(block),
                "env" => self.env(block),
                "clock" => self.clock(&block)?,
                "stream" => self.stream(block),
                "event" => self.event(block)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn trace(&mut self, mut block: Block) {
        self.document.is_big = matches!(block.value("byte_order"), Some("be" | "network"));
        self.document.packet_header = block.take("packet.header");
    }

    fn env(&mut self, block: Block) {
        for (key, setting) in block.0 {
            if let Setting::Value(value) = setting {
                self.document.env.insert(key, value);
            }
        }
    }

    fn clock(&mut self, block: &Block) -> Parsed<()> {
        let signed = |key: &str| block.value(key).and_then(integer).and_then(|it| i64::try_from(it).ok());
        let frequency = block.number("freq").unwrap_or(1_000_000_000);
        if frequency == 0 {
            return self.fail("a clock has no frequency");
        }
        self.document.clocks.push(Clock {
            name: block.value("name").unwrap_or_default().to_owned(),
            uuid: block.value("uuid").map(str::to_owned),
            frequency,
            offset_s: signed("offset_s").unwrap_or(0),
            offset_ticks: signed("offset").unwrap_or(0),
        });
        Ok(())
    }

    fn stream(&mut self, mut block: Block) {
        let class = StreamClass {
            packet_context: block.take("packet.context"),
            event_header: block.take("event.header"),
            event_context: block.take("event.context"),
        };
        self.document.streams.insert(block.number("id").unwrap_or(0), class);
    }

    fn event(&mut self, mut block: Block) -> Parsed<()> {
        let Some(name) = block.value("name").map(str::to_owned) else {
            return self.fail("an event has no name");
        };
        self.document.events.push(EventClass {
            name,
            id: block.number("id").unwrap_or(0),
            stream: block.number("stream_id").unwrap_or(0),
            context: block.take("context"),
            fields: block.take("fields"),
        });
        Ok(())
    }

    /// `{ KEY = VALUE; KEY := TYPE; … }`.
    fn block(&mut self) -> Parsed<Block> {
        self.expect(b'{')?;
        self.enter()?;
        let mut settings = Vec::new();
        while !self.accept(b'}') {
            if self.accept(b';') || self.declaration()? {
                continue;
            }
            let key = self.word()?;
            let setting = if self.accept(b':') {
                self.expect(b'=')?;
                Setting::Type(self.type_alone()?)
            } else {
                self.expect(b'=')?;
                Setting::Value(self.value()?)
            };
            self.expect(b';')?;
            settings.push((key, setting));
        }
        self.leave();
        Ok(Block(settings))
    }

    fn value(&mut self) -> Parsed<String> {
        match self.take() {
            Some(Token::Text(text)) => Ok(text),
            Some(Token::Word(word)) => Ok(String::from_utf8_lossy(word).into_owned()),
            _ => self.fail("there should be a value"),
        }
    }

    /// `typealias`, `typedef`, or a type that is declared with its name; false if there is something else.
    fn declaration(&mut self) -> Parsed<bool> {
        if self.accept_word(b"typealias") {
            let of = self.type_alone()?;
            self.expect(b':')?;
            self.expect(b'=')?;
            let name = self.words().join(" ");
            self.declare(name, of);
        } else if self.accept_word(b"typedef") {
            let (of, name) = self.type_and_name()?;
            let (name, of) = self.declarator(of, name)?;
            self.declare(name, of);
        } else if matches!(self.peek(), Some(Token::Word(b"struct" | b"enum" | b"variant"))) {
            self.type_alone()?;
        } else {
            return Ok(false);
        }
        self.expect(b';')?;
        Ok(true)
    }

    fn declare(&mut self, name: String, of: Type) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, of);
        }
    }

    fn lookup(&self, name: &str) -> Parsed<Type> {
        match self.scopes.iter().rev().find_map(|scope| scope.get(name)) {
            Some(found) => Ok(found.clone()),
            None => self.fail(format!("there is no type {name:?}")),
        }
    }

    /// Words up to a sign; those that say nothing here are left out.
    fn words(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        loop {
            match self.next_word() {
                Some(word) if word == "const" => {}
                Some(word) => words.push(word),
                None if self.accept(b'*') => {}
                None => return words,
            }
        }
    }

    fn type_alone(&mut self) -> Parsed<Type> {
        match self.written_out()? {
            Some(found) => Ok(found),
            None => {
                let words = self.words();
                self.lookup(&words.join(" "))
            }
        }
    }

    /// A type and the name of what has it, which is the last word.
    fn type_and_name(&mut self) -> Parsed<(Type, String)> {
        if let Some(found) = self.written_out()? {
            return Ok((found, self.word()?));
        }
        let mut words = self.words();
        match words.pop() {
            Some(name) => Ok((self.lookup(&words.join(" "))?, name)),
            None => self.fail("there should be a type"),
        }
    }

    /// `NAME [LENGTH]…`: the name, and its type.
    fn declarator(&mut self, of: Type, name: String) -> Parsed<(String, Type)> {
        let mut lengths = Vec::new();
        while self.accept(b'[') {
            lengths.push(self.word()?);
            self.expect(b']')?;
        }
        let wrap = |of: Type, length: String| match number(&length) {
            Some(length) => Type::array(1, of, Length::Fixed(length)),
            None => Type::array(1, of, Length::Of(Location::Named(length))),
        };
        Ok((name, self.here(lengths.into_iter().rev().try_fold(of, wrap))?))
    }

    /// A type that begins with a word of the language; `None` for a name.
    fn written_out(&mut self) -> Parsed<Option<Type>> {
        let found = if self.accept_word(b"integer") {
            Type::Integer(self.integer()?)
        } else if self.accept_word(b"floating_point") {
            Type::Float(self.float()?)
        } else if self.accept_word(b"string") {
            if self.peek() == Some(&Token::Sign(b'{')) {
                self.block()?;
            }
            Type::Text
        } else if self.accept_word(b"struct") {
            self.structure()?
        } else if self.accept_word(b"enum") {
            self.enumeration()?
        } else if self.accept_word(b"variant") {
            self.variant()?
        } else {
            return Ok(None);
        };
        Ok(Some(found))
    }

    fn integer(&mut self) -> Parsed<Integer> {
        let block = self.block()?;
        let Some(bits) = types::integer_bits(block.number("size")) else {
            return self.fail("an integer has not 1 to 64 bits");
        };
        let align = self.align(block.number("align").unwrap_or(if bits % 8 == 0 { 8 } else { 1 }))?;
        let signed = matches!(block.value("signed"), Some("true" | "TRUE" | "1"));
        // `clock.NAME.value`
        let roles = Roles { is_clock: block.value("map").is_some(), ..Roles::default() };
        Ok(Integer { bits, align, signed, is_big: is_big(&block), roles })
    }

    fn float(&mut self) -> Parsed<Float> {
        let block = self.block()?;
        let digits = |key| block.number(key).unwrap_or(0);
        let bits = self.here(types::float_bits(digits("exp_dig").saturating_add(digits("mant_dig"))))?;
        let align = self.align(block.number("align").unwrap_or(1))?;
        Ok(Float { bits, align, is_big: is_big(&block) })
    }

    fn align(&self, align: u64) -> Parsed<u64> {
        self.here(types::align(align))
    }

    /// Behind `struct`, `enum` or `variant`: the name, if there is one.
    fn name(&mut self) -> Option<String> {
        match self.peek() {
            Some(Token::Word(b"align")) => None,
            _ => self.next_word(),
        }
    }

    fn structure(&mut self) -> Parsed<Type> {
        let name = self.name();
        if self.peek() != Some(&Token::Sign(b'{')) {
            return self.lookup(&format!("struct {}", name.unwrap_or_default()));
        }
        let fields = self.fields()?;
        let mut least = 1;
        if self.accept_word(b"align") {
            self.expect(b'(')?;
            least = number(&self.word()?).unwrap_or(0);
            least = self.align(least)?;
            self.expect(b')')?;
        }
        let found = self.here(Type::structure(least, fields))?;
        if let Some(name) = name {
            self.declare(format!("struct {name}"), found.clone());
        }
        Ok(found)
    }

    /// `{ TYPE NAME, NAME; … }`.
    fn fields(&mut self) -> Parsed<Vec<(String, Type)>> {
        self.expect(b'{')?;
        self.enter()?;
        let mut fields = Vec::new();
        while !self.accept(b'}') {
            let is_declaration = matches!(self.peek(), Some(Token::Word(b"typealias" | b"typedef")));
            if self.accept(b';') || is_declaration && self.declaration()? {
                continue;
            }
            let (of, mut name) = match self.written_out()? {
                // `struct x { … };` declares a type and no field.
                Some(_) if self.accept(b';') => continue,
                Some(found) => (found, self.word()?),
                None => self.type_and_name()?,
            };
            loop {
                fields.push(self.declarator(of.clone(), name)?);
                if !self.accept(b',') {
                    break;
                }
                name = self.word()?;
            }
            self.expect(b';')?;
        }
        self.leave();
        Ok(fields)
    }

    fn enumeration(&mut self) -> Parsed<Type> {
        let name = self.next_word();
        let base = if self.accept(b':') { Some(self.type_alone()?) } else { None };
        if !self.accept(b'{') {
            return self.lookup(&format!("enum {}", name.unwrap_or_default()));
        }
        let integer = match base.map_or_else(|| self.lookup("int"), Ok)? {
            Type::Integer(integer) => integer,
            _ => return self.fail("an enumeration is not of integers"),
        };
        let labels = self.labels()?;
        let found = Type::Enumeration(Rc::new(Enumeration { integer, labels }));
        if let Some(name) = name {
            self.declare(format!("enum {name}"), found.clone());
        }
        Ok(found)
    }

    fn labels(&mut self) -> Parsed<Vec<Label>> {
        let (mut labels, mut next) = (Vec::new(), 0);
        while !self.accept(b'}') {
            let name = self.value()?;
            let (mut from, mut until) = (next, next);
            if self.accept(b'=') {
                (from, until) = self.range()?;
            }
            labels.push(Label { name, from, until });
            next = until.saturating_add(1);
            if !self.accept(b',') && self.peek() != Some(&Token::Sign(b'}')) {
                return self.fail("there should be a comma");
            }
        }
        Ok(labels)
    }

    /// `N`, or `N ... M` with or without spaces.
    fn range(&mut self) -> Parsed<(i128, i128)> {
        let mut text = self.word()?;
        while let Some(more) = self.next_word() {
            text.push_str(&more);
        }
        let (from, until) = text.split_once("...").unwrap_or((&text, &text));
        match (integer(from), integer(until)) {
            (Some(from), Some(until)) if from <= until => Ok((from, until)),
            _ => self.fail(format!("{text:?} is no range of numbers")),
        }
    }

    fn variant(&mut self) -> Parsed<Type> {
        let name = self.name();
        let tag = if self.accept(b'<') {
            let tag = self.word()?;
            self.expect(b'>')?;
            Some(Location::Named(tag))
        } else {
            None
        };
        let options = if self.peek() == Some(&Token::Sign(b'{')) {
            self.fields()?
        } else {
            match self.lookup(&format!("variant {}", name.as_deref().unwrap_or_default()))? {
                Type::Variant(found) => found.options.clone(),
                _ => return self.fail("this is no variant"),
            }
        };
        let found = self.here(Type::variant(tag, options, None))?;
        if let Some(name) = name {
            self.declare(format!("variant {name}"), found.clone());
        }
        Ok(found)
    }
}

fn is_big(block: &Block) -> Option<bool> {
    match block.value("byte_order")? {
        "be" | "network" => Some(true),
        "le" => Some(false),
        _ => None,
    }
}

/// A number with a sign.
fn integer(text: &str) -> Option<i128> {
    match text.strip_prefix('-') {
        Some(positive) => number(positive).map(|it| -i128::from(it)),
        None => number(text.trim_start_matches('+')).map(i128::from),
    }
}

#[cfg(test)]
mod tests;
