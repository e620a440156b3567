//! Where a message type has its stamp: its first field, or the first field of that, is a `std_msgs/Header` or a `Time`
//! called `stamp`. Found by the definition that the file carries (`ros2msg`, `ros2idl`, `ros1msg`), else by a table of
//! common types.

/// How deep types may lie in one another.
const DEEPEST: usize = 8;
/// The headers of ROS, with the package's middle part (`msg`) left out.
const HEADER: &str = "std_msgs/Header";
const TIMES: [&str; 2] = ["builtin_interfaces/Time", "time"];
/// A `Time` of another name is not when the message was stamped.
const STAMPS: [&str; 2] = ["stamp", "timestamp"];

/// Where the stamp is, in the bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub format: Format,
    /// In the first element of a sequence, as in `tf2_msgs/TFMessage`.
    pub in_sequence: bool,
    /// A header; else a bare time.
    pub is_header: bool,
}

/// How messages become bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// DDS's, with its encapsulation in front: ROS 2.
    Cdr,
    /// ROS 1's.
    Ros1,
}

/// Finds the stamp of a type, `None` if it has none at its head. `encoding` is that of the definition's `text`, which
/// may be empty.
pub fn place(format: Format, type_name: &str, encoding: &str, text: &str) -> Option<Place> {
    let definitions = match encoding {
        "ros2msg" | "ros1msg" => Definitions::of_msg(type_name, text),
        "ros2idl" | "omgidl" => Definitions::of_idl(type_name, text),
        _ => Definitions::default(),
    };
    let mut of = short(type_name);
    let mut in_sequence = false;
    for _ in 0..DEEPEST {
        let field = definitions.first(&of).or_else(|| known(&of))?;
        if field.in_sequence && std::mem::replace(&mut in_sequence, true) {
            return None;
        }
        if field.kind == HEADER || field.kind == "Header" {
            return Some(Place { format, in_sequence, is_header: true });
        }
        if TIMES.contains(&field.kind.as_str()) {
            let is_stamp = STAMPS.contains(&field.name.as_str());
            return is_stamp.then_some(Place { format, in_sequence, is_header: false });
        }
        of = field.kind;
    }
    None
}

/// A type's first field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    /// The type's short name.
    kind: String,
    name: String,
    in_sequence: bool,
}

/// The first field of each type that a text defines, by the type's short name.
#[derive(Default)]
struct Definitions(Vec<(String, Option<Field>)>);

impl Definitions {
    /// Types that a definition names without their package are of its own.
    fn first(&self, of: &str) -> Option<Field> {
        let base = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
        let exact = self.0.iter().find(|(name, _)| name == of);
        let near = || self.0.iter().find(|(name, _)| !of.contains('/') && base(name) == of);
        exact.or_else(near)?.1.clone()
    }

    /// The text of a `.msg` file, the types it needs behind it: each after a line of `=` and one `MSG: NAME`.
    fn of_msg(type_name: &str, text: &str) -> Definitions {
        let mut found = vec![(short(type_name), None)];
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(name) = line.strip_prefix("MSG:") {
                found.push((short(name.trim()), None));
            } else if !line.is_empty()
                && !line.starts_with("==")
                && let Some((_, first @ None)) = found.last_mut()
            {
                *first = msg_field(line);
            }
        }
        Definitions(found)
    }

    /// The same of `.idl` files, each after a line of `=` and one `IDL: NAME`; or one file without such lines.
    fn of_idl(type_name: &str, text: &str) -> Definitions {
        let mut sections = vec![(short(type_name), String::new())];
        for line in text.lines() {
            if let Some(name) = line.trim().strip_prefix("IDL:") {
                sections.push((short(name.trim()), String::new()));
            } else if let Some((_, section)) = sections.last_mut()
                && !line.starts_with("==")
            {
                section.push_str(line);
                section.push('\n');
            }
        }
        let named = sections.into_iter().filter(|(_, section)| !section.trim().is_empty());
        Definitions(named.map(|(name, section)| (name.clone(), idl_field(&name, &section))).collect())
    }
}

/// `std_msgs/Header header`; `None` for a constant.
fn msg_field(line: &str) -> Option<Field> {
    let (kind, rest) = line.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    // A string's default may hold anything, but it does not stand right behind the name.
    if rest[name.len()..].trim_start().starts_with('=') {
        return None;
    }
    let (kind, array) = kind.split_once('[').map_or((kind, None), |(kind, array)| (kind, Some(array)));
    let in_sequence = array.is_some_and(|array| array.starts_with(']') || array.starts_with("<="));
    Some(Field { kind: short(kind), name, in_sequence })
}

