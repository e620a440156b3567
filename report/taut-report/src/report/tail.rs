//! Why the tail is late: causes by share of the excess, hypotheses, predictions, recommendations.

use taut_analysis::{
    Cause, CauseShare, Chain, Contribution, Explained, Hypothesis, Mode, ModeCause, Party, Prediction, Recommendation,
    Selected, SourceKind,
};
use taut_document::{
    Axis, AxisScale, Block, Cell, Chart, Column, Curve, Finding, LaneItem, LanePiece, LaneRow, Lanes, Mark, Quantity,
    Section, Show, Table, Text, Tone,
};

use super::{View, hop_name::hop_name};
use crate::{cause_classes, headline::capital, words};

/// Causes below this share are shown together.
const SHOWN_SHARE: f64 = 0.01;
/// Hops below this share have no row.
const HOP_SHARE: f64 = 0.005;
/// Parties of a cause that are shown one by one.
const PARTIES_MAX: usize = 4;
/// Causes that have a column in the table of hops.
const HOP_CAUSES_MAX: usize = 4;
/// Responsible parties that a terminal shows.
const RESPONSIBLE_MAX: usize = 8;
/// Recommendations in a report; a program as it is has one next step.
const RECOMMENDED: usize = 3;
const RECOMMENDED_UNMODIFIED: usize = 1;
/// When a result is which.
const RULE: &str = "A cause contributes if the 95 % interval of its share of the excess lies at or above 5 %, and does not if it lies below; \
                    else it is undecided.";
/// The two causes that readers take for one.
const WAITS_FOR_CPU: &str =
    "wakeup and preempted are waits for a CPU: after being woken, and after another thread was given it";
/// Shares of less get no word on why their prediction is small.
const EXPLAINED_SHARE: f64 = 0.1;

pub(super) fn sections(chain: &Chain, view: View<'_>) -> Vec<Section> {
    let explained = &chain.explained;
    let summary = Block::Text(capital(&sentence(explained)).into());
    let is_blind = explained.causes.iter().all(|share| share.cause == Cause::Unknown);
    if explained.tail_messages == 0 || is_blind {
        return vec![Section::new(2, "Causes", vec![summary])];
    }
    let above = matches!(view, View::Explanation(asked) if asked.hypotheses);
    let findings = results(explained);
    let rule = (!findings.is_empty()).then_some(Block::Text(RULE.into()));
    let results = Section::new(2, "Hypotheses", rule.into_iter().chain([Block::Findings(findings)]).collect());
    let mut shares = vec![by_cause(explained).into()];
    shares.extend(by_hop(chain).map(Block::from));
    shares.extend(explained.modes.iter().map(|of| Block::Text(mode(of).into())));
    let mut sections = Vec::new();
    sections.extend(above.then(|| results.clone()));
    sections.push(Section::new(2, "Causes", vec![summary]));
    sections.extend(excess(chain).map(|lanes| Section::new(2, "", vec![Block::Lanes(lanes)]).shown(Show::Page)));
    sections.push(Section::new(2, "", shares));
    sections.push(Section::new(2, "", vec![responsible(explained).into()]).shown(view.in_explanation()));
    sections.extend((!above).then_some(results));
    sections.extend(predictions(explained));
    sections.extend(recommendations(chain, view));
    sections.retain(|section| !section.blocks.iter().all(is_empty));
    sections
}

/// What would be a heading without anything below it.
fn is_empty(block: &Block) -> bool {
    match block {
        Block::Findings(findings) => findings.is_empty(),
        Block::Table(table) => table.rows.is_empty(),
        _ => false,
    }
}

/// One sentence: the tail's causes.
fn sentence(explained: &Explained) -> String {
    let limit = words::duration(explained.tail_limit_ns);
    let messages = words::quantity(explained.tail_messages, "message");
    let tail = match explained.selected {
        Selected::Nothing => return "there are too few messages for a tail".into(),
        _ if explained.tail_messages == 0 => return format!("no message took longer than {limit}"),
        Selected::Tail(quantile) | Selected::AboveQuantile(quantile) => {
            format!("the {messages} above {} ({limit})", words::quantile(quantile))
        }
        Selected::Missed => format!("the {messages} that missed the deadline of {limit}"),
        Selected::Overran => format!("the {messages} that took longer than the period of {limit}"),
        Selected::AboveTime => format!("the {messages} above {limit}"),
    };
    let sums: Vec<(Cause, f64)> = explained.by_cause.iter().map(|share| (share.cause, share.tail_share)).collect();
    match sums.first() {
        None | Some((Cause::Unknown, _)) => {
            format!(
                "the cause of most of the excess of {tail} is unknown: kernel events show what threads wait for (the full tier of taut record)"
            )
        }
        Some(_) => {
            let parts = sums.iter().take(3).filter(|(_, share)| *share >= 0.01);
            let parts: Vec<String> = parts.map(|(c, s)| format!("{} {:.0} %", c.word(), 100.0 * s)).collect();
            format!("excess of {tail} over typical messages, by cause: {}", parts.join(", "))
        }
    }
}

