//! USB, serial ports, PCIe.

use crate::{
    Check, Effect, Missing, Subject,
    machine::{Machine, chosen, hidden, unreadable},
    seen::{Look, Seen, bad, good, not_applicable, not_visible, warn},
};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "serial-low-latency",
        subject: Subject::Devices,
        title: "Serial port hands over at once",
        reads: &["/sys/class/tty/TTY/flags", "/sys/class/tty/TTY/device/latency_timer"],
        good: "ASYNC_LOW_LATENCY set",
        why: "else the driver gathers bytes before it wakes the reader",
        remedy: "setserial /dev/TTY low_latency",
        undo: "setserial /dev/TTY ^low_latency",
        effect: Effect::Tail,
        reboot: false,
        look: low_latency,
    },
    Check {
        id: "ftdi-latency",
        subject: Subject::Devices,
        title: "Latency timer of the USB serial adapter",
        reads: &["/sys/class/tty/TTY/device/latency_timer"],
        good: "1 ms",
        why: "an FTDI chip keeps short answers back for 16 ms: at most 62 exchanges a second",
        remedy: "echo 1 > /sys/class/tty/TTY/device/latency_timer",
        undo: "echo 16 > /sys/class/tty/TTY/device/latency_timer",
        effect: Effect::Tail,
        reboot: false,
        look: latency_timer,
    },
    Check {
        id: "usb-autosuspend",
        subject: Subject::Devices,
        title: "USB devices may sleep",
        reads: &[
            "/sys/module/usbcore/parameters/autosuspend",
            "/sys/bus/usb/devices/*/power/control",
            "/sys/bus/usb/devices/*/bDeviceClass",
            "/sys/bus/usb/devices/*/product",
        ],
        good: "none apart from hubs",
        why: "a sleeping device needs 10 to 20 ms to wake",
        remedy: "echo on > /sys/bus/usb/devices/N/power/control; for good: a udev rule, or usbcore.autosuspend=-1 at boot",
        undo: "echo auto > /sys/bus/usb/devices/N/power/control",
        effect: Effect::Tail,
        reboot: false,
        look: autosuspend,
    },
    Check {
        id: "pcie-aspm",
        subject: Subject::Devices,
        title: "PCIe link power saving (ASPM)",
        reads: &["/sys/module/pcie_aspm/parameters/policy"],
        good: "performance",
        why: "a sleeping link to a network or CAN card needs up to 100 µs to wake",
        remedy: "echo performance > /sys/module/pcie_aspm/parameters/policy",
        undo: "write the former policy",
        effect: Effect::Tail,
        reboot: false,
        look: aspm,
    },
];

/// The port's name without /dev/.
fn port(machine: &Machine<'_>) -> Result<String, Seen> {
    let tty = machine.asked.tty.as_deref().ok_or_else(|| not_applicable("no serial port named; see --tty"))?;
    let name = tty.strip_prefix("/dev/").unwrap_or(tty).to_owned();
    let folder = format!("/sys/class/tty/{name}");
    machine.root.list(&folder).map_err(|why| hidden(&folder, &why))?;
    Ok(name)
}

fn low_latency(machine: &Machine<'_>) -> Look {
    /// linux/tty_flags.h, ASYNCB_LOW_LATENCY.
    const LOW_LATENCY: u32 = 1 << 13;
    let name = port(machine)?;
    let path = format!("/sys/class/tty/{name}/flags");
    let text = match machine.root.read(&path) {
        Err(Missing::Absent) => {
            return Err(not_applicable(match machine.maybe(&format!("/sys/class/tty/{name}/device/latency_timer")) {
                Some(_) => "the adapter's latency timer stands for it",
                None => "this port's driver has no such flag",
            }));
        }
        other => other.map_err(|why| hidden(&path, &why))?,
    };
    let flags = u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).map_err(|_| unreadable(&path, &text))?;
    Ok(match flags & LOW_LATENCY {
        0 => warn("not set")
            .run(format!("setserial /dev/{name} low_latency"), format!("setserial /dev/{name} ^low_latency")),
        _ => good("set"),
    })
}

fn latency_timer(machine: &Machine<'_>) -> Look {
    let name = port(machine)?;
    let path = format!("/sys/class/tty/{name}/device/latency_timer");
    let text = match machine.root.read(&path) {
        Err(Missing::Absent) => return Err(not_applicable("not an FTDI adapter")),
        other => other.map_err(|why| hidden(&path, &why))?,
    };
    let ms: u32 = crate::machine::number(&path, &text)?;
    Ok(if ms <= 1 { good(format!("{ms} ms")) } else { bad(format!("{ms} ms")).write(path, "1", ms.to_string()) })
}

