//! Tidiness is a test: dependencies point one way, crates are ready to be published, one version stands everywhere,
//! licences permit what we do, no document names a file that is gone, and no modules use each other in a circle.

mod circles;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

/// The stage folders in the order of the data's way. A crate may depend on crates of its
/// own folder and of folders earlier in this list.
const ORDER: [&str; 11] =
    ["trace", "measure", "guard", "drive", "explain", "stress", "gate", "report", "cli", "python", "workloads"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn dependencies_point_up_the_stream() {
    let packages = packages();
    let stage = |package: &serde_json::Value| {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let folder = manifest.strip_prefix(root()).unwrap().iter().next().unwrap().to_str().unwrap().to_owned();
        ORDER.iter().position(|s| *s == folder).unwrap_or_else(|| panic!("{folder}/ is not a stage; see ORDER"))
    };
    let find = |name: &str| packages.iter().find(|p| p["name"] == name);
    for package in &packages {
        for dependency in package["dependencies"].as_array().unwrap() {
            // Tests may look anywhere; what ships may not.
            if dependency["kind"] == "dev" {
                continue;
            }
            let Some(target) = find(dependency["name"].as_str().unwrap()) else { continue };
            assert!(
                stage(target) <= stage(package),
                "{} ({}) must not depend on {} ({})",
                package["name"],
                ORDER[stage(package)],
                target["name"],
                ORDER[stage(target)],
            );
        }
    }
}

/// What cargo says of the workspace's packages.
fn packages() -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// A file's name is text of others; `Path::display` would hand it to a terminal as it is.
#[test]
fn the_command_shows_paths_as_printable_text() {
    let mut folders = vec![root().join("cli/taut/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let raw: Vec<&str> = text.lines().filter(|line| line.contains(".display()")).collect();
            assert!(raw.is_empty(), "{}: Shown::shown instead of Path::display: {raw:?}", path.display());
        }
    }
}

fn is_published(package: &serde_json::Value) -> bool {
    package["publish"].is_null()
}

#[test]
fn published_crates_are_ready_for_it() {
    let packages = packages();
    let kept: BTreeSet<&str> = [
        "taut-allocations",
        "taut-conformance",
        "taut-mujoco",
        "taut-python",
        "taut-quad",
        "taut-reach",
        "taut-readers",
        "taut-simulated-clock",
        "taut-skip",
        "taut-teleop",
    ]
    .into();
    let apart = packages.iter().filter(|p| !is_published(p)).map(|p| p["name"].as_str().unwrap());
    assert_eq!(apart.collect::<BTreeSet<_>>(), kept, "the crates that nobody but this repository has a use for");
    for package in packages.iter().filter(|package| is_published(package)) {
        let name = package["name"].as_str().unwrap();
        for field in ["description", "license", "repository", "readme", "rust_version"] {
            assert!(package[field].as_str().is_some_and(|text| !text.is_empty()), "{name}: no {field}");
        }
        // The registry's rules.
        let keywords: Vec<&str> = package["keywords"].as_array().unwrap().iter().map(|k| k.as_str().unwrap()).collect();
        let is_good = |word: &&str| {
            word.len() <= 20
                && word.starts_with(|c: char| c.is_ascii_alphanumeric())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-+".contains(c))
        };
        assert!((1..=5).contains(&keywords.len()) && keywords.iter().all(is_good), "{name}: keywords {keywords:?}");
        assert!((1..=5).contains(&package["categories"].as_array().unwrap().len()), "{name}: categories");
        for dependency in package["dependencies"].as_array().unwrap() {
            let Some(ours) = packages.iter().find(|p| p["name"] == dependency["name"]) else { continue };
            let wants = dependency["req"].as_str().unwrap();
            let is_left_out = dependency["kind"] == "dev" && wants == "*";
            let is_there = is_published(ours) && wants == format!("^{}", ours["version"].as_str().unwrap());
            assert!(is_there || is_left_out, "{name}: what crates.io has it cannot be built of: {}", ours["name"]);
        }
    }
}

#[test]
fn every_place_says_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(packages().iter().all(|package| package["version"] == version));
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    for (file, line) in [
        ("share/cmake/taut/taut-config-version.cmake", format!("set(PACKAGE_VERSION \"{version}\")")),
        ("share/pkgconfig/taut.pc", format!("Version: {version}")),
    ] {
        assert!(read(file).lines().any(|l| l == line), "{file} has no line {line:?}");
    }
    let manifest = read("Cargo.toml");
    let ours = manifest.lines().filter(|line| line.starts_with("taut-") && line.contains("version"));
    ours.for_each(|line| assert!(line.contains(&format!("version = \"{version}\"")), "Cargo.toml: {line}"));
    // As in keepachangelog.com, in groups of these names, the newest first. That is this version; it has a date from its release on, which
    // the workflow asks for when it is tagged.
    let changelog = read("CHANGELOG.md");
    let mut headings = changelog.lines().filter(|line| line.starts_with("## "));
    let is_date = |text: &str| text.len() == 10 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    let newest = headings.next().and_then(|heading| heading.strip_prefix(&format!("## [{version}] - ")));
    assert!(
        newest.is_some_and(|date| date == "unreleased" || is_date(date)),
        "CHANGELOG.md begins with another version than {version}"
    );
    for heading in headings {
        let date = heading.strip_prefix("## [").and_then(|rest| rest.split_once("] - "));
        assert!(date.is_some_and(|(_, date)| is_date(date)), "CHANGELOG.md: {heading}");
    }
    let groups = ["### Added", "### Changed", "### Deprecated", "### Removed", "### Fixed", "### Security"];
    for group in changelog.lines().filter(|line| line.starts_with("### ")) {
        assert!(groups.contains(&group), "CHANGELOG.md: {group}");
    }
}

