//! What can go wrong before or while probing.

use thiserror::Error;

/// Why there is no probe.
#[derive(Debug, Error)]
pub enum Error {
    /// An unknown word.
    #[error("{word}: not one of {known}")]
    Word {
        /// As typed.
        word: String,
        /// What is known.
        known: String,
    },
    /// A value that a setting does not take.
    #[error("{key} {value}: {hint}")]
    Value {
        /// The setting.
        key: String,
        /// As typed.
        value: String,
        /// What it takes.
        hint: String,
    },
    /// A CPU that is not there, or not for us.
    #[error("CPU {cpu} is offline or not allowed to this process; allowed: {allowed}")]
    Cpu {
        /// The number.
        cpu: u32,
        /// Those allowed.
        allowed: String,
    },
    /// A policy that this user may not have.
    #[error("policy {policy} is refused; {hint}")]
    Policy {
        /// Its word.
        policy: &'static str,
        /// What the kernel said.
        source: std::io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// Something of the system that was needed.
    #[error("{what}")]
    System {
        /// The call or file.
        what: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The load did not start, or ended early.
    #[error("load {load}: {reason}")]
    Load {
        /// As typed.
        load: String,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// Whether a permission is what is missing.
    pub fn is_permission(&self) -> bool {
        match self {
            Error::Policy { source, .. } | Error::System { source, .. } => {
                source.kind() == std::io::ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}
