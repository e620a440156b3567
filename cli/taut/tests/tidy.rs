//! Tidiness is a test: dependencies point one way, and no document names a file that is gone.

use std::{
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
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            assert!(path.parent().unwrap().join(file).exists(), "{document}: the link to {file} leads nowhere");
        }
    }
}