/// What a message of the tail is slower by than a typical one: a row for the chain and one for each hop that has a part in it.
fn excess(chain: &Chain) -> Option<Lanes> {
    let explained = &chain.explained;
    let messages = explained.tail_messages.max(1);
    let total = explained.by_cause.iter().map(|share| share.excess_ns).sum::<u64>() as f64 / messages as f64;
    let mut item = LaneItem {
        title: format!("The excess of a message of the tail is {} on average", words::scaled(total)).into(),
        to_ns: total.max(0.0) as u64,
        ..LaneItem::default()
    };
    let mut row = |name: String, shares: &[CauseShare]| {
        let mut from_ns = 0;
        for cause in explained.by_cause.iter().map(|of| of.cause) {
            let share: f64 = shares.iter().filter(|of| of.cause == cause).map(|of| of.tail_share).sum();
            let to_ns = from_ns + (share * total).max(0.0) as u64;
            let text = format!(
                "{} {}: {} of the excess",
                cause.word(),
                words::duration(to_ns - from_ns),
                words::percent(share)
            );
            let class = cause as usize;
            item.pieces.extend((to_ns > from_ns).then_some(LanePiece {
                row: item.rows.len(),
                from_ns,
                to_ns,
                class,
                text,
            }));
            from_ns = to_ns;
        }
        item.rows.push(LaneRow { name, ..LaneRow::default() });
    };
    row("all hops".into(), &explained.by_cause);
    if chain.hops.len() > 1 && divides_hops(explained) {
        let is_shown = |shares: &Vec<CauseShare>| shares.iter().map(|of| of.tail_share).sum::<f64>() >= HOP_SHARE;
        for (hop, shares) in chain.hops.iter().zip(&explained.hops).filter(|(_, shares)| is_shown(shares)) {
            row(hop_name(&hop.from, &hop.to).plain(), shares);
        }
    }
    (total >= 1.0).then(|| Lanes { items: vec![item], classes: cause_classes::classes() })
}

/// Each cause of weight with its parties inside, the others as one row, and the sum.
fn by_cause(explained: &Explained) -> Table {
    let mut table = Table::new(["cause", "of the excess", "excess", "all such time", "in messages"]);
    table.columns[1].bar = true;
    let late = explained.tail_messages.max(1);
    let typical = format!(
        "Times are averages over the {}. The excess of a message is by how much longer each cause took than in typical ones: the \
         middle fifth of all by duration",
        words::quantity(late, "late message")
    );
    table.caption = match explained.selected {
        Selected::Missed | Selected::Overran => typical.into(),
        _ => {
            let limit = words::duration(explained.tail_limit_ns);
            format!("{typical}. What else delays messages of up to {limit} was not examined").into()
        }
    };
    let waits_for_cpu =
        |share: &CauseShare| matches!(share.cause, Cause::Wakeup | Cause::Preempted) && share.tail_share >= SHOWN_SHARE;
    if explained.by_cause.iter().any(waits_for_cpu) {
        table.caption = table.caption.and(format!(". {WAITS_FOR_CPU}"));
    }
    let mut row = |name: String, indent, share: &CauseShare, messages: Option<u64>| {
        let messages = messages.map_or(Cell::Empty, Cell::Count);
        let times = [share.excess_ns, share.time_ns].map(|ns| Cell::Time(ns / late));
        let cells = [Cell::text(name), Cell::Share(share.tail_share)].into_iter().chain(times).chain([messages]);
        table.add(cells).indent = indent;
    };
    let is_shown = |share: &&CauseShare| share.tail_share >= SHOWN_SHARE;
    for cause in explained.by_cause.iter().filter(is_shown) {
        let parties: Vec<&CauseShare> = explained.causes.iter().filter(|share| share.cause == cause.cause).collect();
        let word = cause.cause.word();
        if let [one] = parties[..] {
            let name = format!("{word} {}", cause.cause.party(&explained.named(&one.detail)));
            row(name.trim_end().to_owned(), 0, cause, Some(cause.messages));
            continue;
        }
        row(word.to_owned(), 0, cause, Some(cause.messages));
        let (shown, rest): (Vec<&CauseShare>, Vec<&CauseShare>) = parties.into_iter().partition(is_shown);
        let (shown, more) = shown.split_at(shown.len().min(PARTIES_MAX));
        let own = match cause.cause {
            Cause::Wakeup => "a CPU leaving idle",
            Cause::Unknown => "without evidence",
            _ => "in the chain's own threads",
        };
        for share in shown {
            let party = || cause.cause.party(&explained.named(&share.detail));
            let name = if share.detail.is_empty() { own.to_owned() } else { party() };
            row(name, 1, share, Some(share.messages));
        }
        let rest = [more, &rest].concat();
        if !rest.is_empty() && !shown.is_empty() {
            row(words::quantity(rest.len() as u64, "other"), 1, &sum(&rest), None);
        }
    }
    let rest: Vec<&CauseShare> = explained.by_cause.iter().filter(|share| !is_shown(share)).collect();
    if !rest.is_empty() {
        row("other".into(), 0, &sum(&rest), None);
    }
    row("total".into(), 0, &sum(&explained.by_cause.iter().collect::<Vec<_>>()), None);
    table
}

