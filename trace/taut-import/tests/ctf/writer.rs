//! Writes CTF 1.8 traces as LTTng does: metadata, and a stream of packets for each CPU.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value as Json, json};

/// How the same events lie in the files.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub is_big: bool,
    /// LTTng's large event header, or its compact one.
    pub is_large: bool,
    /// Metadata in packets, or as plain text; in TSDL, or in the JSON of CTF 2.
    pub is_packed: bool,
    pub is_json: bool,
    /// Events of a packet.
    pub packet_events: usize,
}

pub const USUAL: Layout = Layout { is_big: false, is_large: false, is_packed: true, is_json: false, packet_events: 50 };

const CONTEXT: &str = "\tevent.context := struct {
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vpid;
		integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _procname[17];
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vtid;
	};
";

/// A field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Hex(u64),
    Long(i64),
    Int(i32),
    Text(String),
    /// A sequence with its length before it.
    Bytes(Vec<u8>),
}

struct Event {
    class: usize,
    cpu: u32,
    time_ns: u64,
    pid: i32,
    tid: i32,
    name: &'static str,
    values: Vec<Value>,
}

/// One trace.
pub struct Trace {
    pub layout: Layout,
    domain: &'static str,
    pub host: &'static str,
    /// From 1970 to the clock's zero.
    pub offset_ns: u64,
    pub boot: &'static str,
    /// Events that the tracer had no room for, said with the last packet of each stream.
    pub discarded: u64,
    classes: Vec<(String, Vec<(&'static str, Value)>)>,
    events: Vec<Event>,
}

impl Trace {
    pub fn new(domain: &'static str, layout: Layout) -> Trace {
        Trace {
            layout,
            domain,
            host: "robot",
            offset_ns: 1_700_000_000_000_000_000,
            boot: "b7e7b6f4-0000-0000-0000-000000000000",
            discarded: 0,
            classes: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Adds an event; those of a CPU in order of time.
    pub fn event(
        &mut self,
        name: &str,
        cpu: u32,
        time_ns: u64,
        (pid, tid, thread): (i32, i32, &'static str),
        fields: &[(&'static str, Value)],
    ) {
        let kinds = |fields: &[(&'static str, Value)]| -> Vec<(&'static str, std::mem::Discriminant<Value>)> {
            fields.iter().map(|(name, value)| (*name, std::mem::discriminant(value))).collect()
        };
        let is_it = |(known, of): &(String, Vec<(&'static str, Value)>)| known == name && kinds(of) == kinds(fields);
        let class = self.classes.iter().position(is_it).unwrap_or_else(|| {
            self.classes.push((name.to_owned(), fields.to_vec()));
            self.classes.len() - 1
        });
        let values = fields.iter().map(|(_, value)| value.clone()).collect();
        self.events.push(Event { class, cpu, time_ns, pid, tid, name: thread, values });
    }

    /// Writes the trace into a folder, which it makes.
    pub fn write(&self, folder: &Path) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("metadata"), self.metadata_file()).unwrap();
        let mut by_cpu: BTreeMap<u32, Vec<&Event>> = BTreeMap::new();
        for event in &self.events {
            by_cpu.entry(event.cpu).or_default().push(event);
        }
        for (cpu, mut events) in by_cpu {
            events.sort_by_key(|event| event.time_ns);
            std::fs::write(folder.join(format!("channel_{cpu}")), self.stream(cpu, &events)).unwrap();
        }
    }

    fn metadata_file(&self) -> Vec<u8> {
        let text = if self.layout.is_json { self.json() } else { self.metadata() };
        if !self.layout.is_packed {
            return text.into_bytes();
        }
        let mut file = Vec::new();
        for part in text.as_bytes().chunks(1000) {
            let bits = (part.len() as u32 + 37) * 8;
            file.extend(self.number(0x75d1_1d57, 32));
            file.extend([7; 16]);
            for word in [0, u64::from(bits), u64::from(bits) + 24] {
                file.extend(self.number(word, 32));
            }
            let version = if self.layout.is_json { [2, 0] } else { [1, 8] };
            file.extend([0, 0, 0]);
            file.extend(version);
            file.extend(part);
            file.extend([0; 3]);
        }
        file
    }

    /// The kernel's events say who is current only where one asks for it.
    fn has_context(&self) -> bool {
        self.domain == "ust"
    }

    pub fn metadata(&self) -> String {
        let order = if self.layout.is_big { "be" } else { "le" };
        let (header, (id, low)) = if self.layout.is_large { ("large", (16, 32)) } else { ("compact", (5, 27)) };
        let (last, align) = ((1u32 << id) - 1, if self.layout.is_large { 8 } else { 1 });
        let mut text = format!(
            r#"/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = {id}; align = {align}; signed = false; }} := uint_id_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := unsigned long;
trace {{
	major = 1;
	minor = 8;
	uuid = "07070707-0707-0707-0707-070707070707";
	byte_order = {order};
	packet.header := struct {{
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	}};
}};
env {{
	domain = "{domain}";
	hostname = "{host}";
	tracer_name = "lttng-{domain}";
}};
clock {{
	name = "monotonic";
	uuid = "{boot}";
	description = "Monotonic Clock";
	freq = 1000000000; /* Frequency, in Hz */
	// clock value offset from Epoch is: offset * (1/freq)
	offset = {offset};
}};
typealias integer {{ size = {low}; align = {align}; signed = false; map = clock.monotonic.value; }} := low_clock_t;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := clock_t;
struct packet_context {{
	clock_t timestamp_begin;
	clock_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint32_t cpu_id;
}};
struct event_header_{header} {{
	enum : uint_id_t {{ compact = 0 ... {most}, extended = {last} }} id;
	variant <id> {{
		struct {{
			low_clock_t timestamp;
		}} compact;
		struct {{
			uint32_t id;
			clock_t timestamp;
		}} extended;
	}} v;
}} align(8);
stream {{
	id = 0;
	event.header := struct event_header_{header};
	packet.context := struct packet_context;
{context}}};
"#,
            context = if self.has_context() { CONTEXT } else { "" },
            domain = self.domain,
            host = self.host,
            boot = self.boot,
            offset = self.offset_ns,
            most = last - 1,
        );
        for (id, (name, fields)) in self.classes.iter().enumerate() {
            text += &format!(
                "event {{\n\tname = \"{name}\";\n\tid = {id};\n\tstream_id = 0;\n\tloglevel = 13;\n\tfields := struct {{\n"
            );
            for (field, value) in fields {
                let integer = |size, signed, base| {
                    format!(
                        "integer {{ size = {size}; align = 8; signed = {signed}; encoding = none; base = {base}; }}"
                    )
                };
                text += &match value {
                    Value::Hex(_) => format!("\t\t{} _{field};\n", integer(64, 0, 16)),
                    Value::Long(_) => format!("\t\t{} _{field};\n", integer(64, 1, 10)),
                    Value::Int(_) => format!("\t\t{} _{field};\n", integer(32, 1, 10)),
                    Value::Text(_) => format!("\t\tstring _{field};\n"),
                    Value::Bytes(_) => format!(
                        "\t\t{} __{field}_length;\n\t\t{} _{field}[ __{field}_length ];\n",
                        integer(32, 0, 10),
                        integer(8, 0, 10)
                    ),
                };
            }
            text += "\t};\n};\n\n";
        }
        text
    }

    /// The same in CTF 2, as LTTng 2.15 has it.
    pub fn json(&self) -> String {
        let order = if self.layout.is_big { "big-endian" } else { "little-endian" };
        let (id, low, align) = if self.layout.is_large { (16, 32, 8) } else { (5, 27, 1) };
        let last = (1u32 << id) - 1;
        let number = |length: u32, align: u32, role: &str| {
            let mut class = json!({"type": "fixed-length-unsigned-integer", "length": length, "alignment": align,
                "byte-order": order, "preferred-display-base": 10});
            if !role.is_empty() {
                class["roles"] = json!([role]);
            }
            class
        };
        let member = |name: &str, class: Json| json!({"name": name, "field-class": class});
        let structure = |members: Vec<Json>| json!({"type": "structure", "member-classes": members});
        let clock = "default-clock-timestamp";
        let mut tag = number(id, align, "event-record-class-id");
        tag["mappings"] = json!({"compact": [[0, last - 1]], "extended": [[last, last]]});
        let narrow = structure(vec![member("timestamp", number(low, align, clock))]);
        let wide = structure(vec![
            member("id", number(32, 8, "event-record-class-id")),
            member("timestamp", number(64, 8, clock)),
        ]);
        let choice = json!({
            "type": "variant",
            "selector-field-location": {"origin": "event-record-header", "path": ["id"]},
            "options": [
                {"name": "compact", "field-class": narrow, "selector-field-ranges": [[0, last - 1]]},
                {"name": "extended", "field-class": wide, "selector-field-ranges": [[last, last]]},
            ],
        });
        let mut header = structure(vec![member("id", tag), member("v", choice)]);
        header["minimum-alignment"] = json!(8);
        let packet_header = structure(vec![
            member("magic", number(32, 8, "packet-magic-number")),
            member("uuid", json!({"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]})),
            member("stream_id", number(32, 8, "data-stream-class-id")),
            member("stream_instance_id", number(64, 8, "data-stream-id")),
        ]);
        let packet_context = structure(vec![
            member("timestamp_begin", number(64, 8, clock)),
            member("timestamp_end", number(64, 8, "packet-end-default-clock-timestamp")),
            member("content_size", number(64, 8, "packet-content-length")),
            member("packet_size", number(64, 8, "packet-total-length")),
            member("packet_seq_num", number(64, 8, "packet-sequence-number")),
            member("events_discarded", number(64, 8, "discarded-event-record-counter-snapshot")),
            member("cpu_id", number(32, 8, "")),
        ]);
        let signed = |length| {
            let mut class = number(length, 8, "");
            class["type"] = json!("fixed-length-signed-integer");
            class
        };
        let mut stream = json!({"type": "data-stream-class", "id": 0, "default-clock-class-id": "monotonic",
            "packet-context-field-class": packet_context, "event-record-header-field-class": header});
        if self.has_context() {
            stream["event-record-common-context-field-class"] = structure(vec![
                member("vpid", signed(32)),
                member("procname", json!({"type": "static-length-string", "length": 17})),
                member("vtid", signed(32)),
            ]);
        }
        let (seconds, cycles) = (self.offset_ns / 1_000_000_000, self.offset_ns % 1_000_000_000);
        let mut fragments = vec![
            json!({"type": "preamble", "version": 2, "uuid": vec![7; 16]}),
            json!({"type": "trace-class", "packet-header-field-class": packet_header,
                "environment": {"domain": self.domain, "hostname": self.host, "tracer_major": 2}}),
            json!({"type": "clock-class", "id": "monotonic", "frequency": 1_000_000_000, "origin": "unix-epoch",
                "offset-from-origin": {"seconds": seconds, "cycles": cycles}, "uid": self.boot}),
            stream,
        ];
        for (id, (name, fields)) in self.classes.iter().enumerate() {
            let mut members = Vec::new();
            for (field, value) in fields {
                let class = match value {
                    Value::Hex(_) => number(64, 8, ""),
                    Value::Long(_) => signed(64),
                    Value::Int(_) => signed(32),
                    Value::Text(_) => json!({"type": "null-terminated-string"}),
                    Value::Bytes(_) => {
                        members.push(member(&format!("_{field}_length"), number(32, 8, "")));
                        json!({"type": "dynamic-length-array", "element-field-class": number(8, 8, ""),
                            "length-field-location": {"origin": "event-record-payload", "path": [format!("_{field}_length")]}})
                    }
                };
                members.push(member(field, class));
            }
            fragments.push(json!({"type": "event-record-class", "id": id, "data-stream-class-id": 0, "name": name,
                "payload-field-class": structure(members), "attributes": {"lttng.org,2009": {"log-level": "debug"}}}));
        }
        fragments.iter().map(|fragment| format!("\u{1e}{fragment:#}\n")).collect()
    }

    fn stream(&self, cpu: u32, events: &[&Event]) -> Vec<u8> {
        let mut file = Vec::new();
        let packets: Vec<_> = events.chunks(self.layout.packet_events).collect();
        for (sequence, packet) in packets.iter().enumerate() {
            let is_last = sequence + 1 == packets.len();
            let begin_ns = packet[0].time_ns;
            let mut clock = begin_ns;
            let mut body = Vec::new();
            for event in *packet {
                self.encode(event, &mut clock, &mut body);
            }
            let head_bytes = 4 + 16 + 4 + 8 + 6 * 8 + 4;
            let content = (head_bytes + body.len()) as u64 * 8;
            // LTTng pads to pages.
            let size = content.div_ceil(4096 * 8) * 4096 * 8;
            let start = file.len();
            file.extend(self.number(0xc1fc_1fc1, 32));
            file.extend([7; 16]);
            file.extend(self.number(0, 32));
            file.extend(self.number(u64::from(cpu), 64));
            let discarded = if is_last { self.discarded } else { 0 };
            for number in [begin_ns, clock, content, size, sequence as u64, discarded] {
                file.extend(self.number(number, 64));
            }
            file.extend(self.number(u64::from(cpu), 32));
            assert_eq!(file.len() - start, head_bytes);
            file.extend(&body);
            file.resize(start + size as usize / 8, 0);
        }
        file
    }

    fn encode(&self, event: &Event, clock: &mut u64, body: &mut Vec<u8>) {
        let (id_bits, low_bits) = if self.layout.is_large { (16, 32) } else { (5, 27) };
        let id = event.class as u64;
        let is_near = event.time_ns - *clock < 1 << low_bits;
        *clock = event.time_ns;
        let most = (1u64 << id_bits) - 1;
        let first = if id < most && is_near { id } else { most };
        let low = event.time_ns & ((1 << low_bits) - 1);
        if self.layout.is_large {
            body.extend(self.number(first, 16));
            if first != most {
                body.extend(self.number(low, 32));
            }
        } else if first != most {
            // The id comes first: in the lowest bits, or in the highest.
            let word = if self.layout.is_big { first << 27 | low } else { low << 5 | first };
            body.extend(self.number(word, 32));
        } else {
            body.push(if self.layout.is_big { (first << 3) as u8 } else { first as u8 });
        }
        if first == most {
            body.extend(self.number(id, 32));
            body.extend(self.number(event.time_ns, 64));
        }
        if self.has_context() {
            body.extend(self.number(event.pid as u32 as u64, 32));
            let mut name = event.name.as_bytes().to_vec();
            name.resize(17, 0);
            body.extend(name);
            body.extend(self.number(event.tid as u32 as u64, 32));
        }
        for value in &event.values {
            match value {
                Value::Hex(number) => body.extend(self.number(*number, 64)),
                Value::Long(number) => body.extend(self.number(*number as u64, 64)),
                Value::Int(number) => body.extend(self.number(*number as u32 as u64, 32)),
                Value::Text(text) => {
                    body.extend(text.as_bytes());
                    body.push(0);
                }
                Value::Bytes(bytes) => {
                    body.extend(self.number(bytes.len() as u64, 32));
                    body.extend(bytes);
                }
            }
        }
    }

    fn number(&self, number: u64, bits: usize) -> Vec<u8> {
        match self.layout.is_big {
            true => number.to_be_bytes()[8 - bits / 8..].to_vec(),
            false => number.to_le_bytes()[..bits / 8].to_vec(),
        }
    }
}
