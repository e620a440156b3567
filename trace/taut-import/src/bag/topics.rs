//! Messages of topics → stamps: `TOPIC header`, `TOPIC publish`, `TOPIC log`, and notes on them.

use std::path::{Path, PathBuf};

use taut_recording::Kind;

use super::{
    cdr::{self, Head},
    schema::Place,
};
use crate::{
    Error, Imported,
    writing::{Import, Row},
};

/// A stamp that is further from its message's log time than a day is of another time base: simulation time, time
/// since boot.
const SAME_BASE_NS: u64 = 86_400_000_000_000;
/// The topic stands in the upper bits of a message's id, so that no two share one.
const TOPIC_SHIFT: u32 = 40;
const MOST_TOPICS: usize = 20_000;
/// All stamps of a bag are of one made-up process.
const PID: i32 = 1;
/// Topics that a sentence names.
const MOST_NAMED: usize = 8;

/// A bag being taken in.
pub struct Topics {
    to: PathBuf,
    import: Option<Import>,
    topics: Vec<Topic>,
    /// Whether rosbag2 wrote it: its sequence numbers are the publishers'.
    pub is_rosbag2: bool,
    notes: Vec<String>,
    damage: Vec<String>,
}

struct Topic {
    name: String,
    type_name: String,
    place: Option<Place>,
    /// Numbers of its points: header, publish, log; 0 until they are seen.
    points: [u32; 3],
    messages: u64,
    headers: u64,
    zero: u64,
    /// Of another time base, and the first of them.
    apart: u64,
    first_apart_ns: i64,
    publish_apart: u64,
    unreadable: u64,
    sequence: Sequence,
}

/// One message, as its file has it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub log_ns: u64,
    /// `None` where the format has none.
    pub publish_ns: Option<u64>,
    /// 0 without a count.
    pub sequence: u32,
    /// From its first byte on; the head is enough.
    pub data: &'a [u8],
}

/// In the order of the message.
const POINTS: [&str; 3] = ["header", "publish", "log"];