fn sum(all: &[&CauseShare]) -> CauseShare {
    CauseShare {
        tail_share: all.iter().map(|share| share.tail_share).sum(),
        excess_ns: all.iter().map(|share| share.excess_ns).sum(),
        time_ns: all.iter().map(|share| share.time_ns).sum(),
        ..CauseShare::default()
    }
}

/// Whether the shares of hops are those of their causes. Where most is unknown they are by delays, and others beside them would contradict.
fn divides_hops(explained: &Explained) -> bool {
    explained.by_cause.first().is_some_and(|share| share.cause != Cause::Unknown)
}

/// Hops by causes; nothing where one hop has all of the excess.
fn by_hop(chain: &Chain) -> Option<Table> {
    let explained = &chain.explained;
    let share = |hop: usize, cause: Option<Cause>, not: &[Cause]| -> f64 {
        let of = |share: &&CauseShare| cause.map_or(!not.contains(&share.cause), |cause| share.cause == cause);
        explained.hops[hop].iter().filter(of).map(|share| share.tail_share).sum()
    };
    let is_shown = |hop: &usize| divides_hops(explained) && share(*hop, None, &[]) >= HOP_SHARE;
    let hops: Vec<usize> = (0..explained.hops.len()).filter(is_shown).collect();
    let most = explained.by_cause.iter().filter(|share| share.tail_share >= SHOWN_SHARE).take(HOP_CAUSES_MAX);
    let causes: Vec<Cause> = most.map(|share| share.cause).collect();
    if hops.len() < 2 || causes.is_empty() {
        return None;
    }
    let names = ["of the excess"].into_iter().chain(causes.iter().map(|cause| cause.word())).chain(["other", "total"]);
    let column = |(at, name): (usize, &str)| Column { name: name.to_owned(), wraps: at == 0, ..Column::default() };
    let mut table = Table { columns: names.enumerate().map(column).collect(), ..Table::default() };
    let mut row = |name: Text, hops: &[usize]| {
        let sum = |cause: Option<Cause>, not: &[Cause]| hops.iter().map(|hop| share(*hop, cause, not)).sum();
        let shares = causes.iter().map(|cause| sum(Some(*cause), &[])).chain([sum(None, &causes), sum(None, &[])]);
        let cell = |share| if share == 0.0 { Cell::Missing } else { Cell::Share(share) };
        table.add([Cell::text(name)].into_iter().chain(shares.map(cell)));
    };
    for hop in &hops {
        row(chain.hops.get(*hop).map_or(Text::default(), |hop| hop_name(&hop.from, &hop.to)), &[*hop]);
    }
    let rest: Vec<usize> = (0..explained.hops.len()).filter(|hop| !hops.contains(hop)).collect();
    if rest.iter().any(|hop| share(*hop, None, &[]) > 0.0) {
        row(words::quantity(rest.len() as u64, "other hop").into(), &rest);
    }
    row("total".into(), &(0..explained.hops.len()).collect::<Vec<_>>());
    table.without_missing();
    Some(table)
}

