//! AUDIT_GET over netlink (linux/audit.h): whether the kernel audits system calls.

use std::{
    io::{Error, ErrorKind},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use crate::{Answer, Missing, missing::missing};

const AUDIT_GET: u16 = 1000;
const PATIENCE_MS: i32 = 100;
/// struct nlmsghdr.
const HEADER: usize = 16;

/// "enabled=1".
pub fn status() -> Answer {
    ask().map_err(|error| match error.kind() {
        // A kernel without audit has no such protocol; one in a container listens only outside of it.
        ErrorKind::ConnectionRefused => Missing::Denied,
        _ if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => Missing::Absent,
        _ => missing(error),
    })
}

fn ask() -> Result<String, Error> {
    // SAFETY: a system call with numbers; the descriptor is checked before it is owned.
    let socket = unsafe {
        match libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            libc::NETLINK_AUDIT,
        ) {
            -1 => return Err(Error::last_os_error()),
            fd => OwnedFd::from_raw_fd(fd),
        }
    };
    let mut request = [0u8; HEADER];
    request[0..4].copy_from_slice(&(HEADER as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&AUDIT_GET.to_ne_bytes());
    request[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    let mut reply = [0u8; 1024];
    let mut readable = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the buffers and the one pollfd outlive the calls, and their lengths are given. Without a destination a
    // message goes to the kernel, where a thread of its own answers.
    let length = unsafe {
        if libc::send(socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) < 0 {
            return Err(Error::last_os_error());
        }
        if libc::poll(&mut readable, 1, PATIENCE_MS) == 0 {
            return Err(Error::other("the kernel did not answer"));
        }
        libc::recv(socket.as_raw_fd(), reply.as_mut_ptr().cast(), reply.len(), 0)
    };
    if length < 0 {
        return Err(Error::last_os_error());
    }
    parse(&reply[..length as usize]).ok_or_else(|| Error::other("the kernel's answer is too short"))?
}

/// struct nlmsghdr, then struct audit_status (mask, enabled, …) or struct nlmsgerr (error, …).
fn parse(reply: &[u8]) -> Option<Result<String, Error>> {
    let kind = u16::from_ne_bytes(reply.get(4..6)?.try_into().ok()?);
    let word = |at: usize| Some(i32::from_ne_bytes(reply.get(HEADER + 4 * at..HEADER + 4 * at + 4)?.try_into().ok()?));
    Some(match kind {
        AUDIT_GET => Ok(format!("enabled={}", word(1)?)),
        _ if i32::from(kind) == libc::NLMSG_ERROR => Err(Error::from_raw_os_error(word(0)?.wrapping_neg())),
        _ => Err(Error::other("the kernel's answer is of another kind")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(kind: u16, words: &[i32]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn the_kernels_answer_is_read() {
        assert_eq!(parse(&reply(AUDIT_GET, &[0, 1, 0])).unwrap().unwrap(), "enabled=1");
        let denied = parse(&reply(libc::NLMSG_ERROR as u16, &[-libc::EPERM])).unwrap().unwrap_err();
        assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
        assert!(parse(&reply(AUDIT_GET, &[0])).is_none(), "cut short");
        assert!(parse(&[]).is_none());
    }
}
