//! The HTML form: one self-contained page. A script, where there is one, replaces stills by charts to point at.

use serde::Serialize;

use crate::{
    Block, Chart, Document, Finding, Lanes, Mark, Section, Show, Table, Text,
    escape::{Form, escaped},
    svg,
    table::PrintedCell,
    text::Part,
    thinned,
};

const STYLE: &str = include_str!("page.css");
/// Of these many parts a page says first which they are.
const CONTENTS_MIN: usize = 3;
/// Points that are drawn one by one; of a line, which needs fewer.
const POINTS_MAX: usize = 20_000;
const LINE_MAX: usize = 6_000;

/// What a page has beyond its document.
#[derive(Clone, Copy, Debug, Default)]
pub struct Front<'a> {
    /// Finds the data of charts and lanes beside their stills.
    pub script: &'a str,
    /// Stands for the page's own style, with which it begins.
    pub style: &'a str,
    /// Documents below the first, each with its contents.
    pub further: &'a [Document],
}

/// A self-contained page. Without a script the data of charts and lanes are left out.
pub fn html(document: &Document, front: Option<&Front<'_>>) -> String {
    let mut page = Page { body: String::new(), headings: 0, has_script: front.is_some(), has_textures: false };
    let further = front.map_or(&[][..], |front| front.further);
    page.document(document, further);
    for (at, document) in (1..).zip(further) {
        page.body += &format!("<section class=\"further\" id=\"document-{at}\">\n");
        page.document(document, &[]);
        page.body += "</section>\n";
    }
    let style = front.map_or(STYLE, |front| front.style);
    let script = front.map_or(String::new(), |front| format!("<script>{}</script>\n", front.script));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>taut: {}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>{style}</style>\n</head>\n<body>\n<main>\n{}</main>\n{script}</body>\n</html>\n",
        escape(&document.title),
        page.body,
    )
}

struct Page {
    body: String,
    /// Headings so far that others may name.
    headings: usize,
    has_script: bool,
    /// Whether the textures of lanes are there.
    has_textures: bool,
}

impl Page {
    fn document(&mut self, document: &Document, further: &[Document]) {
        let heading = if self.body.is_empty() { "h1" } else { "h2" };
        let (kicker, headline) = if document.headline.is_empty() { (heading, "p") } else { ("p", heading) };
        let measured = text(&document.measured);
        let measured = if measured.is_empty() { measured } else { format!(" · {measured}") };
        let title = escape(&document.title);
        self.body += &format!("<{kicker} class=\"kicker\"><b>taut</b> {title}{measured}</{kicker}>\n");
        if !document.headline.is_empty() {
            self.body +=
                &format!("<{headline} class=\"headline\">{}</{headline}>\n", together(&text(&document.headline)));
        }
        self.contents(&document.title, &document.sections, further);
        let shown: Vec<&Section> = document.sections.iter().filter(|section| section.show != Show::Text).collect();
        // What is closed is so with its parts.
        shown.chunk_by(|_, next| next.level > 1).for_each(|sections| self.section(sections));
        if !document.notes.is_empty() {
            let notes: String = document.notes.iter().map(|note| format!("<li>{}</li>", text(note))).collect();
            self.body += &format!("<ul class=\"notes\">{notes}</ul>\n");
        }
        if !document.reproduce.is_empty() {
            self.body += &format!("<h2>Reproduce</h2>\n<pre>{}</pre>\n", escape(&document.reproduce.join("\n")));
        }
    }

    fn contents(&mut self, title: &str, sections: &[Section], further: &[Document]) {
        let is_listed =
            |of: &&Section| of.level <= 1 && !of.title.is_empty() && !of.is_folded() && of.show != Show::Text;
        let parts = sections.iter().filter(is_listed).zip(self.headings..);
        let parts = parts.map(|(of, at)| (format!("part-{at}"), of.title.as_str()));
        let further = (1..).zip(further).map(|(at, of)| (format!("document-{at}"), of.title.as_str()));
        let parts: Vec<(String, &str)> = parts.chain(further).collect();
        if parts.len() >= CONTENTS_MIN {
            let link = |(id, title): &(String, &str)| format!("<li><a href=\"#{id}\">{}</a></li>", escape(title));
            let links: String = parts.iter().map(link).collect();
            let title = escape(title);
            self.body += &format!("<nav aria-label=\"Contents of {title}\"><ul>{links}</ul></nav>\n");
        }
    }