/// "2.0 % of the messages (40) take 3.20 ms (3.00 to 3.40): lock calib_mutex 98 % of what they exceed typical ones by".
fn mode(mode: &Mode) -> String {
    let cause = |of: &ModeCause| {
        let party = of.cause.party(&of.detail);
        let space = if party.is_empty() { "" } else { " " };
        format!("{}{space}{party} {:.0} %", of.cause.word(), 100.0 * of.share)
    };
    let causes: Vec<String> = mode.causes.iter().map(cause).collect();
    format!(
        "A mode of its own: {} of the messages ({}) take about {} ({} to {}); beyond typical ones they have {}",
        words::percent(mode.share),
        words::count(mode.messages),
        words::duration(mode.p50_ns),
        words::duration(mode.from_ns),
        words::duration(mode.to_ns),
        if causes.is_empty() { "no cause of weight".into() } else { causes.join(", ") },
    )
}

fn responsible(explained: &Explained) -> Table {
    let mut table = Table::new(["responsible", "per late message", "in messages", "how"]);
    table.columns[3].wraps = true;
    let late = explained.tail_messages.max(1);
    let parties = || explained.responsible.iter().filter(|party| !is_said(party, explained));
    let nested = match parties().any(|party| party.kind == "process") {
        true => "; a process has the time of its threads, too",
        false => "",
    };
    table.caption = format!("Times are averages over the {}{nested}", words::quantity(late, "late message")).into();
    table.shown = RESPONSIBLE_MAX;
    for party in parties() {
        let how: Vec<&str> = party.causes.iter().map(|cause| cause.word()).collect();
        let name = Cell::text(format!("{} {}", party.kind, explained.named(&party.name)));
        table.row([name, Cell::Time(party.time_ns / late), Cell::Count(party.messages), Cell::text(how.join(", "))]);
    }
    table
}

/// Whether a process is its only culpable thread over again.
fn is_said(party: &Party, explained: &Explained) -> bool {
    let same = |other: &Party| other.kind == "thread" && other.name == party.name && other.time_ns == party.time_ns;
    party.kind == "process" && explained.responsible.iter().any(same)
}

/// A finding for each hypothesis that contributes, is undecided, or was named by the user, and for each named lock; one for all
/// the others together, and one for those that nothing but unknown time may be.
fn results(explained: &Explained) -> Vec<Finding> {
    let is_hidden =
        |of: &Hypothesis| of.result == Contribution::Undecided && of.touched > 0 && of.tail_share_interval.1 < 0.05;
    let is_short = |hypothesis: &&Hypothesis| {
        (hypothesis.result == Contribution::DoesNotContribute || is_hidden(hypothesis))
            && !hypothesis.is_asked
            // Addresses are of locks without a name: inside libraries, mostly.
            && (!hypothesis.hypothesis.starts_with("lock:") || hypothesis.hypothesis.starts_with("lock:0x"))
    };
    let (short, long): (Vec<&Hypothesis>, Vec<&Hypothesis>) = explained.hypotheses.iter().partition(is_short);
    let mut findings: Vec<Finding> = long.into_iter().map(|of| result(of, &explained.named(&of.hypothesis))).collect();
    let (hidden, short): (Vec<&Hypothesis>, Vec<&Hypothesis>) = short.into_iter().partition(|of| is_hidden(of));
    let together = |all: &[&Hypothesis], label: &str, what: &str| {
        let names = all.iter().map(|hypothesis| hypothesis.hypothesis.as_str());
        let (unnamed, named): (Vec<&str>, Vec<&str>) = names.partition(|name| name.starts_with("lock:0x"));
        let many = format!("{} without a name", words::quantity(unnamed.len() as u64, "lock"));
        let names: Vec<&str> = named.into_iter().chain((!unnamed.is_empty()).then_some(many.as_str())).collect();
        let text = format!("each has less than 5 % of the excess, {what}: {}", names.join(", ")).into();
        Finding { tone: Tone::Quiet, label: label.into(), text, ..Finding::default() }
    };
    if !short.is_empty() {
        findings.push(together(&short, "does not contribute", "by the upper bound"));
    }
    if !hidden.is_empty() {
        findings.push(together(&hidden, "undecided", "but some is unknown and may be theirs"));
    }
    findings
}