impl Topics {
    pub fn new(to: &Path) -> Topics {
        Topics {
            to: to.to_owned(),
            import: None,
            topics: Vec::new(),
            is_rosbag2: false,
            notes: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// The number of a topic; in the next file of a bag it has the same.
    pub fn topic(&mut self, name: &str, type_name: &str, place: Option<Place>) -> Result<usize, Error> {
        let is_it = |topic: &Topic| topic.name == name && topic.type_name == type_name;
        if let Some(at) = self.topics.iter().position(is_it) {
            return Ok(at);
        }
        if self.topics.len() >= MOST_TOPICS {
            return Err(Error::TooMany { what: format!("more than {MOST_TOPICS} topics") });
        }
        self.topics.push(Topic {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            place,
            points: [0; 3],
            messages: 0,
            headers: 0,
            zero: 0,
            apart: 0,
            first_apart_ns: 0,
            publish_apart: 0,
            unreadable: 0,
            sequence: Sequence::default(),
        });
        Ok(self.topics.len() - 1)
    }

    pub fn message(&mut self, at: usize, seen: Seen<'_>) -> Result<(), Error> {
        let import = match &mut self.import {
            Some(import) => import,
            none => none.insert(Import::begin(&self.to, "bag", seen.log_ns)?),
        };
        let Some(topic) = self.topics.get_mut(at) else { return Ok(()) };
        topic.messages += 1;
        let id = (at as u64 + 1) << TOPIC_SHIFT | topic.messages;
        let head = topic.place.map(|place| cdr::head(place, seen.data));
        let (header_ns, sequence) = topic.header(head, seen.log_ns);
        topic.sequence.take(sequence.unwrap_or(seen.sequence));
        let publish_ns = seen.publish_ns.filter(|ns| *ns != seen.log_ns && *ns != 0);
        let in_base = |ns: &u64| ns.abs_diff(seen.log_ns) <= SAME_BASE_NS;
        topic.publish_apart += u64::from(publish_ns.is_some_and(|ns| !in_base(&ns)));
        let times = [header_ns, publish_ns.filter(in_base), Some(seen.log_ns)];
        for (which, time_ns) in times.into_iter().enumerate() {
            let Some(time_ns) = time_ns else { continue };
            let tid = (at * POINTS.len() + which + 1) as i32;
            if topic.points[which] == 0 {
                topic.points[which] = import.name(&topic.point(which))?;
                // Stamps need one; a bag has none, and none is shown.
                import.thread(PID, tid, "", "")?;
            }
            let row = Row { time_ns, id, point: topic.points[which], value: 0 };
            import.stamp((PID, tid), Kind::Stamp, row)?;
        }
        Ok(())
    }

    pub fn damage(&mut self, sentence: String) {
        match &mut self.import {
            Some(import) => import.damage(sentence),
            None => self.damage.push(sentence),
        }
    }

    pub fn note(&mut self, sentence: String) {
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    pub fn finish(mut self) -> Result<Imported, Error> {
        let Some(mut import) = self.import.take() else {
            let why = self.damage.first().map_or("no messages".to_owned(), |damage| format!("no messages; {damage}"));
            return Err(Error::Empty(why));
        };
        self.damage.into_iter().for_each(|damage| import.damage(damage));
        self.notes.into_iter().for_each(|note| import.note(note));
        let bare: Vec<&Topic> = self.topics.iter().filter(|t| t.place.is_none() && t.messages > 0).collect();
        if !bare.is_empty() {
            let named: Vec<String> =
                bare.iter().take(MOST_NAMED).map(|t| format!("{} ({})", t.name, t.type_name)).collect();
            let more =
                if bare.len() > MOST_NAMED { format!(" and {} more", bare.len() - MOST_NAMED) } else { String::new() };
            import.note(format!("no header stamp to be found in {}{more}", named.join(", ")));
        }
        if self.topics.iter().any(|topic| topic.headers > 0) {
            import.note(
                "a header's stamp is of its sender's clock, the log time of the recorder's: on two machines the hop \
                 between them has the difference of their clocks in it"
                    .to_owned(),
            );
        }
        for topic in &self.topics {
            topic.notes(self.is_rosbag2).into_iter().for_each(|note| import.note(note));
        }
        import.finish()
    }
}

impl Topic {
    fn point(&self, which: usize) -> String {
        // A name is cut where the format ends it; what it is of must stay.
        const MOST: usize = 110;
        let short: String = self
            .name
            .chars()
            .scan(0, |n, c| {
                *n += c.len_utf8();
                (*n <= MOST).then_some(c)
            })
            .collect();
        format!("{short} {}", POINTS[which])
    }

    /// The header's stamp, if it is one; and ROS 1's sequence number.
    fn header(&mut self, head: Option<Head>, log_ns: u64) -> (Option<u64>, Option<u32>) {
        match head {
            None | Some(Head::Nothing) => (None, None),
            Some(Head::Zero) => {
                self.zero += 1;
                (None, None)
            }
            Some(Head::Unreadable) => {
                self.unreadable += 1;
                (None, None)
            }
            Some(Head::At { ns, sequence }) => {
                let in_base = u64::try_from(ns).ok().filter(|ns| ns.abs_diff(log_ns) <= SAME_BASE_NS);
                if in_base.is_none() {
                    self.first_apart_ns = if self.apart == 0 { ns } else { self.first_apart_ns };
                    self.apart += 1;
                }
                self.headers += u64::from(in_base.is_some());
                (in_base, sequence)
            }
        }
    }

    /// What must be said of it.
    fn notes(&self, is_rosbag2: bool) -> Vec<String> {
        let Topic { name, messages, .. } = self;
        let mut notes = Vec::new();
        if self.zero > 0 {
            notes.push(format!("{name}: {} of {messages} header stamps are zero and were left out", self.zero));
        }
        if self.apart > 0 {
            notes.push(format!(
                "{name}: {} of {messages} header stamps are more than a day from the log time (the first says {:.3} s) and \
                 were left out: another time base, such as simulation time",
                self.apart,
                self.first_apart_ns as f64 / 1e9
            ));
        }
        if self.publish_apart > 0 {
            notes.push(format!(
                "{name}: {} of {messages} publish times are more than a day from the log time and were left out",
                self.publish_apart
            ));
        }
        if self.unreadable > 0 {
            notes.push(format!(
                "{name}: {} of {messages} messages have no readable stamp where {} has it",
                self.unreadable, self.type_name
            ));
        }
        let counts = is_rosbag2 || self.place.is_some_and(|place| place.format == super::schema::Format::Ros1);
        if let (true, Some(Gaps { gaps, lost })) = (counts, self.sequence.gaps)
            && gaps > 0
        {
            notes.push(format!(
                "{name}: {lost} messages are missing by the publisher's sequence numbers, in {gaps} gaps"
            ));
        }
        notes
    }
}

/// A publisher's counting of its messages.
#[derive(Debug)]
struct Sequence {
    last: Option<u32>,
    /// `None` where several publishers count, each by itself.
    gaps: Option<Gaps>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Gaps {
    gaps: u64,
    lost: u64,
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence { last: None, gaps: Some(Gaps::default()) }
    }
}

impl Sequence {
    fn take(&mut self, sequence: u32) {
        let Some(last) = self.last.replace(sequence) else { return };
        let jump = sequence.wrapping_sub(last) as i32;
        match (&mut self.gaps, jump) {
            (Some(found), 2..) => *found = Gaps { gaps: found.gaps + 1, lost: found.lost + jump as u64 - 1 },
            // A publisher that begins anew counts from 0 or 1; else there are several.
            (gaps, ..0) if sequence > 1 => *gaps = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(sequence: &[u32]) -> Option<Gaps> {
        let mut of = Sequence::default();
        sequence.iter().for_each(|n| of.take(*n));
        of.gaps
    }

    #[test]
    fn holes_in_a_sequence_are_lost_messages() {
        assert_eq!(gaps(&[5, 6, 9, 10, 12]), Some(Gaps { gaps: 2, lost: 3 }));
        assert_eq!(gaps(&[0, 0, 0, 0]), Some(Gaps::default()), "nobody counted");
        assert_eq!(gaps(&[u32::MAX, 0, 1]), Some(Gaps::default()));
        assert_eq!(gaps(&[7, 8, 1, 2]), Some(Gaps::default()), "began anew");
        assert_eq!(gaps(&[7, 100, 8, 101]), None, "two publishers");
    }
}
