//! Causes in the terminal: whose time the tail is, verdicts, what-ifs, advice, and single messages on
//! their thread lanes.

use comfy_table::CellAlignment;
use taut_analysis::{Cause, Chain, Culprit, Explained, MessagePath, State};

use crate::{
    Named, Style, points,
    terminal::{bar, indent, short_chains, table, wrap},
    words,
};

/// Cells of a lane.
const LANE_WIDTH: usize = 72;
/// Lines of a table that a report shows before it says how many more there are.
const LINES_MAX: usize = 8;

/// What `taut explain` was asked for in particular.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Messages to draw on their lanes; the worst one when empty.
    pub messages: &'a [u64],
    /// Suspects were named: their verdicts are the answer, all else is how it came about.
    pub suspects: bool,
}

/// What `taut explain` prints.
pub fn explanation(named: Named<'_>, asked: Asked<'_>, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(named.name));
    let is_asked = asked.suspects || !asked.messages.is_empty();
    let (told, listed) = if is_asked {
        (named.analysis.chains.iter().collect(), Vec::new())
    } else {
        points::told_and_listed(named.analysis)
    };
    for chain in told {
        out += &format!("\n{}\n", style.bold(&chain.name));
        if asked.suspects {
            out += &format!("\n{}", verdicts(&chain.explained, style));
        }
        out += &section(chain, style, if asked.suspects { Form::WithoutVerdicts } else { Form::Whole });
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
    /// No culprits, and only the first three pieces of advice.
    Short,
    Whole,
    /// They stand above.
    WithoutVerdicts,
}

