//! The budget as TOML: read, checked, and changed key by key.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    error::Error,
    jitter::Jitter,
    knob::knobs,
    term::{IdKind, Origin, Payload, Per, Price, Stage, Term},
};
use crate::wire::{
    canfd::{self, CanFd, Id},
    rs485::Rs485,
    spi::Spi,
};

/// What one control cycle consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// One line.
    pub title: String,
    /// What it describes, and from where.
    pub about: String,
    /// What somebody measured of it.
    pub published: Option<Published>,
    /// Keys beside the terms whose figures are fitted.
    pub fitted: Vec<String>,
    /// Keys beside the terms whose figures are assumed.
    pub assumed: Vec<String>,
    /// How the terms' jitter is known.
    pub jitter_origin: Origin,
    /// The rate it shall have.
    pub target_hz: Option<f64>,
    /// The servos.
    pub servos: Servos,
    /// Payload bytes by name.
    pub frames: BTreeMap<String, u32>,
    /// The RS485 link.
    pub rs485: Option<Rs485>,
    /// The CAN-FD buses; all alike.
    pub can: Option<CanFd>,
    /// The SPI link.
    pub spi: Option<Spi>,
    /// What works in parallel or one after the other.
    pub resources: Vec<Resource>,
    /// What is paid.
    pub terms: Vec<Term>,
}

/// A published figure that the budget explains.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The cycle, µs.
    pub cycle_us: f64,
    /// As the source words it.
    pub wording: String,
    /// Where.
    pub source: String,
}

/// The servos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Servos {
    /// How many.
    pub count: u32,
    /// The first one's id; the others follow, bus by bus.
    #[serde(default = "one")]
    pub first_id: u32,
}

/// Something that does one thing at a time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// Unique in its budget.
    pub name: String,
    /// Whether it works beside the other parallel resources; serial ones come before or after.
    #[serde(default)]
    pub parallel: bool,
    /// So many alike, the servos spread evenly.
    #[serde(default)]
    pub buses: Option<u32>,
    /// Or: servos on each.
    #[serde(default)]
    pub servos: Option<Vec<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default)]
    about: String,
    published: Option<Published>,
    #[serde(default)]
    fitted: Vec<String>,
    #[serde(default)]
    assumed: Vec<String>,
    #[serde(default)]
    jitter_origin: Origin,
    target_hz: Option<f64>,
    servos: Servos,
    #[serde(default)]
    frames: BTreeMap<String, u32>,
    rs485: Option<Rs485>,
    can: Option<CanFd>,
    spi: Option<Spi>,
    #[serde(default)]
    resource: Vec<Resource>,
    #[serde(default)]
    term: Vec<TermFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TermFile {
    name: String,
    stage: Stage,
    resource: Option<String>,
    phase: Option<String>,
    #[serde(default)]
    per: Per,
    #[serde(default = "one")]
    times: u32,
    us: Option<f64>,
    us_per_byte: Option<f64>,
    bytes: Option<Payload>,
    rs485: Option<Payload>,
    hops: Option<f64>,
    can: Option<Payload>,
    id: Option<IdKind>,
    can_frame: Option<String>,
    spi: Option<Payload>,
    extra_bytes: Option<u32>,
    timeout_us: Option<f64>,
    loss: Option<f64>,
    jitter: Option<Jitter>,
    #[serde(default)]
    origin: Origin,
    #[serde(default)]
    note: String,
    points: Option<[String; 2]>,
}

fn one() -> u32 {
    1
}

/// More servos than any bus can address.
pub(crate) const SERVOS_MAX: u32 = 1024;
/// An RS485 frame's longest payload; CAN-FD ends at 64.
pub(crate) const PAYLOAD_MAX: u32 = 4096;

