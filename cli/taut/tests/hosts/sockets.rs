//! Two programs without stamps on two hosts that are network namespaces: what one sends over TCP or UDP and the other receives makes
//! one chain of both. They have one clock, so the true offset is 0.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Child, Stdio},
};

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use taut_skip::{Need, skip};

use crate::{
    aligned,
    folder::{Folder, until},
    notes, number,
    one_clock::{Net, RELAY},
    whole,
};

const MESSAGES: u64 = 400;
/// What the client computes for each, between the log's sending and its own; see link.py.
const COMPUTES_NS: u64 = 2_000_000;
/// The server's namespace; the client's is before it.
const AT: [usize; 2] = [1, 0];
/// The server's port, as /proc/net has it.
const PORT: &str = ":1267 ";

struct Link {
    net: Net,
    folder: Folder,
    kind: &'static str,
}

impl Link {
    fn new(kind: &'static str) -> Option<Link> {
        Some(Link { net: Net::new()?, folder: Folder::new(), kind })
    }

    fn program(&self, role: &str) -> Vec<String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/link.py");
        let words = ["python3", &script.display().to_string(), role, self.kind].map(str::to_owned);
        let of_client = [RELAY.to_owned(), MESSAGES.to_string(), "5".to_owned()];
        words.into_iter().chain(of_client.into_iter().filter(|_| role == "client")).collect()
    }

    fn start(&self, at: usize, words: &[String]) -> Child {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.net.command(AT[at], &self.folder, &words).spawn().unwrap()
    }

    fn record(&self, host: &str, of: &[String]) -> Vec<String> {
        let taut = cargo_bin!("taut").display().to_string();
        let file = format!("{host}.mcap");
        let words = [taut.as_str(), "record", "-q", "--ignore-loss", "--host-name", host, "-o", &file];
        words.iter().map(|word| (*word).to_owned()).chain(of.iter().cloned()).collect()
    }

    fn until_bound(&self) {
        let table = format!("/proc/net/{}", self.kind);
        until("a socket", || {
            let mut read = self.net.command(AT[0], &self.folder, &["cat", &table]);
            let sockets = read.stdout(Stdio::piped()).output().unwrap();
            String::from_utf8_lossy(&sockets.stdout).contains(PORT)
        });
    }

    /// Both recorders start their program.
    fn recorded(self) -> Folder {
        let command = |role: &str| [vec!["--".to_owned()], self.program(role)].concat();
        let mut server = self.start(0, &self.record("robot", &command("server")));
        self.until_bound();
        let mut client = self.start(1, &self.record("desk", &command("client")));
        assert!(client.wait().unwrap().success() && server.wait().unwrap().success());
        self.folder
    }

    /// Both recorders come to programs that talk already, and which go on until both are there.
    fn attached(self) -> Folder {
        let mut server = self.start(0, &self.program("server"));
        self.until_bound();
        let mut client = self.start(1, &[self.program("client"), vec!["talks".into(), "go".into()]].concat());
        until("an answer", || self.folder.path("talks").exists());
        // `ip netns exec` becomes the program.
        let attach =
            |child: &Child| ["--pid", &child.id().to_string(), "--duration", "600s"].map(str::to_owned).to_vec();
        let mut robot = self.start(0, &self.record("robot", &attach(&server)));
        let mut desk = self.start(1, &self.record("desk", &attach(&client)));
        // A recorder makes its file when the kernel's events come to it.
        until("both recordings", || {
            let has_ended = [&mut robot, &mut desk].into_iter().any(|taut| taut.try_wait().unwrap().is_some());
            has_ended || ["desk.mcap", "robot.mcap"].iter().all(|file| self.folder.path(file).exists())
        });
        self.folder.write("go", "");
        for child in [&mut client, &mut server, &mut desk, &mut robot] {
            assert!(child.wait().unwrap().success());
        }
        self.folder
    }
}

/// `None` without namespaces.
fn recorded(kind: &'static str, how: fn(Link) -> Folder) -> Option<Folder> {
    whole(|| Link::new(kind).map(how))
}

/// The chain from the client's timer to the server's receive.
fn chain(report: &Value) -> &Value {
    let chains = report["chains"].as_array().unwrap();
    let leads = |chain: &&Value| {
        let name = chain["name"].as_str().unwrap();
        name.starts_with("desk:") && name.contains(" → robot:") && name.contains(":4711")
    };
    chains.iter().find(leads).unwrap_or_else(|| panic!("no chain to the robot: {chains:#?}"))
}

