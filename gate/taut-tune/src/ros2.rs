//! What the environment of ROS 2 nodes offers: transports of Fast DDS, and the middlewares that are installed.

use std::path::Path;

use crate::{Plan, Setting};

/// Middlewares by name, the default first.
const MIDDLEWARES: [&str; 3] = ["rmw_fastrtps_cpp", "rmw_cyclonedds_cpp", "rmw_zenoh_cpp"];

fn plan(variables: &[(&str, &str)]) -> Plan {
    let setting = |(name, value): &(&str, &str)| Setting::Variable((*name).to_owned(), (*value).to_owned());
    Plan { settings: variables.iter().map(setting).collect(), ..Plan::default() }
}

/// Whether the value of RMW_IMPLEMENTATION means Fast DDS.
pub(crate) fn is_fast_dds(used: &str) -> bool {
    used.is_empty() || used.starts_with("rmw_fastrtps")
}

/// Shared memory, and discovery on this host only.
pub(crate) fn shared_memory() -> Plan {
    plan(&[("FASTDDS_BUILTIN_TRANSPORTS", "SHM"), ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")])
}

/// No shared memory.
pub(crate) fn udp() -> Plan {
    plan(&[("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")])
}

/// The thread that publishes does not send.
pub(crate) fn asynchronous() -> Plan {
    plan(&[("RMW_FASTRTPS_PUBLICATION_MODE", "ASYNCHRONOUS")])
}

/// A middleware that is installed below one of these prefixes and not in use. `used`: the value of RMW_IMPLEMENTATION.
pub(crate) fn other_middleware(prefixes: &str, used: &str) -> Option<Plan> {
    let used = if used.is_empty() { MIDDLEWARES[0] } else { used };
    let is_there = |name: &str| {
        prefixes
            .split(':')
            .filter(|prefix| !prefix.is_empty())
            .any(|prefix| Path::new(prefix).join("lib").join(format!("lib{name}.so")).exists())
    };
    let other = MIDDLEWARES.into_iter().find(|name| *name != used && is_there(name))?;
    Some(plan(&[("RMW_IMPLEMENTATION", other)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_middleware_that_is_installed_is_offered() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        let prefixes = format!("/nowhere:{}", folder.path().display());
        assert_eq!(other_middleware(&prefixes, ""), None);
        std::fs::write(folder.path().join("lib/librmw_cyclonedds_cpp.so"), "").unwrap();
        let offered = other_middleware(&prefixes, "").unwrap();
        assert_eq!(offered.to_string(), "RMW_IMPLEMENTATION=rmw_cyclonedds_cpp");
        assert_eq!(other_middleware(&prefixes, "rmw_cyclonedds_cpp"), None);
    }
}
