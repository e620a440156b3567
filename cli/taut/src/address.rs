//! Addresses that `taut` serves at, as people write them.

use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::{Result, anyhow};

/// The address of HOST:PORT, like `example`; a port alone, with a colon or without, is one of the loopback.
///
/// # Errors
/// It is no address, or leads nowhere.
pub fn resolved(address: &str, example: &str) -> Result<SocketAddr> {
    let address = with_host(address);
    let found = address
        .to_socket_addrs()
        .and_then(|mut all| all.next().ok_or_else(|| std::io::Error::other("it leads nowhere")));
    found.map_err(|error| anyhow!("{address:?} is no address to serve at ({error}); give HOST:PORT, e.g. {example}"))
}

fn with_host(address: &str) -> String {
    let port = address.strip_prefix(':').unwrap_or(address);
    if port.parse::<u16>().is_ok() { format!("127.0.0.1:{port}") } else { address.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::with_host;

    #[test]
    fn a_port_alone_is_one_of_the_loopback() {
        assert_eq!(["8765", ":0"].map(with_host), ["127.0.0.1:8765", "127.0.0.1:0"]);
        for whole in ["0.0.0.0:8765", "[::1]:8765", "robot:9464", "robot", ":70000"] {
            assert_eq!(with_host(whole), whole);
        }
    }
}
