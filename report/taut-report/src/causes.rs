//! Causes in the terminal: causes of the tail, hypotheses, predictions, recommendations, and single messages on
//! their thread lanes.

use comfy_table::CellAlignment;
use taut_analysis::{
    Cause, CauseShare, Chain, Contribution, Explained, Hypothesis, MessagePath, Mode, Party, Prediction,
    Recommendation, Selected, State,
};

use crate::{
    Named, Style,
    cause_classes::letter,
    console::{bar, hop_name, indent, on_cause, table, wrap},
    points,
    short_chains::short_chains,
    words,
};

/// Cells of a lane.
const LANE_WIDTH: usize = 72;
/// Causes below this share are shown together.
const SHOWN_SHARE: f64 = 0.01;
/// Parties of a cause that are shown one by one.
const PARTIES_MAX: usize = 4;
/// Causes that have a column in the table of hops.
const HOP_CAUSES_MAX: usize = 4;
/// Lines of a table that a report shows before it says how many more there are.
const LINES_MAX: usize = 8;

/// What `taut explain` was asked for in particular.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Messages to draw on their lanes; the worst one when empty.
    pub messages: &'a [u64],
    /// Hypotheses were named: their results are the answer, all else is how it came about.
    pub hypotheses: bool,
}

/// What `taut explain` prints.
pub fn explanation(named: Named<'_>, asked: Asked<'_>, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(named.name));
    out.extend(crate::headline::failure(named.analysis).map(|sentence| format!("\n{sentence}\n")));
    let is_asked = asked.hypotheses || !asked.messages.is_empty();
    let (told, listed) = if is_asked {
        (named.analysis.chains.iter().collect(), Vec::new())
    } else {
        points::told_and_listed(named.analysis)
    };
    for chain in told {
        out += &format!("\n{}\n", style.bold(&chain.name));
        if asked.hypotheses {
            out += &format!("\n{}", hypotheses(&chain.explained, style));
        }
        out += &section(chain, style, if asked.hypotheses { Form::WithoutHypotheses } else { Form::Whole });
        out += &messages(chain, asked, style);
    }
    out += &short_chains(&listed, style);
    for note in &named.analysis.notes {
        out += &format!("\n{} {}\n", style.dim("note:"), wrap(note, 92).replace('\n', "\n      "));
    }
    out
}

/// The short form, for a report.
pub(crate) fn summary(chain: &Chain, style: Style) -> String {
    section(chain, style, Form::Short)
}

/// How much of a chain's explanation is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// No responsible parties, and only the first three recommendations.
    Short,
    Whole,
    /// They stand above.
    WithoutHypotheses,
}

/// The messages that are drawn on lanes: those asked for, else the worst.
pub(crate) fn drawn<'a>(explained: &'a Explained, asked: Asked<'_>) -> Vec<&'a MessagePath> {
    let is_asked = |path: &&MessagePath| asked.messages.contains(&path.time.id);
    let paths: Vec<_> = explained.paths.iter().filter(|path| is_seen(path)).collect();
    if asked.messages.is_empty() {
        paths.into_iter().take(1).collect()
    } else {
        paths.into_iter().filter(is_asked).collect()
    }
}

/// Whether anything of the message's way is known.
fn is_seen(path: &MessagePath) -> bool {
    path.path.iter().any(|piece| piece.cause != Cause::Unknown)
}

/// One sentence: the tail's causes.
pub(crate) fn sentence(explained: &Explained) -> String {
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
            format!("the cause of {tail} is mostly unknown: only kernel events show it (the full tier of taut record)")
        }
        Some(_) => {
            let parts = sums.iter().take(3).filter(|(_, share)| *share >= 0.01);
            let parts: Vec<String> = parts.map(|(c, s)| format!("{} {:.0} %", c.word(), 100.0 * s)).collect();
            format!("excess of {tail} over typical messages, by cause: {}", parts.join(", "))
        }
    }
}

