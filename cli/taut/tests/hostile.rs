//! Names that try to leave the place where they stand, through every form of every subject, from the file to what is printed.
//! What a browser makes of the pages is held by `report/web/test/hostile.test.mjs`.

mod screen;

use std::{
    collections::BTreeMap,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use assert_cmd::cargo::cargo_bin;
use serde_json::{Value, json};
use taut_clock::{ClockPair, Counter, Ticks, monotonic_ns};
use taut_recording::{Info, Kind, Name, Record, StampBatch, Writer};

/// What a terminal (ESC, BEL, a new line), a page, Markdown and a spreadsheet take for their own.
const TRICKS: [&str; 6] = [
    "=HYPERLINK(\"https://evil.example\")|<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "[x](javascript:alert(3)) www.evil.example `code` *x*",
    "\u{1b}[2J\u{1b}]0;title\u{7}\rover\u{9b}31m\u{202e}gpj",
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

/// Nothing that a terminal obeys.
fn no_control(subject: &str, text: &str) {
    let control = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t') || *c == '\u{202e}');
    assert_eq!(control, None, "{subject}: {text}");
}

/// Nor a line that a name began.
fn terminal(subject: &str, text: &str) {
    no_control(subject, text);
    // Where a long name goes on, it stands further to the right than any row begins.
    let begins =
        |line: &&str| !line.starts_with("   ") && line.trim_start_matches(['#', '|', ' ']).starts_with("forged");
    let forged = text.lines().find(begins);
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
    let (all, ended) = (text.matches("<script").count(), text.matches("</script").count());
    let data = text.matches("<script type=\"application/json\"").count();
    assert_eq!((all - data, ended), (scripts, all), "{subject}");
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
            "[[chain]]\nname = {chain}\npoints = [{from}, {to}]\ndropped_max_percent = 1\n[[chain.limit]]\nhop = {hop}\n\
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
            "html" => html(&subject, &out, if ["gate", "doctor"].contains(&arguments[0]) { 0 } else { 1 }),
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
    for form in ["terminal", "json", "html", "junit", "markdown"] {
        check(&["gate", "--limits", "--candidate", "a.mcap"], form, true);
    }
    for form in ["terminal", "json", "html", "junit", "markdown"] {
        check(&["gate", "--baseline", "a.mcap", "--candidate", "b.mcap"], form, true);
    }
    for form in ["terminal", "markdown", "json", "html"] {
        check(&["doctor"], form, false);
    }
    check(&["telemetry", "a.mcap"], "json", false);
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
    // Titles and metrics stand beside what taut says; commands, loads and variables are shown before they are run.
    for name in TRICKS {
        for (from, to) in [(&title, json!(name).to_string()), (&metric, json!(name).to_string())] {
            folder.write("lab.toml", &lab("other").replace(from, &to));
            let (code, out, said) = folder.taut(&["lab", "check", "lab.toml"]);
            terminal("lab check", &out);
            terminal("lab check", &said);
            let is_one_line = taut_recording::printable(name.to_owned()) == name;
            assert_eq!(code, Some(if is_one_line { 0 } else { 2 }), "{name:?}: {out}{said}");
            assert!(is_one_line || said.lines().count() == 1, "{said}");
        }
        let word = json!(name);
        let more = format!(
            "{}environment = {{ A = {word} }}\nload = [{{ kind = \"command\", command = {word} }}]\n[[process]]\nname = \"p\"\ncommand = [\"true\", {word}]\n",
            lab("other")
        );
        folder.write("lab.toml", &more);
        let (_, out, said) = folder.taut(&["lab", "check", "lab.toml"]);
        terminal("lab check", &out);
        terminal("lab check", &said);
        assert!(out.contains(" p: true "), "{out}{said}");
    }
    folder.write("lab.toml", &lab("other"));
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
            "html" => html("lab", &out, 1),
            _ => csv("lab", &out),
        }
    }
}