impl Budget {
    /// Reads a budget, with keys changed first: ("servos.count", "6"), ("term.servo turn-around.us", "75").
    ///
    /// # Errors
    /// What is not TOML, not a key, or not possible, with its remedy.
    pub fn parse(text: &str, changes: &[(String, String)]) -> Result<Budget, Error> {
        let mut file: File = toml::from_str(text).map_err(|error| told(&error, text))?;
        if !changes.is_empty() {
            let mut table: toml::Table = toml::from_str(text).map_err(|error| told(&error, text))?;
            for (key, value) in changes {
                set(&mut table, key, value)?;
            }
            let changed = toml::to_string(&table)
                .map_err(|error| Error::Set { key: changes[0].0.clone(), remedy: error.to_string() })?;
            // A line of the changed text is nobody's line: name the changes instead.
            let keys: Vec<&str> = changes.iter().map(|(key, _)| key.as_str()).collect();
            file = toml::from_str(&changed)
                .map_err(|error| Error::Set { key: keys.join(", "), remedy: error.message().to_owned() })?;
        }
        budget(file)
    }

    /// The period of the target rate, µs.
    pub fn period_us(&self) -> Option<f64> {
        self.target_hz.map(|hz| 1e6 / hz)
    }

    /// Bytes of a payload.
    pub fn bytes(&self, payload: &Payload) -> u32 {
        match payload {
            Payload::Bytes(bytes) => *bytes,
            Payload::Frame(name) => self.frames.get(name).copied().unwrap_or(0),
        }
    }

    /// Checks what only the whole can tell; called again after every change.
    pub(crate) fn check(&self) -> Result<(), Error> {
        positive_rates(self)?;
        if !(1..=SERVOS_MAX).contains(&self.servos.count) {
            return Err(Error::value("servos.count", self.servos.count, format!("must be 1 to {SERVOS_MAX}")));
        }
        if let Some((name, bytes)) = self.frames.iter().find(|(_, bytes)| **bytes > PAYLOAD_MAX) {
            return Err(Error::value(format!("frames.{name}"), bytes, format!("must be at most {PAYLOAD_MAX} bytes")));
        }
        self.resources.iter().try_for_each(|resource| layout(resource, self.servos.count))?;
        self.terms.iter().try_for_each(|term| self.check_term(term))
    }

    fn check_term(&self, term: &Term) -> Result<(), Error> {
        let key = |key: &str| format!("term.{}.{key}", term.name);
        if let Some((at, value, remedy)) = term.jitter.as_ref().and_then(Jitter::mistake) {
            return Err(Error::value(key(&format!("jitter.{at}")), value, format!("must be {remedy}")));
        }
        let link = |there: bool, table: &str, example: &str| {
            if there {
                Ok(())
            } else {
                Err(Error::missing(format!("[{table}]"), format!("term {:?} needs it: {example}", term.name)))
            }
        };
        match &term.price {
            Price::Us(us) => time(&key("us"), *us)?,
            Price::PerByte(us, _) => time(&key("us_per_byte"), *us)?,
            Price::CanExact(_) => {}
            Price::Timeout(us, loss) => {
                time(&key("timeout_us"), *us)?;
                if !(0.0..=1.0).contains(loss) {
                    return Err(Error::value(key("loss"), loss, "must be a probability of 0 to 1"));
                }
            }
            Price::Rs485(_, hops) => {
                link(self.rs485.is_some(), "rs485", "baud = 3_000_000")?;
                if !(0.0..=100.0).contains(hops) {
                    return Err(Error::value(
                        key("hops"),
                        hops,
                        "must be 0 to 100; 2 for a bridge that stores and forwards",
                    ));
                }
            }
            Price::Can(payload, _) => {
                link(self.can.is_some(), "can", "nominal_hz = 1_000_000, data_hz = 5_000_000")?;
                if canfd::data_length(self.bytes(payload)).is_none() {
                    return Err(Error::value(
                        key("can"),
                        self.bytes(payload),
                        "a CAN-FD frame carries at most 64 bytes",
                    ));
                }
            }
            Price::Spi(..) => link(self.spi.is_some(), "spi", "clock_hz = 10_000_000, hold_us = 3.0")?,
        }
        match &term.price {
            Price::PerByte(_, payload) | Price::Rs485(payload, _) | Price::Can(payload, _) | Price::Spi(payload, _) => {
                self.known(payload, term)
            }
            _ => Ok(()),
        }
    }

