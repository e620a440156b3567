//! Text of others (names, commands, sentences that repeat them) in each form that taut writes. One function, so that no form forgets one.

/// What the text goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A paragraph or a cell of a table, as GitHub and GitLab render it.
    Markdown,
    /// Text or an attribute of HTML or XML.
    Markup,
    /// A field of a CSV file (RFC 4180), which a spreadsheet may open.
    Csv,
    /// A line of a terminal.
    Terminal,
}

/// The text as text: in no form does it begin or end anything.
pub fn escaped(text: &str, form: Form) -> String {
    match form {
        Form::Markdown => markdown(text),
        Form::Markup => markup(text),
        Form::Csv => csv(text),
        Form::Terminal => printable(text),
    }
}

/// A name as code, or as text where it would end the code or a table's cell.
pub fn code(text: &str) -> String {
    let is_plain = !text.is_empty() && !text.contains(['`', '|', '\\']) && !text.contains(is_harmful);
    if is_plain { format!("`{text}`") } else { markdown(text) }
}

/// Without elements, links, references, emphasis, code, mathematics, and what ends a cell.
fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let after = rest.peek().copied().unwrap_or(' ');
        match c {
            '\n' | '\r' => out.push(' '),
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '@' => out += "&#64;",
            // "https://…" and "www.…" become links by themselves.
            ':' if after == '/' => out += "&#58;",
            '.' if out.to_ascii_lowercase().ends_with("www") => out += "&#46;",
            // Within a word it is no emphasis.
            '_' if before.is_alphanumeric() && after.is_alphanumeric() => out.push(c),
            '|' | '*' | '_' | '`' | '[' | ']' | '#' | '\\' | '~' | '$' => out.extend(['\\', c]),
            c if is_harmful(c) => out.extend(c.escape_default()),
            _ => out.push(c),
        }
        before = c;
    }
    out
}

/// On one line: control characters (C0, DEL, C1), line and paragraph separators, and Unicode's overrides and isolates of direction as
/// `\u{1b}`. `taut_recording::printable` does the same to what is read; here it is for text that came another way.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match is_harmful(c) {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // One that turns the direction of writing turns what comes after it, too.
            c if is_harmful(c) && !c.is_control() => out.push('\u{fffd}'),
            _ => out.push(drawn(c)),
        }
    }
    out
}

/// XML 1.0 has neither these characters nor a reference to them (its section 2.2): one of them and no browser draws a picture.
fn drawn(c: char) -> char {
    let is_none = c < ' ' && !matches!(c, '\n' | '\t' | '\r') || matches!(c, '\u{fffe}' | '\u{ffff}');
    if is_none { '\u{fffd}' } else { c }
}

/// A line for a library that writes XML and escapes markup itself.
pub fn line_of_markup(text: &str) -> String {
    text.chars().map(|c| if c < ' ' { '\u{fffd}' } else { drawn(c) }).collect()
}

/// A spreadsheet takes what begins so for a formula, in quotes or not; an apostrophe makes it text (OWASP, "CSV Injection").
fn csv(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    let is_plain = !text.contains([',', '"', '\n', '\r']);
    if is_plain { text } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_begins_nothing() {
        for (text, expected) in [
            ("map_lock of arm-7", "map_lock of arm-7"),
            ("<script>a|b*@x", "&lt;script&gt;a\\|b\\*&#64;x"),
            ("[go](https://evil.example)", "\\[go\\](https&#58;//evil.example)"),
            ("www.evil.example", "www&#46;evil.example"),
            ("__init__", "\\_\\_init\\_\\_"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\nb &copy; `c` ~~d~~ $e$ #12", "a b &amp;copy; \\`c\\` \\~\\~d\\~\\~ \\$e\\$ \\#12"),
        ] {
            assert_eq!(escaped(text, Form::Markdown), expected);
        }
        assert_eq!([code("a.b"), code("a`b"), code("a|b"), code("")], ["`a.b`", "a\\`b", "a\\|b", ""]);
    }

    #[test]
    fn markup_begins_nothing() {
        assert_eq!(
            escaped("<a b=\"c\" d='e'>&\u{1b}\u{202e}", Form::Markup),
            "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn a_spreadsheet_calculates_nothing() {
        for (text, expected) in [
            ("=1+2", "'=1+2"),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            ("+a", "'+a"),
            ("-a", "'-a"),
            ("@a", "'@a"),
            ("\tb", "'\tb"),
            ("a=b", "a=b"),
            ("plan, \"fast\"", "\"plan, \"\"fast\"\"\""),
        ] {
            assert_eq!(escaped(text, Form::Csv), expected);
        }
    }

    #[test]
    fn a_terminal_stays_on_its_line() {
        assert_eq!(escaped("a\n\u{1b}[2Jb", Form::Terminal), r"a\n\u{1b}[2Jb");
    }
}
