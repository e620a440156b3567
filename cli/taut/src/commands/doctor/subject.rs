//! The CPUs, interfaces and processes named on the command line, checked against the machine: an unknown name is an
//! error, not a finding.

use std::path::Path;

use anyhow::{Result, bail};
use taut_doctor::{Asked, Missing, Root, cpus};

use super::Args;

/// The options as what they name.
pub fn of(args: &Args, root: &Root) -> Result<Asked> {
    Ok(Asked {
        cpus: args.cpus.as_deref().map(|list| named_cpus(list, root)).transpose()?.unwrap_or_default(),
        interface: args.interface.as_deref().map(|name| interface(name, root)).transpose()?,
        tty: args.tty.as_deref().map(|name| tty(name, args, root)).transpose()?,
        pid: args.pid.map(|pid| process(pid, root)).transpose()?,
    })
}

fn named_cpus(text: &str, root: &Root) -> Result<Vec<u32>> {
    let named = match cpus::list(text) {
        Some(named) if !named.is_empty() => named,
        _ => bail!("--cpus {text:?}: give a list such as 2,3 or 4-7"),
    };
    let online = root.read("/sys/devices/system/cpu/online").ok().and_then(|text| cpus::list(&text));
    if let Some(online) = online.filter(|online| !online.is_empty())
        && let Some(cpu) = named.iter().find(|cpu| !online.contains(cpu))
    {
        bail!("--cpus {text}: CPU {cpu} does not run here; there are {}", cpus::text(&online));
    }
    Ok(named)
}

fn interface(name: &str, root: &Root) -> Result<String> {
    // The kernel's own rule for names, dev_valid_name(), less what a shell would take for its own.
    let valid =
        !name.is_empty() && name.len() < 16 && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-@:".contains(c));
    match root.list("/sys/class/net") {
        _ if !valid || name.starts_with(['.', '-']) => bail!("--interface {name:?}: no interface has such a name"),
        Ok(names) if !names.iter().any(|n| n == name) => {
            bail!("--interface {name}: not here; there are {}", names.join(", "))
        }
        _ => Ok(name.to_owned()),
    }
}

/// "ttyUSB0", "/dev/ttyUSB0" or a link to it such as /dev/serial/by-id/….
fn tty(name: &str, args: &Args, root: &Root) -> Result<String> {
    let path = if name.contains('/') { name.to_owned() } else { format!("/dev/{name}") };
    let resolved = if args.machine.is_none() { Path::new(&path).canonicalize().ok() } else { None };
    let path = resolved.map_or(path, |path| path.to_string_lossy().into_owned());
    let port = path.strip_prefix("/dev/").unwrap_or_default();
    if port.is_empty() || port.starts_with('.') || !port.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    {
        bail!("--tty {name:?}: give a port such as /dev/ttyUSB0");
    }
    match root.list("/sys/class/tty") {
        Ok(ports) if !ports.iter().any(|p| p == port) => bail!("--tty {name}: no such port here"),
        _ => Ok(path),
    }
}

fn process(pid: u32, root: &Root) -> Result<u32> {
    match root.list(&format!("/proc/{pid}")) {
        // Where /proc is hidden nothing tells.
        Err(Missing::Absent) if root.read("/proc/self/status").is_ok() => bail!("--pid {pid}: no such process"),
        _ => Ok(pid),
    }
}