fn section(chain: &Chain, style: Style, form: Form) -> String {
    let explained = &chain.explained;
    let mut out = format!("\n  {}\n", wrap(&crate::headline::capital(&sentence(explained)), 96).replace('\n', "\n  "));
    let is_blind = explained.causes.iter().all(|share| share.cause == Cause::Unknown);
    if explained.tail_messages == 0 || is_blind {
        return out;
    }
    let mut shares = table(&["cause", "of the excess", "ms", "typical, ms", "messages"]);
    for row in grouped(explained) {
        let name = format!("{}{}", if row.is_party { "  " } else { "" }, row.name);
        shares.add_row([
            name.chars().take(42).collect(),
            format!("{} {:>3.0} %", bar(row.share), 100.0 * row.share),
            words::sum_of_milliseconds(row.time_ns),
            words::sum_of_milliseconds(row.typical_ns),
            row.messages.map_or(String::new(), words::count),
        ]);
    }
    out += &format!("\n{}", indent(&shares));
    if !matches!(explained.selected, Selected::Missed | Selected::Overran) {
        let below = format!("messages of up to {} were not examined", words::duration(explained.tail_limit_ns));
        out += &format!("  {}\n", style.dim(&below));
    }
    out += &hop_table(chain);
    for mode in &explained.modes {
        out += &format!("\n  {}\n", wrap(&self::mode(mode), 96).replace('\n', "\n  "));
    }
    if form != Form::Short && !explained.responsible.is_empty() {
        let mut responsible = table(&["responsible", "ms", "messages", "how"]);
        for party in explained.responsible.iter().filter(|c| !is_said(c, explained)).take(LINES_MAX) {
            let how: Vec<&str> = party.causes.iter().map(|cause| cause.word()).collect();
            responsible.add_row([
                format!("{} {}", party.kind, party.name).chars().take(44).collect(),
                words::sum_of_milliseconds(party.time_ns),
                words::count(party.messages),
                how.join(", ").chars().take(30).collect(),
            ]);
        }
        out += &format!("\n{}", indent(&responsible));
    }
    if form != Form::WithoutHypotheses {
        out += &format!("\n{}", hypotheses(explained, style));
    }
    if !explained.predictions.is_empty() {
        let of = gain_of(explained);
        let mut shown = table(&[
            "predicted, ms",
            "p50",
            "p95",
            "p99",
            &format!("95 % interval of {of}"),
            &format!("change of {of}"),
        ]);
        for row in predictions(explained) {
            shown.add_row(row.map(|text| text.chars().take(28).collect::<String>()));
        }
        out += &format!("\n{}", indent(&shown));
        let replayed = explained.predictions.iter().any(|found| found.is_replayed);
        let assumed = match replayed {
            true => {
                "the recorded messages run again without the cause: what queued behind it moves up; nothing takes its place"
            }
            false => "each assumes that nothing else takes the cause's place",
        };
        out += &format!("  {}\n", style.dim(assumed));
    }
    if !explained.recommendations.is_empty() {
        out += "\n";
    }
    let most = if form == Form::Short { 3 } else { usize::MAX };
    for (at, recommendation) in explained.recommendations.iter().take(most).enumerate() {
        let text = format!("{}. {}", at + 1, self::recommendation(recommendation));
        out += &format!("  {}\n", wrap(&text, 96).replace('\n', "\n     "));
    }
    out
}

/// Whether a process is its only culpable thread over again.
fn is_said(party: &Party, explained: &Explained) -> bool {
    let same = |other: &Party| other.kind == "thread" && other.name == party.name && other.time_ns == party.time_ns;
    party.kind == "process" && explained.responsible.iter().any(same)
}

/// The results for hypotheses, a line or two each; those that contribute stand out.
fn hypotheses(explained: &Explained, style: Style) -> String {
    let one = |sentence: String| {
        let text = wrap(&sentence, 92).replace('\n', "\n      ");
        format!("  {}\n", if sentence.contains(" contributes ") { style.bold(&text) } else { text })
    };
    results(explained).into_iter().map(one).collect()
}