/// The first member of the struct of that name.
fn idl_field(of: &str, text: &str) -> Option<Field> {
    let base = of.rsplit('/').next().unwrap_or(of);
    let words = idl_words(text);
    let start = words.windows(3).position(|w| w[0] == "struct" && w[1] == base && w[2] == "{")? + 3;
    let mut words = words[start..].iter().map(String::as_str).peekable();
    // Annotations stand before a member, some with arguments.
    while words.next_if_eq(&"@").is_some() {
        words.next()?;
        if words.next_if_eq(&"(").is_some() {
            let mut open = 1;
            while open > 0 {
                open += match words.next()? {
                    "(" => 1,
                    ")" => -1,
                    _ => 0,
                };
            }
        }
    }
    let first = words.next()?;
    let in_sequence = first == "sequence" && words.next_if_eq(&"<").is_some();
    let kind = if in_sequence { words.next()? } else { first };
    let name = words.find(|word| !matches!(*word, ">" | ",") && word.parse::<u64>().is_err())?;
    Some(Field { kind: short(kind), name: name.to_owned(), in_sequence })
}

/// The words of an IDL text, without comments; a string is one word.
fn idl_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let until = |end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let length = if rest.starts_with("//") {
            until("\n")
        } else if rest.starts_with("/*") {
            until("*/")
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].char_indices().find(|(_, c)| {
                let is_end = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                is_end
            });
            words.push("\"".to_owned());
            end.map_or(rest.len(), |(at, _)| at + 2)
        } else if c.is_whitespace() {
            c.len_utf8()
        } else {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len()).max(c.len_utf8());
            words.push(rest[..length].to_owned());
            length
        };
        rest = &rest[length..];
    }
    words
}

/// "std_msgs/msg/Header" and "std_msgs::msg::Header" as "std_msgs/Header".
fn short(name: &str) -> String {
    let name = name.replace("::", "/");
    match name.split('/').collect::<Vec<_>>()[..] {
        [package, "msg", base] => format!("{package}/{base}"),
        _ => name,
    }
}