    fn known(&self, payload: &Payload, term: &Term) -> Result<(), Error> {
        match payload {
            Payload::Frame(name) if !self.frames.contains_key(name) => Err(Error::missing(
                format!("frames.{name}"),
                format!("term {:?} sends it; write its payload bytes under [frames]", term.name),
            )),
            _ => Ok(()),
        }
    }
}

fn told(error: &toml::de::Error, text: &str) -> Error {
    let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
    Error::Toml { line, message: error.message().lines().collect::<Vec<_>>().join(" ") }
}

fn budget(file: File) -> Result<Budget, Error> {
    if file.resource.is_empty() {
        return Err(Error::missing("[[resource]]", "name what does the work, e.g. name = \"host and bus\""));
    }
    if file.term.is_empty() {
        return Err(Error::missing(
            "[[term]]",
            "name what is paid, e.g. name = \"turn-around\", stage = \"servo-turnaround\", per = \"servo\", us = 75",
        ));
    }
    unique("resource", file.resource.iter().map(|resource| &resource.name))?;
    unique("term", file.term.iter().map(|term| &term.name))?;
    let mut budget = Budget {
        title: file.title,
        about: file.about,
        published: file.published,
        fitted: file.fitted,
        assumed: file.assumed,
        jitter_origin: file.jitter_origin,
        target_hz: file.target_hz,
        servos: file.servos,
        frames: file.frames,
        rs485: file.rs485,
        can: file.can,
        spi: file.spi,
        resources: file.resource,
        terms: Vec::new(),
    };
    budget.terms = file.term.into_iter().map(|term| made(term, &budget)).collect::<Result<_, Error>>()?;
    budget.check()?;
    let keys: Vec<String> = knobs(&budget).iter().map(|knob| knob.key(&budget)).collect();
    match budget.fitted.iter().chain(&budget.assumed).find(|key| !keys.contains(key)) {
        None => Ok(budget),
        Some(key) => Err(Error::value(
            "fitted or assumed",
            format!("{key:?}"),
            format!("is no figure here; there are {}", keys.join(", ")),
        )),
    }
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<(), Error> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Err(Error::value(format!("{kind}.name"), format!("{name:?}"), "is taken; give each its own"));
        }
        seen.push(name);
    }
    Ok(())
}

fn made(term: TermFile, budget: &Budget) -> Result<Term, Error> {
    let price = price(&term, budget)?;
    let resource =
        match &term.resource {
            // With one resource there is nothing to choose.
            None if budget.resources.len() == 1 => 0,
            None => return Err(Error::missing(format!("term.{}.resource", term.name), one_of(budget))),
            Some(name) => budget.resources.iter().position(|resource| resource.name == *name).ok_or_else(|| {
                Error::value(format!("term.{}.resource", term.name), format!("{name:?}"), one_of(budget))
            })?,
        };
    Ok(Term {
        phase: term.phase.unwrap_or_else(|| term.stage.phase().to_owned()),
        name: term.name,
        stage: term.stage,
        resource,
        per: term.per,
        times: term.times,
        price,
        jitter: term.jitter,
        origin: term.origin,
        note: term.note,
        points: term.points,
    })
}

fn one_of(budget: &Budget) -> String {
    let names: Vec<String> = budget.resources.iter().map(|resource| format!("{:?}", resource.name)).collect();
    format!("name a [[resource]], one of {}", names.join(", "))
}

