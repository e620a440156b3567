//! Sockets, which DDS needs large, and the network card named by `--interface`.

use crate::{
    Check, Effect, Missing, Remedy, Setting, Subject,
    machine::{Machine, hidden, unreadable},
    seen::{Look, Seen, bad, good, not_applicable, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "socket-buffers",
        subject: Subject::Network,
        title: "Largest socket buffers",
        reads: &["/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max"],
        good: "receive 4 MiB or more, send 1 MiB or more",
        why: "images and point clouds of DDS that do not fit are lost and sent again",
        remedy: "echo 16777216 > /proc/sys/net/core/rmem_max; echo 4194304 > /proc/sys/net/core/wmem_max",
        undo: "write the former values",
        effect: Effect::Safety,
        reboot: false,
        look: socket_buffers,
    },
    Check {
        id: "ip-fragments",
        subject: Subject::Network,
        title: "Memory for IP fragments",
        reads: &["/proc/sys/net/ipv4/ipfrag_high_thresh", "/proc/sys/net/ipv4/ipfrag_time"],
        good: "at least 128 MiB, kept at most 3 s",
        why: "a lost fragment holds a large DDS message's memory for 30 s; while memory is full, nothing large arrives",
        remedy: "echo 134217728 > /proc/sys/net/ipv4/ipfrag_high_thresh; echo 3 > /proc/sys/net/ipv4/ipfrag_time",
        undo: "write the former values",
        effect: Effect::Safety,
        reboot: false,
        look: ip_fragments,
    },
    Check {
        id: "loopback-multicast",
        subject: Subject::Network,
        title: "Multicast on loopback",
        reads: &["/sys/class/net/lo/flags"],
        good: "on where DDS runs on one machine",
        why: "without a network DDS participants of one machine do not find each other",
        remedy: "ip link set lo multicast on",
        undo: "ip link set lo multicast off",
        effect: Effect::Safety,
        reboot: false,
        look: loopback_multicast,
    },
    Check {
        id: "coalescing",
        subject: Subject::Network,
        title: "Interrupt coalescing of the interface",
        reads: &["call:ethtool_coalesce INTERFACE"],
        good: "rx-usecs 0 to 5, not adaptive",
        why: "the card holds a packet back that long",
        remedy: "ethtool -C INTERFACE adaptive-rx off rx-usecs 0",
        undo: "ethtool -C INTERFACE with the former values",
        effect: Effect::Tail,
        reboot: false,
        look: coalescing,
    },
    Check {
        id: "energy-efficient-ethernet",
        subject: Subject::Network,
        title: "Energy-efficient Ethernet of the interface",
        reads: &["call:ethtool_eee INTERFACE"],
        good: "off",
        why: "a sleeping link needs up to 20 µs to wake, some cards much longer",
        remedy: "ethtool --set-eee INTERFACE eee off",
        undo: "ethtool --set-eee INTERFACE eee on",
        effect: Effect::Tail,
        reboot: false,
        look: energy_efficient,
    },
    Check {
        id: "wireless",
        subject: Subject::Network,
        title: "Interface is wireless",
        reads: &[
            "/sys/class/net/INTERFACE/phy80211",
            "/sys/class/net/INTERFACE/wireless",
            "/sys/class/net/INTERFACE/operstate",
        ],
        good: "a cable",
        why: "radio adds ms and loses packets; its power saving adds 100 ms",
        remedy: "use a cable, or iw dev INTERFACE set power_save off",
        undo: "iw dev INTERFACE set power_save on",
        effect: Effect::Tail,
        reboot: false,
        look: wireless,
    },
];

fn socket_buffers(machine: &Machine<'_>) -> Look {
    let wanted = [("rmem_max", 4 << 20, "16777216"), ("wmem_max", 1 << 20, "4194304")];
    at_least(machine, "/proc/sys/net/core", &wanted)
}

/// Numbers that should be as large as that, with what to write where they are not.
fn at_least(machine: &Machine<'_>, folder: &str, wanted: &[(&str, u64, &str)]) -> Look {
    let (mut told, mut small) = (Vec::new(), Vec::new());
    for (file, least, new) in wanted {
        let path = format!("{folder}/{file}");
        let bytes: u64 = machine.number(&path)?;
        told.push(format!("{file} {} KiB", bytes / 1024));
        if bytes < *least {
            small.push(Setting { path, new: (*new).into(), old: bytes.to_string() });
        }
    }
    let told = told.join(", ");
    Ok(if small.is_empty() { good(told) } else { warn(told).remedy(Remedy::Write(small)) })
}

fn ip_fragments(machine: &Machine<'_>) -> Look {
    const FOLDER: &str = "/proc/sys/net/ipv4";
    let bytes: u64 = machine.number(&format!("{FOLDER}/ipfrag_high_thresh"))?;
    let s: u64 = machine.number(&format!("{FOLDER}/ipfrag_time"))?;
    let told = format!("{} MiB, kept {s} s", bytes >> 20);
    let mut settings = Vec::new();
    if bytes < 128 << 20 {
        let path = format!("{FOLDER}/ipfrag_high_thresh");
        settings.push(Setting { path, new: (128u64 << 20).to_string(), old: bytes.to_string() });
    }
    if s > 3 {
        settings.push(Setting { path: format!("{FOLDER}/ipfrag_time"), new: "3".into(), old: s.to_string() });
    }
    Ok(if settings.is_empty() { good(told) } else { warn(told).remedy(Remedy::Write(settings)) })
}