/// The messages that are drawn on lanes: those asked for, else the worst.
pub(crate) fn drawn<'a>(explained: &'a Explained, asked: Asked<'_>) -> Vec<&'a MessagePath> {
    let is_asked = |path: &&MessagePath| asked.messages.contains(&path.budget.id);
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

/// One sentence: whose time the tail is.
pub(crate) fn sentence(explained: &Explained) -> String {
    let Some(quantile) = explained.tail_quantile.filter(|_| explained.tail_messages > 0) else {
        return "there are too few messages for a tail".into();
    };
    let tail = format!(
        "the {} messages above {} ({})",
        words::count(explained.tail_messages),
        words::quantile(quantile),
        words::duration(explained.tail_limit_ns)
    );
    let mut sums: Vec<(Cause, f64)> = Vec::new();
    for share in &explained.causes {
        match sums.iter_mut().find(|(cause, _)| *cause == share.cause) {
            Some((_, sum)) => *sum += share.tail_share,
            None => sums.push((share.cause, share.tail_share)),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    match sums.first() {
        None | Some((Cause::Unknown, _)) => {
            format!(
                "what {tail} waited for is mostly unknown: only kernel events show it (the full tier of taut record)"
            )
        }
        Some(_) => {
            let parts = sums.iter().take(3).filter(|(_, share)| *share >= 0.01);
            let parts: Vec<String> = parts.map(|(c, s)| format!("{} {:.0} %", c.word(), 100.0 * s)).collect();
            format!("what {tail} have and usual ones have not: {}", parts.join(", "))
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
    let mut shares = table(&["cause", "of the tail", "tail, ms", "usual, ms"]);
    for share in explained.causes.iter().filter(|s| s.tail_share >= 0.005).take(LINES_MAX) {
        let detail = if share.detail.is_empty() { String::new() } else { format!(" {}", share.detail) };
        let usual_of_tail = share.usual_ns * explained.tail_messages;
        shares.add_row([
            format!("{}{detail}", share.cause.word()).chars().take(52).collect(),
            format!("{} {:>3.0} %", bar(share.tail_share), 100.0 * share.tail_share),
            words::milliseconds(Some(share.time_ns)),
            words::milliseconds(Some(usual_of_tail)),
        ]);
    }
    out += &format!("\n{}", indent(&shares));
    if form != Form::Short && !explained.culprits.is_empty() {
        let mut culprits = table(&["who took it", "ms", "messages", "how"]);
        for culprit in explained.culprits.iter().filter(|c| !is_said(c, explained)).take(LINES_MAX) {
            let how: Vec<&str> = culprit.causes.iter().map(|cause| cause.word()).collect();
            culprits.add_row([
                format!("{} {}", culprit.kind, culprit.name).chars().take(44).collect(),
                words::milliseconds(Some(culprit.time_ns)),
                words::count(culprit.messages),
                how.join(", ").chars().take(30).collect(),
            ]);
        }
        out += &format!("\n{}", indent(&culprits));
    }
    if form != Form::WithoutVerdicts {
        out += &format!("\n{}", verdicts(explained, style));
    }
    if !explained.what_if.is_empty() {
        let measured = &chain.end_to_end.distribution;
        let mut what_if = table(&["predicted, ms", "p50", "p99", "change"]);
        let row =
            |name: String, p50, p99, gain: String| [name, words::milliseconds(p50), words::milliseconds(p99), gain];
        what_if.add_row(row("as measured".into(), measured.p50_ns, measured.p99_ns, String::new()));
        for found in &explained.what_if {
            let gain = words::change(found.gain);
            what_if.add_row(row(format!("without {}", found.without), found.p50_ns, found.p99_ns, gain));
        }
        out += &format!("\n{}", indent(&what_if));
        out += &format!("  {}\n", style.dim("each assumes that nothing else takes the cause's place"));
    }
    if !explained.recommendations.is_empty() {
        out += "\n";
    }
    let most = if form == Form::Short { 3 } else { usize::MAX };
    for (at, advice) in explained.recommendations.iter().take(most).enumerate() {
        let text =
            format!("{}. {}: {} ({} expected)", at + 1, advice.evidence, advice.remedy, words::change(advice.gain));
        out += &format!("  {}\n", wrap(&text, 96).replace('\n', "\n     "));
    }
    out
}

/// Whether a process is its only culpable thread over again.
fn is_said(culprit: &Culprit, explained: &Explained) -> bool {
    let same =
        |other: &Culprit| other.kind == "thread" && other.name == culprit.name && other.time_ns == culprit.time_ns;
    culprit.kind == "process" && explained.culprits.iter().any(same)
}

/// "guilty gil makes the tail: …", a line or two each.
fn verdicts(explained: &Explained, style: Style) -> String {
    let one = |verdict: &taut_analysis::Verdict| {
        let word = if verdict.contended { style.bold("guilty") } else { "  not ".to_owned() };
        format!("  {word} {}\n", wrap(&verdict.sentence, 88).replace('\n', "\n         "))
    };
    explained.verdicts.iter().map(one).collect()
}

/// A budget for each message that comes with its path; then some of them on lanes.
fn messages(chain: &Chain, asked: Asked<'_>, style: Style) -> String {
    let paths = &chain.explained.paths;
    if !paths.iter().any(is_seen) {
        return String::new();
    }
    let mut out = format!("\n  {}\n", style.bold("Messages, worst first: µs and share of the message"));
    for path in paths {
        out += &budget(path);
    }
    for path in drawn(&chain.explained, asked) {
        out += &lanes(chain, path, style);
    }
    out
}

/// "   1734  11.0 ms  gil 8000 73 % · work 2600 24 %".
fn budget(path: &MessagePath) -> String {
    let budget = &path.budget;
    let total = budget.total_ns.max(1) as f64;
    let mut sums: Vec<(Cause, u64)> = Vec::new();
    for piece in &budget.pieces {
        match sums.iter_mut().find(|(cause, _)| *cause == piece.cause) {
            Some((_, ns)) => *ns += piece.ns,
            None => sums.push((piece.cause, piece.ns)),
        }
    }
    sums.sort_by_key(|(cause, ns)| (std::cmp::Reverse(*ns), *cause));
    let part = |(cause, ns): &(Cause, u64)| {
        format!("{} {:.0} {:.0} %", cause.word(), *ns as f64 / 1e3, 100.0 * *ns as f64 / total)
    };
    let mut line = format!("{:>10} {:>8}  ", budget.id, words::duration(budget.total_ns));
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
    let (start, total) = (path.budget.start_ns, path.budget.total_ns.max(1));
    let mut out = format!(
        "\n  {}\n",
        style.bold(&format!("Message {}: {}", path.budget.id, words::duration(path.budget.total_ns)))
    );
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
        let text: String = cells.iter().map(|(letter, cause)| style.cause(*letter, *cause)).collect();
        out += &format!("  {:>22} │{text}│\n", lane.thread.chars().take(22).collect::<String>());
    }
    let mut seen: Vec<Cause> = path.path.iter().map(|piece| piece.cause).collect();
    seen.sort_unstable();
    seen.dedup();
    let legend: Vec<String> =
        seen.iter().map(|c| format!("{} {}", style.cause(letter(*c), Some(*c)), c.word())).collect();
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
    let words = crate::terminal::hop_name(from, to);
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

/// One letter, so that lanes are read without colour.
fn letter(cause: Cause) -> char {
    match cause {
        Cause::Work => 'w',
        Cause::Syscall => 's',
        Cause::PageFault => 'F',
        Cause::Irq => 'i',
        Cause::Preempted => 'P',
        Cause::Wakeup => 'u',
        Cause::Throttled => 'T',
        Cause::Lock => 'L',
        Cause::Gil => 'G',
        Cause::Io => 'I',
        Cause::Sleep => 'z',
        Cause::TimerSlack => 'Z',
        Cause::Queued => 'Q',
        Cause::Disk => 'D',
        Cause::Stopped => 'S',
        Cause::Hypervisor => 'H',
        Cause::Unknown => '?',
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
        analysis.chains[0].explained.paths[0].path[1].note = "long words ".repeat(30);
        let text = explanation(Named { name: "run.mcap", analysis: &analysis }, Asked::default(), Style::default());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }

    #[test]
    fn suspects_are_judged_first_and_once() {
        let analysis = sample::teleop();
        let asked = Asked { suspects: true, ..Asked::default() };
        let text = explanation(Named { name: "run.mcap", analysis: &analysis }, asked, Style::default());
        let at = |what: &str| text.find(what).unwrap();
        assert!(at("guilty gil") < at("What the 9") && text.matches("guilty gil").count() == 1);
    }

    #[test]
    fn every_message_asked_for_is_drawn_and_no_other() {
        let mut analysis = sample::teleop();
        let paths = &mut analysis.chains[0].explained.paths;
        for id in [7, 8] {
            paths.push(paths[0].clone());
            paths.last_mut().unwrap().budget.id = id;
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
