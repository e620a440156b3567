//! One document with every block and with names that try to break out of each form. What a browser makes of the page is held by
//! `report/web/test/hostile.test.mjs`.

use proptest::prelude::*;

use crate::*;

/// Ends what it may stand in (a script, a style, an attribute, a comment, a title, a template) and then runs something.
const HOSTILE: &str =
    "</script></style></title>--><script>alert(1)</script>\"'><img src=x onerror=alert(2)>${alert(3)}";

/// Tries what Markdown and a terminal would take for their own.
const TRICKS: &str =
    "=1+1|cell [go](https://evil.example) www.evil.example `code` *x* @someone #1 <b>\u{1b}[2J\n# head\u{202e}";

/// Every block; `name` gives each name and text.
fn document(name: &dyn Fn(&str) -> String) -> Document {
    let text = |of: &str| Text::from(name(of));
    let mut hops = Table {
        caption: text("whole way and hops"),
        ..Table::new(["hop", "n", "share", "p50", "p99", "max", "rate", "size"])
    };
    hops.columns[0].name = name("hop");
    hops.columns[2].bar = true;
    for (at, priority) in [(6, 9), (7, 9), (4, 2), (3, 1)] {
        hops.columns[at].priority = priority;
    }
    for (at, hop) in ["camera → detect", "detect → plan", "plan → send"].into_iter().enumerate() {
        let n = at as u64 + 1;
        let row = [
            Cell::Text(Text::default().code(name(hop))),
            Cell::Count(43_012 * n),
            Cell::Share(0.5 / n as f64),
            Cell::Time(104_000 * n),
            Cell::Estimate { low: 1_300_000, value: 1_900_000, high: 6_000_000 },
            Cell::AtLeast(11_000_000 * n),
            Cell::Rate(125.0 * n as f64),
            Cell::Bytes(4_200_000 * n),
        ];
        hops.row(row).tone = [Tone::Plain, Tone::Bad, Tone::Good][at];
        hops.row([
            Cell::text(name("lock")),
            Cell::Missing,
            Cell::Share(0.0004),
            Cell::Bucket { above: 431_000, up_to: 436_000 },
            Cell::SignedTime(-250_000),
            Cell::Empty,
            Cell::Number(0.25),
            Cell::interval(Cell::Ratio(1.06), Cell::Ratio(1.1)),
        ])
        .indent = 1;
    }
    let mut changes = Table { shown: 2, ..Table::new(["figure", "change", "result"]) };
    for (at, change) in [0.202, -0.031, 1e-6].into_iter().enumerate() {
        let row = changes.row([Cell::text(name("p50")), Cell::Change(change), Cell::text(name("worse"))]);
        row.tone = [Tone::Bad, Tone::Good, Tone::Quiet][at];
    }
    let findings = [("contributes", Tone::Bad), ("does not contribute", Tone::Good), ("undecided", Tone::Undecided)];
    let findings = findings.into_iter().enumerate().map(|(at, (label, tone))| Finding {
        tone,
        label: name(label),
        text: Text::default().strong(name("map_lock")).and(" is held by ").code(name("planner")),
        evidence: Some(Evidence {
            affected: 430,
            of: 43_012,
            what: name("messages"),
            value: Cell::Share(0.712),
            interval: (at == 0).then_some((Cell::Share(0.64), Cell::Share(0.781))),
        }),
        details: if at == 0 {
            vec![(name("do"), text("give the loop a process of its own")), (name("why"), text("see"))]
        } else {
            Vec::new()
        },
    });
    Document {
        title: name("run.mcap"),
        measured: text("41.0 s · 86 024 stamps, none lost"),
        headline: Text::from("p99 is 12 ms; ").strong(name("detect → plan")).and(" has most of it"),
        sections: vec![
            Section::new(1, name("Latency"), vec![Block::Text(text("From first to last point.")), Block::Table(hops)]),
            Section::new(
                2,
                name("Curves"),
                charts(name).into_iter().map(|chart| Block::Chart(Box::new(chart))).collect(),
            ),
            Section::new(1, name("Causes"), vec![Block::Findings(findings.collect()), Block::Lanes(lanes(name))]),
            Section::new(2, name("Changes"), vec![Block::Table(changes)]).shown(Show::Folded),
            Section::new(1, name("Only on a page"), vec![Block::Text(text("More room here."))]).shown(Show::Page),
            Section::new(
                1,
                name("Profile"),
                vec![
                    Block::Image {
                        svg: format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{}</svg>", name("main")),
                        text: text("4 950 samples"),
                    },
                    Block::Code(name("taut flamegraph run.mcap -o flame.svg")),
                ],
            ),
        ],
        notes: vec![text("kernel events were lost")],
        reproduce: vec![name("taut report run.mcap")],
    }
}

