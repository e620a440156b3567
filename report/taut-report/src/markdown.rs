//! The Markdown form, to paste in a pull request.

use taut_analysis::{Analysis, Cause, Chain, Explained, Histogram, Hop, Point, TimePiece};
use taut_stats::Distribution;

use crate::{
    Asked, Named, Style,
    causes::{drawn, lanes},
    escape::{Form, code, escaped},
    points,
    terminal::{balance, measured, outcome_rows},
    words,
};

/// The report of one recording.
pub fn markdown(named: Named<'_>) -> String {
    let analysis = named.analysis;
    let mut out = format!("### taut: {}\n\n{}\n\n", code(named.name), cell(&crate::headline(analysis)));
    for damage in &analysis.damage {
        out += &format!("> **Damaged:** {}\n\n", cell(damage));
    }
    let loops = crate::loops::markdown(analysis, cell);
    let is_unmodified = crate::loops::is_unmodified(analysis);
    if is_unmodified {
        out += &loops;
    }
    let (told, listed) = points::told_and_listed(analysis);
    for chain in told {
        out += &section(chain);
    }
    out += &short_chains(&listed);
    if !is_unmodified {
        out += &loops;
    }
    out += &ros(analysis);
    out += &periods(analysis);
    out += &histograms(analysis);
    out += &signals(analysis);
    out += &telemetry(analysis);
    out += &format!("<sub>{}", cell(&measured(analysis)));
    let info = &analysis.info;
    if !info.command.is_empty() {
        out += &format!(" · {}", code(&words::shell(&info.command)));
    }
    if !info.git_revision.is_empty() {
        out += &format!(" · git {}", cell(&info.git_revision));
    }
    out += &format!(" · {} · {} · taut {}</sub>\n", cell(&info.cpu), cell(&info.kernel), cell(&info.taut_version));
    for note in analysis.notes.iter().chain(crate::loops::next_step(analysis).iter()) {
        out += &format!("\n- {}\n", cell(note));
    }
    out
}

fn short_chains(chains: &[&Chain]) -> String {
    let hops = chains.iter().flat_map(|chain| chain.hops.iter().map(move |hop| (chain, hop)));
    let row =
        |(chain, hop): (&&Chain, &Hop)| (format!("{} → {}", hop.from, hop.to), points::hop_row(chain, hop).join(" | "));
    table(&points::SHORT_CHAINS, hops.map(row))
}

/// Topics, callbacks and executors of ROS 2; nothing without its events.
pub(crate) fn ros(analysis: &Analysis) -> String {
    let row = |row: Vec<String>| (row[0].clone(), row[1..].join(" | "));
    analysis.ros.iter().flat_map(crate::ros::tables).map(|of| table(of.header, of.rows.into_iter().map(row))).collect()
}

fn periods(analysis: &Analysis) -> String {
    let row = |point: &Point| (point.name.clone(), points::period_row(point).join(" | "));
    table(&points::PERIODS, points::ends(analysis).into_iter().map(row))
}

fn histograms(analysis: &Analysis) -> String {
    let row = |of: &Histogram| (points::histogram_name(of), points::histogram_row(of).join(" | "));
    table(&points::HISTOGRAMS, analysis.histograms.iter().map(row))
}

/// Names with figures; nothing where there are none.
fn table(head: &[&str], rows: impl Iterator<Item = (String, String)>) -> String {
    let rows: String = rows.map(|(name, figures)| format!("| {} | {figures} |\n", cell(&name))).collect();
    if rows.is_empty() {
        return rows;
    }
    format!("| {} |\n|---{}|\n{rows}\n", head.join(" | "), "|--:".repeat(head.len() - 1))
}

fn signals(analysis: &Analysis) -> String {
    if analysis.tracking.is_empty() {
        return String::new();
    }
    let mut out = "| actual from commanded | n | p50 | p99 | max |\n|---|--:|--:|--:|--:|\n".to_owned();
    for t in &analysis.tracking {
        let figures = [t.p50, t.p99, t.max].map(words::figure).join(" | ");
        out += &format!("| {} | {} | {figures} |\n", cell(&t.name), words::count(t.n));
    }
    out + "\n"
}

fn telemetry(analysis: &Analysis) -> String {
    if analysis.telemetry.is_empty() {
        return String::new();
    }
    let mut out = "| telemetry (ms) | values | messages | rate, Hz | period p50 | p99 | max | missing |\n\
                   |---|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for t in &analysis.telemetry {
        let rate = t.rate_hz.map_or("–".into(), |hz| format!("{hz:.1}"));
        let period = [t.period.p50_ns, t.period.p99_ns, t.period.max_ns].map(words::milliseconds).join(" | ");
        let (values, messages) = (words::count(t.values), words::count(t.messages));
        out += &format!("| {} | {values} | {messages} | {rate} | {period} | {} |\n", cell(&t.topic), words::missing(t));
    }
    out + "\n"
}

/// The explanation of one recording: causes, hypotheses, predictions, recommendations, and messages.
pub fn markdown_explanation(named: Named<'_>, asked: Asked<'_>) -> String {
    let mut out = format!("### taut explain: {}\n", code(named.name));
    out.extend(crate::headline::failure(named.analysis).map(|sentence| format!("\n{sentence}\n")));
    for chain in &named.analysis.chains {
        let explained = &chain.explained;
        out += &format!("\n**{}** ({} messages)\n", cell(&chain.name), words::count(chain.messages));
        out += &causes(explained);
        out += &predictions(chain);
        out += &messages(explained);
        for path in drawn(explained, asked) {
            out += &format!("\n```text{}```\n", lanes(chain, path, Style::default()).replace("```", "'''"));
        }
    }
    out += &format!("\n<sub>{}</sub>\n", cell(&measured(named.analysis)));
    for note in &named.analysis.notes {
        out += &format!("\n- {}\n", cell(note));
    }
    out
}

