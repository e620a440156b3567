//! stress-ng as what makes a CPU load, for those who compare with experiments that used it.

use std::{ffi::OsString, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::inputs::program;

const PROGRAM: &str = "stress-ng";

/// stress-ng with the CPU method of this name, or with all that it has in turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Method(Option<String>);

impl Method {
    /// Program and arguments for so many workers, each with a part of a CPU in percent.
    pub(super) fn words(&self, workers: u32, percent: f64) -> Vec<OsString> {
        // Its loads are whole percents.
        let (workers, percent) = (workers.to_string(), percent.round().max(1.0).to_string());
        let mut words = vec![PROGRAM, "--cpu", &workers, "--cpu-load", &percent, "--timeout", "0", "--quiet"];
        words.extend(self.0.iter().flat_map(|method| ["--cpu-method", method]));
        words.into_iter().map(OsString::from).collect()
    }

    pub(super) fn missing(&self) -> Option<String> {
        let why = format!("{PROGRAM} is no program in PATH; apt-get install {PROGRAM}, or leave method out");
        program(PROGRAM).is_none().then_some(why)
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Method, String> {
        let wrong =
            || format!("method {text:?}: write \"{PROGRAM}\", or \"{PROGRAM} matrixprod\" for one of its own methods");
        let mut words = text.split_whitespace();
        let (first, method) = (words.next(), words.next());
        let plain =
            |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) && !word.starts_with('-');
        if first != Some(PROGRAM) || words.next().is_some() || !method.is_none_or(plain) {
            return Err(wrong());
        }
        Ok(Method(method.map(str::to_owned)))
    }
}

impl TryFrom<String> for Method {
    type Error = String;

    fn try_from(text: String) -> Result<Method, String> {
        text.parse()
    }
}

impl From<Method> for String {
    fn from(method: Method) -> String {
        method.to_string()
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PROGRAM)?;
        self.0.as_ref().map_or(Ok(()), |method| write!(f, " {method}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methods_of_the_source_become_its_command() {
        let method: Method = "stress-ng matrixprod".parse().unwrap();
        let words = method.words(4, 80.0).join(" ".as_ref()).into_string().unwrap();
        assert_eq!(words, "stress-ng --cpu 4 --cpu-load 80 --timeout 0 --quiet --cpu-method matrixprod");
        assert_eq!(method.to_string(), "stress-ng matrixprod");
        assert!(!"stress-ng".parse::<Method>().unwrap().words(1, 50.0).contains(&"--cpu-method".into()));
        for bad in ["", "stress", "stress-ng --aggressive", "stress-ng a b", "matrixprod"] {
            assert!(bad.parse::<Method>().unwrap_err().contains("stress-ng matrixprod"), "{bad}");
        }
    }
}