    /// A section with its parts, which are closed with it.
    fn section(&mut self, sections: &[&Section]) {
        let [section, parts @ ..] = sections else { return };
        let title = escape(&section.title);
        match (section.level, section.is_folded()) {
            (_, true) => self.body += &format!("<details class=\"part\"><summary>{title}</summary>\n"),
            _ if title.is_empty() => {}
            (..=1, _) => {
                self.body += &format!("<h2 id=\"part-{}\">{title}</h2>\n", self.headings);
                self.headings += 1;
            }
            _ => self.body += &format!("<h3>{title}</h3>\n"),
        }
        let is_chart = |block: &Block| matches!(block, Block::Chart(_));
        for blocks in section.blocks.chunk_by(|a, b| is_chart(a) && is_chart(b)) {
            let are_several = blocks.len() > 1;
            self.body += if are_several { "<div class=\"charts\">\n" } else { "" };
            blocks.iter().for_each(|block| self.block(block));
            self.body += if are_several { "</div>\n" } else { "" };
        }
        parts.iter().for_each(|part| self.section(&[part]));
        if section.is_folded() {
            self.body += "</details>\n";
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Text(of) => self.body += &format!("<p>{}</p>\n", text(of)),
            Block::Findings(findings) => {
                let all: String = findings.iter().map(finding).collect();
                self.body += &format!("<ul class=\"findings\">{all}</ul>\n");
            }
            Block::Table(of) => self.body += &table(of),
            Block::Chart(chart) => self.chart(chart),
            Block::Lanes(lanes) => self.lanes(lanes),
            Block::Image { svg, text: of } => {
                self.body += &format!(
                    "<figure><p class=\"finding\">{}</p><img alt=\"{}\" src=\"data:image/svg+xml,{}\"></figure>\n",
                    text(of),
                    escape(&of.plain()),
                    percent_encoded(svg)
                );
            }
            Block::Code(code) => self.body += &format!("<pre>{}</pre>\n", escape(code)),
        }
    }

    fn chart(&mut self, chart: &Chart) {
        let mut chart = chart.clone();
        for curve in &mut chart.curves {
            match curve.mark {
                Mark::Points => curve.xy = thinned(&curve.xy, POINTS_MAX),
                Mark::Line | Mark::Steps => curve.xy = thinned(&curve.xy, LINE_MAX),
                Mark::Bars | Mark::Range(_) => {}
            }
        }
        let still = svg::chart(&chart);
        if still.is_empty() {
            return;
        }
        let title = if chart.title.is_empty() { String::new() } else { format!("<h3>{}</h3>", escape(&chart.title)) };
        let finding = if chart.finding.is_empty() {
            String::new()
        } else {
            format!("<p class=\"finding\">{}</p>", text(&chart.finding))
        };
        let named = chart.curves.iter().filter(|curve| !curve.name.is_empty());
        let mut key: Vec<String> =
            named.map(|curve| format!("<b class=\"{}\">{}</b>", svg::class(curve.tone), escape(&curve.name))).collect();
        // A line and its points are one.
        let mut seen = std::collections::BTreeSet::new();
        key.retain(|name| seen.insert(name.clone()));
        let key = if key.len() > 1 { format!("<p class=\"key\">{}</p>", key.join(" · ")) } else { String::new() };
        let wide = if chart.wide { " class=\"wide\"" } else { "" };
        let data = self.data("chart", &chart);
        let figures = chart.table.as_ref().map_or(String::new(), |table| folded("Data", table));
        self.body += &format!("<figure{wide}>{title}{finding}{key}{still}{data}{figures}</figure>\n");
    }

    fn lanes(&mut self, lanes: &Lanes) {
        let Some(item) = lanes.items.first() else { return };
        let seen = |at: &usize| lanes.items.iter().any(|item| item.pieces.iter().any(|piece| piece.class == *at));
        let key = (0..lanes.classes.len()).filter(seen).map(|at| &lanes.classes[at]);
        let key: Vec<String> =
            key.map(|of| format!("<span class=\"class\">{}{}</span>", svg::swatch(of), escape(&of.name))).collect();
        if !self.has_textures {
            self.body += &svg::textures();
            self.has_textures = true;
        }
        let data = self.data("lanes", lanes);
        let drawing = svg::lanes(lanes, item);
        let tables: String = match lanes.items.as_slice() {
            [one] => folded("Data", &one.table),
            all => all.iter().map(|item| folded(&item.title.plain(), &item.table)).collect(),
        };
        self.body += &format!(
            "<figure class=\"wide lanes\"><p class=\"finding\">{}</p><p class=\"key\">{}</p>{drawing}{data}{tables}</figure>\n",
            text(&item.title),
            key.join(" "),
        );
    }

    /// What a script draws the same of.
    fn data(&self, class: &str, of: &impl Serialize) -> String {
        if !self.has_script {
            return String::new();
        }
        // "</script>" inside a string must not end the element.
        let json = serde_json::to_string(of).unwrap_or_default().replace('<', "\\u003c");
        format!("<script type=\"application/json\" class=\"{class}\">{json}</script>")
    }
}

