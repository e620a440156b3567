//! A small robot that ROS 2 programs of several versions trace: a camera whose images a detector turns into objects, a
//! fusion that keeps the newest and commands every other time, a driver that takes the commands. Three processes.

use super::writer::{Layout, Trace, Value};

/// Which tracepoints there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// ros2_tracing 2: publishes, and no word of what is taken.
    Galactic,
    /// 4: takes with source timestamps, publishes without.
    Humble,
    /// 4 with an instrumented DDS implementation.
    HumbleDds,
    /// 8: both have it.
    Jazzy,
    /// CARET on 2.
    Caret,
}

pub const VERSIONS: [Version; 5] =
    [Version::Galactic, Version::Humble, Version::HumbleDds, Version::Jazzy, Version::Caret];

pub const START_NS: u64 = 1_000_000_000;
pub const TICK_NS: u64 = 10_000_000;
const US: u64 = 1_000;
const MS: u64 = 1_000_000;

type Thread = (i32, i32, &'static str);
pub const CAMERA: Thread = (100, 100, "camera");
pub const DETECTOR: Thread = (200, 201, "vision");
pub const FUSION: Thread = (200, 202, "vision");
pub const DRIVER: Thread = (300, 300, "driver");

/// What it did.
pub struct Robot {
    pub trace: Trace,
    version: Version,
}

fn hex(number: u64) -> Value {
    Value::Hex(number)
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

impl Robot {
    /// `ticks` images; the driver's process does not get the command of those in `lost`, nor the detector the image.
    pub fn run(version: Version, layout: Layout, ticks: u64, lost: &[u64]) -> Robot {
        let mut robot = Robot::made(version, layout);
        for tick in 0..ticks {
            robot.tick(tick, lost.contains(&tick));
        }
        robot
    }

    /// One that did nothing yet but make its nodes.
    pub fn made(version: Version, layout: Layout) -> Robot {
        let mut robot = Robot { trace: Trace::new("ust", layout), version };
        robot.make();
        robot
    }

    fn make(&mut self) {
        let at = START_NS - 100 * MS;
        self.node(CAMERA, at, 0x10, "camera", "/");
        self.timer(CAMERA, at, 0x10, 0x11, 0x12, 10_000_000);
        self.publisher(CAMERA, at, 0x10, 0x13, "/image");
        // The same addresses in another process are others.
        self.node(DETECTOR, at, 0x10, "detector", "/");
        self.subscription(DETECTOR, at, 0x10, 0x21, "/image");
        self.publisher(DETECTOR, at, 0x10, 0x13, "/objects");
        self.node(FUSION, at, 0x30, "fusion", "/plan");
        self.subscription(FUSION, at, 0x30, 0x31, "/objects");
        self.timer(FUSION, at, 0x30, 0x38, 0x39, 20_000_000);
        self.publisher(FUSION, at, 0x30, 0x3a, "/command");
        self.node(DRIVER, at, 0x40, "driver", "/");
        self.subscription(DRIVER, at, 0x40, 0x41, "/command");
    }

    fn tick(&mut self, tick: u64, is_lost: bool) {
        let at = START_NS + tick * TICK_NS;
        self.start(CAMERA, at, 0x12);
        self.publish(CAMERA, at + MS, 0x13, tick);
        self.end(CAMERA, at + MS + 200 * US, 0x12);
        if !is_lost {
            self.take(DETECTOR, at + 2 * MS, 0x21, at + MS, tick);
            self.start(DETECTOR, at + 2 * MS + 10 * US, 0x24);
            self.publish(DETECTOR, at + 5 * MS, 0x13, tick);
            self.end(DETECTOR, at + 5 * MS + 100 * US, 0x24);
            self.take(FUSION, at + 6 * MS, 0x31, at + 5 * MS, tick);
            self.start(FUSION, at + 6 * MS + 10 * US, 0x34);
            self.end(FUSION, at + 6 * MS + 200 * US, 0x34);
        }
        if tick.is_multiple_of(2) {
            self.start(FUSION, at + 8 * MS, 0x39);
            self.publish(FUSION, at + 8 * MS + 500 * US, 0x3a, tick);
            self.end(FUSION, at + 8 * MS + 600 * US, 0x39);
            self.take(DRIVER, at + 9 * MS, 0x41, at + 8 * MS + 500 * US, tick);
            self.start(DRIVER, at + 9 * MS + 10 * US, 0x44);
            self.end(DRIVER, at + 9 * MS + 300 * US, 0x44);
        }
    }

    fn event(&mut self, name: &str, thread: Thread, at: u64, fields: &[(&'static str, Value)]) {
        self.trace.event(name, thread.1 as u32 % 4, at, thread, fields);
    }

    fn node(&mut self, thread: Thread, at: u64, node: u64, name: &str, namespace: &str) {
        let fields = [
            ("node_handle", hex(node)),
            ("rmw_handle", hex(node + 1)),
            ("node_name", text(name)),
            ("namespace", text(namespace)),
        ];
        self.event("ros2:rcl_node_init", thread, at, &fields);
    }

    fn timer(&mut self, thread: Thread, at: u64, node: u64, timer: u64, callback: u64, period_ns: i64) {
        self.event(
            "ros2:rcl_timer_init",
            thread,
            at,
            &[("timer_handle", hex(timer)), ("period", Value::Long(period_ns))],
        );
        let fields = [("timer_handle", hex(timer)), ("callback", hex(callback))];
        self.event("ros2:rclcpp_timer_callback_added", thread, at, &fields);
        let fields = [("timer_handle", hex(timer)), ("node_handle", hex(node))];
        self.event("ros2:rclcpp_timer_link_node", thread, at, &fields);
    }

    fn publisher(&mut self, thread: Thread, at: u64, node: u64, publisher: u64, topic: &str) {
        let fields = [
            ("publisher_handle", hex(publisher)),
            ("node_handle", hex(node)),
            ("rmw_publisher_handle", hex(publisher + 0x1000)),
            ("topic_name", text(topic)),
            ("queue_depth", hex(10)),
        ];
        let gid = Value::Bytes(vec![publisher as u8; 24]);
        let made = [("rmw_publisher_handle", hex(publisher + 0x1000)), ("gid", gid)];
        self.event("ros2:rmw_publisher_init", thread, at, &made);
        self.event("ros2:rcl_publisher_init", thread, at, &fields);
    }

    /// Its middleware's handle is one more, its object two, its callback three.
    fn subscription(&mut self, thread: Thread, at: u64, node: u64, subscription: u64, topic: &str) {
        let fields = [
            ("subscription_handle", hex(subscription)),
            ("node_handle", hex(node)),
            ("rmw_subscription_handle", hex(subscription + 1)),
            ("topic_name", text(topic)),
            ("queue_depth", hex(10)),
        ];
        self.event("ros2:rcl_subscription_init", thread, at, &fields);
        let fields = [("subscription_handle", hex(subscription)), ("subscription", hex(subscription + 2))];
        self.event("ros2:rclcpp_subscription_init", thread, at, &fields);
        let fields = [("subscription", hex(subscription + 2)), ("callback", hex(subscription + 3))];
        self.event("ros2:rclcpp_subscription_callback_added", thread, at, &fields);
    }

    pub fn start(&mut self, thread: Thread, at: u64, callback: u64) {
        let fields = [("callback", hex(callback)), ("is_intra_process", Value::Int(0))];
        self.event("ros2:callback_start", thread, at, &fields);
    }

    pub fn end(&mut self, thread: Thread, at: u64, callback: u64) {
        self.event("ros2:callback_end", thread, at, &[("callback", hex(callback))]);
    }

    pub fn publish(&mut self, thread: Thread, at: u64, publisher: u64, tick: u64) {
        let stamp = self.stamp(at);
        let message = 0x5000 + tick;
        let both = [("publisher_handle", hex(publisher)), ("message", hex(message))];
        match self.version {
            Version::Galactic | Version::Caret => self.event("ros2:rclcpp_publish", thread, at, &both),
            _ => self.event("ros2:rclcpp_publish", thread, at, &[("message", hex(message))]),
        }
        self.event("ros2:rcl_publish", thread, at + US, &both);
        match self.version {
            Version::Galactic => {}
            Version::Humble => self.event("ros2:rmw_publish", thread, at + 2 * US, &[("message", hex(message))]),
            Version::HumbleDds => {
                self.event("ros2:rmw_publish", thread, at + 2 * US, &[("message", hex(message))]);
                let fields = [("writer", hex(7)), ("data", hex(message)), ("timestamp", Value::Long(stamp))];
                self.event("dds:write", thread, at + 3 * US, &fields);
            }
            Version::Jazzy => {
                let fields = [
                    ("rmw_publisher_handle", hex(publisher + 0x1000)),
                    ("message", hex(message)),
                    ("timestamp", Value::Long(stamp)),
                ];
                self.event("ros2:rmw_publish", thread, at + 2 * US, &fields);
            }
            Version::Caret => {
                self.event("ros2_caret:dds_write", thread, at + 2 * US, &[("message", hex(message))]);
                let fields = [("addr", hex(message)), ("source_stamp", hex(stamp as u64))];
                self.event("ros2_caret:dds_bind_addr_to_stamp", thread, at + 3 * US, &fields);
            }
        }
    }

    /// The source timestamp of a publish: on the wall's clock.
    fn stamp(&self, published_at: u64) -> i64 {
        (self.trace.offset_ns + published_at + 2500) as i64
    }

    pub fn take(&mut self, thread: Thread, at: u64, subscription: u64, published_at: u64, tick: u64) {
        let stamp = self.stamp(published_at);
        match self.version {
            Version::Galactic => {}
            Version::Caret => {
                let fields = [
                    ("message", hex(0x6000 + tick)),
                    ("callback", hex(subscription + 3)),
                    ("source_stamp", hex(stamp as u64)),
                    ("message_timestamp", hex(0)),
                ];
                self.event("ros2:dispatch_subscription_callback", thread, at, &fields);
            }
            _ => {
                let fields = [
                    ("rmw_subscription_handle", hex(subscription + 1)),
                    ("message", hex(0x6000 + tick)),
                    ("source_timestamp", Value::Long(stamp)),
                    ("taken", Value::Int(1)),
                ];
                self.event("ros2:rmw_take", thread, at, &fields);
                self.event("ros2:rcl_take", thread, at + US, &[("message", hex(0x6000 + tick))]);
                self.event("ros2:rclcpp_take", thread, at + 2 * US, &[("message", hex(0x6000 + tick))]);
            }
        }
    }
}