/// What `make deny` holds too, with more; here without a network.
#[test]
fn every_crate_has_a_licence_that_we_may_ship() {
    let deny: toml::Table = std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let words = |value: &toml::Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let allowed = words(&deny["licenses"]["allow"]);
    let exceptions = deny["licenses"]["exceptions"].as_array().unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform"])
        .arg(format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut seen = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(source) = package["source"].as_str() else { continue };
        assert!(
            source.starts_with("registry+https://github.com/rust-lang/crates.io-index"),
            "{name} comes from {source}"
        );
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name} states no licence"));
        let excepted = exceptions.iter().filter(|exception| exception["crate"].as_str() == Some(name));
        let also: Vec<String> = excepted.flat_map(|exception| words(&exception["allow"])).collect();
        let is_allowed = |word: &str| allowed.iter().chain(&also).any(|known| known == word);
        assert!(permits(licence, &is_allowed), "{name}: {licence} is not among those of deny.toml");
        seen += 1;
    }
    assert!(seen > 200, "{seen} crates: cargo metadata said less than it should");
}

/// Whether an SPDX expression leaves a choice that is allowed.
fn permits(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    // The inner one first.
    if let Some(open) = expression.rfind('(') {
        let (before, rest) = expression.split_at(open);
        let (inner, after) = rest[1..].split_once(')').expect("closed");
        let word = if permits(inner, is_allowed) { "allowed" } else { "refused" };
        return permits(&format!("{before}{word}{after}"), is_allowed);
    }
    let one = |word: &str| word.trim() == "allowed" || is_allowed(word.trim());
    // As was written before SPDX.
    expression.replace('/', " OR ").split(" OR ").any(|all| all.split(" AND ").all(one))
}

#[test]
fn a_licence_is_a_choice_or_a_sum() {
    let mit = |word: &str| word == "MIT" || word == "Unicode-3.0";
    for (expression, is) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/Apache-2.0", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-3.0 OR Apache-2.0) AND MIT", false),
    ] {
        assert_eq!(permits(expression, &mit), is, "{expression}");
    }
}