/// The one price of a term, and nothing that belongs to another.
fn price(term: &TermFile, budget: &Budget) -> Result<Price, Error> {
    const PRICES: &str = "us, us_per_byte, rs485, can, can_frame, spi, timeout_us";
    let key = |key: &str| format!("term.{}.{key}", term.name);
    let mut prices = Vec::new();
    if let Some(us) = term.us {
        prices.push(("us", Price::Us(us)));
    }
    if let Some(us) = term.us_per_byte {
        let bytes = term
            .bytes
            .clone()
            .ok_or_else(|| Error::missing(key("bytes"), "us_per_byte needs a number or the name of a frame"))?;
        prices.push(("us_per_byte", Price::PerByte(us, bytes)));
    }
    if let Some(payload) = &term.rs485 {
        prices.push(("rs485", Price::Rs485(payload.clone(), term.hops.unwrap_or(1.0))));
    }
    if let Some(payload) = &term.can {
        prices.push(("can", Price::Can(payload.clone(), term.id.unwrap_or_default())));
    }
    if let Some(frame) = &term.can_frame {
        prices.push(("can_frame", Price::CanExact(exact(frame, budget, &key("can_frame"))?)));
    }
    if let Some(payload) = &term.spi {
        prices.push(("spi", Price::Spi(payload.clone(), term.extra_bytes.unwrap_or(0))));
    }
    if let Some(us) = term.timeout_us {
        let loss =
            term.loss.ok_or_else(|| Error::missing(key("loss"), "timeout_us needs the probability of a lost reply"))?;
        prices.push(("timeout_us", Price::Timeout(us, loss)));
    }
    let strays = [
        ("bytes", term.bytes.is_some(), "us_per_byte"),
        ("hops", term.hops.is_some(), "rs485"),
        ("id", term.id.is_some(), "can"),
        ("extra_bytes", term.extra_bytes.is_some(), "spi"),
        ("loss", term.loss.is_some(), "timeout_us"),
    ];
    for (stray, there, of) in strays {
        if there && !prices.iter().any(|(name, _)| *name == of) {
            return Err(Error::missing(key(of), format!("{stray} belongs to it; add it or take {stray} out")));
        }
    }
    match prices.len() {
        1 => Ok(prices.remove(0).1),
        0 => Err(Error::missing(key("us"), format!("a term has one price: {PRICES}"))),
        _ => {
            let names: Vec<&str> = prices.iter().map(|(name, _)| *name).collect();
            Err(Error::value(
                format!("term.{}", term.name),
                names.join(" and "),
                "a term has one price: split it in two",
            ))
        }
    }
}

/// "8001#0100…": identifier and bytes in hexadecimal, as `cansend` writes them.
fn exact(frame: &str, budget: &Budget, key: &str) -> Result<f64, Error> {
    let wrong =
        || Error::value(key, format!("{frame:?}"), "write ID#BYTES in hexadecimal, at most 64 bytes: \"8001#01000a\"");
    let can = budget.can.as_ref().ok_or_else(|| {
        Error::missing("[can]", format!("{key} needs it: nominal_hz = 1_000_000, data_hz = 5_000_000"))
    })?;
    let (id, data) = frame.split_once('#').ok_or_else(wrong)?;
    let id = u32::from_str_radix(id, 16).ok().filter(|id| *id < 1 << 29).ok_or_else(wrong)?;
    if !data.is_ascii() || !data.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let bytes: Option<Vec<u8>> =
        (0..data.len()).step_by(2).map(|at| u8::from_str_radix(&data[at..at + 2], 16).ok()).collect();
    let id = if id <= 0x7ff { Id::Standard(id as u16) } else { Id::Extended(id) };
    // 0x50 is the padding that the moteus protocol asks for.
    can.exact_frame_us(id, &bytes.ok_or_else(wrong)?, 0x50).ok_or_else(wrong)
}

fn time(key: &str, us: f64) -> Result<(), Error> {
    if (0.0..=1e9).contains(&us) { Ok(()) } else { Err(Error::value(key, us, "must be a time of 0 to 1e9 µs")) }
}