fn result(of: &Hypothesis, name: &str) -> Finding {
    let (tone, label, phrase) = match of.result {
        Contribution::Contributes => (Tone::Bad, "contributes", "contributes"),
        Contribution::DoesNotContribute => (Tone::Good, "does not contribute", "does not contribute"),
        Contribution::Undecided => (Tone::Undecided, "undecided", "is undecided"),
    };
    // The label says it already.
    let text = match of.sentence.strip_prefix(&format!("{name} {phrase}")) {
        Some(rest) => Text::default().strong(name).and(format!(": {}", rest.trim_start_matches([':', ' ']))),
        None => of.sentence.as_str().into(),
    };
    Finding { tone, label: label.into(), text, ..Finding::default() }
}

/// As measured, then without each cause; on a page also as a chart.
fn predictions(explained: &Explained) -> Vec<Section> {
    let Some(first) = explained.predictions.first() else { return Vec::new() };
    let at = |found: &Prediction, q: f64| found.quantiles.iter().find(|of| of.quantile == q).copied();
    let of = explained.predictions.iter().find_map(|found| found.gain_quantile);
    let named = of.map_or("–".into(), words::quantile);
    let (interval, change) = (format!("95 % interval of {named}"), format!("change of {named}"));
    let head = ["predicted", "p50", "p95", "p99", interval.as_str(), change.as_str()];
    let mut table = Table::new(head).priorities([0, 3, 2, 0, 1, 0]);
    let replayed = explained.predictions.iter().any(|found| found.is_replayed);
    let assumed = match replayed {
        true => {
            "Each row is the recording run again without a cause: what queued behind it starts earlier, and nothing else takes its place"
        }
        false => "Each row assumes that nothing else takes the cause's place",
    };
    let of_typical =
        explained.predictions.iter().filter(|found| found.keeps_typical).map(|found| found.without.as_str());
    let of_typical: Vec<&str> = of_typical.collect();
    let assumed = match of_typical.is_empty() {
        true => assumed.to_owned(),
        false => format!("{assumed}; of {} the typical message's part stays", of_typical.join(", ")),
    };
    let is_undecided = explained.predictions.iter().any(|found| !found.is_decided());
    table.caption = match is_undecided {
        true => format!("{assumed}. Undecided: the interval holds {named} as measured"),
        false => assumed,
    }
    .into();
    let quantiles = [0.5, 0.95, 0.99];
    let before = quantiles.map(|q| Cell::time(at(first, q).map(|of| of.before_ns)));
    table.add([Cell::text("as measured")].into_iter().chain(before).chain([Cell::Empty, Cell::Empty]));
    let mut ranges = vec![of.and_then(|q| at(first, q)).map(|of| (of.before_ns, (of.before_ns, of.before_ns)))];
    for found in &explained.predictions {
        let after = quantiles.map(|q| Cell::time(at(found, q).map(|of| of.after_ns)));
        let predicted = found.gain_quantile.and_then(|q| at(found, q));
        let interval = predicted
            .map_or(Cell::Missing, |of| Cell::interval(Cell::Time(of.interval_ns.0), Cell::Time(of.interval_ns.1)));
        let name = Cell::text(format!("without {}", explained.named(&found.without)));
        let change = words::change(found.gain);
        let change = if found.is_decided() { change } else { format!("undecided {change}") };
        table.add([name].into_iter().chain(after).chain([interval, Cell::Printed(change)]));
        ranges.push(predicted.map(|of| (of.after_ns, of.interval_ns)));
    }
    table.without_missing();
    let order = of.filter(|_| !is_in_order_of_share(explained)).map(|_| {
        format!(
            "Rows are in the order of gain, by the worse end of the interval, and causes above in that of share. The orders differ: \
             a share is of all time that late messages take beyond typical ones, a gain of {named} alone."
        )
    });
    let unequal = explained.predictions.iter().filter_map(|found| less_than_its_share(found, explained));
    let texts = order.into_iter().chain(unequal).map(|text| Block::Text(text.into()));
    let blocks = [table.into()].into_iter().chain(texts).collect();
    let assumed = explained.predictions.iter().map(|found| Finding {
        label: String::new(),
        text: Text::from(format!("Without {}: {}", found.without, found.assumption)),
        ..Finding::default()
    });
    let assumed = Block::Findings(assumed.collect());
    vec![
        Section::new(2, "Predictions", blocks),
        Section::new(2, "", vec![intervals(explained, &named, &ranges).into()]).shown(Show::Page),
        Section::new(2, "What the predictions assume", vec![assumed]).shown(Show::Kept),
    ]
}

