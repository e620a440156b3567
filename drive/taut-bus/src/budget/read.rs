//! The budget as TOML: from text to terms, each with its one price.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    change::change,
    error::Error,
    file::{CycleBudget, Published, Resource, Servos},
    jitter::Jitter,
    knob::knobs,
    term::{IdKind, Origin, Payload, Per, Price, Stage, Term},
};
use crate::wire::{
    canfd::{CanFd, Id},
    rs485::Rs485,
    spi::Spi,
};

impl CycleBudget {
    /// Reads a budget, with keys changed first: ("servos.count", "6"), ("term.servo turn-around.us", "75").
    ///
    /// # Errors
    /// What is not TOML, not a key, or not possible, with its remedy.
    pub fn parse(text: &str, changes: &[(String, String)]) -> Result<CycleBudget, Error> {
        read(text, changes)
    }
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

/// Reads a budget, with keys changed first.
fn read(text: &str, changes: &[(String, String)]) -> Result<CycleBudget, Error> {
    // As it stands first, so that a mistake in it has its line.
    let file: File = toml::from_str(text).map_err(|error| told(&error, text))?;
    if changes.is_empty() {
        return budget(file);
    }
    let mut table: toml::Table = toml::from_str(text).map_err(|error| told(&error, text))?;
    for (key, value) in changes {
        change(&mut table, key, value)?;
    }
    let keys: Vec<&str> = changes.iter().map(|(key, _)| key.as_str()).collect();
    budget(
        table.try_into().map_err(|error: toml::de::Error| Error::Set {
            key: keys.join(", "),
            remedy: error.message().to_owned(),
        })?,
    )
}

fn told(error: &toml::de::Error, text: &str) -> Error {
    let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
    Error::Toml { line, message: error.message().lines().collect::<Vec<_>>().join(" ") }
}

fn budget(file: File) -> Result<CycleBudget, Error> {
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
    let mut budget = CycleBudget {
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

fn made(term: TermFile, budget: &CycleBudget) -> Result<Term, Error> {
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

fn one_of(budget: &CycleBudget) -> String {
    let names: Vec<String> = budget.resources.iter().map(|resource| format!("{:?}", resource.name)).collect();
    format!("name a [[resource]], one of {}", names.join(", "))
}

/// The one price of a term, and nothing that belongs to another.
fn price(term: &TermFile, budget: &CycleBudget) -> Result<Price, Error> {
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
fn exact(frame: &str, budget: &CycleBudget, key: &str) -> Result<f64, Error> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::{Sampling, forecast};

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
            ("baud = 3e6", "baud = 0", "rs485.baud = 0: must be 0.001 to 1e12"),
            ("'t'", "'t'\nfitted = ['spi.hold_us']", "is no figure here; there are servos.count"),
            ("[servos]\ncount = 2", "", "missing field `servos`"),
        ];
        for (from, to, expected) in cases {
            assert!(GOOD.contains(from));
            let error = CycleBudget::parse(&GOOD.replacen(from, to, 1), &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}, for {to}");
        }
    }

    #[test]
    fn keys_can_be_changed() {
        let changed = CycleBudget::parse(
            GOOD,
            &changes(&[
                ("servos.count", "6"),
                ("term.turn.us", "30.5"),
                ("term.turn.origin", "stated"),
                ("target_hz", "400"),
            ]),
        )
        .unwrap();
        let text = GOOD.replace("us = 75", "us = 75\njitter = { normal = { sd_us = 1 } }");
        let deep = CycleBudget::parse(&text, &changes(&[("term.turn.jitter.normal.sd_us", "9")])).unwrap();
        assert_eq!(deep.terms[1].jitter, Some(Jitter::Normal { sd_us: 9.0 }));
        assert_eq!((changed.servos.count, changed.target_hz), (6, Some(400.0)));
        assert_eq!((&changed.terms[1].price, changed.terms[1].origin), (&Price::Us(30.5), Origin::Stated));
    }

    #[test]
    fn a_change_of_nothing_is_refused() {
        let cases = [
            ("serfos.count", "1", "the budget has no serfos"),
            ("term.turm.us", "1", "no term is called so; write term.NAME.KEY with NAME one of \"wire\", \"turn\""),
            ("term.us", "1", "write term.NAME.KEY"),
            ("term.turn.jitter.normal.sd_us", "1", "there is no jitter"),
            ("term.turn.us.x", "1", "what comes before x has no keys"),
            ("servos.cuont", "1", "unknown field `cuont`"),
            ("servos.count", "many", "invalid type"),
            ("title.x", "1", "what comes before x has no keys"),
        ];
        for (key, value, expected) in cases {
            let error = CycleBudget::parse(GOOD, &changes(&[(key, value)])).unwrap_err().to_string();
            assert!(error.starts_with("--set ") && error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_exact_frame_is_priced_bit_by_bit() {
        let text = GOOD.replace("us = 75", "can_frame = '100#5555555555555555'");
        let Price::CanExact(us) = CycleBudget::parse(&text, &[]).unwrap().terms[1].price else { panic!() };
        // 17 + 12 and 2 stuff bits at 1 Mbit/s; 5 + 64 + 28 at 5 Mbit/s without one: the length code 1000 and the first
        // bit of 0x55 are only four zeros in a row.
        assert!((us - (31.0 + 97.0 / 5.0)).abs() < 1e-9, "{us}");
    }

    proptest! {
        #[test]
        fn no_figure_is_too_large_to_be_refused_or_worked_out(
            count in 0u32..1100, id: u32, bytes in 0u32..5000, extra in 0u32..5000, times in 0u32..1100,
            servos in (0u32..50, any::<u32>()), us in -1.0..2e9, log_hz in -4.0..13.0,
        ) {
            let (hz, servos) = (10f64.powf(log_hz), [servos.0, if id % 2 == 0 { count.saturating_sub(servos.0) } else { servos.1 }]);
            let text = format!(
                "title = 't'\n[servos]\ncount = {}\nfirst_id = {id}\n[rs485]\nbaud = {hz:e}\noverhead_bytes = {extra}\n\
                 [spi]\nclock_hz = {hz:e}\nhold_us = {us:e}\nholds = {times}\n[can]\nnominal_hz = {hz:e}\ndata_hz = 1e6\n\
                 [[resource]]\nname = 'a'\nparallel = true\nservos = {servos:?}\n\
                 [[term]]\nname = 'a'\nstage = 'spi'\nper = 'servo'\nspi = {bytes}\nextra_bytes = {extra}\ntimes = {times}\n\
                 [[term]]\nname = 'b'\nstage = 'host-wire'\nrs485 = {bytes}\n\
                 [[term]]\nname = 'c'\nstage = 'can'\nper = 'servo'\ncan = {}\nid = 'reply'\n",
                count, bytes % 70,
            );
            for text in [text.clone(), text.replace(&format!("servos = {servos:?}"), "buses = 3")] {
                if let Ok(budget) = CycleBudget::parse(&text, &[]) {
                    forecast(&budget, Sampling { cycles: 1, seed: 1 });
                }
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[a-z0-9#=.\\[\\]'\n{}-]{0,80}", key in "[a-z.]{0,20}", value in ".{0,10}") {
            let _ = CycleBudget::parse(&text, &[]);
            let _ = CycleBudget::parse(GOOD, &[(key, value)]);
            let _ = CycleBudget::parse(&GOOD.replace("us = 75", &format!("can_frame = '{text}'").replace('\n', "")), &[]);
        }
    }
}
