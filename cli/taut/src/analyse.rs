//! A recording on disk → its analysis.

use std::path::Path;

use anyhow::Result;
use taut_analysis::{Analysis, Analyzer, Config};

use crate::{input, losses::Losses};

/// The analysis of the recording at `path`.
pub fn analyse(path: &Path, config: &Config) -> Result<Analysis> {
    let bytes = input::map(path)?;
    let mut analyzer = Analyzer::new(config.clone());
    let contents = taut_recording::read(&bytes, &mut |record| analyzer.record(&record))?;
    let damage = contents.damage.iter().map(ToString::to_string).collect();
    Ok(analyzer.finish(contents.info, contents.ending, damage, bytes.len() as u64)?)
}

/// ", 5 stamps LOST" for each thing of which some was, which is what makes [`Analysis::has_loss`]; damage is said by itself.
pub fn lost(analysis: &Analysis) -> String {
    Losses::of_analysis(analysis).to_string()
}
