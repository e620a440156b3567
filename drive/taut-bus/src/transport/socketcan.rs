//! A CAN-FD interface of the Linux kernel.

use std::{io::ErrorKind, os::fd::AsRawFd};

use socketcan::{CanAnyFrame, CanFdFrame, CanFdSocket, EmbeddedFrame, ExtendedId, Id, Socket, StandardId, id::FdFlags};

use super::{Arrival, Error, Frame, ID_MASK, LARGEST_STANDARD, Transport};

/// A bus behind an interface such as can0.
#[derive(Debug)]
pub struct SocketCan(CanFdSocket);

impl SocketCan {
    /// Opens an interface that is up.
    ///
    /// # Errors
    /// There is none of this name, or the kernel has no CAN.
    pub fn open(interface: &str) -> Result<SocketCan, Error> {
        let failed = |source| Error::Open {
            name: interface.to_owned(),
            source,
            hint: "bring it up: `ip link set can0 up type can bitrate 1000000 dbitrate 5000000 fd on`; `ip -details link` shows what there is",
        };
        let socket = CanFdSocket::open(interface).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(SocketCan(socket))
    }
}

impl Transport for SocketCan {
    fn send(&mut self, _now_ns: u64, frame: &Frame) -> Result<(), Error> {
        let refused = || Error::Frame { id: frame.arbitration_id, bytes: usize::from(frame.size) };
        match self.0.write_frame(&to_kernel(frame).ok_or_else(refused)?) {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EAGAIN)) => {
                Err(Error::Full { what: "the interface's queue" })
            }
            Err(source) => Err(Error::System { what: "sending on the interface", source }),
        }
    }

    fn receive(&mut self, _now_ns: u64, frame: &mut Frame) -> Result<bool, Error> {
        loop {
            match self.0.read_frame() {
                Ok(CanAnyFrame::Fd(from)) => {
                    from_kernel(from.id(), from.data(), true, frame);
                    return Ok(true);
                }
                Ok(CanAnyFrame::Normal(from)) => {
                    from_kernel(from.id(), from.data(), false, frame);
                    return Ok(true);
                }
                // Remote requests and error reports carry no data for us.
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Ok(false);
                }
                Err(source) => return Err(Error::System { what: "receiving from the interface", source }),
            }
        }
    }

    fn next_arrival(&self) -> Arrival {
        Arrival::Readable(self.0.as_raw_fd())
    }
}

fn to_kernel(frame: &Frame) -> Option<CanFdFrame> {
    let id = frame.arbitration_id;
    let id: Id = match u16::try_from(id) {
        Ok(short) if id <= LARGEST_STANDARD => StandardId::new(short)?.into(),
        _ => ExtendedId::new(id)?.into(),
    };
    let mut padded = frame.clone();
    padded.pad_to_dlc();
    let flags = if padded.brs_enabled() { FdFlags::BRS } else { FdFlags::empty() };
    CanFdFrame::with_flags(id, padded.payload(), flags)
}

fn from_kernel(id: Id, data: &[u8], is_fd: bool, frame: &mut Frame) {
    *frame = Frame::new();
    frame.arbitration_id = match id {
        Id::Standard(id) => u32::from(id.as_raw()),
        Id::Extended(id) => id.as_raw() & ID_MASK,
    };
    frame.data[..data.len()].copy_from_slice(data);
    frame.size = data.len() as u8;
    frame.set_fdcan(is_fd);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_survive_the_kernels_form(id in 0..=ID_MASK, data in prop::collection::vec(any::<u8>(), 0..=64)) {
            let mut sent = Frame::new();
            sent.arbitration_id = id;
            sent.data[..data.len()].copy_from_slice(&data);
            sent.size = data.len() as u8;
            let kernel = to_kernel(&sent).unwrap();
            sent.pad_to_dlc();
            prop_assert_eq!(kernel.is_extended(), id > LARGEST_STANDARD);
            prop_assert!(kernel.is_brs());
            let mut back = Frame::new();
            from_kernel(kernel.id(), kernel.data(), true, &mut back);
            prop_assert_eq!((back.arbitration_id, back.payload()), (id, sent.payload()));
        }
    }

    #[test]
    fn an_interface_that_is_not_there_is_named_with_what_to_do() {
        let error = SocketCan::open("can-nowhere").unwrap_err().to_string();
        assert!(error.starts_with("can-nowhere: ") && error.contains("ip link set"), "{error}");
    }
}