/// Whether predictions, which are in the order of gain, have the shares of their hypotheses in order, too.
fn is_in_order_of_share(explained: &Explained) -> bool {
    let share = |found: &Prediction| {
        explained.hypotheses.iter().find(|of| of.hypothesis == found.without).map(|of| of.tail_share)
    };
    let shares: Vec<f64> = explained.predictions.iter().filter_map(share).collect();
    shares.is_sorted_by(|a, b| a >= b)
}

/// Why a cause with a large share of the excess gains little at the quantile.
fn less_than_its_share(found: &Prediction, explained: &Explained) -> Option<String> {
    let of = words::quantile(found.gain_quantile?);
    let share = explained.hypotheses.iter().find(|hypothesis| hypothesis.hypothesis == found.without)?.tail_share;
    if share < EXPLAINED_SHARE || found.gain >= share / 2.0 {
        return None;
    }
    let remaining = found.remaining.iter().map(|of| format!("{} ({:.0} %)", of.cause.word(), 100.0 * of.share));
    let remaining: Vec<String> = remaining.collect();
    let rest = match remaining.is_empty() {
        true => String::new(),
        false => format!(" The excess above the new {of} is {}.", remaining.join(", ")),
    };
    // Time that is spread evenly is no reason.
    let few = match found.half_in * 4 <= explained.tail_messages {
        true => format!(
            ": half of what is saved is in {} of the {} messages",
            words::count(found.half_in),
            words::count(explained.tail_messages)
        ),
        false => String::new(),
    };
    Some(format!(
        "{} is {:.0} % of the excess, but without it {of} changes by {} only{few}.{rest}",
        capital(&explained.named(&found.without)),
        100.0 * share,
        words::change(found.gain),
    ))
}

/// The quantile that the change is of: as measured, and without each cause with its interval.
fn intervals(explained: &Explained, named: &str, ranges: &[Option<(u64, (u64, u64))>]) -> Chart {
    let without = explained.predictions.iter().map(|found| format!("without {}", found.without));
    let known = || ranges.iter().enumerate().filter_map(|(at, of)| Some((at, (*of)?)));
    let most = known().map(|(_, (ns, (_, high)))| ns.max(high)).max().unwrap_or(1);
    Chart {
        title: format!("{named} as measured and without each cause"),
        finding: "The line beside a point is its 95 % interval.".into(),
        x: Axis {
            names: ["as measured".to_owned()].into_iter().chain(without).collect(),
            ..Axis::new(Quantity::Plain, AxisScale::Linear)
        },
        y: Axis { range: Some((0.0, 1.05 * most as f64)), ..Axis::new(Quantity::Time, AxisScale::Linear) },
        curves: vec![Curve {
            name: String::new(),
            mark: Mark::Range(known().map(|(_, (_, (low, high)))| (low as f64, high as f64)).collect()),
            xy: known().map(|(at, (ns, _))| (at as f64, ns as f64)).collect(),
            tone: Tone::Series(0),
            ..Curve::default()
        }],
        ..Chart::default()
    }
}

