//! TSDL → declarations: the metadata's syntax, before names are resolved.
//!
//! From the Common Trace Format's specification 1.8.3, appendix C; of C's declarators those that tracers write (no
//! pointers).

use std::collections::HashMap;

use super::lexer::{Lexer, Token};

/// Types in types. Real ones have five.
pub(super) const MOST_DEPTH: usize = 32;
/// Parts of all types together: an alias that doubles another doubles again and again in a few lines.
pub(super) const MOST_PARTS: usize = 1 << 18;

/// A type as declared.
#[derive(Clone, Debug)]
pub(super) enum Declared {
    Number(Number),
    Text,
    Struct {
        fields: Vec<(String, Declared)>,
        align: u32,
    },
    /// `tag` names a field that says which of the options is there.
    Variant {
        tag: Option<String>,
        options: Vec<Choice>,
    },
    Array {
        of: Box<Declared>,
        length: Length,
    },
}

/// An option of a variant.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub name: String,
    /// Values of the tag that choose it; without any, those that have its name for a label.
    pub ranges: Vec<(i128, i128)>,
    pub of: Declared,
}

/// An integer, an enumeration or a floating-point number.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub size: u32,
    pub align: u32,
    pub is_signed: bool,
    /// `None`: the trace's.
    pub is_big: Option<bool>,
    /// Whether it reads the clock.
    pub is_clock: bool,
    /// Of an enumeration: labels with their ranges, both ends included.
    pub labels: Vec<(String, i128, i128)>,
}

#[derive(Clone, Debug)]
pub(super) enum Length {
    Fixed(u64),
    /// Of a field before it.
    Named(String),
}

/// The blocks of the metadata.
#[derive(Default)]
pub(super) struct Metadata {
    pub trace: Option<Block>,
    pub env: Block,
    pub clocks: Vec<Block>,
    pub streams: Vec<Block>,
    pub events: Vec<Block>,
}

/// What one block says.
#[derive(Default)]
pub(super) struct Block {
    pub values: HashMap<String, Value>,
    pub types: HashMap<String, Declared>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Number(i128),
    /// Quoted, or a name.
    Text(String),
}

