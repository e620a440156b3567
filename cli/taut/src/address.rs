//! Addresses that `taut` serves at, as people write them.

/// HOST:PORT; a port alone, with a colon or without, is one of the loopback.
pub fn with_host(address: &str) -> String {
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
