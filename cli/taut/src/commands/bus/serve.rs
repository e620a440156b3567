//! Simulated servos for other programs: behind ptys that speak fdcanusb, or behind UDP.

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use taut_bus::{
    sim::{Bus, serve},
    transport::{Address, Pty, Transport, UdpDoor},
};
use taut_recording::Shown;

use crate::{exit::Done, output, stop};

/// Serves until interrupted. Prints where, a bus a line, once all can be opened.
pub fn run(buses: &[Address], udp: Option<&str>) -> Result<Done> {
    if udp.is_some() && buses.len() != 1 {
        bail!("--udp serves one bus; start taut bus once for each");
    }
    let mut doors: Vec<(Bus, Box<dyn Transport + Send>)> = Vec::new();
    let mut places = Vec::new();
    for (at, address) in buses.iter().enumerate() {
        let Some(bus) = address.simulated(at) else { bail!("{address}: only simulated buses can be served") };
        let door: Box<dyn Transport + Send> = match udp {
            Some(listen) => {
                let door = UdpDoor::listen(listen)?;
                places.push(format!("udp:{}", door.address()?));
                Box::new(door)
            }
            None => {
                let pty = Pty::open()?;
                places.push(format!("fdcanusb:{}", pty.path().shown()));
                Box::new(pty)
            }
        };
        doors.push((bus, door));
    }
    let stop = stop::on(&[SIGINT, SIGTERM, SIGHUP])?;
    output::write(&(places.join("\n") + "\n"), None)?;
    std::thread::scope(|scope| {
        let served: Vec<_> =
            doors.into_iter().map(|(bus, door)| scope.spawn(|| serve(bus, door, &stop.flag))).collect();
        served.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result.map_err(anyhow::Error::from),
            Err(_) => bail!("a server thread ended unexpectedly"),
        })
    })?;
    Ok(Done::Fine)
}
