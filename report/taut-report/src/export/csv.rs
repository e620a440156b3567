//! One row for each hop of each message, its time by cause: for spreadsheets and data frames. RFC 4180.

use std::io::{self, Write};

use taut_analysis::{Analysis, Cause, Chain, MessagePath};

use crate::escape::{Form, escaped};

/// Writes the messages that come with their path. Columns: chain, message, hop (from 1), from, to, start_ns (CLOCK_MONOTONIC),
/// duration_ns, and a column of nanoseconds for each cause; those sum to the duration.
///
/// # Errors
/// `out` cannot be written to.
pub fn csv(out: &mut dyn Write, analysis: &Analysis) -> io::Result<()> {
    let causes: Vec<String> = Cause::ALL.iter().map(|cause| format!("{}_ns", cause.word())).collect();
    write!(out, "chain,message,hop,from,to,start_ns,duration_ns,{}\r\n", causes.join(","))?;
    for chain in &analysis.chains {
        for message in &chain.explained.paths {
            rows(out, chain, message, analysis.totals.start_monotonic_ns)?;
        }
    }
    Ok(())
}

fn rows(out: &mut dyn Write, chain: &Chain, message: &MessagePath, start_ns: u64) -> io::Result<()> {
    for pair in message.passes.windows(2) {
        let [(before, from_ns), (point, to_ns)] = [pair[0], pair[1]];
        let name = |at: usize| chain.points.get(at).map_or("", |point| &point.name);
        let mut spent = [0u64; Cause::ALL.len()];
        for piece in message.path.iter().filter(|piece| piece.hop + 1 == point) {
            let within = piece.to_ns.min(to_ns).saturating_sub(piece.from_ns.max(from_ns));
            spent[piece.cause as usize] += within;
        }
        let known: u64 = spent.iter().sum();
        spent[Cause::Unknown as usize] += (to_ns - from_ns).saturating_sub(known);
        let spent: Vec<String> = spent.iter().map(ToString::to_string).collect();
        let fields = [
            escaped(&chain.name, Form::Csv),
            message.time.id.to_string(),
            point.to_string(),
            escaped(name(before), Form::Csv),
            escaped(name(point), Form::Csv),
            (start_ns + from_ns).to_string(),
            (to_ns - from_ns).to_string(),
            spent.join(","),
        ];
        write!(out, "{}\r\n", fields.join(","))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use taut_analysis::{MessageTime, PathPiece, Point, Totals};

    use super::*;

    #[test]
    fn a_row_has_its_hop_s_time_by_cause_and_they_sum_to_it() {
        let piece = |hop, from_ns, to_ns, cause| PathPiece { hop, from_ns, to_ns, cause, ..PathPiece::default() };
        let names = ["read", "plan, \"fast\"", "write"];
        let mut chain = Chain { name: "arm".to_owned(), ..Chain::default() };
        chain.points = names.map(|name| Point { name: name.to_owned(), ..Point::default() }).into();
        chain.explained.paths = vec![MessagePath {
            time: MessageTime { id: 9, ..MessageTime::default() },
            passes: vec![(0, 5), (1, 50), (2, 70)],
            path: vec![piece(0, 5, 40, Cause::Cpu), piece(0, 40, 50, Cause::Gil)],
            ..MessagePath::default()
        }];
        let totals = Totals { start_monotonic_ns: 1000, ..Totals::default() };
        let mut out = Vec::new();
        csv(&mut out, &Analysis { chains: vec![chain], totals, ..Analysis::default() }).unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<&str> = text.lines().collect();
        assert!(
            rows[0].starts_with("chain,message,hop,from,to,start_ns,duration_ns,cpu_ns,syscall_ns,"),
            "{}",
            rows[0]
        );
        assert_eq!(rows[1], "arm,9,1,read,\"plan, \"\"fast\"\"\",1005,45,35,0,0,0,0,0,0,0,10,0,0,0,0,0,0,0,0,0,0,0");
        assert_eq!(rows[2], "arm,9,2,\"plan, \"\"fast\"\"\",write,1050,20,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,20");
    }
}