/// A sentence for each hypothesis that contributes, is undecided, or was named by the user, and for each named lock; one for all
/// the others together.
pub(crate) fn results(explained: &Explained) -> Vec<String> {
    let is_short = |hypothesis: &&Hypothesis| {
        hypothesis.result == Contribution::DoesNotContribute
            && !hypothesis.is_asked
            // Addresses are of locks without a name: inside libraries, mostly.
            && (!hypothesis.hypothesis.starts_with("lock:") || hypothesis.hypothesis.starts_with("lock:0x"))
    };
    let (short, long): (Vec<&Hypothesis>, Vec<&Hypothesis>) = explained.hypotheses.iter().partition(is_short);
    let mut sentences: Vec<String> = long.iter().map(|hypothesis| hypothesis.sentence.clone()).collect();
    if !short.is_empty() {
        let names: Vec<&str> = short.iter().map(|hypothesis| hypothesis.hypothesis.as_str()).collect();
        sentences.push(format!("below 5 % of the excess each, by the upper bound: {}", names.join(", ")));
    }
    sentences
}

/// A row of the table of causes.
pub(crate) struct CauseRow {
    pub name: String,
    /// A part of the row of its cause above.
    pub is_party: bool,
    pub share: f64,
    pub time_ns: u64,
    /// What as many typical messages spend so.
    pub typical_ns: u64,
    /// Explained messages affected; `None` for sums over several causes.
    pub messages: Option<u64>,
}

/// Each cause of weight with its parties inside, the others as one row, and the sum.
pub(crate) fn grouped(explained: &Explained) -> Vec<CauseRow> {
    let row = |name: String, is_party, share: &CauseShare| CauseRow {
        name,
        is_party,
        share: share.tail_share,
        time_ns: share.time_ns,
        typical_ns: share.typical_ns * explained.tail_messages,
        messages: Some(share.messages),
    };
    let sum = |name: &str, all: &[&CauseShare]| CauseRow {
        name: name.into(),
        is_party: false,
        share: all.iter().map(|share| share.tail_share).sum(),
        time_ns: all.iter().map(|share| share.time_ns).sum(),
        typical_ns: all.iter().map(|share| share.typical_ns * explained.tail_messages).sum(),
        messages: None,
    };
    let mut rows = Vec::new();
    let is_shown = |share: &&CauseShare| share.tail_share >= SHOWN_SHARE;
    for cause in explained.by_cause.iter().filter(is_shown) {
        let parties: Vec<&CauseShare> = explained.causes.iter().filter(|share| share.cause == cause.cause).collect();
        let word = cause.cause.word();
        if let [one] = parties[..] {
            let detail = if one.detail.is_empty() { String::new() } else { format!(" {}", one.detail) };
            rows.push(row(format!("{word}{detail}"), false, cause));
            continue;
        }
        rows.push(row(word.to_owned(), false, cause));
        let shown: Vec<&CauseShare> = parties.iter().copied().filter(is_shown).take(PARTIES_MAX).collect();
        let own = if cause.cause == Cause::Wakeup { "a CPU leaving idle" } else { "in the threads that stamp" };
        rows.extend(
            shown
                .iter()
                .map(|share| row(if share.detail.is_empty() { own.into() } else { share.detail.clone() }, true, share)),
        );
        let rest: Vec<&CauseShare> =
            parties.into_iter().filter(|share| !shown.iter().any(|s| std::ptr::eq(*s, *share))).collect();
        if !rest.is_empty() && !shown.is_empty() {
            rows.push(CauseRow { is_party: true, ..sum(&words::quantity(rest.len() as u64, "other"), &rest) });
        }
    }
    let rest: Vec<&CauseShare> = explained.by_cause.iter().filter(|share| !is_shown(share)).collect();
    if !rest.is_empty() {
        rows.push(sum("other", &rest));
    }
    rows.push(sum("total", &explained.by_cause.iter().collect::<Vec<_>>()));
    rows
}

