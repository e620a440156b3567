//! The kind of machine: its board, its hypervisor, the container around the doctor.

use crate::{
    machine::{Machine, value, words_of},
    script_text::leaves_its_line,
    seen::Seen,
};

impl Machine<'_> {
    pub fn is_container(&self) -> bool {
        self.container().is_some()
    }

    /// What kind of container this is.
    pub fn container(&self) -> Option<&'static str> {
        const GROUPS: [(&str, &str); 4] =
            [("kubepods", "Kubernetes"), ("docker", "Docker"), ("lxc", "LXC"), ("libpod", "Podman")];
        const MARKS: [(&str, &str); 3] =
            [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman"), ("/run/systemd/container", "container")];
        let groups = self.maybe("/proc/1/cgroup").unwrap_or_default();
        let by_group = GROUPS.iter().find(|(mark, _)| groups.contains(mark));
        // A machine that was unpacked from an image has the image's mark, and its kernel threads.
        let whole = self.runs("kthreadd") == Some(true);
        let marked = || MARKS.iter().find(|(path, _)| !whole && self.root.read(path).is_ok());
        by_group.or_else(marked).map(|(_, kind)| *kind)
    }

    /// The name of the hypervisor; `None` on bare metal, an error where nothing tells.
    pub fn hypervisor(&self) -> Result<Option<String>, Seen> {
        let board = ["sys_vendor", "product_name"].map(|name| self.maybe(&format!("/sys/class/dmi/id/{name}")));
        let board = board.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if let Some(kind) = self.maybe("/sys/hypervisor/type").filter(|kind| !kind.is_empty()) {
            return Ok(Some(kind));
        }
        const BOARDS: [&str; 12] = [
            "QEMU",
            "KVM",
            "VMware",
            "VirtualBox",
            "innotek",
            "Xen",
            "Amazon EC2",
            "Google Compute",
            "Virtual Machine",
            "OpenStack",
            "Parallels",
            "Bochs",
        ];
        // Amazon's bare-metal instances are called that too.
        let known = BOARDS.iter().any(|name| board.contains(name)) && !board.contains("metal");
        let info = self.text("/proc/cpuinfo")?;
        let flag = words_of(&info, "flags").contains(&"hypervisor");
        Ok((flag || known).then(|| if board.is_empty() { "yes, of unknown kind".into() } else { board }))
    }
}

/// What stands above a report: kernel, processor, what it runs in.
pub(crate) struct Facts;

impl Facts {
    pub fn of(machine: &Machine<'_>) -> Vec<(&'static str, String)> {
        let info = machine.maybe("/proc/cpuinfo").unwrap_or_default();
        let cpu = ["model name", "Model", "Hardware"].iter().find_map(|name| value(&info, name)).map(str::to_owned);
        let board = machine.maybe("/proc/device-tree/model").filter(|model| !model.is_empty());
        let count = |cpus: &[u32]| (!cpus.is_empty()).then(|| cpus.len().to_string());
        [
            ("board", board),
            ("cpu", cpu),
            ("cpus", count(machine.online())),
            ("kernel", machine.maybe("/proc/sys/kernel/osrelease").filter(|release| !release.is_empty())),
            ("hypervisor", machine.hypervisor().ok().flatten()),
            ("container", machine.container().map(str::to_owned)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?.chars().filter(|c| !leaves_its_line(*c)).take(80).collect())))
        .collect()
    }
}