/// What to do, the most sure gain first; a report has the first few, and its page all.
fn recommendations(chain: &Chain, view: View<'_>) -> Vec<Section> {
    let all = &chain.explained.recommendations;
    let named = chain.explained.predictions.iter().find_map(|found| found.gain_quantile).map(words::quantile);
    let named = named.map_or(String::new(), |named| format!("{named} "));
    let finding = |(at, of): (usize, &Recommendation)| {
        // Less than half a per cent is no gain.
        let sure = chain.explained.sure_prediction(&of.against).filter(|_| of.gain.abs() >= 0.005);
        let gain = sure.map_or(String::new(), |found| {
            let interval = found.interval_of_gain().map_or(String::new(), |(low, high)| {
                format!(", 95 % interval {} to {}", words::change(low), words::change(high))
            });
            format!(" ({named}{} predicted with none of it{interval})", words::change(of.gain))
        });
        Finding {
            label: format!("{}.", at + 1),
            text: Text::from(format!("{}: ", of.evidence)).strong(of.remedy.as_str()).and(gain),
            details: match view {
                View::Report => Vec::new(),
                View::Explanation(_) => vec![("verify".into(), of.verify.as_str().into())],
            },
            ..Finding::default()
        }
    };
    let mut findings: Vec<Finding> = all.iter().enumerate().map(finding).collect();
    let most = match view {
        View::Report if chain.source == SourceKind::Wakes => RECOMMENDED_UNMODIFIED,
        View::Report => RECOMMENDED,
        View::Explanation(_) => usize::MAX,
    };
    let rest = findings.split_off(findings.len().min(most));
    let verify = matches!(view, View::Report) && !findings.is_empty();
    let verify =
        verify.then(|| Block::Text("To verify: record again with the change, and compare both recordings.".into()));
    vec![
        Section::new(2, "Recommendations", [Block::Findings(findings)].into_iter().chain(verify).collect()),
        Section::new(2, "", vec![Block::Findings(rest)]).shown(Show::Page),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_small_gain_beside_a_large_share_has_its_reason() {
        let mut explained = sample::teleop().chains.swap_remove(0).explained;
        assert_eq!(less_than_its_share(&explained.predictions[0], &explained), None);
        explained.predictions[0].gain = 0.2;
        let said = |explained: &Explained| less_than_its_share(&explained.predictions[0], explained).unwrap();
        let but = "Gil is 61 % of the excess, but without it p99 changes by −20 % only";
        let rest = "The excess above the new p99 is wakeup (62 %).";
        assert_eq!(said(&explained), format!("{but}. {rest}"));
        explained.predictions[0].half_in = 2;
        assert_eq!(said(&explained), format!("{but}: half of what is saved is in 2 of the 9 messages. {rest}"));
    }

    #[test]
    fn an_order_of_gains_that_is_not_that_of_shares_has_its_reason() {
        let mut explained = sample::teleop().chains.swap_remove(0).explained;
        let says = |explained: &Explained| {
            let is_it =
                |block: &Block| matches!(block, Block::Text(text) if text.plain().contains("The orders differ"));
            predictions(explained)[0].blocks.iter().any(is_it)
        };
        assert!(!says(&explained), "one row has no order");
        let smaller = Prediction { without: "lock:sdk_lock".into(), ..explained.predictions[0].clone() };
        explained.predictions.push(smaller);
        assert!(!says(&explained), "the smaller share stands below the larger one");
        explained.predictions.swap(0, 1);
        assert!(says(&explained));
    }

    #[test]
    fn what_nothing_but_unknown_time_may_be_is_said_in_one_line() {
        let mut explained = sample::teleop().chains.swap_remove(0).explained;
        let irq = explained.hypotheses.iter_mut().find(|of| of.hypothesis == "irq").unwrap();
        (irq.result, irq.touched, irq.tail_share_interval) = (Contribution::Undecided, 7, (0.0, 0.01));
        let findings = results(&explained);
        let last = findings.last().unwrap();
        let said = "each has less than 5 % of the excess, but some is unknown and may be theirs: irq";
        assert_eq!((last.label.as_str(), last.text.plain().as_str()), ("undecided", said));
    }

    #[test]
    fn both_waits_for_a_cpu_are_known_for_one_kind() {
        let mut explained = sample::teleop().chains.swap_remove(0).explained;
        let says = |explained: &Explained| by_cause(explained).caption.plain().ends_with(WAITS_FOR_CPU);
        assert!(says(&explained));
        explained.by_cause.retain(|share| share.cause != Cause::Wakeup);
        assert!(!says(&explained), "neither is in the table");
    }

    #[test]
    fn the_time_of_threads_is_known_to_be_in_that_of_their_process() {
        let mut explained = sample::teleop().chains.swap_remove(0).explained;
        let says = |explained: &Explained| responsible(explained).caption.plain().contains("time of its threads");
        assert!(!says(&explained));
        let process = Party { kind: "process".into(), ..explained.responsible[0].clone() };
        explained.responsible.push(Party { time_ns: process.time_ns + 1, ..process });
        assert!(says(&explained));
    }

    #[test]
    fn of_what_no_message_carries_there_is_no_column() {
        let mut explained = sample::teleop().chains.swap_remove(0).explained;
        explained.predictions[0].quantiles.retain(|of| of.quantile != 0.95);
        let sections = predictions(&explained);
        let Block::Table(table) = &sections[0].blocks[0] else { panic!("the table comes first") };
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["predicted", "p50", "p99", "95 % interval of p99", "change of p99"]);
        assert!(table.rows.iter().all(|row| row.cells.len() == names.len()));
    }
}
