//! The Markdown form, to paste in a pull request.

use taut_analysis::{Cause, Chain, Explained};
use taut_stats::Distribution;

use crate::{
    Named,
    terminal::{balance, measured, outcome_rows},
    words,
};

/// The report of one recording.
pub fn markdown(named: Named<'_>) -> String {
    let analysis = named.analysis;
    let mut out = format!("### taut: `{}`\n\n{}\n\n", named.name, crate::headline(analysis));
    for damage in &analysis.damage {
        out += &format!("> **Damaged:** {damage}\n\n");
    }
    for chain in &analysis.chains {
        out += &section(chain);
    }
    out += &format!("<sub>{}", measured(analysis));
    let info = &analysis.info;
    if !info.command.is_empty() {
        out += &format!(" · `{}`", words::shell(&info.command));
    }
    if !info.git_revision.is_empty() {
        out += &format!(" · git {}", info.git_revision);
    }
    out += &format!(" · {} · {} · taut {}</sub>\n", info.cpu, info.kernel, info.taut_version);
    for note in &analysis.notes {
        out += &format!("\n- {note}\n");
    }
    out
}

fn section(chain: &Chain) -> String {
    let mut out = format!("**{}** ({} messages)\n\n", chain.name, words::count(chain.messages));
    out += "| ms | n | p50 | p90 | p95 | p99 | p99.9 | max |\n|---|--:|--:|--:|--:|--:|--:|--:|\n";
    out += &delay_row("first to last point", &chain.end_to_end.distribution);
    if chain.whole_life.distribution.n > chain.end_to_end.distribution.n {
        out += &delay_row("wherever it ended", &chain.whole_life.distribution);
    }
    out += "\n| hop (ms) | n | p50 | p95 | p99 | max | PDV p99 | of the tail |\n|---|--:|--:|--:|--:|--:|--:|--:|\n";
    for hop in &chain.hops {
        let d = &hop.delay.distribution;
        let figures = [d.p50_ns, d.p95_ns, d.p99_ns, d.max_ns, hop.pdv_p99_ns].map(words::milliseconds).join(" | ");
        let share = hop.tail_share.map_or("–".into(), words::percent);
        out += &format!("| `{}` → `{}` | {} | {figures} | {share} |\n", hop.from, hop.to, words::count(d.n));
    }
    if let Some(startup) = &chain.startup {
        out += &format!("\nStart-up apart: {}\n", startup.sentence);
    }
    out += &causes(&chain.explained);
    out += "\n| outcome | messages | |\n|---|--:|--:|\n";
    for (name, n) in outcome_rows(&chain.outcomes) {
        let share = words::percent(n as f64 / chain.messages.max(1) as f64);
        out += &format!("| {name} | {} | {share} |\n", words::count(n));
    }
    out += &format!("\n{}\n\n", balance(&chain.outcomes, chain.messages));
    out
}

/// Whose time the tail is: shares, verdicts and what to do, a line each.
fn causes(explained: &Explained) -> String {
    let mut out = format!("\n{}\n", crate::headline::capital(&crate::causes::sentence(explained)));
    if explained.causes.iter().all(|share| share.cause == Cause::Unknown) {
        return out;
    }
    out += "\n| cause | of the tail | tail, ms |\n|---|--:|--:|\n";
    for share in explained.causes.iter().filter(|share| share.tail_share >= 0.01) {
        let (word, time) = (share.cause.word(), words::milliseconds(Some(share.time_ns)));
        out += &format!("| {word} {} | {} | {time} |\n", share.detail, words::percent(share.tail_share));
    }
    out += "\n";
    for verdict in &explained.verdicts {
        let mark = if verdict.contended { "**guilty**" } else { "not" };
        out += &format!("- {mark}: {}\n", verdict.sentence);
    }
    for advice in explained.recommendations.iter().take(3) {
        out += &format!("- {}: {} (−{:.0} % expected)\n", advice.evidence, advice.remedy, 100.0 * advice.gain);
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
}