/// Every mark on every scale.
fn charts(name: &dyn Fn(&str) -> String) -> Vec<Chart> {
    let curve = |of: &str, at: u8, mark, xy: &[(f64, f64)]| Curve {
        name: name(of),
        mark,
        xy: xy.to_vec(),
        tone: Tone::Series(at),
        ..Curve::default()
    };
    let chart = |title: &str, x, y, curves| Chart {
        title: name(title),
        finding: Text::from(name("see")),
        x,
        y,
        curves,
        ..Chart::default()
    };
    let axis = |quantity, scale| Axis { label: name("axis"), ..Axis::new(quantity, scale) };
    let gap = f64::NAN;
    let nines = [(0.0, 1e6), (0.5, 1.2e6), (0.9, 2e6), (0.99, 9e6), (0.999, 12e6)];
    let weeks = [(20_731.0, 11.2e6), (20_738.0, gap), (20_745.0, 11.8e6), (20_752.0, 12.5e6)];
    let times: Vec<(f64, f64)> = (0..400).map(|i| (f64::from(i) * 1e8, f64::from(1000 + i * 79 % 997) * 1e3)).collect();
    let mut percentiles = chart(
        "Latency by percentile",
        axis(Quantity::Share, AxisScale::Nines),
        axis(Quantity::Time, AxisScale::Log),
        vec![
            curve("A", 0, Mark::Line, &nines),
            Curve { dashed: true, ..curve("B", 1, Mark::Steps, &nines.map(|(x, y)| (x, y * 1.5))) },
        ],
    );
    percentiles.limits.push((10e6, name("deadline")));
    percentiles.table = Some(Table::new(["percentile", "A"]));
    percentiles.table.as_mut().unwrap().row([Cell::text("p50"), Cell::Time(1_200_000)]);
    let mut over_time = chart(
        "Latency over time",
        axis(Quantity::Instant, AxisScale::Linear),
        axis(Quantity::Time, AxisScale::Linear),
        vec![curve("messages", 2, Mark::Points, &times)],
    );
    over_time.wide = true;
    over_time.bands = vec![
        Band { from: 5e9, to: 8e9, label: name("throttled"), vertical: true },
        Band { from: 0.0, to: 1.1e6, label: name("usual"), vertical: false },
    ];
    let bars: Vec<(f64, f64)> =
        [3.0, 9.0, 4.0, 0.0, 1.0].into_iter().enumerate().map(|(at, n)| (at as f64 * 1e6, n)).collect();
    let named = Axis { names: ["arm-7", "arm-13"].map(name).into(), ..Axis::default() };
    let mut ranking = chart(
        "Robots",
        named.clone(),
        axis(Quantity::Time, AxisScale::Linear),
        vec![curve("p99", 0, Mark::Bars, &[(0.0, 13.6e6), (1.0, 11e6)])],
    );
    ranking.limits.push((10e6, name("median")));
    vec![
        percentiles,
        over_time,
        chart(
            "Messages",
            axis(Quantity::Time, AxisScale::Linear),
            axis(Quantity::Count, AxisScale::Linear),
            vec![curve("n", 3, Mark::Bars, &bars)],
        ),
        chart(
            "Weeks",
            axis(Quantity::Day, AxisScale::Linear),
            axis(Quantity::Time, AxisScale::Log),
            vec![curve("p99", 4, Mark::Line, &weeks)],
        ),
        ranking,
        chart(
            "B over A",
            named,
            axis(Quantity::Ratio, AxisScale::Log),
            vec![Curve {
                tone: Tone::Bad,
                ..curve("worse", 0, Mark::Range(vec![(1.1, 1.3), (0.9, 1.02)]), &[(0.0, 1.2), (1.0, 0.97)])
            }],
        ),
    ]
}