/// Hops by causes: shares of the excess in per cent; empty where one hop has all of it.
fn hop_table(chain: &Chain) -> String {
    let explained = &chain.explained;
    let share = |hop: usize, cause: Option<Cause>, not: &[Cause]| -> f64 {
        let of = |share: &&CauseShare| cause.map_or(!not.contains(&share.cause), |cause| share.cause == cause);
        explained.hops[hop].iter().filter(of).map(|share| share.tail_share).sum()
    };
    let hops: Vec<usize> = (0..explained.hops.len()).filter(|hop| share(*hop, None, &[]) >= 0.005).collect();
    let most = explained.by_cause.iter().filter(|share| share.tail_share >= SHOWN_SHARE).take(HOP_CAUSES_MAX);
    let causes: Vec<Cause> = most.map(|share| share.cause).collect();
    if hops.len() < 2 || causes.is_empty() {
        return String::new();
    }
    let mut head = vec!["% of the excess"];
    head.extend(causes.iter().map(|cause| cause.word()));
    head.extend(["other", "total"]);
    let mut rows = table(&head);
    for hop in hops {
        let name = chain.hops.get(hop).map_or(String::new(), |hop| hop_name(&hop.from, &hop.to));
        let mut row = vec![name];
        let cells = causes.iter().map(|cause| share(hop, Some(*cause), &[]));
        let cells = cells.chain([share(hop, None, &causes), share(hop, None, &[])]);
        row.extend(cells.map(|share| if share < 0.005 { "–".into() } else { format!("{:.0}", 100.0 * share) }));
        rows.add_row(row);
    }
    format!("\n{}", indent(&rows))
}

