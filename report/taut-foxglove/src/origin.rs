//! Which web pages may connect. A browser lets any page open a websocket to this host, and says in Origin which page that is;
//! in Host it says by which name it came here. Programs that are no browsers send no Origin.

use tokio_tungstenite::tungstenite::http::{HeaderMap, header};

/// What is let in.
pub struct Origins {
    allowed: Vec<String>,
    /// Whether this host alone is served: then other hosts' names are a web page's attempt to get in (DNS rebinding).
    is_local: bool,
}

impl Origins {
    pub fn new(allowed: &[String], is_local: bool) -> Origins {
        let plain = |origin: &String| origin.trim_end_matches('/').to_ascii_lowercase();
        Origins { allowed: allowed.iter().map(plain).collect(), is_local }
    }

    /// Whether a handshake with these headers is answered; otherwise why not.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), String> {
        let values = |name| {
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
        };
        if let Some(host) = values(header::HOST).find(|host| self.is_local && !is_this_host(host)) {
            return Err(format!("the host {host:?} is not this one; connect to localhost"));
        }
        match values(header::ORIGIN).find(|origin| !self.is_allowed(origin)) {
            Some(origin) => Err(format!(
                "pages of {origin:?} are not allowed; taut telemetry --live --allow-origin {origin} lets them in"
            )),
            None => Ok(()),
        }
    }

    fn is_allowed(&self, origin: &str) -> bool {
        // Programs built like a browser, such as Foxglove's and Lichtblick's own, are files of this host; a page from the network
        // cannot say so. A file that a user opened in Chrome can.
        let own = origin == "file://" || origin.split_once("://").is_some_and(|(_, host)| is_this_host(host));
        own || self.allowed.iter().any(|allowed| allowed == origin)
    }
}

/// HOST or HOST:PORT.
fn is_this_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    name == "localhost" || address.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(origins: &Origins, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        origin.into_iter().for_each(|origin| drop(headers.insert(header::ORIGIN, origin.parse().unwrap())));
        origins.check(&headers).is_ok()
    }

    #[test]
    fn pages_of_this_host_and_of_allowed_ones_are_let_in() {
        let origins = Origins::new(&["https://app.foxglove.dev/".to_owned()], true);
        for origin in
            [None, Some("file://"), Some("http://localhost:8080"), Some("http://[::1]:8080"), Some("http://127.0.0.1")]
        {
            assert!(check(&origins, "127.0.0.1:8765", origin), "{origin:?}");
        }
        assert!(check(&origins, "localhost:8765", Some("https://App.Foxglove.dev")));
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
            "https://app.foxglove.dev.evil.example",
            "",
        ] {
            assert!(!check(&origins, "127.0.0.1:8765", Some(origin)), "{origin:?}");
        }
    }

    #[test]
    fn a_name_that_was_made_to_lead_here_is_not_this_host() {
        let local = Origins::new(&[], true);
        assert!(!check(&local, "evil.example:8765", Some("http://localhost:8080")));
        assert!(!check(&local, "evil.example:8765", None));
        let public = Origins::new(&[], false);
        assert!(check(&public, "robot.lab.example:8765", None));
        assert!(!check(&public, "robot.lab.example:8765", Some("http://evil.example")));
    }
}
