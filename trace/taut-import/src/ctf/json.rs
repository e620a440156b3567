//! CTF 2's metadata, a sequence of JSON texts, as the declarations that TSDL makes: the streams are read alike.
//!
//! From CTF2-SPEC-2.0; LTTng writes it since 2.15 unless told otherwise. What that does not use is refused by name:
//! numbers of variable length, optional fields, other bit orders.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::syntax::{Block, Choice, Declared, Length, MOST_DEPTH, MOST_PARTS, Metadata, Number, Value};

/// Before each text (RFC 7464).
pub(super) const SEPARATOR: char = '\u{1e}';

/// Reads all of it, or says why not.
pub(super) fn parse(text: &str) -> Result<Metadata, String> {
    let mut metadata = Metadata::default();
    let mut reading = Reading::default();
    for (at, fragment) in text.split(SEPARATOR).filter(|fragment| !fragment.trim().is_empty()).enumerate() {
        let of = || format!("fragment {}", at + 1);
        let fragment: Json = serde_json::from_str(fragment).map_err(|why| format!("{}: {why}", of()))?;
        reading.fragment(&fragment, &mut metadata).map_err(|why| format!("{}: {why}", of()))?;
    }
    Ok(metadata)
}

#[derive(Default)]
struct Reading {
    aliases: HashMap<String, Declared>,
    parts: usize,
}

impl Reading {
    fn fragment(&mut self, fragment: &Json, metadata: &mut Metadata) -> Result<(), String> {
        let mut block = Block::default();
        let types = |reading: &mut Reading, names: &[(&str, &str)]| -> Result<HashMap<String, Declared>, String> {
            let given = names.iter().filter_map(|(key, name)| Some((fragment.get(key)?, *name)));
            given.map(|(class, name)| Ok((name.to_owned(), reading.class(class, 0)?))).collect()
        };
        match text(fragment, "type") {
            "preamble" if fragment["version"] != 2 => return Err(format!("version {} of CTF", fragment["version"])),
            "trace-class" => {
                let environment = fragment.get("environment").and_then(Json::as_object);
                metadata.env.values =
                    environment.into_iter().flatten().map(|(key, of)| (key.clone(), value(of))).collect();
                block.types = types(self, &[("packet-header-field-class", "packet.header")])?;
                metadata.trace = Some(block);
            }
            "clock-class" => {
                let offset = fragment.get("offset-from-origin").or(fragment.get("offset")).unwrap_or(&Json::Null);
                let uuid = fragment.get("uid").or(fragment.get("uuid")).unwrap_or(&Json::Null);
                let given = [
                    ("freq", &fragment["frequency"]),
                    ("offset_s", &offset["seconds"]),
                    ("offset", &offset["cycles"]),
                    ("uuid", uuid),
                ];
                block.values = values(&given);
                metadata.clocks.push(block);
            }
            "data-stream-class" => {
                block.values = values(&[("id", &fragment["id"])]);
                let names = [
                    ("packet-context-field-class", "packet.context"),
                    ("event-record-header-field-class", "event.header"),
                    ("event-record-common-context-field-class", "event.context"),
                ];
                block.types = types(self, &names)?;
                metadata.streams.push(block);
            }
            "event-record-class" => {
                let given = [
                    ("id", &fragment["id"]),
                    ("stream_id", &fragment["data-stream-class-id"]),
                    ("name", &fragment["name"]),
                ];
                block.values = values(&given);
                let names = [("specific-context-field-class", "context"), ("payload-field-class", "fields")];
                block.types = types(self, &names)?;
                metadata.events.push(block);
            }
            "field-class-alias" => {
                let class = self.class(&fragment["field-class"], 0)?;
                self.aliases.insert(text(fragment, "name").to_owned(), class);
            }
            _ => {}
        }
        // A trace need not say anything of itself.
        metadata.trace.get_or_insert_default();
        Ok(())
    }