fn predictions(chain: &Chain) -> String {
    if chain.explained.predictions.is_empty() {
        return String::new();
    }
    let rows = crate::causes::predictions(&chain.explained);
    let of = crate::causes::gain_of(&chain.explained);
    let mut out = format!(
        "\n| predicted, ms | p50 | p95 | p99 | 95 % interval of {of} | change of {of} | assuming that |\n\
         |---|--:|--:|--:|--:|--:|---|\n"
    );
    let assumptions =
        std::iter::once("").chain(chain.explained.predictions.iter().map(|found| found.assumption.as_str()));
    for (row, assumption) in rows.iter().zip(assumptions) {
        out += &format!(
            "| {} | {} |\n",
            row.iter().map(|text| cell(text)).collect::<Vec<_>>().join(" | "),
            cell(assumption)
        );
    }
    out
}

/// The messages that come with their path, worst first.
fn messages(explained: &Explained) -> String {
    if explained.paths.is_empty() || explained.causes.iter().all(|share| share.cause == Cause::Unknown) {
        return String::new();
    }
    let mut out = "\n| message | ms | spent on |\n|--:|--:|---|\n".to_owned();
    for time in explained.paths.iter().map(|path| &path.time) {
        let part = |piece: &TimePiece| {
            let share = words::percent(piece.ns as f64 / time.total_ns.max(1) as f64);
            format!("{} {} {share}", piece.cause.word(), cell(&piece.detail)).replace("  ", " ")
        };
        let parts: Vec<String> = time.pieces.iter().take(4).map(part).collect();
        out += &format!("| {} | {} | {} |\n", time.id, words::milliseconds(Some(time.total_ns)), parts.join(", "));
    }
    out
}

/// Foreign text as text.
pub(crate) fn cell(text: &str) -> String {
    escaped(text, Form::Markdown)
}

fn section(chain: &Chain) -> String {
    let mut out = format!("**{}** ({} messages)\n\n", cell(&chain.name), words::count(chain.messages));
    out += "| ms | n | p50 | p90 | p95 | p99 | p99.9 | max |\n|---|--:|--:|--:|--:|--:|--:|--:|\n";
    out += &delay_row("first to last point", &chain.end_to_end.distribution);
    if chain.whole_life.distribution.n > chain.end_to_end.distribution.n {
        out += &delay_row("including dropped", &chain.whole_life.distribution);
    }
    out += "\n| hop (ms) | n | p50 | p95 | p99 | max | PDV p99 | of the tail |\n|---|--:|--:|--:|--:|--:|--:|--:|\n";
    for hop in &chain.hops {
        let d = &hop.delay.distribution;
        let figures = [d.p50_ns, d.p95_ns, d.p99_ns, d.max_ns, hop.pdv_p99_ns].map(words::milliseconds).join(" | ");
        let share = hop.tail_share.map_or("–".into(), words::percent);
        out += &format!("| {} → {} | {} | {figures} | {share} |\n", code(&hop.from), code(&hop.to), words::count(d.n));
    }
    if let Some(startup) = &chain.startup {
        out += &format!("\nStart-up apart: {}\n", cell(&startup.sentence));
    }
    out += &causes(&chain.explained);
    if points::is_whole(chain) {
        return out + &format!("\n{} messages, all of them applied.\n\n", words::count(chain.messages));
    }
    out += "\n| outcome | messages | |\n|---|--:|--:|\n";
    for (name, n) in outcome_rows(&chain.outcomes) {
        let share = words::percent(n as f64 / chain.messages.max(1) as f64);
        out += &format!("| {} | {} | {share} |\n", cell(&name), words::count(n));
    }
    out += &format!("\n{}\n\n", balance(&chain.outcomes, chain.messages));
    out
}

/// The causes of the tail: shares, hypotheses and recommendations, a line each.
fn causes(explained: &Explained) -> String {
    let mut out = format!("\n{}\n", cell(&crate::headline::capital(&crate::causes::sentence(explained))));
    if explained.causes.iter().all(|share| share.cause == Cause::Unknown) {
        return out;
    }
    out += "\n| cause | of the excess | ms | messages |\n|---|--:|--:|--:|\n";
    for row in crate::causes::grouped(explained) {
        let indent = if row.is_party { "&nbsp;&nbsp;" } else { "" };
        let messages = row.messages.map_or("".into(), words::count);
        let time = words::sum_of_milliseconds(row.time_ns);
        out += &format!("| {indent}{} | {} | {time} | {messages} |\n", cell(&row.name), words::percent(row.share));
    }
    out += "\n";
    for hypothesis in crate::causes::results(explained) {
        out += &format!("- {}\n", cell(&hypothesis));
    }
    for mode in &explained.modes {
        out += &format!("- {}\n", cell(&crate::causes::mode(mode)));
    }
    for recommendation in explained.recommendations.iter().take(3) {
        out += &format!("- {}\n", cell(&crate::causes::recommendation(recommendation)));
    }
    out
}

fn delay_row(name: &str, d: &Distribution) -> String {
    let figures = [d.p50_ns, d.p90_ns, d.p95_ns, d.p99_ns, d.p999_ns, d.max_ns].map(words::milliseconds).join(" | ");
    format!("| {name} | {} | {figures} |\n", words::count(d.n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_markdown_report() {
        insta::assert_snapshot!(markdown(Named { name: "run.mcap", analysis: &sample::teleop() }));
    }

    #[test]
    fn the_markdown_explanation() {
        let analysis = sample::teleop();
        let named = Named { name: "run.mcap", analysis: &analysis };
        insta::assert_snapshot!(markdown_explanation(named, Asked::default()));
    }
}