fn finding(finding: &Finding) -> String {
    let class = svg::class(finding.tone);
    let label = if finding.label.is_empty() {
        String::new()
    } else {
        format!("<b class=\"{class}\">{}</b> ", escape(&finding.label))
    };
    let evidence = finding.evidence.as_ref();
    let evidence =
        evidence.map_or(String::new(), |of| format!(" <span class=\"aside\">({})</span>", escape(&of.sentence())));
    let detail = |(word, of): &(String, Text)| format!("<dt>{}</dt><dd>{}</dd>", escape(word), text(of));
    let details: String = finding.details.iter().map(detail).collect();
    let details = if details.is_empty() { details } else { format!("<dl>{details}</dl>") };
    format!("<li>{label}{}{evidence}{details}</li>", text(&finding.text))
}

fn folded(summary: &str, of: &Table) -> String {
    if of.rows.is_empty() {
        return String::new();
    }
    format!("<details class=\"data\"><summary>{}</summary>{}</details>", escape(summary), table(of))
}

fn table(of: &Table) -> String {
    if of.rows.is_empty() {
        return String::new();
    }
    let printed = of.printed();
    let caption = if of.caption.is_empty() {
        String::new()
    } else {
        format!("<caption><span>{}</span></caption>", text(&of.caption))
    };
    let class = |at: usize| if at > 0 && printed.is_text[at] { " class=\"words\"" } else { "" };
    let head: String = printed
        .head
        .iter()
        .enumerate()
        .map(|(at, name)| match name.as_str() {
            // What names nothing is no heading.
            "" => format!("<td{}></td>", class(at)),
            name => format!("<th scope=\"col\"{}>{}</th>", class(at), escape(name)),
        })
        .collect();
    let bars: Vec<Vec<Option<f64>>> =
        of.columns.iter().enumerate().map(|(at, column)| if column.bar { of.sizes(at) } else { Vec::new() }).collect();
    let mut rows = String::new();
    for (at, (row, cells)) in of.rows.iter().zip(&printed.rows).enumerate() {
        let tone = svg::class(row.tone);
        let tone = if tone == "plain" { String::new() } else { format!(" class=\"{tone}\"") };
        rows += &format!("<tr{tone}>");
        for (column, cell) in cells.iter().enumerate() {
            let shown = match cell {
                PrintedCell::Text(of) => text(of),
                PrintedCell::Figure(of) => escape(of),
            };
            let bar = bars[column].get(at).copied().flatten().map_or(String::new(), |share| {
                format!(
                    "<span class=\"bar\" aria-hidden=\"true\"><span style=\"width:{:.1}%\"></span></span>",
                    share * 100.0
                )
            });
            rows += &match (column, row.indent) {
                (0, _) if shown.is_empty() => "<td></td>".to_owned(),
                (0, 0) => format!("<th scope=\"row\">{shown}</th>"),
                (0, indent) => {
                    format!("<th scope=\"row\" style=\"padding-left:{}px\">{shown}</th>", 18 * u32::from(indent))
                }
                // The bars of a column begin at one place, whatever the width of their figures.
                _ if !bar.is_empty() => {
                    format!("<td class=\"bars\"><div class=\"barred\">{bar}<span>{shown}</span></div></td>")
                }
                _ => format!("<td{}>{shown}</td>", class(column)),
            };
        }
        rows += "</tr>";
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>\n"
    )
}

fn text(of: &Text) -> String {
    let part = |part: &Part| match part {
        Part::Plain(text) => coded(&escape(text)),
        Part::Strong(text) => format!("<b>{}</b>", escape(text)),
        Part::Code(text) => format!("<code>{}</code>", escape(text)),
    };
    of.0.iter().map(part).collect()
}

/// Names between grave accents are code, where each has its second.
fn coded(markup: &str) -> String {
    let parts: Vec<&str> = markup.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return markup.to_owned();
    }
    let part =
        |(at, part): (usize, &&str)| if at % 2 == 1 { format!("<code>{part}</code>") } else { (*part).to_owned() };
    parts.iter().enumerate().map(part).collect()
}

/// No line ends between a figure and its unit.
fn together(markup: &str) -> String {
    let mut kept = String::with_capacity(markup.len());
    for (at, c) in markup.char_indices() {
        let follows_figure = kept.ends_with(|c: char| c.is_ascii_digit());
        let unit = markup[at..].trim_start_matches(' ').split(|c: char| !c.is_alphabetic() && c != '%').next();
        let is_unit = matches!(unit, Some("%" | "ns" | "µs" | "ms" | "s" | "Hz"));
        kept.push(if c == ' ' && follows_figure && is_unit { '\u{a0}' } else { c });
    }
    kept
}

fn escape(text: &str) -> String {
    escaped(text, Form::Markup)
}

/// For the address of an image (RFC 3986, section 2.3: only these need no encoding).
fn percent_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
