//! What other programs say.

use std::{
    io::Read,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The first line of what a command that succeeds in time says.
pub fn first_line_of(command: Command, patience: Duration) -> Option<String> {
    Some(text_of(command, patience)?.lines().next().unwrap_or_default().to_owned())
}

/// What a command that succeeds in time says: of much text only the beginning.
pub fn text_of(mut command: Command, patience: Duration) -> Option<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let until = Instant::now() + patience;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    child.stdout?.take(16_384).read_to_string(&mut text).ok()?;
    status.success().then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_command_that_hangs_or_fails_says_nothing() {
        let patience = Duration::from_secs(600);
        assert_eq!(first_line_of(shell("echo v1.2-dirty; echo more"), patience).as_deref(), Some("v1.2-dirty"));
        assert_eq!(first_line_of(shell("echo v1.2; exit 128"), patience), None);
        assert_eq!(first_line_of(shell("exec sleep 1000"), Duration::from_millis(20)), None);
        assert_eq!(first_line_of(Command::new("/no/such/git"), patience), None);
    }
}
