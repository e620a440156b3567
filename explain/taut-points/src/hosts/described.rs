//! What a recording says of itself → what the joined one says: of all hosts, and of their clocks.

use taut_recording::Info;

use super::{
    clocks_from::ClocksFrom,
    constraints::pairs,
    joined::{Host, Joined},
};

/// What hosts are called, which must differ: as the user says, else as recorded.
///
/// # Errors
/// What is wrong with the names, and the remedy.
pub fn host_names(infos: &[&Info], given: &[String]) -> Result<Vec<String>, String> {
    let twice = |names: &[String]| (1..names.len()).find(|at| names[..*at].contains(&names[*at]));
    if !given.is_empty() {
        let all = given.join(",");
        if given.len() != infos.len() {
            return Err(format!("--hosts {all}: takes {} names, one of each recording's host", infos.len()));
        }
        if twice(given).is_some() || given.iter().any(|name| name.is_empty() || name.contains([':', '/'])) {
            return Err(format!("--hosts {all}: takes different names without : and /"));
        }
        return Ok(given.to_vec());
    }
    let names: Vec<String> = infos.iter().map(|info| info.host.replace([':', '/', ','], "_")).collect();
    let Some(second) = twice(&names).or_else(|| names.iter().position(String::is_empty)) else { return Ok(names) };
    let name = &names[second];
    let first = names.iter().position(|other| other == name).unwrap_or(second);
    let [one, other] = [first, second].map(|host| infos[host].fact("boot_id"));
    Err(match (one.is_empty() || other.is_empty(), one != other) {
        (false, true) => format!(
            "two recordings are of host \"{name}\", which rebooted in between (or two hosts have one name): name all hosts with --hosts A,B if so"
        ),
        _ => {
            format!(
                "two recordings are of a host named \"{name}\": name all hosts with --hosts A,B, or record with --host-name"
            )
        }
    })
}

/// The first recording's, with all hosts' names and what is known of their clocks.
pub fn joined_info(hosts: &[Host<'_>], joined: &Joined) -> Info {
    let names: Vec<&str> = hosts.iter().map(|host| host.name).collect();
    let mut info = hosts[0].info.clone();
    info.host = names.join(" + ");
    for Host { name, info: other, .. } in hosts.iter().skip(1) {
        let cpus = other.cpus.to_string();
        let own = [
            ("kernel", &other.kernel),
            ("cpu", &other.cpu),
            ("cpus", &cpus),
            ("system_calls", &other.system_calls),
            ("git_revision", &other.git_revision),
            ("command", &other.command.join(" ")),
        ];
        let own = own.into_iter().map(|(key, value)| (key, value.as_str()));
        let facts = other.facts.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        info.facts.extend(own.chain(facts).map(|(key, value)| (format!("{name}.{key}"), value.to_owned())));
        // What is missing in one of them is missing in the whole.
        let recovered = other.facts.iter().filter(|(key, _)| key == "recovered_by" && info.fact(key).is_empty());
        let recovered: Vec<_> = recovered.cloned().collect();
        info.facts.extend(recovered);
    }
    info.facts.push(("hosts".to_owned(), names.join(",")));
    info.facts.extend(clocks_facts(joined, &names));
    info.facts.sort();
    let reasons = hosts.iter().filter(|host| !host.info.tier_reason.is_empty());
    let reasons = reasons.map(|host| format!("{}: {}", host.name, host.info.tier_reason));
    info.tier_reason = reasons.collect::<Vec<String>>().join("; ");
    info
}

/// What is known of the clocks of each two hosts.
fn clocks_facts(joined: &Joined, names: &[&str]) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    for (a, b) in pairs(names.len()) {
        let between = joined.between(a, b);
        let bounds = between.bounds_ns();
        if let Some((typical, largest)) = bounds {
            facts.push((Info::clocks_fact("bound", names[a], names[b]), typical.to_string()));
            facts.push((Info::clocks_fact("bound_max", names[a], names[b]), largest.to_string()));
        }
        let from = match between.clocks_from {
            ClocksFrom::Messages if bounds.is_some() => "messages",
            ClocksFrom::Messages => "messages one way",
            ClocksFrom::OneMachine => "one machine",
            ClocksFrom::Realtime => "CLOCK_REALTIME",
        };
        facts.extend([
            (Info::clocks_fact("from", names[a], names[b]), from.to_owned()),
            (Info::clocks_fact("offset", names[a], names[b]), between.offset_ns().to_string()),
            (Info::clocks_fact("drift_ppm", names[a], names[b]), format!("{:.3}", between.drift_ppm())),
        ]);
    }
    facts
}