    fn class(&mut self, class: &Json, depth: usize) -> Result<Declared, String> {
        if depth > MOST_DEPTH {
            return Err(format!("types nested deeper than {MOST_DEPTH}"));
        }
        if let Some(alias) = class.as_str() {
            let known = self.aliases.get(alias).cloned().ok_or_else(|| format!("the type {alias:?} is not known"))?;
            self.count(known.parts())?;
            return Ok(known);
        }
        self.count(1)?;
        let kind = text(class, "type");
        let unsigned = |key: &str| class[key].as_u64();
        let length = || match class.get("length-field-location") {
            Some(location) => location_name(location).map(Length::Named),
            None => unsigned("length").map(Length::Fixed).ok_or_else(|| format!("{kind} without a length")),
        };
        // Zero or less is what the text ends with.
        let bytes = |length| Declared::Array { of: Box::new(Declared::Number(Number::byte())), length };
        match kind {
            "fixed-length-unsigned-integer"
            | "fixed-length-signed-integer"
            | "fixed-length-bit-array"
            | "fixed-length-bit-map"
            | "fixed-length-boolean"
            | "fixed-length-floating-point-number" => Ok(Declared::Number(number(class, kind)?)),
            "null-terminated-string" => Ok(Declared::Text),
            "static-length-string" | "static-length-blob" | "dynamic-length-string" | "dynamic-length-blob" => {
                Ok(bytes(length()?))
            }
            "static-length-array" | "dynamic-length-array" => {
                let of = self.class(&class["element-field-class"], depth + 1)?;
                let element_align = match &of {
                    Declared::Number(Number { align, .. }) | Declared::Struct { align, .. } => *align,
                    _ => 1,
                };
                let array = Declared::Array { of: Box::new(of), length: length()? };
                // One that is not aligned as its elements are anyway is a structure with nothing else in it.
                match alignment(unsigned("minimum-alignment"))? {
                    align if align <= element_align => Ok(array),
                    align => Ok(Declared::Struct { fields: vec![(String::new(), array)], align }),
                }
            }
            "structure" => {
                let members = class["member-classes"].as_array().map_or(&[][..], Vec::as_slice);
                let mut fields = Vec::with_capacity(members.len());
                for member in members {
                    fields.push((text(member, "name").to_owned(), self.class(&member["field-class"], depth + 1)?));
                }
                Ok(Declared::Struct { fields, align: alignment(unsigned("minimum-alignment"))? })
            }
            "variant" => {
                let tag = Some(location_name(&class["selector-field-location"])?);
                let given = class["options"].as_array().map_or(&[][..], Vec::as_slice);
                let mut options = Vec::with_capacity(given.len());
                for (at, option) in given.iter().enumerate() {
                    let name = option["name"].as_str().map_or_else(|| at.to_string(), str::to_owned);
                    let ranges = ranges(&option["selector-field-ranges"])?;
                    options.push(Choice { name, ranges, of: self.class(&option["field-class"], depth + 1)? });
                }
                Ok(Declared::Variant { tag, options })
            }
            _ => Err(format!("fields of the type {:?}", kind.chars().take(60).collect::<String>())),
        }
    }

    fn count(&mut self, parts: usize) -> Result<(), String> {
        self.parts += parts;
        if self.parts > MOST_PARTS {
            return Err(format!("types of more than {MOST_PARTS} parts"));
        }
        Ok(())
    }
}

fn number(class: &Json, kind: &str) -> Result<Number, String> {
    let size = class["length"].as_u64().filter(|size| (1..=64).contains(size));
    let roles = class["roles"].as_array();
    Ok(Number {
        size: size.ok_or("a number of more than 64 bits, or of none")? as u32,
        align: alignment(class["alignment"].as_u64())?,
        is_signed: kind == "fixed-length-signed-integer",
        is_big: Some(class["byte-order"] == "big-endian"),
        is_clock: roles.is_some_and(|roles| roles.iter().any(|role| role == "default-clock-timestamp")),
        labels: Vec::new(),
    })
}

fn alignment(bits: Option<u64>) -> Result<u32, String> {
    let bits = u32::try_from(bits.unwrap_or(1).max(1)).ok().filter(|bits| bits.is_power_of_two() && *bits <= 1 << 15);
    bits.ok_or_else(|| "an alignment that is no power of two".to_owned())
}

fn ranges(ranges: &Json) -> Result<Vec<(i128, i128)>, String> {
    let end = |of: &Json| of.as_i64().map(i128::from).or(of.as_u64().map(i128::from));
    let range = |range: &Json| Some((end(range.get(0)?)?, end(range.get(1)?)?));
    let ranges: Option<Vec<_>> = ranges.as_array().and_then(|ranges| ranges.iter().map(range).collect());
    ranges.filter(|ranges| !ranges.is_empty()).ok_or_else(|| "an option without its ranges".to_owned())
}

/// A field's full name, or as seen from where it is referred to.
fn location_name(location: &Json) -> Result<String, String> {
    let path = location["path"].as_array().ok_or("a field that is referred to by no path")?;
    let names: Option<Vec<&str>> = path.iter().map(Json::as_str).collect();
    let name = names.ok_or("a field that is referred to by its structure")?.join(".");
    Ok(match location["origin"].as_str() {
        None => name,
        Some("packet-header") => format!("trace.packet.header.{name}"),
        Some("packet-context") => format!("stream.packet.context.{name}"),
        Some("event-record-header") => format!("stream.event.header.{name}"),
        Some("event-record-common-context") => format!("stream.event.context.{name}"),
        Some("event-record-specific-context") => format!("event.context.{name}"),
        Some(_) => format!("event.fields.{name}"),
    })
}

fn text<'a>(of: &'a Json, key: &str) -> &'a str {
    of[key].as_str().unwrap_or_default()
}

fn values(given: &[(&str, &Json)]) -> HashMap<String, Value> {
    given.iter().filter(|(_, of)| !of.is_null()).map(|(key, of)| ((*key).to_owned(), value(of))).collect()
}

fn value(of: &Json) -> Value {
    let number = of.as_i64().map(i128::from).or(of.as_u64().map(i128::from));
    number.map_or_else(|| Value::Text(of.as_str().unwrap_or_default().to_owned()), Value::Number)
}
