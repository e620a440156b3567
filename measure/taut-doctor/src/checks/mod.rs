//! The doctor's table: one file for each subject, in the order of reading.

mod clock;
mod devices;
mod frequency;
mod groups;
mod idle;
mod interrupts;
mod isolation;
mod kernel;
mod limits;
mod memory;
mod network;
mod power;
mod process;
mod python;
mod quotas;
mod realtime;
mod scheduler;
mod virtualization;

use crate::Check;

const TABLE: [&[Check]; 17] = [
    kernel::CHECKS,
    frequency::CHECKS,
    power::CHECKS,
    idle::CHECKS,
    scheduler::CHECKS,
    isolation::CHECKS,
    realtime::CHECKS,
    interrupts::CHECKS,
    memory::CHECKS,
    limits::CHECKS,
    quotas::CHECKS,
    clock::CHECKS,
    virtualization::CHECKS,
    network::CHECKS,
    devices::CHECKS,
    python::CHECKS,
    process::CHECKS,
];

/// All checks, in the order of reading.
pub fn all() -> impl Iterator<Item = &'static Check> {
    TABLE.into_iter().flatten()
}

/// The check of that name.
pub fn find(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}

/// Facts of one machine for the tests of checks: `sees("governor", "== /sys/… ==\n…")`.
#[cfg(test)]
fn sees(id: &str, machine: &str) -> crate::Finding {
    sees_asked(id, machine, &crate::Asked::default())
}

#[cfg(test)]
fn sees_asked(id: &str, machine: &str, asked: &crate::Asked) -> crate::Finding {
    let root = crate::Root::recorded(machine).unwrap();
    crate::examine(&root, asked).findings.into_iter().find(|finding| finding.id == id).unwrap()
}
