//! `taut top` over two hosts while both are recorded: network namespaces, of which one is reached by ssh.

use rustix::process::Signal;
use taut_skip::{Need, skip};

use crate::{
    by_ssh::{There, kill, no_sshd},
    folder::until,
    one_clock::{DESK, Net, RELAY, ROBOT, compile_pair},
    screen,
};

/// More than any machine needs to show what is looked for: 5 minutes.
const MESSAGES: &str = "60000";
/// Both ways.
const CHAINS: [&str; 2] = ["desk:setpoint.sent → robot:setpoint.applied", "robot:state.sent → desk:state.received"];

#[test]
fn two_hosts_are_on_one_screen_while_they_are_recorded() {
    let Some(there) = There::new() else { return no_sshd() };
    let Some(net) = Net::new() else {
        return skip(Need::Namespaces, "network namespaces need the superuser and `ip`");
    };
    let folder = &there.folder;
    compile_pair(folder);
    let taut = there.taut().get_program().to_string_lossy().into_owned();
    let record = |host: &'static str, file: &'static str| {
        vec![taut.as_str(), "record", "-q", "--ignore-loss", "--host-name", host, "-o", file, "--", "./pair", host]
    };
    let robot = [record("robot", "robot.mcap"), vec!["0", "0"]].concat();
    let desk = [record("desk", "desk.mcap"), vec![RELAY, MESSAGES, "5000", "0", "0"]].concat();
    let mut robot = net.listens(2, folder, &robot);
    let mut relay = net.listens(1, folder, &["./pair", "relay", DESK, ROBOT, "200:100", "200:100", "0", "0"]);
    let mut desk = net.command(0, folder, &desk).spawn().unwrap();
    until("both recordings", || ["desk.mcap", "robot.mcap"].iter().all(|file| folder.path(file).exists()));

    let of_robot = format!("{}{}", there.url(), folder.path("robot.mcap").display());
    let mut top = there.taut();
    top.args(["top", "desk.mcap", &of_robot, "--clocks", "messages"]);
    let shown = screen::shown_by(top, |shown| {
        let lines = screen::lines(shown);
        let has = |texts: &[&str]| lines.iter().any(|line| texts.iter().all(|text| line.contains(text)));
        // At first there are few messages, and the bound is above 1 ms. The first chain's hops are shown.
        has(&["desk ↔ robot: offset", " µs, by the last "])
            && has(&["→ robot:setpoint.received", " ± "])
            && CHAINS.iter().all(|chain| has(&[*chain]))
            || desk.try_wait().unwrap().is_some()
    });
    // Their recorders end them.
    for child in [&mut desk, &mut robot] {
        kill(child.id() as i32, Signal::TERM);
        child.wait().unwrap();
    }
    relay.kill().unwrap();
    relay.wait().unwrap();
    let lines = screen::lines(&shown);
    let line =
        |text: &str| lines.iter().find(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text}: {lines:#?}"));
    for chain in CHAINS {
        line(chain);
    }
    // Both have one clock.
    let clocks = line("desk ↔ robot: offset").split_once("offset ").unwrap().1;
    let (offset_s, rest) = clocks.split_once(" s ± ").expect(clocks);
    let (bound, messages) = rest.split_once(", by the last ").expect(rest);
    let (number, unit) = bound.split_once(' ').expect(bound);
    let us_each = if unit == "ms" { 1e3 } else { 1.0 };
    let bound_us = us_each * number.replace(',', "").parse::<f64>().unwrap();
    let offset_s: f64 = offset_s.parse().unwrap();
    assert!((offset_s * 1e6).abs() <= bound_us + 1.0, "{clocks}");
    // The relay alone takes 400 µs both ways.
    assert!((200.0..5_000.0).contains(&bound_us) && messages.contains(" messages to robot and "), "{clocks}");
}