/// Values of a machine that was written down: in each form of the doctor, and in the script that is to be run as root.
#[test]
fn no_value_of_a_machine_leaves_its_place() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let laptop = concat!(env!("CARGO_MANIFEST_DIR"), "/../../measure/taut-doctor/tests/machines/laptop.txt");
    let laptop = std::fs::read_to_string(laptop).unwrap();
    // A value on a line of its own; the lines that name files stay, or there is nothing to look at.
    let written = |trick: &str| -> String {
        let line = |line: &str| if line.starts_with("== ") { format!("{line}\n") } else { format!("{line}{trick}\n") };
        laptop.lines().map(line).collect()
    };
    for trick in TRICKS.into_iter().chain(["\nreboot", "'\nreboot\n'", "$(reboot)`reboot`", "\u{2028}reboot"]) {
        folder.write("machine.txt", &written(trick));
        for form in ["terminal", "markdown", "json", "html"] {
            let (code, out, said) = folder.taut(&["doctor", "--machine", "machine.txt", "--format", form]);
            assert_eq!((code, said.as_str()), (Some(0), ""), "{trick:?}");
            match form {
                // Its paragraphs are wrapped, so that any word may begin a line.
                "terminal" => no_control("doctor", &out),
                "markdown" => markdown("doctor", &out),
                "html" => html("doctor", &out, 0),
                _ => json("doctor", &out),
            }
        }
        let (code, script, said) = folder.taut(&["doctor", "--machine", "machine.txt", "--fix"]);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{trick:?}");
        terminal("doctor --fix", &script);
        // A line is a comment, or one of the commands that remedies are made of; what it writes is one word.
        for line in script.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            assert!(line.starts_with("echo ") || line.starts_with("printf "), "{trick:?}: {line}");
        }
        let checked = Command::new("sh").args(["-n", "-c", &script]).output().unwrap();
        assert!(checked.status.success(), "{trick:?}: {}", String::from_utf8_lossy(&checked.stderr));
    }
    for option in ["--interface", "--tty"] {
        for name in TRICKS {
            let (_, out, said) = folder.taut(&["doctor", "--machine", "machine.txt", option, name, "--fix"]);
            terminal(option, &out);
            terminal(option, &said);
            assert!(!out.lines().any(|line| line.contains("forged line") && !line.starts_with('#')), "{out}");
        }
    }
}

/// Names in the files of the other commands that read some: labs of a bus, guards, interval logs, trials.
#[test]
fn no_name_of_another_subject_leaves_its_place() {
    let folder = Folder(tempfile::tempdir().unwrap());
    folder.recording("a.mcap", 4_000_000);
    folder.recording("b.mcap", 9_000_000);
    let check = |arguments: &[&str], form: &str| {
        let words = [arguments, &["--format", form]].concat();
        let subject = words.join(" ");
        let (code, out, said) = folder.taut(&words);
        terminal(&format!("stderr of {subject}"), &said);
        assert!(!out.is_empty(), "{subject}: {code:?} {said}");
        // Of an interval log with one file the tags are not named.
        let is_named = arguments[0] != "wakeup";
        let has_names = ["HYPERLINK", "evil", "SUM", "alert"].iter().any(|part| out.contains(part));
        assert!(has_names || !is_named, "{subject}: {out}");
        match form {
            "terminal" => terminal(&subject, &out),
            "markdown" => markdown(&subject, &out),
            "html" => html(&subject, &out, 1),
            _ => json(&subject, &out),
        }
    };
    for form in ["terminal", "markdown", "json", "html"] {
        check(&["compare", "a.mcap", "b.mcap"], form);
    }
    // An interval log, whose tags are the names.
    let (code, _, said) = folder.taut(&["export", "hlog", "a.mcap", "-o", "a.hlog"]);
    assert_eq!(code, Some(0), "{said}");
    for form in ["terminal", "json", "html"] {
        check(&["wakeup", "--read", "a.hlog"], form);
    }
    let (code, _, said) = folder.taut(&["import", "hlog", "a.hlog", "-o", "hlog.mcap"]);
    assert_eq!(code, Some(0), "{said}");
    for form in ["terminal", "markdown", "json", "html"] {
        check(&["report", "hlog.mcap"], form);
    }
    // Channels, in lists and in layouts.
    let (code, _, said) = folder.taut(&["export", "foxglove", "a.mcap", "-o", "channels.mcap"]);
    assert_eq!(code, Some(0), "{said}");
    for form in ["terminal", "json"] {
        check(&["telemetry", "channels.mcap"], form);
    }
    let (code, out, said) = folder.taut(&["telemetry", "channels.mcap", "--layouts"]);
    assert_eq!((code, out.as_str()), (Some(0), ""), "{said}");
    terminal("telemetry --layouts", &said);
    let layout = |ending: &str| std::fs::read_to_string(folder.0.path().join(format!("channels.{ending}"))).unwrap();
    json("a layout for Foxglove", &layout("foxglove.json"));
    let xml = layout("plotjuggler.xml");
    assert!(xml.contains("HYPERLINK") && !xml.contains("<script") && !xml.contains("<img"), "{xml}");
    // A budget's own words.
    let preset = folder.taut(&["bus", "budget", "--preset", "rs485-3500us", "--format", "toml"]).1;
    for name in TRICKS {
        let mut table: toml::Table = preset.parse().unwrap();
        for key in ["title", "about"] {
            table.insert(key.to_owned(), name.into());
        }
        for term in table["term"].as_array_mut().unwrap() {
            let term = term.as_table_mut().unwrap();
            let own = format!("{name} {}", term["name"].as_str().unwrap());
            term.insert("name".to_owned(), own.into());
            term.insert("note".to_owned(), format!("alert {name}").into());
        }
        folder.write("budget.toml", &table.to_string());
        let form = |form| ["bus", "budget", "budget.toml", "--samples", "1000", "--format", form];
        // "-" is the same stdout.
        let (_, named, said) = folder.taut(&[&form("terminal")[..], &["-o", "-"]].concat());
        terminal("bus budget -o -", &said);
        assert_eq!(named, folder.taut(&form("terminal")).1);
        for (form, words) in ["terminal", "json", "html"].map(|name| (name, form(name))) {
            let (code, out, said) = folder.taut(&words);
            assert_eq!(code, Some(0), "{said}");
            match form {
                // Wrapped, as the doctor's.
                "terminal" => no_control("bus budget", &out),
                "html" => html("bus budget", &out, 1),
                _ => json("bus budget", &out),
            }
        }
    }
}

