//! Calls to a controller that end: no call takes longer than it may. (The vendor's SDK, and so the source, tries for ever.)

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    os::fd::AsFd,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    arms::Joints,
    clock::Clock,
    xmlrpc::{self, Incoming, Value},
};

pub const CALL_TIMEOUT_NS: u64 = 2_000_000_000;

/// One kept-alive connection.
pub struct Commands {
    clock: Clock,
    host: String,
    port: u16,
    socket: Option<TcpStream>,
}

impl Commands {
    pub fn new(clock: Clock, host: &str, port: u16) -> Commands {
        Commands { clock, host: host.to_owned(), port, socket: None }
    }

    /// # Errors
    /// Not answered in time, or not with XML-RPC.
    pub fn call(&mut self, name: &str, arguments: &[Value], timeout_ns: u64) -> Result<Value> {
        let until_ns = self.clock.now_ns() + timeout_ns;
        let answer = self.post(&xmlrpc::call(name, arguments), until_ns).and_then(|body| {
            let (_, values) = xmlrpc::parse(&body)?;
            values.into_iter().next().context("an answer without a value")
        });
        if answer.is_err() {
            // A late answer must not be taken for the next call's.
            self.socket = None;
        }
        answer.with_context(|| name.to_owned())
    }

    /// As `call`, for what a run cannot start without.
    pub fn must(&mut self, name: &str, arguments: &[Value]) -> Result<()> {
        let code = self.call(name, arguments, CALL_TIMEOUT_NS)?;
        ensure!(code == Value::Integer(0), "{name} was refused with code {code:?}");
        Ok(())
    }

    /// Gives the controller's code; 0 means that the target was taken.
    pub fn servo_j(&mut self, joints_deg: &Joints, period_ns: u64, setpoint: u64, timeout_ns: u64) -> Result<i64> {
        let zero = || Value::Double(0.0);
        let arguments = [
            Value::from(&joints_deg[..]),
            Value::from(&[0.0; 4][..]),
            zero(),
            zero(),
            Value::Double(period_ns as f64 / 1e9),
            zero(),
            zero(),
            // XML-RPC's integers are 32 bits.
            Value::Integer((setpoint & 0x7fff_ffff) as i64),
        ];
        match self.call("ServoJ", &arguments, timeout_ns)? {
            Value::Integer(code) => Ok(code),
            other => bail!("ServoJ: answered {other:?}"),
        }
    }

    fn post(&mut self, body: &str, until_ns: u64) -> Result<String> {
        let (host, port) = (&self.host, self.port);
        if self.socket.is_none() {
            let socket = TcpStream::connect((&host[..], port))?;
            socket.set_nodelay(true)?;
            socket.set_nonblocking(true)?;
            self.socket = Some(socket);
        }
        let socket = self.socket.as_mut().context("no connection")?;
        let head = format!(
            "POST /RPC2 HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: text/xml\r\nContent-Length: {}",
            body.len()
        );
        // A kept connection has nothing under way: there is room for a call.
        socket.write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
        let (mut incoming, mut bytes) = (Incoming::default(), [0; 4096]);
        loop {
            match socket.read(&mut bytes) {
                Ok(0) => bail!("the controller hung up"),
                Ok(count) => incoming.take(&bytes[..count])?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    ensure!(self.clock.now_ns() < until_ns, "timed out");
                    self.clock.wait(until_ns, [Some(socket.as_fd())]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            if let Some((status, body)) = incoming.message()? {
                ensure!(status.split(' ').nth(1) == Some("200"), "the controller answered {status}");
                ensure!(incoming.is_empty(), "the controller sent more than its answer");
                return Ok(body);
            }
        }
    }
}