impl Block {
    pub fn number(&self, key: &str) -> Option<i128> {
        match self.values.get(key) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// Reads all of it, or says where and why not.
pub(super) fn parse(text: &str) -> Result<Metadata, String> {
    let mut lexer = Lexer::new(text);
    let next = lexer.next()?;
    let mut parser = Parser { lexer, next, aliases: HashMap::new(), parts: 0, depth: 0 };
    let mut metadata = Metadata::default();
    loop {
        let word = match &parser.next {
            Token::End => return Ok(metadata),
            Token::Word(word) => *word,
            Token::Sign(';') => {
                parser.advance()?;
                continue;
            }
            _ => return Err(parser.unexpected("a declaration")),
        };
        match word {
            "trace" | "env" | "clock" | "stream" | "event" | "callsite" => {
                parser.advance()?;
                let block = parser.block()?;
                match word {
                    "trace" => metadata.trace = Some(block),
                    "env" => metadata.env = block,
                    "clock" => metadata.clocks.push(block),
                    "stream" => metadata.streams.push(block),
                    "event" => metadata.events.push(block),
                    _ => {}
                }
            }
            _ => parser.definition()?,
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    next: Token<'a>,
    /// By name: "uint8_t", "unsigned long", "struct packet_context".
    aliases: HashMap<String, Declared>,
    parts: usize,
    depth: usize,
}

const KEYWORDS: [&str; 6] = ["integer", "floating_point", "string", "struct", "variant", "enum"];

impl<'a> Parser<'a> {
    fn advance(&mut self) -> Result<Token<'a>, String> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn unexpected(&self, wanted: &str) -> String {
        format!("line {}: {wanted} is wanted, not {}", self.lexer.line, self.next)
    }

    fn is(&self, sign: char) -> bool {
        self.next == Token::Sign(sign)
    }

    fn sign(&mut self, sign: char) -> Result<(), String> {
        if !self.is(sign) {
            return Err(self.unexpected(&format!("{sign:?}")));
        }
        self.advance().map(drop)
    }

    fn word(&mut self) -> Result<&'a str, String> {
        match self.next {
            Token::Word(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    fn is_keyword(&self) -> bool {
        matches!(self.next, Token::Word(word) if KEYWORDS.contains(&word))
    }

    /// `{ key = value; key := type; … } ;`
    fn block(&mut self) -> Result<Block, String> {
        let mut block = Block::default();
        self.sign('{')?;
        while !self.is('}') {
            if matches!(self.next, Token::Word("typealias" | "typedef")) || self.is_keyword() {
                self.definition()?;
                continue;
            }
            let key = self.path()?;
            if self.next == Token::Becomes {
                self.advance()?;
                let declared = self.whole_type(|token| *token == Token::Sign(';'))?;
                block.types.insert(key, declared);
            } else {
                self.sign('=')?;
                let value = self.value()?;
                block.values.insert(key, value);
            }
            self.sign(';')?;
        }
        self.sign('}')?;
        if self.is(';') {
            self.sign(';')?;
        }
        Ok(block)
    }

    /// `a.b.c`; a key may be quoted, too.
    fn path(&mut self) -> Result<String, String> {
        if let Token::Text(text) = &self.next {
            let text = text.clone();
            self.advance()?;
            return Ok(text);
        }
        let mut path = self.word()?.to_owned();
        while self.is('.') {
            self.advance()?;
            path = format!("{path}.{}", self.word()?);
        }
        Ok(path)
    }

    fn value(&mut self) -> Result<Value, String> {
        match &self.next {
            Token::Number(number) => {
                let number = *number;
                self.advance()?;
                Ok(Value::Number(number))
            }
            Token::Text(_) | Token::Word(_) => self.path().map(Value::Text),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// A type that is given a name: an alias, or a structure and the like with its tag.
    fn definition(&mut self) -> Result<(), String> {
        match self.next {
            Token::Word("typealias") => {
                self.advance()?;
                let declared = self.whole_type(|token| *token == Token::Becomes)?;
                self.advance()?;
                let mut names = Vec::new();
                while !self.is(';') {
                    names.push(self.word()?);
                }
                self.aliases.insert(names.join(" "), declared);
            }
            Token::Word("typedef") => {
                self.advance()?;
                let (name, declared) = self.field()?;
                self.aliases.insert(name, declared);
                return Ok(());
            }
            _ if self.is_keyword() => drop(self.keyword_type()?),
            _ => return Err(self.unexpected("a declaration")),
        }
        self.sign(';')
    }

    /// A type by keyword, or by the words of an alias up to where `ends` says.
    fn whole_type(&mut self, ends: impl Fn(&Token<'_>) -> bool) -> Result<Declared, String> {
        if self.is_keyword() {
            return self.keyword_type();
        }
        let mut words = Vec::new();
        while !ends(&self.next) {
            words.push(self.word()?);
        }
        self.alias(&words.join(" "))
    }

    fn alias(&mut self, name: &str) -> Result<Declared, String> {
        let declared = self.aliases.get(name).cloned();
        let declared = declared.ok_or_else(|| format!("line {}: the type {name:?} is not known", self.lexer.line))?;
        self.count(declared.parts())?;
        Ok(declared)
    }

    fn count(&mut self, parts: usize) -> Result<(), String> {
        self.parts += parts;
        if self.parts > MOST_PARTS {
            return Err(format!("line {}: types of more than {MOST_PARTS} parts", self.lexer.line));
        }
        Ok(())
    }

    fn keyword_type(&mut self) -> Result<Declared, String> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(format!("line {}: types nested deeper than {MOST_DEPTH}", self.lexer.line));
        }
        self.count(1)?;
        let declared = match self.word()? {
            "integer" => self.number(false).map(Declared::Number),
            "floating_point" => self.number(true).map(Declared::Number),
            "string" => {
                if self.is('{') {
                    self.attributes()?;
                }
                Ok(Declared::Text)
            }
            "enum" => self.enumeration(),
            "struct" => self.structure(),
            _ => self.variant(),
        };
        self.depth -= 1;
        declared
    }

    fn attributes(&mut self) -> Result<HashMap<String, Value>, String> {
        let mut attributes = HashMap::new();
        self.sign('{')?;
        while !self.is('}') {
            let key = self.path()?;
            self.sign('=')?;
            let value = self.value()?;
            attributes.insert(key, value);
            self.sign(';')?;
        }
        self.sign('}')?;
        Ok(attributes)
    }

    fn number(&mut self, is_float: bool) -> Result<Number, String> {
        let line = self.lexer.line;
        let attributes = self.attributes()?;
        let number = |key: &str| match attributes.get(key) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        };
        let word = |key: &str| match attributes.get(key) {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let size = match is_float {
            true => number("exp_dig")
                .zip(number("mant_dig"))
                .and_then(|(exponent, mantissa)| exponent.checked_add(mantissa)),
            false => number("size"),
        };
        let size = size.filter(|size| (1..=64).contains(size));
        let size = size.ok_or_else(|| format!("line {line}: a number of more than 64 bits, or of none"))? as u32;
        let usual = if size.is_multiple_of(8) && !is_float { 8 } else { 1 };
        Ok(Number {
            size,
            align: alignment(number("align").unwrap_or(usual), line)?,
            is_signed: number("signed").is_some_and(|number| number != 0)
                || matches!(word("signed"), Some("true" | "TRUE")),
            is_big: match word("byte_order") {
                None | Some("native") => None,
                Some("le") => Some(false),
                Some("be" | "network") => Some(true),
                Some(_) => return Err(format!("line {line}: a byte order that is not known")),
            },
            is_clock: word("map").is_some_and(|map| map.starts_with("clock.") && map.ends_with(".value")),
            labels: Vec::new(),
        })
    }

    /// `enum [name] : type { label = 1, label = 2 ... 5, "label" }`, or by its name alone.
    fn enumeration(&mut self) -> Result<Declared, String> {
        let name = self.name()?;
        let mut of = None;
        if self.is(':') {
            self.advance()?;
            of = Some(self.whole_type(|token| *token == Token::Sign('{'))?);
        }
        if !self.is('{') {
            return self.alias(&format!("enum {name}"));
        }
        // C's int, unless said.
        let of = match of {
            Some(of) => of,
            None => self.alias("int")?,
        };
        let Declared::Number(mut number) = of else {
            return Err(format!("line {}: an enumeration of something that is no integer", self.lexer.line));
        };
        self.sign('{')?;
        let mut next = 0;
        while !self.is('}') {
            let label = match self.advance()? {
                Token::Word(label) => label.to_owned(),
                Token::Text(label) => label,
                _ => return Err(self.unexpected("a label")),
            };
            let (mut from, mut to) = (next, next);
            if self.is('=') {
                self.advance()?;
                from = self.integer()?;
                to = from;
                if self.next == Token::To {
                    self.advance()?;
                    to = self.integer()?;
                }
            }
            next = to.saturating_add(1);
            self.count(1)?;
            number.labels.push((label, from, to));
            if !self.is('}') {
                self.sign(',')?;
            }
        }
        self.sign('}')?;
        self.named("enum", name, Declared::Number(number))
    }

    fn integer(&mut self) -> Result<i128, String> {
        match self.advance()? {
            Token::Number(number) => Ok(number),
            _ => Err(self.unexpected("a number before")),
        }
    }

    fn structure(&mut self) -> Result<Declared, String> {
        let name = self.name()?;
        let is_known = !self.is('{');
        let mut declared = match is_known {
            true => self.alias(&format!("struct {name}"))?,
            false => Declared::Struct { fields: self.fields()?, align: 1 },
        };
        if self.next == Token::Word("align") {
            self.advance()?;
            self.sign('(')?;
            let wanted = alignment(self.integer()?, self.lexer.line)?;
            self.sign(')')?;
            if let Declared::Struct { align, .. } = &mut declared {
                *align = wanted.max(*align);
            }
        }
        if is_known { Ok(declared) } else { self.named("struct", name, declared) }
    }

    fn variant(&mut self) -> Result<Declared, String> {
        let name = self.name()?;
        let mut tag = None;
        if self.is('<') {
            self.advance()?;
            tag = Some(self.path()?);
            self.sign('>')?;
        }
        if self.is('{') {
            let choice = |(name, of)| Choice { name, ranges: Vec::new(), of };
            let options = self.fields()?.into_iter().map(choice).collect();
            return self.named("variant", name, Declared::Variant { tag, options });
        }
        match self.alias(&format!("variant {name}"))? {
            Declared::Variant { options, tag: known } => Ok(Declared::Variant { tag: tag.or(known), options }),
            declared => Ok(declared),
        }
    }

    /// What may stand behind `struct` and the like.
    fn name(&mut self) -> Result<&'a str, String> {
        match self.next {
            Token::Word("align") => Ok(""),
            Token::Word(_) => self.word(),
            _ => Ok(""),
        }
    }

    fn named(&mut self, kind: &str, name: &str, declared: Declared) -> Result<Declared, String> {
        if !name.is_empty() {
            self.count(declared.parts())?;
            self.aliases.insert(format!("{kind} {name}"), declared.clone());
        }
        Ok(declared)
    }

    fn fields(&mut self) -> Result<Vec<(String, Declared)>, String> {
        let mut fields = Vec::new();
        self.sign('{')?;
        while !self.is('}') {
            if matches!(self.next, Token::Word("typealias" | "typedef")) {
                self.definition()?;
                continue;
            }
            fields.push(self.field()?);
        }
        self.sign('}')?;
        Ok(fields)
    }

    /// `type name[length][length];`
    fn field(&mut self) -> Result<(String, Declared), String> {
        let (name, mut declared) = if self.is_keyword() {
            let declared = self.keyword_type()?;
            (self.word()?, declared)
        } else {
            let mut words = Vec::new();
            while let Token::Word(word) = self.next {
                words.push(word);
                self.advance()?;
            }
            let name = words.pop().ok_or_else(|| self.unexpected("a field"))?;
            (name, self.alias(&words.join(" "))?)
        };
        let mut lengths = Vec::new();
        while self.is('[') {
            self.advance()?;
            lengths.push(match self.next {
                Token::Number(number) => {
                    self.advance()?;
                    let number = u64::try_from(number);
                    Length::Fixed(number.map_err(|_| format!("line {}: a negative length", self.lexer.line))?)
                }
                _ => Length::Named(self.path()?),
            });
            self.sign(']')?;
            self.count(1)?;
            if lengths.len() > MOST_DEPTH {
                return Err(format!("line {}: arrays nested deeper than {MOST_DEPTH}", self.lexer.line));
            }
        }
        self.sign(';')?;
        for length in lengths.into_iter().rev() {
            declared = Declared::Array { of: Box::new(declared), length };
        }
        Ok((name.to_owned(), declared))
    }
}

/// Alignments are powers of two; tracers use at most 64 bits.
fn alignment(bits: i128, line: usize) -> Result<u32, String> {
    let bits = u32::try_from(bits).ok().filter(|bits| bits.is_power_of_two() && *bits <= 1 << 15);
    bits.ok_or_else(|| format!("line {line}: an alignment that is no power of two"))
}

impl Declared {
    /// How much there is of it.
    pub fn parts(&self) -> usize {
        match self {
            Declared::Number(number) => 1 + number.labels.len(),
            Declared::Text => 1,
            Declared::Struct { fields, .. } => 1 + fields.iter().map(|(_, of)| of.parts()).sum::<usize>(),
            Declared::Variant { options, .. } => 1 + options.iter().map(|option| option.of.parts()).sum::<usize>(),
            Declared::Array { of, .. } => 1 + of.parts(),
        }
    }
}

impl Number {
    /// One of those that texts are made of.
    pub fn byte() -> Number {
        Number { size: 8, align: 8, is_signed: false, is_big: None, is_clock: false, labels: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_an_event_are_read_with_their_arrays_and_sequences() {
        let text = "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n\
                    typealias integer { size = 64; } := unsigned long;\n\
                    event { name = \"a:b\"; id = 3; fields := struct { unsigned long _n; uint8_t x[2][_n]; }; };";
        let metadata = parse(text).unwrap();
        let event = &metadata.events[0];
        assert_eq!((event.text("name"), event.number("id")), (Some("a:b"), Some(3)));
        let Declared::Struct { fields, .. } = &event.types["fields"] else { panic!("no structure") };
        let Declared::Array { of, length: Length::Fixed(2) } = &fields[1].1 else { panic!("{fields:?}") };
        assert!(matches!(&**of, Declared::Array { length: Length::Named(name), .. } if name == "_n"));
    }

    #[test]
    fn an_enumeration_counts_on_from_its_last_label() {
        let text = "typealias integer { size = 5; align = 1; } := uint5_t;\n\
                    enum kind : uint5_t { a = 0 ... 30, \"b c\", d = -1 };";
        let mut lexer = Lexer::new(text);
        let next = lexer.next().unwrap();
        let mut parser = Parser { lexer, next, aliases: HashMap::new(), parts: 0, depth: 0 };
        parser.definition().unwrap();
        parser.definition().unwrap();
        let Declared::Number(number) = &parser.aliases["enum kind"] else { panic!("no number") };
        let labels = [("a", 0, 30), ("b c", 31, 31), ("d", -1, -1)];
        assert_eq!(number.labels, labels.map(|(label, from, to)| (label.to_owned(), from, to)));
    }

    #[test]
    fn types_that_grow_without_bound_are_refused() {
        let deep = format!("{}integer {{ size = 8; }} x;{}", "struct { ".repeat(100), "} x;".repeat(100));
        assert!(parse(&deep).err().is_some_and(|why| why.contains("nested deeper")));
        let mut wide = "struct s0 { integer { size = 8; } x; };".to_owned();
        for n in 1..40 {
            wide += &format!("struct s{n} {{ struct s{0} a; struct s{0} b; }};", n - 1);
        }
        assert!(parse(&wide).err().is_some_and(|why| why.contains("parts")));
    }
}
