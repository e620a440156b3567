//! Machines that run rounds of a lab, as the file names them.

use serde::{Deserialize, Serialize};

/// A machine that runs rounds of a lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Unique; stands with every trial that ran there.
    pub name: String,
    /// As for the command `ssh`: "robot@10.0.0.5", or a name of ~/.ssh/config.
    pub ssh: String,
    /// Options for ssh and sftp, e.g. ["-o", "Port=2222", "-i", "key"].
    #[serde(default)]
    pub options: Vec<String>,
    /// A folder on it in which the lab may make its own.
    #[serde(default = "tmp")]
    pub folder: String,
}

fn tmp() -> String {
    "/tmp".into()
}

/// A Ray cluster whose hosts run rounds of a lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ray {
    /// As for `ray.init`: "auto", or "10.0.0.5:6379".
    #[serde(default = "auto")]
    pub address: String,
    /// What a host that may run trials offers one of: `ray start --resources '{"taut_host": 1}'`.
    #[serde(default = "taut_host")]
    pub resource: String,
}

fn auto() -> String {
    "auto".into()
}

fn taut_host() -> String {
    "taut_host".into()
}