fn autosuspend(machine: &Machine<'_>) -> Look {
    const FOLDER: &str = "/sys/bus/usb/devices";
    const FILE: &str = "/sys/module/usbcore/parameters/autosuspend";
    /// USB class code of hubs, which may well sleep: they do not while a device below them is awake.
    const HUB: &str = "09";
    let names = match machine.root.list(FOLDER) {
        Err(Missing::Absent) if machine.root.list("/sys/bus").is_ok() => return Err(not_applicable("no USB")),
        other => other.map_err(|why| hidden(FOLDER, &why))?,
    };
    let mut asleep = Vec::new();
    let mut settings = Vec::new();
    let mut seen = 0;
    for name in names {
        let read = |file: &str| machine.maybe(&format!("{FOLDER}/{name}/{file}"));
        let Some(control) = read("power/control") else { continue };
        if !matches!(control.as_str(), "on" | "auto") {
            return Err(unreadable(&format!("{FOLDER}/{name}/power/control"), &control));
        }
        seen += 1;
        if control == "auto" && read("bDeviceClass").as_deref() != Some(HUB) {
            asleep.push(read("product").unwrap_or_else(|| name.clone()));
            settings.push(crate::Setting {
                path: format!("{FOLDER}/{name}/power/control"),
                new: "on".into(),
                old: control,
            });
        }
    }
    let delay = machine.maybe(FILE).unwrap_or_default();
    Ok(match asleep.as_slice() {
        [] if seen == 0 => return Err(not_applicable("no USB device")),
        [] => good(format!("none of {seen}")),
        _ if delay.starts_with('-') => good("none, autosuspend is off"),
        some => warn(some.join(", ")).remedy(crate::Remedy::Write(settings)),
    })
}

fn aspm(machine: &Machine<'_>) -> Look {
    const FILE: &str = "/sys/module/pcie_aspm/parameters/policy";
    let text = machine.feature(FILE, "/sys/module", "this kernel does not manage PCIe links")?;
    let policy = chosen(&text);
    match policy {
        "performance" => Ok(good(policy)),
        "default" => Ok(warn("default: as the firmware left it").write(FILE, "performance", policy)),
        "powersave" | "powersupersave" => Ok(bad(policy).write(FILE, "performance", policy)),
        _ => Err(not_visible(format!("{FILE} says {policy:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Asked,
        State::*,
        checks::{sees, sees_asked},
    };

    fn tty(name: &str) -> Asked {
        Asked { tty: Some(name.into()), ..Asked::default() }
    }

    #[test]
    fn an_ftdi_adapter_has_its_timer_and_a_uart_its_flag() {
        let machine =
            "== /sys/class/tty/ttyUSB0/device/latency_timer ==\n16\n== /sys/class/tty/ttyS0/flags ==\n0x10000040\n";
        let finding = sees_asked("ftdi-latency", machine, &tty("/dev/ttyUSB0"));
        assert_eq!(finding.undo.unwrap(), "echo 16 > /sys/class/tty/ttyUSB0/device/latency_timer");
        assert_eq!(sees_asked("serial-low-latency", machine, &tty("/dev/ttyUSB0")).state, NotApplicable);
        assert_eq!(sees_asked("serial-low-latency", machine, &tty("/dev/ttyS0")).state, Warn);
        assert_eq!(sees_asked("serial-low-latency", &machine.replace("0040", "2040"), &tty("/dev/ttyS0")).state, Good);
        assert_eq!(sees_asked("ftdi-latency", machine, &tty("/dev/ttyS0")).state, NotApplicable);
        assert_eq!(sees_asked("ftdi-latency", machine, &tty("/dev/ttyUSB7")).state, NotVisible);
    }

    #[test]
    fn hubs_may_sleep() {
        let device = |name: &str, class: &str, control: &str| {
            let folder = format!("/sys/bus/usb/devices/{name}");
            format!(
                "== {folder}/power/control ==\n{control}\n== {folder}/bDeviceClass ==\n{class}\n== {folder}/product ==\nname of {name}\n"
            )
        };
        assert_eq!(sees("usb-autosuspend", &device("usb1", "09", "auto")).state, Good);
        assert_eq!(sees("usb-autosuspend", &device("1-1", "ff", "auto")).value, "name of 1-1");
    }

    #[test]
    fn the_link_policy_is_the_one_in_brackets() {
        let machine = "== /sys/module/pcie_aspm/parameters/policy ==\ndefault performance [powersave] powersupersave\n";
        let finding = sees("pcie-aspm", machine);
        assert_eq!((finding.state, finding.value.as_str()), (Bad, "powersave"));
    }
}
