//! Tidiness is a test: dependencies point one way, and no document names a file that is gone.

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
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let stage = |package: &serde_json::Value| {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap());
        let folder = manifest.strip_prefix(root()).unwrap().iter().next().unwrap().to_str().unwrap().to_owned();
        ORDER.iter().position(|s| *s == folder).unwrap_or_else(|| panic!("{folder}/ is not a stage; see ORDER"))
    };
    let find = |name: &str| packages.iter().find(|p| p["name"] == name);
    for package in packages {
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