/// As `least` of the messages cross from host to host, on one clock and on clocks that their messages align.
fn holds(folder: &Folder, least: u64, kind: &str) {
    let report = folder.joined("robot.mcap");
    assert!(chain(&report)["messages"].as_u64() >= Some(least), "{}", chain(&report)["messages"]);
    for way in ["desk → robot", "robot → desk"] {
        let note = format!("{way}: the sending call is known of ");
        let all = notes(&report);
        let (_, rest) = all.split_once(&note).unwrap_or_else(|| panic!("no {note:?}: {all}"));
        let known: u64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!(known >= least && rest.split_once(kind).is_some(), "{rest}");
    }
    computes_before_it_sends(folder, chain(&report));
    if kind == "UDP" {
        return;
    }
    let found = aligned(folder);
    let clock = &found["recording"]["hosts"][1]["clock"];
    assert_eq!(clock["from"], "messages", "{}", found["notes"]);
    assert!(number(&clock["offset_ns"]).abs() <= number(&clock["bound_max_ns"]) + 1e3, "{clock}");
    assert!(chain(&found)["messages"].as_u64() >= Some(least), "{}", chain(&found)["messages"]);
}

/// The client computes before the call that carries the message, and after one that carries another: that is no time of the network.
fn computes_before_it_sends(folder: &Folder, chain: &Value) {
    folder.text(&["merge", "desk.mcap", "robot.mcap", "-o", "run.mcap"]);
    let table = folder.text(&["export", "csv", "run.mcap", "-o", "-"]);
    let mut rows = table.lines().map(|line| line.split(',').collect::<Vec<&str>>());
    let head = rows.next().unwrap();
    let column = |name: &str| head.iter().position(|known| *known == name).unwrap_or_else(|| panic!("{head:?}"));
    let (name, to) = (column("chain"), column("to"));
    // It computes until its clock of CPU time, which a system call reads, has gone on by so much; interrupts count in it, and what
    // the hypervisor takes of the CPU.
    let busy = ["cpu_ns", "syscall_ns", "page_fault_ns", "irq_ns", "hypervisor_ns"].map(column);
    let is_hop =
        |row: &Vec<&str>| row[name] == chain["name"] && row[to].starts_with("robot:") && row[to].contains(":4711");
    let busy_ns = |row: &Vec<&str>| busy.iter().map(|at| row[*at].parse::<u64>().unwrap()).sum::<u64>();
    let hops: Vec<Vec<&str>> = rows.filter(is_hop).collect();
    // What happened before a recorder was ready has its own moment, too.
    let starts: BTreeSet<&str> = hops.iter().map(|row| row[column("start_ns")]).collect();
    assert_eq!(starts.len(), hops.len());
    let (computed, others): (Vec<Vec<&str>>, Vec<Vec<&str>>) =
        hops.into_iter().partition(|row| busy_ns(row) >= COMPUTES_NS * 3 / 4);
    let all = computed.len() + others.len();
    assert!(all > 0 && computed.len() * 10 >= all * 9, "{} of {all}: {head:?}; not {others:#?}", computed.len());
}

fn has_kernel_events(folder: &Folder) -> bool {
    let is_full = folder.json(&["report", "robot.mcap"])["recording"]["tier"] == "full";
    if !is_full {
        skip(Need::Perf, "not the full tier");
    }
    is_full
}

#[test]
fn bytes_of_tcp_lead_from_host_to_host() {
    let Some(folder) = recorded("tcp", Link::recorded) else {
        return skip(Need::Namespaces, "network namespaces need the superuser and `ip`");
    };
    if has_kernel_events(&folder) {
        holds(&folder, MESSAGES * 9 / 10, "TCP");
    }
}

#[test]
fn a_connection_of_before_the_recordings_is_followed_from_the_kernels_counts_on() {
    let Some(folder) = recorded("tcp", Link::attached) else {
        return skip(Need::Namespaces, "network namespaces need the superuser and `ip`");
    };
    if has_kernel_events(&folder) {
        holds(&folder, MESSAGES / 4, "TCP");
    }
}

#[test]
fn datagrams_of_open_sockets_lead_from_host_to_host() {
    let Some(folder) = recorded("udp", Link::recorded) else {
        return skip(Need::Namespaces, "network namespaces need the superuser and `ip`");
    };
    if has_kernel_events(&folder) {
        holds(&folder, MESSAGES * 9 / 10, "UDP");
    }
}
