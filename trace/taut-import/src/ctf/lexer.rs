//! The words of TSDL, CTF 1.8's description language.

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    /// A name or keyword.
    Word(&'a str),
    Number(i128),
    /// Without its quotes.
    Text(String),
    /// One of `{ } [ ] ( ) < > ; , : = .`.
    Sign(char),
    /// `:=`
    Becomes,
    /// `...`
    To,
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) => write!(f, "{:?}", shortened(word)),
            Token::Number(number) => write!(f, "{number}"),
            Token::Text(text) => write!(f, "{:?}", shortened(text)),
            Token::Sign(sign) => write!(f, "{sign:?}"),
            Token::Becomes => write!(f, "\":=\""),
            Token::To => write!(f, "\"...\""),
            Token::End => write!(f, "the end"),
        }
    }
}

/// So that an error stays one line, whatever the file holds.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Takes words off a text.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Of what was taken last, from 1.
    pub line: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, line: 1 }
    }

    /// The next word, or why there is none.
    pub fn next(&mut self) -> Result<Token<'a>, String> {
        self.skip_space()?;
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.at += length;
            return Ok(Token::Word(&rest[..length]));
        }
        if first.is_ascii_digit() || first == '-' {
            return self.number(rest);
        }
        if first == '"' {
            return self.quoted(rest);
        }
        let signs = [(":=", Token::Becomes), ("...", Token::To)];
        if let Some((sign, token)) = signs.into_iter().find(|(sign, _)| rest.starts_with(sign)) {
            self.at += sign.len();
            return Ok(token);
        }
        if "{}[]()<>;,:=.".contains(first) {
            self.at += 1;
            return Ok(Token::Sign(first));
        }
        Err(format!("line {}: {first:?} begins no word of it", self.line))
    }

    fn skip_space(&mut self) -> Result<(), String> {
        loop {
            let rest = &self.text[self.at..];
            let length = if let Some(comment) = rest.strip_prefix("/*") {
                comment.find("*/").ok_or_else(|| format!("line {}: a comment has no end", self.line))? + 4
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else {
                rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len())
            };
            self.line += rest[..length].matches('\n').count();
            self.at += length;
            if length == 0 || self.at == self.text.len() {
                return Ok(());
            }
        }
    }

    fn number(&mut self, rest: &str) -> Result<Token<'a>, String> {
        let (is_negative, digits) = match rest.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, rest),
        };
        let length = digits.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(digits.len());
        self.at += length + usize::from(is_negative);
        let digits = digits[..length].trim_end_matches(['u', 'U', 'l', 'L']);
        let value = match (digits.strip_prefix("0x").or(digits.strip_prefix("0X")), digits.strip_prefix('0')) {
            (Some(hex), _) => i128::from_str_radix(hex, 16),
            (_, Some(octal)) if !octal.is_empty() => i128::from_str_radix(octal, 8),
            _ => digits.parse(),
        };
        let value = value.ok().filter(|value| *value <= i128::from(u64::MAX));
        let value = value.ok_or_else(|| format!("line {}: {:?} is no number", self.line, shortened(digits)))?;
        Ok(Token::Number(if is_negative { -value } else { value }))
    }

    fn quoted(&mut self, rest: &str) -> Result<Token<'a>, String> {
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.line += rest[..at].matches('\n').count();
                    self.at += at + 1;
                    return Ok(Token::Text(text));
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(format!("line {}: a string has no end", self.line))
    }
}