fn positive_rates(budget: &Budget) -> Result<(), Error> {
    let (rs485, can, spi) = (&budget.rs485, &budget.can, &budget.spi);
    let rates = [
        ("target_hz", budget.target_hz),
        ("rs485.baud", rs485.as_ref().map(|link| link.baud)),
        ("can.nominal_hz", can.as_ref().map(|bus| bus.nominal_hz)),
        ("can.data_hz", can.as_ref().map(|bus| bus.data_hz)),
        ("spi.clock_hz", spi.as_ref().map(|link| link.clock_hz)),
        ("published.cycle_us", budget.published.as_ref().map(|published| published.cycle_us)),
    ];
    for (key, value) in rates {
        if let Some(value) = value.filter(|value| !(*value > 0.0 && *value <= 1e12)) {
            return Err(Error::value(key, value, "must be above 0 and at most 1e12"));
        }
    }
    if let Some(spi) = spi {
        time("spi.hold_us", spi.hold_us)?;
        time("spi.fifo_dead_us", spi.fifo_dead_us)?;
        time("spi.setup_us", spi.setup_us)?;
        if spi.fifo_bytes == 0 {
            return Err(Error::value("spi.fifo_bytes", 0, "must be at least 1"));
        }
    }
    Ok(())
}

fn layout(resource: &Resource, servos: u32) -> Result<(), Error> {
    let key = |key: &str| format!("resource.{}.{key}", resource.name);
    match (&resource.buses, &resource.servos) {
        (Some(_), Some(_)) => Err(Error::value(key("buses"), "and servos", "say one of them")),
        (Some(buses), None) if !(1..=SERVOS_MAX).contains(buses) => {
            Err(Error::value(key("buses"), buses, format!("must be 1 to {SERVOS_MAX}")))
        }
        (None, Some(each)) if each.iter().sum::<u32>() != servos => {
            let sum: u32 = each.iter().sum();
            Err(Error::value(
                key("servos"),
                format!("{each:?}"),
                format!("has {sum} servos, servos.count says {servos}"),
            ))
        }
        (buses, each) if !resource.parallel && (buses.is_some_and(|n| n > 1) || each.is_some()) => {
            Err(Error::missing(key("parallel"), "several buses need parallel = true"))
        }
        _ => Ok(()),
    }
}

