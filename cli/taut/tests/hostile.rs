//! Names that try to leave the place where they stand, through every form of every subject, from the file to what is printed.
//! What a browser makes of the pages is held by `report/web/test/hostile.test.mjs`.

use std::collections::BTreeMap;

use assert_cmd::cargo::cargo_bin;
use serde_json::{Value, json};

/// What a terminal (ESC, BEL, a new line), a page, Markdown and a spreadsheet take for their own.
const TRICKS: [&str; 6] = [
    "=HYPERLINK(\"https://evil.example\")|<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "[x](javascript:alert(3)) www.evil.example `code` *x*",
    "\u{1b}[2J\u{1b}]0;title\u{7}\rover\u{9b}31m",
    "a\nforged line\n# forged head\n| forged | row |",
    "@SUM(1)</title></style>--><b>bold</b>\"'>",
];

struct Folder(tempfile::TempDir);

impl Folder {
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    /// What a command prints, whatever its exit code; a panic has none of its own.
    fn taut(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = assert_cmd::Command::new(cargo_bin!("taut"));
        let output = command.args(arguments).current_dir(self.0.path()).env_remove("TAUT_SESSION").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        let (out, said) = (text(output.stdout), text(output.stderr));
        assert_ne!(output.status.code(), Some(101), "{arguments:?}: {said}");
        (output.status.code(), out, said)
    }

    /// A recording of 3,000 messages over points of hostile names, by threads of hostile names, with hostile reasons.
    fn recording(&self, name: &str, slow_ns: u64) {
        let mut lines = String::new();
        for id in 0..3000_u64 {
            let t = 1_000_000 + id * 5_000_000;
            let late = if id % 50 == 0 { slow_ns } else { 0 };
            for (at, after_ns) in [0, 300_000 + late, 500_000 + late].into_iter().enumerate() {
                let stamp = json!({
                    "id": id, "point": TRICKS[at], "t_ns": t + after_ns, "pid": 7, "thread": TRICKS[at + 3],
                });
                lines += &format!("{stamp}\n");
            }
            let reason = if id % 10 == 0 { TRICKS[4] } else { "applied" };
            lines += &format!("{}\n", json!({"id": id, "outcome": reason, "t_ns": t + 600_000 + late, "pid": 7}));
        }
        self.write("lines.jsonl", &lines);
        let (code, _, said) = self.taut(&["import", "jsonl", "lines.jsonl", "--unit", "ns", "-o", name]);
        assert_eq!(code, Some(0), "{said}");
        std::fs::remove_file(self.0.path().join("lines.jsonl")).unwrap();
    }
}

/// Nothing that a terminal obeys, and no line that a name began.
fn terminal(subject: &str, text: &str) {
    let control = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(control, None, "{subject}: {text}");
    let forged = text.lines().find(|line| line.trim_start_matches(['#', '|', ' ']).starts_with("forged"));
    assert_eq!(forged, None, "{subject}: {text}");
}

fn markdown(subject: &str, text: &str) {
    terminal(subject, text);
    // Without blocks of code; what is escaped is text.
    let prose: String = text.split("```").step_by(2).collect::<String>().replace("\\]", "").replace("\\`", "");
    for begins in ["<script", "<img", "<b>", "</title", "](", "https://", "www.", " *x*"] {
        assert!(!prose.contains(begins), "{subject}: {begins:?} in {prose}");
    }
    let bars = |line: &str| line.replace("\\\\", "").replace("\\|", "").matches('|').count();
    let mut columns = 0;
    for line in prose.lines() {
        match line.starts_with('|') {
            true if columns == 0 => columns = bars(line),
            true => assert_eq!(bars(line), columns, "{subject}: {line}"),
            false => columns = 0,
        }
    }
}

/// As many elements that run something as a page has of its own; what is data is data.
fn html(subject: &str, text: &str, scripts: usize) {
    assert_eq!((text.matches("<script").count(), text.matches("</script").count()), (scripts, scripts), "{subject}");
    for begins in ["<img", "<b>bold", "</title></style>"] {
        assert!(!text.contains(begins), "{subject}: {begins}");
    }
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{subject}");
}

/// No cell is a formula, and each row has as many cells as the first (RFC 4180).
fn csv(subject: &str, text: &str) {
    let (mut rows, mut row, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            _ => cell.push(c),
        }
    }
    assert!(rows.len() > 1 && !is_quoted && cell.is_empty(), "{subject}");
    for row in &rows {
        assert_eq!(row.len(), rows[0].len(), "{subject}: {row:?}");
        let formula = row.iter().find(|cell| cell.starts_with(['=', '@', '+', '\t']));
        assert_eq!(formula, None, "{subject}: {row:?}");
    }
    assert!(!text.contains(['\u{1b}', '\u{7}']), "{subject}");
}

fn json(subject: &str, text: &str) {
    let read: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{subject}: {error}: {text}"));
    assert!(read.is_object() || read.is_array(), "{subject}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{subject}");
}

fn xml(subject: &str, text: &str) {
    assert!(text.starts_with("<?xml"), "{subject}: {text}");
    html(subject, text, 0);
}