/// "2.0 % of the messages (40) take 3.20 ms (3.00 to 3.40): lock calib_mutex 98 % of what they exceed typical ones by".
pub(crate) fn mode(mode: &Mode) -> String {
    let cause = |(cause, detail, share): &(Cause, String, f64)| {
        let detail = if detail.is_empty() { String::new() } else { format!(" {detail}") };
        format!("{}{detail} {:.0} %", cause.word(), 100.0 * share)
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

/// "gil is 61 % of the excess: …: give the loop … (−55 % of p99 predicted)".
pub(crate) fn recommendation(recommendation: &Recommendation) -> String {
    let gain = match recommendation.gain {
        gain if gain.abs() < 0.005 => String::new(),
        gain => format!(" ({} predicted)", words::change(gain)),
    };
    format!("{}: {}{gain}", recommendation.evidence, recommendation.remedy)
}

/// The quantile that predictions show the change of.
pub(crate) fn gain_of(explained: &Explained) -> String {
    explained.predictions.iter().find_map(|found| found.gain_quantile).map_or("–".into(), words::quantile)
}

/// What predictions say, a row each: first as measured, then without each cause.
pub(crate) fn predictions(explained: &Explained) -> Vec<[String; 6]> {
    let at = |found: &Prediction, q: f64| found.quantiles.iter().find(|of| of.quantile == q).copied();
    let ms = |ns: Option<u64>| words::milliseconds(ns);
    let mut rows = Vec::new();
    if let Some(first) = explained.predictions.first() {
        let before = |q| ms(at(first, q).map(|of| of.before_ns));
        rows.push(["as measured".into(), before(0.5), before(0.95), before(0.99), String::new(), String::new()]);
    }
    for found in &explained.predictions {
        let after = |q| ms(at(found, q).map(|of| of.after_ns));
        let interval = found.gain_quantile.and_then(|q| at(found, q)).map(|of| of.interval_ns);
        let interval = interval.map_or("–".into(), |(low, high)| format!("{} – {}", ms(Some(low)), ms(Some(high))));
        let name = format!("without {}", found.without);
        rows.push([name, after(0.5), after(0.95), after(0.99), interval, words::change(found.gain)]);
    }
    rows
}

/// The time by cause of each message that comes with its path; then some of them on lanes.
fn messages(chain: &Chain, asked: Asked<'_>, style: Style) -> String {
    let paths = &chain.explained.paths;
    if !paths.iter().any(is_seen) {
        return String::new();
    }
    let mut out = format!("\n  {}\n", style.bold("Messages, worst first: µs and share of the message"));
    for path in paths {
        out += &message_time(path);
    }
    for path in drawn(&chain.explained, asked) {
        out += &lanes(chain, path, style);
    }
    out
}

/// "   1734  11.0 ms  gil 8000 73 % · work 2600 24 %".
fn message_time(path: &MessagePath) -> String {
    let time = &path.time;
    let total = time.total_ns.max(1) as f64;
    let mut sums: Vec<(Cause, u64)> = Vec::new();
    for piece in &time.pieces {
        match sums.iter_mut().find(|(cause, _)| *cause == piece.cause) {
            Some((_, ns)) => *ns += piece.ns,
            None => sums.push((piece.cause, piece.ns)),
        }
    }
    sums.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
    let part = |(cause, ns): &(Cause, u64)| {
        format!("{} {:.0} {:.0} %", cause.word(), *ns as f64 / 1e3, 100.0 * *ns as f64 / total)
    };
    let mut line = format!("{:>10} {:>8}  ", time.id, words::duration(time.total_ns));
    for (at, sum) in sums.iter().take(5).enumerate() {
        let part = format!("{}{}", if at == 0 { "" } else { " · " }, part(sum));
        // Whole parts only: the smallest are left out, never cut in two.
        if line.chars().count() + part.chars().count() > 98 {
            break;
        }
        line += &part;
    }
    format!("  {line}\n")
}

/// The message's path: which thread's time it was, and the pieces in words.
pub(crate) fn lanes(chain: &Chain, path: &MessagePath, style: Style) -> String {
    let (start, total) = (path.time.start_ns, path.time.total_ns.max(1));
    let mut out =
        format!("\n  {}\n", style.bold(&format!("Message {}: {}", path.time.id, words::duration(path.time.total_ns))));
    let cell = |ns: u64| ((ns.saturating_sub(start)) as u128 * LANE_WIDTH as u128 / total as u128) as usize;
    for (at, lane) in path.lanes.iter().enumerate() {
        let mut cells = vec![(' ', None); LANE_WIDTH];
        for (from, to, state) in &lane.states {
            let (from, to) = (cell(*from), cell(*to));
            for cell in &mut cells[from.min(LANE_WIDTH)..to.min(LANE_WIDTH)] {
                cell.0 = mark(*state);
            }
        }
        // Short pieces first: a cell shows the longest piece that touches it.
        let mut pieces: Vec<_> = path.path.iter().filter(|piece| piece.lane == at).collect();
        pieces.sort_by_key(|piece| piece.to_ns - piece.from_ns);
        for piece in pieces {
            let (from, to) = (cell(piece.from_ns), cell(piece.to_ns).max(cell(piece.from_ns) + 1));
            for cell in &mut cells[from.min(LANE_WIDTH - 1)..to.min(LANE_WIDTH)] {
                *cell = (letter(piece.cause), Some(piece.cause));
            }
        }
        let text: String = cells.iter().map(|(letter, cause)| on_cause(style, *letter, *cause)).collect();
        out += &format!("  {:>22} │{text}│\n", lane.thread.chars().take(22).collect::<String>());
    }
    let mut seen: Vec<Cause> = path.path.iter().map(|piece| piece.cause).collect();
    seen.sort_unstable();
    seen.dedup();
    let legend: Vec<String> =
        seen.iter().map(|c| format!("{} {}", on_cause(style, letter(*c), Some(*c)), c.word())).collect();
    let off = "off the path: ─ running  ~ ready to run  · waiting";
    out += &format!("  {:>22}  {}\n  {:>22}  {}\n\n", "", legend.join("  "), "", style.dim(off));
    let mut pieces = table(&["at, µs", "µs", "%", "cause", "thread, detail"]);
    for column in [3, 4] {
        if let Some(column) = pieces.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Left);
        }
    }
    let mut hop = usize::MAX;
    for piece in &path.path {
        if piece.hop != hop {
            hop = piece.hop;
            let name = chain.hops.get(hop).map_or(String::new(), |h| one_line(&h.from, &h.to));
            pieces.add_row(["", "", "", "", &name]);
        }
        let ns = piece.to_ns - piece.from_ns;
        let thread = path.lanes.get(piece.lane).map_or("", |lane| lane.thread.as_str());
        let text = [thread, &piece.detail, &piece.note].into_iter().filter(|t| !t.is_empty());
        pieces.add_row([
            format!("{:.1}", (piece.from_ns - start) as f64 / 1e3),
            format!("{:.1}", ns as f64 / 1e3),
            format!("{:.0}", 100.0 * ns as f64 / total as f64),
            piece.cause.word().to_owned(),
            wrap(&format!("  {}", text.collect::<Vec<_>>().join(": ")), 58),
        ]);
    }
    out + &indent(&pieces)
}