fn lanes(name: &dyn Fn(&str) -> String) -> Lanes {
    let class = |letter, of: &str, at| Class::new(letter, name(of), Tone::Series(at));
    let piece = |row, from_ns, to_ns, class| LanePiece { row, from_ns, to_ns, class, text: name("held by planner") };
    let state = |row, from_ns, to_ns, activity| LaneState { row, from_ns, to_ns, activity };
    let mut table = Table::new(["piece", "at", "takes"]);
    for (of, at, takes) in [("cpu", 0, 1_000_000), ("gil", 1_000_000, 8_000_000)] {
        table.row([Cell::text(name(of)), Cell::Time(at), Cell::Time(takes)]);
    }
    let item = LaneItem {
        title: Text::from(name("Message 1734: 11.0 ms")),
        from_ns: 5_000_000,
        to_ns: 16_000_000,
        rows: vec![
            LaneRow { group: String::new(), name: name("python/4242") },
            LaneRow { group: name("host b"), name: name("planner/17") },
        ],
        states: vec![
            state(0, 5_000_000, 16_000_000, Activity::Running),
            state(1, 6_000_000, 9_000_000, Activity::Waiting),
            state(1, 9_000_000, 10_000_000, Activity::Ready),
            state(1, 10_000_000, 12_000_000, Activity::Preempted),
            state(1, 12_000_000, 13_000_000, Activity::Unknown),
        ],
        pieces: vec![
            piece(0, 5_000_000, 6_000_000, 0),
            piece(1, 6_000_000, 14_000_000, 1),
            piece(1, 14_000_000, 16_000_000, 0),
        ],
        moments: vec![(5_000_000, name("read")), (16_000_000, name("applied"))],
        table,
    };
    Lanes { items: vec![item], classes: vec![class('w', "cpu", 0), class('G', "gil", 3)] }
}

fn hostile(name: &str) -> String {
    format!("{name}{TRICKS}{HOSTILE}")
}

fn widest(text: &str) -> usize {
    text.lines().map(wrap::width).max().unwrap_or(0)
}

fn written(name: &str, page: &str) {
    std::fs::write(format!("{}/../../target/{name}.html", env!("CARGO_MANIFEST_DIR")), page).unwrap();
}

#[test]
fn the_terminal_form() {
    insta::assert_snapshot!(terminal(&document(&str::to_owned), Style::default()));
}

#[test]
fn the_terminal_form_in_60_columns() {
    insta::assert_snapshot!(terminal(&document(&str::to_owned), Style { color: false, width: 60 }));
}

/// Wide enough for bars.
#[test]
fn the_terminal_form_in_160_columns() {
    insta::assert_snapshot!(terminal(&document(&str::to_owned), Style { color: false, width: 160 }));
}

#[test]
fn the_terminal_form_with_hostile_names() {
    let text = terminal(&document(&hostile), Style::default());
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.lines().any(|line| line.starts_with("# head")), "{text}");
    assert!(text.contains("u{1b}") && text.contains("alert(1)"));
    insta::assert_snapshot!(text);
}

#[test]
fn colours_change_nothing_else() {
    let plain = terminal(&document(&str::to_owned), Style { color: false, width: 80 });
    let coloured = terminal(&document(&str::to_owned), Style { color: true, width: 80 });
    let mut bare = String::new();
    for (at, part) in coloured.split('\u{1b}').enumerate() {
        bare += if at == 0 { part } else { part.split_once('m').expect("a colour").1 };
    }
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    assert_eq!(trimmed(&bare), trimmed(&plain));
    assert!(coloured.contains("\u{1b}[1m") && coloured.contains("\u{1b}[31m") && !plain.contains('\u{1b}'));
}

#[test]
fn the_markdown_form() {
    insta::assert_snapshot!(markdown(&document(&str::to_owned)));
}