fn loopback_multicast(machine: &Machine<'_>) -> Look {
    /// linux/if.h.
    const IFF_MULTICAST: u64 = 0x1000;
    let text = machine.text("/sys/class/net/lo/flags")?;
    let flags = u64::from_str_radix(text.trim_start_matches("0x"), 16)
        .map_err(|_| unreadable("/sys/class/net/lo/flags", &text))?;
    Ok(match flags & IFF_MULTICAST {
        0 => warn("off").run("ip link set lo multicast on", "ip link set lo multicast off"),
        _ => good("on"),
    })
}

fn interface<'a>(machine: &Machine<'a>) -> Result<&'a str, Seen> {
    machine.asked.interface.as_deref().ok_or_else(|| not_applicable("no interface named; see --interface"))
}

/// The "name=number" lines of a driver's answer.
fn asked_driver(machine: &Machine<'_>, call: &str) -> Result<String, Seen> {
    match machine.root.read(call) {
        Err(Missing::Failed(why)) if why.contains("no such setting") => Err(not_applicable(why)),
        Err(why) => Err(hidden(call, &why)),
        Ok(text) => Ok(text),
    }
}

fn field(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| line.split_once('=').filter(|(key, _)| *key == name)?.1.trim().parse().ok())
}

fn coalescing(machine: &Machine<'_>) -> Look {
    let name = interface(machine)?;
    let call = format!("call:ethtool_coalesce {name}");
    let text = asked_driver(machine, &call)?;
    let (Some(us), Some(adaptive)) = (field(&text, "rx_usecs"), field(&text, "adaptive_rx")) else {
        return Err(unreadable(&call, &text));
    };
    let told = format!("rx-usecs {us}{}", if adaptive == 0 { "" } else { ", adaptive" });
    // Most virtual cards say 0 and mean it.
    if adaptive == 0 && us <= 5 {
        return Ok(good(told));
    }
    let word = if adaptive == 0 { "off" } else { "on" };
    let seen = if us > 50 || adaptive != 0 { bad(told) } else { warn(told) };
    Ok(seen.run(
        format!("ethtool -C {name} adaptive-rx off rx-usecs 0"),
        format!("ethtool -C {name} adaptive-rx {word} rx-usecs {us}"),
    ))
}

fn energy_efficient(machine: &Machine<'_>) -> Look {
    let name = interface(machine)?;
    let call = format!("call:ethtool_eee {name}");
    let text = asked_driver(machine, &call)?;
    match field(&text, "enabled") {
        None => Err(unreadable(&call, &text)),
        Some(0) => Ok(good("off")),
        Some(_) => {
            let active = field(&text, "active").is_some_and(|active| active != 0);
            Ok(warn(if active { "on" } else { "allowed, the other side does not" })
                .run(format!("ethtool --set-eee {name} eee off"), format!("ethtool --set-eee {name} eee on")))
        }
    }
}

fn wireless(machine: &Machine<'_>) -> Look {
    let name = interface(machine)?;
    let folder = format!("/sys/class/net/{name}");
    let state = machine.maybe(&format!("{folder}/operstate"));
    if machine.root.list(&format!("{folder}/phy80211")).is_ok()
        || machine.root.list(&format!("{folder}/wireless")).is_ok()
    {
        return Ok(warn("wireless")
            .run(format!("iw dev {name} set power_save off"), format!("iw dev {name} set power_save on")));
    }
    match state {
        Some(state) => Ok(good(format!("a cable, {state}"))),
        None => Err(not_visible(format!("{folder}/operstate is not there"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Asked,
        State::*,
        checks::{sees, sees_asked},
    };

    fn eth0() -> Asked {
        Asked { interface: Some("eth0".into()), ..Asked::default() }
    }

    #[test]
    fn coalescing_is_put_back_as_it_was() {
        let machine = "== call:ethtool_coalesce eth0 ==\nrx_usecs=3\nadaptive_rx=1\n";
        let finding = sees_asked("coalescing", machine, &eth0());
        assert_eq!(finding.state, Bad);
        assert_eq!(finding.undo.unwrap(), "ethtool -C eth0 adaptive-rx on rx-usecs 3");
        assert_eq!(sees_asked("coalescing", &machine.replace("rx=1", "rx=0"), &eth0()).state, Good);
        assert_eq!(sees("coalescing", machine).state, NotApplicable);
        assert_eq!(sees_asked("coalescing", "== /proc/version ==\n\n", &eth0()).state, NotVisible);
    }

    #[test]
    fn only_what_is_too_small_is_written() {
        let machine = "== /proc/sys/net/core/rmem_max ==\n212992\n== /proc/sys/net/core/wmem_max ==\n4194304\n";
        let finding = sees("socket-buffers", machine);
        assert_eq!(finding.value, "rmem_max 208 KiB, wmem_max 4096 KiB");
        assert_eq!(finding.remedy.unwrap().commands(), ["echo 16777216 > /proc/sys/net/core/rmem_max"]);
    }

    #[test]
    fn loopback_flags_are_hexadecimal() {
        assert_eq!(sees("loopback-multicast", "== /sys/class/net/lo/flags ==\n0x9\n").state, Warn);
        assert_eq!(sees("loopback-multicast", "== /sys/class/net/lo/flags ==\n0x1009\n").state, Good);
    }

    #[test]
    fn radio_is_told_from_cable() {
        let state = "== /sys/class/net/eth0/operstate ==\nup\n";
        assert_eq!(sees_asked("wireless", state, &eth0()).value, "a cable, up");
        let radio = format!("{state}== /sys/class/net/eth0/phy80211/name ==\nphy0\n");
        assert_eq!(sees_asked("wireless", &radio, &eth0()).state, Warn);
    }
}