/// What `taut top` writes to a terminal, of a recording that is being written.
#[test]
fn no_name_leaves_its_place_on_the_live_screen() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let name = "a\u{1b}]0;title\u{7}\u{9b}\u{202e}.mcap";
    let is_over = Arc::new(AtomicBool::new(false));
    let (begun, has_begun) = std::sync::mpsc::channel();
    let recorder = std::thread::spawn({
        let (path, is_over) = (folder.0.path().join(name), Arc::clone(&is_over));
        move || live_recording(&path, &is_over, || begun.send(()).unwrap())
    });
    has_begun.recv().unwrap();
    let names = ["HYPERLINK", r"a\nforged", r"u{1b}"];
    let shown = screen::shown(&["top", name], folder.0.path(), |shown| {
        let text = String::from_utf8_lossy(shown);
        names.iter().all(|name| text.contains(name)) || recorder.is_finished()
    });
    is_over.store(true, Ordering::Relaxed);
    recorder.join().unwrap();
    let text = String::from_utf8(shown).unwrap();
    for obeyed in ["\u{1b}]0;", "\u{7}", "\u{9b}", "\u{202e}"] {
        assert!(!text.contains(obeyed), "{obeyed:?} in {text:?}");
    }
    for name in names {
        assert!(text.contains(name), "{name} is shown, as text: {text:?}");
    }
}

/// Messages over three points of hostile names, 20 each 50 ms, until nobody looks any more.
fn live_recording(path: &std::path::Path, is_over: &AtomicBool, begun: impl FnOnce()) {
    let start_ns = monotonic_ns();
    let info = Info { start_monotonic_ns: start_ns, start_realtime_ns: taut_clock::realtime_ns(), ..Info::default() };
    let mut writer = Writer::create(path, &info).unwrap();
    for (id, name) in [(1, TRICKS[0]), (2, TRICKS[4]), (3, TRICKS[3]), (4, "applied")] {
        writer.write(&Record::Name(Name { id, name: name.to_owned() })).unwrap();
    }
    let mut begun = Some(begun);
    let mut message = 0;
    // Enough for whatever the machine does meanwhile.
    for _ in 0..6000 {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let now_ns = monotonic_ns();
        let pair = ClockPair {
            ticks: Ticks(now_ns),
            monotonic_ns: now_ns,
            realtime_ns: taut_clock::realtime_ns(),
            window_ticks: 30,
        };
        writer.write(&Record::Clock(Counter::Monotonic, pair)).unwrap();
        let mut batch = StampBatch { pid: 1, tid: 1, counter: Counter::Monotonic as u8, ..StampBatch::default() };
        for sent in 0..20_u64 {
            let sent_ns = now_ns - (20 - sent) * 2_000_000;
            for (after_ns, point, kind, value) in [
                (0, 1, Kind::Stamp, 0),
                (100_000, 2, Kind::Stamp, 0),
                (200_000, 3, Kind::Stamp, 0),
                (300_000, 3, Kind::Outcome, 4),
            ] {
                batch.ticks.push(sent_ns + after_ns);
                batch.message_id.push(message + sent);
                batch.point.push(point);
                batch.kind.push(kind as u8);
                batch.value.push(value);
            }
        }
        message += 20;
        writer.write(&Record::Stamps(batch)).unwrap();
        writer.flush().unwrap();
        begun.take().into_iter().for_each(|begun| begun());
        std::thread::sleep(Duration::from_millis(50));
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
        "flamegraph -o flame.svg",
        "telemetry",
        "telemetry --layouts",
        "recover",
        "fleet report",
        "gate --limits --candidate",
        "lab check",
        "bus budget",
    ] {
        let mut words: Vec<&str> = command.split(' ').collect();
        words.push(name);
        let (_, out, said) = folder.taut(&words);
        terminal(command, &out);
        terminal(command, &said);
    }
}
