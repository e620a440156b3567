//! Sees that the page's bundle is there before the compiler complains about it in its own words.

use std::path::Path;

fn main() {
    // A link to web/dist here; the files themselves in the published crate.
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("bundle");
    for file in ["report.js", "report.css"] {
        let path = dist.join(file);
        println!("cargo::rerun-if-changed={}", path.display());
        if !path.exists() {
            println!("cargo::error=the report's front end is not bundled: run `make web`");
            return;
        }
    }
}
