//! XML-RPC as the vendor's SDK speaks it: integers, doubles and arrays of them, in HTTP with a kept connection.

use std::fmt::Write;

use anyhow::{Context, Result, bail, ensure};
use quick_xml::{Reader, events::Event};

/// A message is shorter than this; no peer can make the other side keep more.
pub const BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Integer(i64),
    Double(f64),
    Array(Vec<Value>),
}

impl Value {
    /// An integer or a double.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(n) => Some(*n as f64),
            Value::Double(x) => Some(*x),
            Value::Array(_) => None,
        }
    }

    /// All of an array.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        match self {
            Value::Array(items) => items.iter().map(Value::number).collect(),
            _ => None,
        }
    }

    fn write(&self, to: &mut String) {
        // A string takes everything.
        let _ = match self {
            Value::Integer(n) => write!(to, "<value><int>{n}</int></value>"),
            Value::Double(x) => write!(to, "<value><double>{x}</double></value>"),
            Value::Array(items) => {
                to.push_str("<value><array><data>");
                items.iter().for_each(|item| item.write(to));
                write!(to, "</data></array></value>")
            }
        };
    }
}

impl From<&[f64]> for Value {
    fn from(numbers: &[f64]) -> Value {
        Value::Array(numbers.iter().copied().map(Value::Double).collect())
    }
}

pub fn call(name: &str, arguments: &[Value]) -> String {
    let mut text = format!("<?xml version='1.0'?><methodCall><methodName>{name}</methodName><params>");
    for argument in arguments {
        text.push_str("<param>");
        argument.write(&mut text);
        text.push_str("</param>");
    }
    text + "</params></methodCall>"
}

pub fn answer(value: &Value) -> String {
    let mut text = "<?xml version='1.0'?><methodResponse><params><param>".to_owned();
    value.write(&mut text);
    text + "</param></params></methodResponse>"
}

/// `what` is the program's own, and no markup.
pub fn fault(what: &str) -> String {
    format!(
        "<?xml version='1.0'?><methodResponse><fault><value><struct><member><name>faultCode</name><value><int>1</int></value></member>\
         <member><name>faultString</name><value><string>{what}</string></value></member></struct></value></fault></methodResponse>"
    )
}

/// What a call or an answer says: the method's name, empty in an answer, and the values of its parameters.
pub fn parse(text: &str) -> Result<(String, Vec<Value>)> {
    let (mut reader, mut name, mut values) = (Reader::from_str(text), String::new(), Vec::new());
    // Arrays that are not closed yet, and the element that text belongs to.
    let (mut arrays, mut element): (Vec<Vec<Value>>, _) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event()? {
            Event::Start(tag) => {
                ensure!(arrays.len() < 8, "arrays in arrays");
                element = tag.name().as_ref().to_vec();
                match &element[..] {
                    b"array" => arrays.push(Vec::new()),
                    b"fault" => bail!("a fault"),
                    _ => {}
                }
            }
            Event::Text(content) => {
                let content = content.decode()?;
                let value = match &element[..] {
                    b"methodName" => {
                        name = content.trim().to_owned();
                        continue;
                    }
                    b"int" | b"i4" | b"i8" | b"boolean" => Value::Integer(content.trim().parse()?),
                    b"double" => Value::Double(content.trim().parse()?),
                    _ if content.trim().is_empty() => continue,
                    other => bail!("a value of type {}", String::from_utf8_lossy(other)),
                };
                arrays.last_mut().unwrap_or(&mut values).push(value);
            }
            Event::End(tag) => {
                element.clear();
                if tag.name().as_ref() == b"array" {
                    let array = arrays.pop().context("an array that was not begun")?;
                    arrays.last_mut().unwrap_or(&mut values).push(Value::Array(array));
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    ensure!(arrays.is_empty(), "an array that is not ended");
    Ok((name, values))
}

/// What came on a connection, until a message is whole.
#[derive(Default)]
pub struct Incoming(Vec<u8>);

impl Incoming {
    pub fn take(&mut self, bytes: &[u8]) -> Result<()> {
        ensure!(self.0.len() + bytes.len() <= BYTES_MAX, "a message without end");
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    /// The next whole message: its first line, and its body.
    pub fn message(&mut self) -> Result<Option<(String, String)>> {
        let Some(head_ends) = self.0.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&self.0[..head_ends])?;
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default().to_owned();
        let fields = lines.filter_map(|line| line.split_once(':'));
        let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length: usize = lengths.next().context("a message without a length")?.1.trim().parse()?;
        ensure!(length <= BYTES_MAX && lengths.next().is_none(), "a length of {length}");
        let ends = head_ends + 4 + length;
        let Some(body) = self.0.get(head_ends + 4..ends) else { return Ok(None) };
        let body = String::from_utf8(body.to_vec())?;
        self.0.drain(..ends);
        Ok(Some((first, body)))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_pythons_library_sends_is_understood() {
        let sent = "<?xml version='1.0'?>\n<methodCall>\n<methodName>ServoJ</methodName>\n<params>\n<param>\n<value><array><data>\n\
                    <value><double>-110.0</double></value>\n<value><double>1e-05</double></value>\n</data></array></value>\n</param>\n\
                    <param>\n<value><int>7</int></value>\n</param>\n</params>\n</methodCall>\n";
        let array = Value::Array(vec![Value::Double(-110.0), Value::Double(1e-5)]);
        assert_eq!(parse(sent).unwrap(), ("ServoJ".to_owned(), vec![array, Value::Integer(7)]));
        for bad in
            ["<value><string>x</string></value>", "<value><int>x</int></value>", "</array>", "<array>", &fault("no")]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let number = prop_oneof![any::<i64>().prop_map(Value::Integer), (-1e300..1e300).prop_map(Value::Double)];
        number.prop_recursive(2, 12, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Value::Array))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_call_comes_whole_however_it_is_cut(values in prop::collection::vec(value(), 0..4), size in 1_usize..80) {
            let body = call("ServoJ", &values);
            let sent = format!("POST /RPC2 HTTP/1.1\r\nContent-length: {}\r\nX: y\r\n\r\n{body}", body.len()).repeat(2);
            let (mut incoming, mut heard) = (Incoming::default(), Vec::new());
            for piece in sent.as_bytes().chunks(size) {
                incoming.take(piece).unwrap();
                while let Some((first, body)) = incoming.message().unwrap() {
                    prop_assert_eq!(first, "POST /RPC2 HTTP/1.1");
                    heard.push(parse(&body).unwrap());
                }
            }
            prop_assert_eq!(heard, vec![("ServoJ".to_owned(), values); 2]);
            prop_assert!(incoming.is_empty());
        }

        #[test]
        fn no_text_makes_the_parser_fail(text in "[<>/a-z0-9= .?-]{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&text);
            let mut incoming = Incoming::default();
            incoming.take(&bytes).unwrap();
            let _ = incoming.message();
        }
    }
}