#[test]
fn no_name_leaves_its_place_in_any_form_of_any_subject() {
    let folder = Folder(tempfile::tempdir().unwrap());
    folder.recording("a.mcap", 4_000_000);
    folder.recording("b.mcap", 9_000_000);
    let [from, to, hop] = [TRICKS[0], TRICKS[2], &format!("{} → {}", TRICKS[0], TRICKS[2])].map(|text| json!(text));
    let chain = json!(TRICKS[5]);
    folder.write(
        "taut.toml",
        &format!(
            "[[chain]]\nname = {chain}\npoints = [{from}, {to}]\ndropped_max_percent = 1\n[[chain.budget]]\nhop = {hop}\n\
             figure = \"own.p50\"\nmax_ms = 0.05\n"
        ),
    );
    let mut seen = BTreeMap::new();
    let mut check = |arguments: &[&str], form: &str, is_named: bool| {
        let words = match form {
            "junit" => [arguments, &["--junit", "out.xml"]].concat(),
            _ => [arguments, &["--format", form]].concat(),
        };
        let subject = words.join(" ");
        let (code, mut out, said) = folder.taut(&words);
        terminal(&format!("stderr of {subject}"), &said);
        if form == "junit" {
            out = std::fs::read_to_string(folder.0.path().join("out.xml")).unwrap_or_default();
        }
        assert!(!out.is_empty(), "{subject}: {code:?} {said}");
        match form {
            "terminal" => terminal(&subject, &out),
            "markdown" => markdown(&subject, &out),
            "html" => html(&subject, &out, if arguments[0] == "gate" { 0 } else { 2 }),
            "json" => json(&subject, &out),
            "csv" => csv(&subject, &out),
            _ => xml(&subject, &out),
        }
        assert!(
            !is_named || ["HYPERLINK", "evil", "SUM"].iter().any(|part| out.contains(part)),
            "{subject} has the names: {out}"
        );
        *seen.entry(form.to_owned()).or_insert(0) += 1;
    };
    for form in ["terminal", "markdown", "html", "json"] {
        check(&["report", "a.mcap"], form, true);
        check(&["report", "a.mcap", "b.mcap"], form, true);
        check(&["explain", "a.mcap"], form, true);
    }
    for form in ["terminal", "json", "junit", "markdown"] {
        check(&["gate", "--budgets", "--candidate", "a.mcap"], form, true);
    }
    for form in ["terminal", "json", "html", "junit", "markdown"] {
        check(&["gate", "--baseline", "a.mcap", "--candidate", "b.mcap"], form, true);
    }
    for form in ["terminal", "json"] {
        check(&["doctor"], form, false);
    }
    check(&["log", "a.mcap"], "json", false);
    println!("{seen:?}");
    let (code, table, said) = folder.taut(&["export", "csv", "a.mcap", "-o", "-"]);
    assert_eq!(code, Some(0), "{said}");
    csv("export csv", &table);
    // An error repeats what it is about.
    for name in TRICKS.iter().filter(|name| !name.contains('/')) {
        for arguments in [&["report", name][..], &["fleet", "add", "a.mcap", "--into", "fl", "--robot", name]] {
            let (code, out, said) = folder.taut(arguments);
            assert_eq!((code, out.as_str(), said.lines().count()), (Some(2), "", 1), "{arguments:?}: {said}");
            terminal("an error", &said);
        }
    }
}

#[test]
fn no_name_of_a_lab_leaves_its_place() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let [title, metric] = [TRICKS[0], TRICKS[1]].map(|name| json!(name).to_string());
    let key = TRICKS[1];
    let line = json!({ key: 3.5, "success": false, "reason": TRICKS[3] }).to_string();
    folder.write("trial.sh", &format!("cat <<'END'\n{line}\nEND\n"));
    let lab = |scenario: &str| {
        format!(
            "title = {title}\ntrials = 2\n[trial]\ncommand = [\"sh\", \"trial.sh\"]\nreport = \"json\"\ntimeout_s = 60\n\
             [metrics.{metric}]\nunit = \"ms\"\n[[scenario]]\nname = \"none\"\n[[scenario]]\nname = {}\n",
            json!(scenario)
        )
    };
    // Scenarios name files.
    for name in TRICKS {
        folder.write("lab.toml", &lab(name));
        let (code, out, said) = folder.taut(&["lab", "run", "lab.toml", "-o", "results"]);
        assert_eq!((code, out.as_str(), said.lines().count()), (Some(2), "", 1), "{said}");
        terminal("a scenario's name", &said);
    }
    folder.write("lab.toml", &lab("other"));
    let (_, out, said) = folder.taut(&["lab", "check", "lab.toml"]);
    terminal("lab check", &out);
    terminal("lab check", &said);
    let (code, out, said) = folder.taut(&["lab", "run", "lab.toml", "-o", "results"]);
    terminal("lab run", &out);
    terminal("lab run", &said);
    println!("{code:?} {out} {said}");
    for form in ["json", "html", "csv"] {
        let again = ["lab", "run", "lab.toml", "-o", "results", "--resume", "--format", form];
        let (_, out, said) = folder.taut(&again);
        terminal("lab run", &said);
        match form {
            "json" => json("lab", &out),
            "html" => html("lab", &out, 2),
            _ => csv("lab", &out),
        }
    }
}

/// A file's own name is a name like any other, in what is printed and in what is said of it.
#[test]
fn no_name_of_a_file_leaves_its_place() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let released = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/released/format-1.mcap")).unwrap();
    let name = "a\n\u{1b}[31mforged line\u{7}.mcap";
    std::fs::write(folder.0.path().join(name), released).unwrap();
    for command in [
        "report",
        "report --format markdown",
        "explain",
        "explain --format markdown",
        "export csv",
        "export perfetto",
        "export parquet",
        "export foxglove",
        "flame -o flame.svg",
        "log",
        "log --layouts",
        "recover",
        "fleet report",
        "gate --budgets --candidate",
        "lab check",
        "budget",
    ] {
        let mut words: Vec<&str> = command.split(' ').collect();
        words.push(name);
        let (_, out, said) = folder.taut(&words);
        terminal(command, &out);
        terminal(command, &said);
    }
}
