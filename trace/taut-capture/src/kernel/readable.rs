//! Which tracepoints this kernel has, and which of them taut can read.

use std::io;

use super::{
    format::Format,
    tracefs::Tracefs,
    tracepoints::{Decoder, Tracepoint},
};

/// Those of the wanted ones that are there and can be read, with their numbers. The others are named in `left_out`, but for single
/// events that the kernel has not: it may be older than a system call. Without its exit an entry would never end, so that both are
/// left out.
///
/// # Errors
/// A tracepoint of scheduling is not there or cannot be read: without scheduling there is no tier.
pub fn readable(
    tracefs: &Tracefs,
    wanted: Vec<Tracepoint>,
    decoder: &mut Decoder,
    left_out: &mut Vec<String>,
) -> io::Result<Vec<(Tracepoint, u16)>> {
    let (mut found, mut unreadable, mut lacking) = (Vec::new(), Vec::new(), Vec::new());
    for point in wanted {
        let (place, is_needed) = (format!("events/{}/{}/format", point.group, point.name), point.group == "sched");
        match tracefs.read(&place) {
            Ok(text) => match Format::parse(&text).filter(|format| decoder.add(&point, format)) {
                Some(format) => found.push((point, format.id)),
                None if is_needed => {
                    return Err(io::Error::other(format!("tracefs {place} has other fields than taut knows")));
                }
                None => unreadable.push(point),
            },
            Err(error) if is_needed => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::NotFound => lacking.push(point.group),
            Err(_) => unreadable.push(point),
        }
    }
    lacking.dedup();
    let is_there =
        |group: &str| found.iter().map(|(point, _)| point).chain(&unreadable).any(|point| point.group == group);
    // 64-bit Arm has no events of page faults.
    let is_expected = |group: &str| group != "exceptions" || cfg!(target_arch = "x86_64");
    lacking.retain(|group| is_expected(group) && !is_there(group));
    let is_half = |point: &Tracepoint| {
        unreadable.iter().any(|other| other.group == point.group && other.subject() == point.subject())
    };
    let (halves, found): (Vec<_>, Vec<_>) = found.into_iter().partition(|(point, _)| is_half(point));
    let points = unreadable.iter().chain(halves.iter().map(|(point, _)| point));
    left_out.extend(points.map(|point| format!("{}:{}", point.group, point.name)));
    left_out.extend(lacking.into_iter().map(|group| format!("{group}:*")));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::{Depth, tracepoints};

    const FORMAT: &str = "ID: 7\nformat:\n\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:int vec;\toffset:8;\tsize:4;\tsigned:1;\n";

    /// A tracefs with these files, and what of all tasks' events without scheduling is read and left out of it.
    fn of(formats: &[(&str, Option<&str>)]) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        for (point, text) in formats {
            let point = folder.path().join("events").join(point);
            fs::create_dir_all(&point).unwrap();
            match text {
                Some(text) => fs::write(point.join("format"), text).unwrap(),
                // What is no file cannot be read, whoever asks.
                None => fs::create_dir(point.join("format")).unwrap(),
            }
        }
        let (tracefs, mut left_out) = (Tracefs::at(folder.path().to_owned()), Vec::new());
        let mut wanted = tracepoints::of_all_tasks(&tracefs, Depth::Irq, &mut left_out);
        wanted.retain(|point| point.group == "irq");
        let read = readable(&tracefs, wanted, &mut Decoder::default(), &mut left_out).unwrap();
        (read.into_iter().map(|(point, _)| point.name).collect(), left_out)
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_other_half() {
        let all = ["irq/irq_handler_entry", "irq/irq_handler_exit", "irq/softirq_entry", "irq/softirq_exit"];
        let (read, left_out) = of(&all.map(|point| (point, Some(FORMAT))));
        assert_eq!((read.len(), left_out), (4, vec![]));
        for unknown in [None, Some("ID: 7\n"), Some(&*FORMAT.replace("int irq", "int number"))] {
            let (read, left_out) = of(&all.map(|point| (point, if point == all[1] { unknown } else { Some(FORMAT) })));
            assert_eq!(read, ["softirq_entry", "softirq_exit"]);
            assert_eq!(left_out, ["irq:irq_handler_exit", "irq:irq_handler_entry"]);
        }
    }

    #[test]
    fn an_event_that_the_kernel_has_not_is_passed_over_and_a_group_is_not() {
        let (read, left_out) = of(&[("irq/softirq_entry", Some(FORMAT)), ("irq/softirq_exit", Some(FORMAT))]);
        assert_eq!((read.len(), left_out), (2, vec![]));
        assert_eq!(of(&[]), (vec![], vec!["irq:*".to_owned()]));
    }

    #[test]
    fn a_list_of_vectors_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("events")).unwrap();
        let (tracefs, mut left_out) = (Tracefs::at(folder.path().to_owned()), Vec::new());
        tracepoints::of_all_tasks(&tracefs, Depth::Irq, &mut left_out);
        assert_eq!(left_out, Vec::<String>::new(), "not every architecture has them");
        fs::write(folder.path().join("events/irq_vectors"), "").unwrap();
        tracepoints::of_all_tasks(&tracefs, Depth::Irq, &mut left_out);
        assert_eq!(left_out, ["irq_vectors:*"]);
    }

    #[test]
    fn without_scheduling_there_is_no_tier() {
        let folder = tempfile::tempdir().unwrap();
        let (tracefs, mut left_out) = (Tracefs::at(folder.path().to_owned()), Vec::new());
        let wanted = tracepoints::of_all_tasks(&tracefs, Depth::Sched, &mut left_out);
        assert!(readable(&tracefs, wanted, &mut Decoder::default(), &mut left_out).is_err());
    }
}