#[test]
fn the_html_form() {
    let page = html(&document(&str::to_owned), None);
    written("document", &page);
    for outside in ["src=\"http", "href=\"http", "@import", "url(http", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let (_, body) = page.split_once("<body>").unwrap();
    insta::assert_snapshot!(body.replace("><", ">\n<"));
}

/// Bars that divide cells: those that no backslash escapes.
fn bars(line: &str) -> usize {
    line.replace("\\\\", "").replace("\\|", "").matches('|').count()
}

#[test]
fn no_name_begins_anything_in_markdown() {
    let text = markdown(&document(&hostile));
    assert!(text.contains("alert(1)") && text.contains("evil"), "the names are there, as text");
    let blocks: String = text.split("```").step_by(2).collect();
    // What is escaped is text.
    let prose = blocks.replace("\\]", "");
    for begins in ["<script", "<img", "<b>", "](", "https://", "www.", " `code`", " *x*", " @someone", " #1", "\u{1b}"]
    {
        assert!(!prose.contains(begins), "{begins:?} in {prose}");
    }
    assert!(!prose.lines().any(|line| line.starts_with("# head")));
    let mut columns = 0;
    for line in prose.lines() {
        match line.starts_with('|') {
            true if columns == 0 => columns = bars(line),
            true => assert_eq!(bars(line), columns, "{line}"),
            false => columns = 0,
        }
    }
}

#[test]
fn no_name_breaks_out_of_the_page() {
    let front = Front { script: "void 0;", ..Front::default() };
    for (name, front, scripts) in [("hostile-document", None, 0), ("hostile-document-with-script", Some(&front), 8)] {
        let page = html(&document(&hostile), front);
        written(name, &page);
        assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (scripts, scripts), "{name}");
        let svgs = page.matches("<svg").count();
        assert_eq!(page.matches("<title").count(), page.matches("</title").count());
        assert_eq!((svgs, page.matches("</style").count()), (10, 1), "{name}");
        assert_eq!(page.matches("<img").count(), 1, "ours");
        assert!(page.contains("alert(1)"), "{name}: the names are there, as text");
    }
}

#[test]
fn the_data_of_charts_and_lanes_can_be_read_back() {
    let page = html(&document(&hostile), Some(&Front::default()));
    let data = page.split("<script type=\"application/json\" class=\"chart\">").skip(1);
    let charts: Vec<serde_json::Value> =
        data.map(|rest| serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()).collect();
    assert_eq!(charts.len(), 6);
    assert_eq!(charts[0]["curves"][0]["xy"][4], serde_json::json!([0.999, 12e6]));
    assert_eq!(charts[3]["curves"][0]["xy"][1][1], serde_json::Value::Null, "a gap");
}

/// What a page's script reads; its types are made of this (`report/web/types.mjs`).
#[test]
fn the_schema_of_charts_and_lanes_is_the_pages() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code)]
    struct Drawn {
        chart: Chart,
        lanes: Lanes,
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../web/document.schema.json");
    let text = serde_json::to_string_pretty(&schemars::schema_for!(Drawn)).unwrap() + "\n";
    if std::env::var_os("TAUT_UPDATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == text, "report/web/document.schema.json is stale: run this test with TAUT_UPDATE=1");
}

#[test]
fn a_document_without_anything_is_no_page_of_headings() {
    assert_eq!(terminal(&Document::default(), Style::default()), "");
    assert_eq!(markdown(&Document::default()), "\n");
    let nothing = Chart { curves: vec![Curve::default()], ..Chart::default() };
    let empty = Section::new(
        1,
        "",
        vec![Block::Chart(Box::new(nothing)), Block::Table(Table::new(["a"])), Block::Lanes(Lanes::default())],
    );
    let page = html(&Document { sections: vec![empty], ..Document::default() }, None);
    assert!(!page.contains("<figure") && !page.contains("<table"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_line_is_wider_than_the_terminal_whatever_the_names(
        names in prop::collection::vec("([a-z/_.]{0,30}|\\PC{0,20}|機械 {0,3}|[ \\-→]{0,4}|👩‍💻|\u{301}x|.{0,6}){0,6}", 1..6),
        width in 60usize..161,
        color: bool,
    ) {
        let at = std::cell::Cell::new(0);
        let name = |_: &str| {
            at.set(at.get() + 1);
            names[at.get() % names.len()].clone()
        };
        let text = terminal(&document(&name), Style { color, width });
        let bare: String = text.split('\u{1b}').enumerate().map(|(at, part)| if at == 0 { part } else { part.split_once('m').unwrap().1 }).collect();
        prop_assert!(widest(&bare) <= width, "{} of {width} columns:\n{bare}", widest(&bare));
        for figure in ["1.9 (1.3–6.0)", "43\u{202f}012"] {
            prop_assert!(bare.contains(figure) || bare.contains("no room for"), "{figure}");
        }
    }
}
