//! `lab.toml` as text: read and checked.

use std::path::Path;

use crate::{Error, Lab};

impl Lab {
    /// Reads and checks a lab; `path` is for messages.
    ///
    /// # Errors
    /// The line or the key, what is wrong with it, and what to write.
    pub fn parse(text: &str, path: &Path) -> Result<Lab, Error> {
        let bad = |place: String, problem: String| Error::File { file: path.to_owned(), place, problem };
        let lab: Lab = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            bad(line.map_or("lab".into(), |line| format!("line {line}")), error.message().replace('\n', " "))
        })?;
        crate::checks::check(&lab).map_err(|(place, problem)| bad(place, problem))?;
        if lab.sweep.is_some() {
            crate::sweep::grid(&lab).map_err(|(place, problem)| bad(place, problem))?;
        }
        Ok(lab)
    }
}