#[test]
fn links_in_documents_lead_somewhere() {
    let listed = Command::new("git").args(["ls-files", "*.md"]).current_dir(root()).output().unwrap();
    for document in String::from_utf8(listed.stdout).unwrap().lines() {
        let path = root().join(document);
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let target = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            assert!(target.exists(), "{document}: the link to {file} leads nowhere");
            if !anchor.is_empty() && target.extension().is_some_and(|extension| extension == "md") {
                let headings = anchors(&std::fs::read_to_string(&target).unwrap());
                assert!(headings.contains(anchor), "{document}: {link} names no heading; there are {headings:?}");
            }
        }
    }
}

/// Of PyPI's name `taut` nobody here has charge: what it brings one day may be anybody's.
#[test]
fn nothing_sends_anybody_to_the_name_taut_on_pypi() {
    let listed = Command::new("git").args(["ls-files"]).current_dir(root()).output().unwrap();
    let mut seen = 0;
    for name in String::from_utf8(listed.stdout).unwrap().lines() {
        // A file that is no text, or gone.
        let Ok(text) = std::fs::read_to_string(root().join(name)) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            seen += usize::from(line.contains("pip install"));
            assert!(!asks_pypi(line), "{name}:{number}: {line}: of the wheel, as 'taut-….whl[demo]'");
        }
    }
    assert!(seen > 20, "{seen} lines with pip");
}

/// Whether one of the words behind `pip install` is the bare name, with an extra or without.
fn asks_pypi(line: &str) -> bool {
    // Split, so that this file does not find itself.
    let install = ["pip", " install "].concat();
    let is_bare = |word: &str| {
        let word = word.trim_start_matches(['"', '\'', '`', '\\']);
        let rest = word.strip_prefix("taut").unwrap_or("-");
        !rest.starts_with(|c: char| c.is_alphanumeric() || "-_./*".contains(c))
    };
    let words = |rest: &str| {
        rest.split([';', '&', '|', '#', ')', '`']).next().is_some_and(|words| words.split_whitespace().any(is_bare))
    };
    line.split(&install).skip(1).any(words)
}

#[test]
fn the_bare_name_is_found_in_each_form() {
    let line = |rest: &str| ["pip", " install ", rest].concat();
    for bare in ["taut", "'taut[plot]'", "\"taut[demo]\"", "-U taut", "taut)", "taut==1", "numpy taut`"] {
        assert!(asks_pypi(&line(bare)), "{bare}");
    }
    for other in ["taut-*.whl", "'taut-….whl[demo]'", "ci/taut-*.whl", "numpy; taut demo", "\"$(ls taut-*.whl)[plot]\""]
    {
        assert!(!asks_pypi(&line(other)), "{other}");
    }
}

/// What links name a page's headings by, as GitHub makes it and `mkdocs.yml` does, too.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if is_code || heading == line || !heading.starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || "_- ".contains(*c);
        found.insert(heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"));
    }
    found
}

/// Circles that there still are: crate, a member of each. None may come, and one that is gone leaves this list.
const OPEN: &[(&str, &str)] = &[("taut-points", "ros::system"), ("taut-stamp", "process")];

#[test]
fn no_modules_of_a_crate_use_each_other_in_a_circle() {
    let mut found: BTreeSet<&(&str, &str)> = BTreeSet::new();
    for package in packages() {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().join("src");
        if !folder.exists() {
            continue;
        }
        for circle in circles::circles(&folder) {
            let name = package["name"].as_str().unwrap().to_owned();
            let known = OPEN.iter().find(|(of, member)| *of == name && circle.contains(*member));
            assert!(known.is_some(), "{name}: {circle:?} use each other; what they share gets a file of its own");
            found.extend(known);
        }
    }
    assert_eq!(found.len(), OPEN.len(), "take what is gone from the list of open circles: {found:?} are left");
}