/// Types without a definition in the file, as SQLite3 bags had none before 2023: what ROS itself and the packages
/// that everybody uses have first.
fn known(of: &str) -> Option<Field> {
    const HEADERS: [(&str, &[&str]); 12] = [
        ("ackermann_msgs", &["AckermannDriveStamped"]),
        ("control_msgs", &["DynamicJointState", "JointControllerState", "JointTrajectoryControllerState"]),
        ("diagnostic_msgs", &["DiagnosticArray"]),
        (
            "geometry_msgs",
            &[
                "AccelStamped",
                "AccelWithCovarianceStamped",
                "InertiaStamped",
                "PointStamped",
                "PolygonInstanceStamped",
                "PolygonStamped",
                "PoseArray",
                "PoseStamped",
                "PoseWithCovarianceStamped",
                "QuaternionStamped",
                "TransformStamped",
                "TwistStamped",
                "TwistWithCovarianceStamped",
                "Vector3Stamped",
                "VelocityStamped",
                "WrenchStamped",
            ],
        ),
        ("nav_msgs", &["Goals", "GridCells", "OccupancyGrid", "Odometry", "Path"]),
        (
            "sensor_msgs",
            &[
                "BatteryState",
                "CameraInfo",
                "CompressedImage",
                "FluidPressure",
                "Illuminance",
                "Image",
                "Imu",
                "JointState",
                "Joy",
                "LaserScan",
                "MagneticField",
                "MultiDOFJointState",
                "MultiEchoLaserScan",
                "NavSatFix",
                "PointCloud",
                "PointCloud2",
                "Range",
                "RelativeHumidity",
                "Temperature",
                "TimeReference",
            ],
        ),
        ("stereo_msgs", &["DisparityImage"]),
        ("trajectory_msgs", &["JointTrajectory", "MultiDOFJointTrajectory"]),
        ("vision_msgs", &["Detection2D", "Detection2DArray", "Detection3D", "Detection3DArray"]),
        (
            "visualization_msgs",
            &["ImageMarker", "InteractiveMarker", "InteractiveMarkerFeedback", "InteractiveMarkerPose", "Marker"],
        ),
        ("actionlib_msgs", &["GoalStatusArray"]),
        ("geographic_msgs", &["GeoPointStamped", "GeoPoseStamped"]),
    ];
    let field =
        |kind: &str, name: &str, in_sequence| Some(Field { kind: kind.to_owned(), name: name.to_owned(), in_sequence });
    let (package, base) = of.split_once('/')?;
    match (package, base) {
        ("rcl_interfaces", "Log" | "ParameterEvent") => field(TIMES[0], "stamp", false),
        ("tf2_msgs", "TFMessage") => field("geometry_msgs/TransformStamped", "transforms", true),
        ("visualization_msgs", "MarkerArray") => field("visualization_msgs/Marker", "markers", true),
        _ => HEADERS
            .iter()
            .any(|(known, types)| *known == package && types.contains(&base))
            .then(|| field(HEADER, "header", false))?,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ros2(type_name: &str, encoding: &str, text: &str) -> Option<(bool, bool)> {
        place(Format::Cdr, type_name, encoding, text).map(|place| (place.in_sequence, place.is_header))
    }

    #[test]
    fn a_header_is_found_by_the_definition_in_the_file() {
        let text = "# A comment\nuint8 A=1\nstring B = \"x y\"\nstd_msgs/Header header # first\nfloat64 x\n\
                    ================\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n";
        assert_eq!(ros2("my_msgs/msg/Thing", "ros2msg", text), Some((false, true)));
        assert_eq!(ros2("my_msgs/msg/Thing", "ros2msg", "float64 x\nstd_msgs/Header header\n"), None);
        assert_eq!(ros2("my_msgs/msg/Thing", "ros2msg", "builtin_interfaces/Time stamp\n"), Some((false, false)));
        assert_eq!(ros2("my_msgs/msg/Thing", "ros2msg", "builtin_interfaces/Time born\n"), None);
    }

    #[test]
    fn types_in_types_and_sequences_are_followed() {
        let text =
            "Part[] parts\n===\nMSG: my_msgs/Part\nInner inner\n===\nMSG: my_msgs/Inner\nstd_msgs/msg/Header h\n";
        assert_eq!(ros2("my_msgs/msg/Whole", "ros2msg", text), Some((true, true)));
        let nested = text.replace("Inner inner", "Inner[] inner");
        assert_eq!(ros2("my_msgs/msg/Whole", "ros2msg", &nested), None, "two sequences deep");
        let fixed = text.replace("Part[] parts", "Part[3] parts");
        assert_eq!(ros2("my_msgs/msg/Whole", "ros2msg", &fixed), Some((false, true)));
        let endless = "A a\n===\nMSG: my_msgs/A\nA a\n";
        assert_eq!(ros2("my_msgs/msg/Whole", "ros2msg", endless), None);
    }

    #[test]
    fn idl_is_read_past_comments_and_annotations() {
        let text = "====\nIDL: my_msgs/msg/Thing\n// generated\n#include \"std_msgs/msg/Header.idl\"\n\
                    module my_msgs {\n module msg {\n  @verbatim (language=\"comment\", text=\n   \"struct Thing { (\" \"x\")\n\
                    struct Thing {\n @verbatim (language=\"comment\", text=\"a ( b\") @key\n std_msgs::msg::Header header;\n\
                    double x;\n };\n };\n};\n";
        assert_eq!(ros2("my_msgs/msg/Thing", "ros2idl", text), Some((false, true)));
        let sequence =
            text.replace("std_msgs::msg::Header header", "sequence<geometry_msgs::msg::PoseStamped, 10> poses");
        assert_eq!(ros2("my_msgs/msg/Thing", "ros2idl", &sequence), Some((true, true)));
    }

    #[test]
    fn without_a_definition_the_usual_types_are_known() {
        assert_eq!(ros2("sensor_msgs/msg/Imu", "", ""), Some((false, true)));
        assert_eq!(ros2("tf2_msgs/msg/TFMessage", "", ""), Some((true, true)));
        assert_eq!(ros2("rcl_interfaces/msg/Log", "", ""), Some((false, false)));
        assert_eq!(ros2("std_msgs/msg/Float64", "", ""), None);
        assert_eq!(ros2("", "", ""), None);
    }

    #[test]
    fn ros_1_names_its_header_without_a_package() {
        let text = "Header header\nfloat64 x\n===\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n";
        let place = place(Format::Ros1, "my_msgs/Thing", "ros1msg", text);
        assert_eq!(place, Some(Place { format: Format::Ros1, in_sequence: false, is_header: true }));
    }
}