/// A hop's name in one line of a table, cut where there is no more room.
fn one_line(from: &str, to: &str) -> String {
    let words = hop_name(from, to);
    let name = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.chars().count() <= 58 { name } else { name.chars().take(57).chain(['…']).collect() }
}

/// What a thread did that was not on the path then.
fn mark(state: State) -> char {
    match state {
        State::Running => '─',
        State::Preempted | State::Woken => '~',
        State::Blocked => '·',
        State::Unknown => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_explanation() {
        let analysis = sample::teleop();
        let text = explanation(Named { name: "run.mcap", analysis: &analysis }, Asked::default(), Style::default());
        insta::assert_snapshot!(text);
    }

    #[test]
    fn it_fits_100_columns() {
        let mut analysis = sample::teleop();
        analysis.chains[0].explained.causes[0].detail = "x".repeat(300);
        analysis.chains[0].explained.predictions[0].without = "lock:".repeat(30);
        analysis.chains[0].explained.paths[0].path[1].note = "long words ".repeat(30);
        let text = explanation(Named { name: "run.mcap", analysis: &analysis }, Asked::default(), Style::default());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }

    #[test]
    fn hypotheses_come_first_and_once() {
        let analysis = sample::teleop();
        let asked = Asked { hypotheses: true, ..Asked::default() };
        let text = explanation(Named { name: "run.mcap", analysis: &analysis }, asked, Style::default());
        let at = |what: &str| text.find(what).unwrap();
        assert!(at("gil contributes") < at("Excess of the 9") && text.matches("gil contributes").count() == 1);
    }

    #[test]
    fn every_message_asked_for_is_drawn_and_no_other() {
        let mut analysis = sample::teleop();
        let paths = &mut analysis.chains[0].explained.paths;
        for id in [7, 8] {
            paths.push(paths[0].clone());
            paths.last_mut().unwrap().time.id = id;
        }
        let asked = Asked { messages: &[7, 8], ..Asked::default() };
        let text = explanation(Named { name: "run.mcap", analysis: &analysis }, asked, Style::default());
        assert_eq!(["Message 7:", "Message 8:", "Message 1734:"].map(|m| text.contains(m)), [true, true, false]);
    }

    #[test]
    fn where_nothing_is_known_one_sentence_says_what_it_takes() {
        let mut analysis = sample::teleop();
        let explained = &mut analysis.chains[0].explained;
        explained.causes.truncate(1);
        explained.causes[0].cause = Cause::Unknown;
        explained.by_cause = explained.causes.clone();
        explained.paths[0].path.iter_mut().for_each(|piece| piece.cause = Cause::Unknown);
        let text = explanation(Named { name: "run.mcap", analysis: &analysis }, Asked::default(), Style::default());
        assert!(text.contains("only kernel events") && text.lines().count() < 8, "{text}");
    }

    #[test]
    fn every_cause_has_a_letter_of_its_own() {
        let mut letters = Cause::ALL.map(letter).to_vec();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), Cause::ALL.len());
    }
}