/// Changes `key` (a dotted path; members of `[[term]]` and `[[resource]]` by name) to `value` (TOML, or a bare word).
fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), Error> {
    let wrong = |remedy: String| Error::Set { key: key.to_owned(), remedy };
    let parsed = toml::from_str::<toml::Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let (first, rest) = key.split_once('.').map_or((key, None), |(first, rest)| (first, Some(rest)));
    let Some(rest) = rest else {
        table.insert(first.to_owned(), parsed);
        return Ok(());
    };
    let entry = table.get_mut(first).ok_or_else(|| wrong(format!("the budget has no {first}")))?;
    let (members, key) = match entry {
        toml::Value::Array(members) => {
            let (name, key) = rest.rsplit_once('.').ok_or_else(|| wrong(format!("write {first}.NAME.KEY")))?;
            let names: Vec<String> =
                members.iter().filter_map(|m| m.get("name")?.as_str()).map(|name| format!("{name:?}")).collect();
            let named = |member: &&mut toml::Value| member.get("name").and_then(toml::Value::as_str) == Some(name);
            let member = members.iter_mut().find(named);
            (
                member
                    .ok_or_else(|| wrong(format!("no {first} is called {name:?}; there are {}", names.join(", "))))?,
                key,
            )
        }
        other => (other, rest),
    };
    members.as_table_mut().ok_or_else(|| wrong(format!("{first} has no keys")))?.insert(key.to_owned(), parsed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "title = 't'\n[servos]\ncount = 2\n[frames]\ncommand = 4\n[rs485]\nbaud = 3e6\n[can]\nnominal_hz = 1e6\n\
        data_hz = 5e6\n[[resource]]\nname = 'bus'\n[[term]]\nname = 'wire'\nstage = 'host-wire'\nper = 'servo'\nrs485 = 'command'\n\
        [[term]]\nname = 'turn'\nstage = 'servo-turnaround'\nus = 75\norigin = 'fitted'\n";

    fn changes(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_mistake_names_the_key_and_the_remedy() {
        let cases = [
            ("count = 2", "cuont = 2", "line 3: unknown field `cuont`, expected `count` or `first_id`"),
            ("count = 2", "count = 0", "servos.count = 0: must be 1 to 1024"),
            ("us = 75", "us = -3", "term.turn.us = -3: must be a time"),
            ("us = 75", "us = 75\nloss = 0.1", "term.turn.timeout_us is missing: loss belongs to it"),
            ("us = 75", "us = 75\nspi = 3", "term.turn = us and spi: a term has one price"),
            ("us = 75", "", "term.turn.us is missing: a term has one price: us, us_per_byte"),
            ("us = 75", "us = 75\njitter = { normal = { sd_us = -1 } }", "term.turn.jitter.normal.sd_us = -1: must be"),
            ("us = 75", "us = 75\nresource = 'bsu'", "name a [[resource]], one of \"bus\""),
            ("us = 75", "spi = 3", "[spi] is missing: term \"turn\" needs it"),
            ("us = 75", "can = 65", "term.turn.can = 65: a CAN-FD frame carries at most 64 bytes"),
            ("us = 75", "can_frame = '8001#1'", "write ID#BYTES in hexadecimal"),
            ("us = 75", "timeout_us = 5", "term.turn.loss is missing"),
            ("rs485 = 'command'", "rs485 = 'comand'", "frames.comand is missing: term \"wire\" sends it"),
            ("name = 'turn'", "name = 'wire'", "term.name = \"wire\": is taken"),
            ("name = 'bus'", "name = 'bus'\nbuses = 2", "resource.bus.parallel is missing"),
            ("name = 'bus'", "name = 'bus'\nparallel = true\nservos = [1, 2]", "has 3 servos, servos.count says 2"),
            ("baud = 3e6", "baud = 0", "rs485.baud = 0: must be above 0"),
            ("'t'", "'t'\nfitted = ['spi.hold_us']", "is no figure here; there are servos.count"),
            ("[servos]\ncount = 2", "", "missing field `servos`"),
        ];
        for (from, to, expected) in cases {
            assert!(GOOD.contains(from));
            let error = Budget::parse(&GOOD.replacen(from, to, 1), &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}, for {to}");
        }
    }

    #[test]
    fn keys_can_be_changed() {
        let changed = Budget::parse(
            GOOD,
            &changes(&[
                ("servos.count", "6"),
                ("term.turn.us", "30.5"),
                ("term.turn.origin", "stated"),
                ("target_hz", "400"),
            ]),
        )
        .unwrap();
        assert_eq!((changed.servos.count, changed.target_hz), (6, Some(400.0)));
        assert_eq!((&changed.terms[1].price, changed.terms[1].origin), (&Price::Us(30.5), Origin::Stated));
    }

    #[test]
    fn a_change_of_nothing_is_refused() {
        let cases = [
            ("serfos.count", "1", "the budget has no serfos"),
            ("term.turm.us", "1", "no term is called \"turm\"; there are \"wire\", \"turn\""),
            ("term.us", "1", "write term.NAME.KEY"),
            ("servos.cuont", "1", "unknown field `cuont`"),
            ("servos.count", "many", "invalid type"),
            ("title.x", "1", "title has no keys"),
        ];
        for (key, value, expected) in cases {
            let error = Budget::parse(GOOD, &changes(&[(key, value)])).unwrap_err().to_string();
            assert!(error.starts_with("--set ") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_exact_frame_is_priced_bit_by_bit() {
        let text = GOOD.replace("us = 75", "can_frame = '100#5555555555555555'");
        let Price::CanExact(us) = Budget::parse(&text, &[]).unwrap().terms[1].price else { panic!() };
        // 17 + 12 and 2 stuff bits at 1 Mbit/s; 5 + 64 + 28 at 5 Mbit/s without one: the length code 1000 and the first
        // bit of 0x55 are only four zeros in a row.
        assert!((us - (31.0 + 97.0 / 5.0)).abs() < 1e-9, "{us}");
    }
}
