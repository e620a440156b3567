//! The Markdown form: what is pasted into a pull request. The finding comes first, how it was measured last.

use crate::{
    Block, Document, Finding, Section, Show, Style, Table, Text, Tone,
    escape::{Form, code, escaped},
    table::PrintedCell,
    text::Part,
    units,
};

/// The document as GitHub and GitLab show it.
pub fn markdown(document: &Document) -> String {
    let mut out = String::new();
    if !document.title.is_empty() {
        out += &format!("### {}\n\n", plain(&document.title));
    }
    paragraph(&mut out, &document.headline);
    document
        .sections
        .iter()
        .filter(|of| !matches!(of.show, Show::Page | Show::PageFolded))
        .for_each(|of| section(&mut out, of));
    for note in &document.notes {
        out += &format!("> {}\n\n", text(note));
    }
    if !document.measured.is_empty() {
        out += &format!("<sub>{}</sub>\n\n", text(&document.measured));
    }
    format!("{}\n", out.trim_end())
}

fn section(out: &mut String, section: &Section) {
    let is_folded = matches!(section.show, Show::Folded | Show::Kept);
    if is_folded {
        *out += &format!("<details><summary>{}</summary>\n\n", plain(&section.title));
    } else if !section.title.is_empty() {
        let marks = "#".repeat(usize::from(section.level.clamp(1, 3)) + 3);
        *out += &format!("{marks} {}\n\n", plain(&section.title));
    }
    for block in &section.blocks {
        match block {
            Block::Text(of) | Block::Image { text: of, .. } => paragraph(out, of),
            Block::Findings(findings) => {
                findings.iter().for_each(|of| finding(out, of));
                out.push('\n');
            }
            Block::Table(of) => table(out, of),
            Block::Chart(chart) => paragraph(out, &chart.finding),
            Block::Lanes(lanes) => {
                let lanes = Block::Lanes(lanes.clone());
                let alone = Document { sections: vec![Section::new(2, "", vec![lanes])], ..Document::default() };
                block_of_code(out, &crate::terminal(&alone, Style::default()));
            }
            Block::Code(code) => block_of_code(out, code),
        }
    }
    if is_folded {
        *out += "</details>\n\n";
    }
}

fn paragraph(out: &mut String, of: &Text) {
    if !of.is_empty() {
        *out += &format!("{}\n\n", text(of));
    }
}

fn finding(out: &mut String, finding: &Finding) {
    let strong = matches!(finding.tone, Tone::Bad | Tone::Good);
    let label = match plain(&finding.label) {
        label if label.is_empty() => label,
        label if strong => format!("**{label}** "),
        label => format!("{label} "),
    };
    *out += &format!("- {label}{}", text(&finding.text));
    if let Some(evidence) = &finding.evidence {
        *out += &format!(" ({})", plain(&evidence.sentence()));
    }
    out.push('\n');
    for (word, of) in &finding.details {
        *out += &format!("  - {}: {}\n", plain(word), text(of));
    }
}

fn table(out: &mut String, of: &Table) {
    if of.rows.is_empty() {
        return;
    }
    paragraph(out, &of.caption);
    let printed = of.printed();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    *out += &line(printed.head.iter().map(|name| plain(name)).collect());
    *out += &line(printed.is_text.iter().map(|is_text| if *is_text { "---" } else { "---:" }.to_owned()).collect());
    let shown = of.rows.len().min(of.shown);
    for (row, cells) in of.rows.iter().zip(&printed.rows).take(shown) {
        let indent = "&nbsp;&nbsp;".repeat(usize::from(row.indent));
        let cell = |(at, cell): (usize, &PrintedCell<'_>)| {
            let cell = match cell {
                PrintedCell::Text(of) => text(of),
                PrintedCell::Figure(of) => plain(of),
            };
            if at == 0 { format!("{indent}{cell}") } else { cell }
        };
        *out += &line(cells.iter().enumerate().map(cell).collect());
    }
    if shown < of.rows.len() {
        *out += &format!("\nand {} more\n", units::count((of.rows.len() - shown) as u64));
    }
    out.push('\n');
}

/// Nothing inside ends it.
fn block_of_code(out: &mut String, code: &str) {
    let lines = code.trim_matches('\n').lines().map(|line| escaped(line, Form::Terminal).replace("```", "'''") + "\n");
    *out += &format!("```text\n{}```\n\n", lines.collect::<String>());
}

/// Foreign text as text.
fn plain(text: &str) -> String {
    escaped(text, Form::Markdown)
}

fn text(of: &Text) -> String {
    let part = |part: &Part| match part {
        Part::Plain(text) => plain(text),
        Part::Strong(text) if text.trim().is_empty() => plain(text),
        // With blanks inside its stars it would be no emphasis.
        Part::Strong(text) => format!("**{}**", plain(text.trim())),
        Part::Code(text) => code(text),
    };
    of.0.iter().map(part).collect()
}
