//! The client's end of an fdcanusb: a USB adapter, a moteus on a UART, or a simulated one on a pty.

use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use super::{
    Arrival, Error, Frame, Transport,
    lines::{Line, Said, said},
    tty::{Tty, make_raw},
};

/// USB vendor and product of fdcanusb adapters; only these may go without checksums.
const ADAPTERS: [(&str, &str); 2] = [("0483", "5740"), ("1209", "2323")];
/// Speed of a moteus' UART; USB and ptys ignore it.
const BAUD: u32 = 921_600;

/// A bus behind an fdcanusb.
#[derive(Debug)]
pub struct Fdcanusb {
    tty: Tty,
    checksum: bool,
}

impl Fdcanusb {
    /// Opens a serial device. Lines carry checksums unless it is one of the known USB adapters.
    ///
    /// # Errors
    /// It cannot be opened, or is no terminal line.
    pub fn open(path: &Path) -> Result<Fdcanusb, Error> {
        let failed = |errno: rustix::io::Errno| Error::Open {
            name: path.display().to_string(),
            source: errno.into(),
            hint: "give the adapter's serial device, e.g. /dev/ttyACM0; to read it without root, join its group (often dialout)",
        };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open(path, flags, Mode::empty()).map_err(failed)?;
        make_raw(&fd).map_err(failed)?;
        let mut settings = rustix::termios::tcgetattr(&fd).map_err(failed)?;
        settings.set_speed(BAUD).map_err(failed)?;
        rustix::termios::tcsetattr(&fd, rustix::termios::OptionalActions::Now, &settings).map_err(failed)?;
        Ok(Fdcanusb { tty: Tty::new(fd).map_err(failed)?, checksum: !is_adapter(path) })
    }
}

impl Transport for Fdcanusb {
    fn send(&mut self, _now_ns: u64, frame: &Frame) -> Result<(), Error> {
        let refused = || Error::Frame { id: frame.arbitration_id, bytes: usize::from(frame.size) };
        self.tty.write(&Line::send(frame, self.checksum).ok_or_else(refused)?)
    }

    fn receive(&mut self, _now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        loop {
            while let Some(line) = self.tty.lines.next() {
                match said(line, self.checksum) {
                    Said::Received(received) => {
                        *frame = received;
                        return Ok(true);
                    }
                    Said::Error => return Err(Error::Adapter),
                    Said::Ok | Said::Noise => {}
                }
            }
            if !self.tty.read()? {
                return Ok(false);
            }
        }
    }

    fn next_arrival(&self) -> Arrival {
        Arrival::Readable(self.tty.raw_fd())
    }
}

/// Whether sysfs knows the device's USB ids as an adapter's.
fn is_adapter(path: &Path) -> bool {
    let Ok(device) = path.canonicalize() else { return false };
    let Some(name) = device.file_name() else { return false };
    let usb = Path::new("/sys/class/tty").join(name).join("device/..");
    let id = |file: &str| std::fs::read_to_string(usb.join(file)).unwrap_or_default();
    ADAPTERS.iter().any(|(vendor, product)| id("idVendor").trim() == *vendor && id("idProduct").trim() == *product)
}
