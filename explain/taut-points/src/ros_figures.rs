//! What ROS tools show of topics, callbacks and executors. Times in nanoseconds.

use schemars::JsonSchema;
use serde::Serialize;

/// Of a recording with ROS 2 events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Ros")]
pub struct RosFigures {
    /// By name; without those that every node has.
    pub topics: Vec<TopicFigures>,
    /// By name.
    pub callbacks: Vec<CallbackFigures>,
    /// Threads that ran callbacks, by name.
    pub executors: Vec<ExecutorFigures>,
}

/// One topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Topic")]
pub struct TopicFigures {
    /// Its name.
    pub name: String,
    /// Nodes that publish it.
    pub publishers: Vec<String>,
    /// Messages published in the recording.
    pub published: u64,
    /// Publications a second, as `ros2 topic hz`; `None` with fewer than two.
    pub rate_hz: Option<f64>,
    /// From each publication to the next.
    pub period: Durations,
    /// By name of the callback.
    pub subscriptions: Vec<SubscriptionFigures>,
}

/// One subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Subscription")]
pub struct SubscriptionFigures {
    /// Its callback.
    pub callback: String,
    /// Messages that its queue holds; 0: as many as the middleware likes.
    pub depth: u64,
    /// Messages that it took.
    pub taken: u64,
    /// Newer ones took their place in the queue.
    pub overwritten: u64,
    /// Others that it did not take.
    pub not_taken: u64,
    /// From publication to the begin of the callback.
    pub delay: Durations,
}

/// One callback.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Callback")]
pub struct CallbackFigures {
    /// Its name.
    pub name: String,
    /// The program's function, where its name is known.
    pub function: Option<String>,
    /// From begin to end; of a coroutine all its steps together, without what it awaited.
    pub duration: Durations,
}

/// A thread that runs callbacks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Executor")]
pub struct ExecutorFigures {
    /// "comm/tid".
    pub thread: String,
    /// Callbacks that it ran, those within others not counted.
    pub callbacks: u64,
    /// Share (0..1) of the time from its first callback to the last event of its process that it was in callbacks.
    pub busy: f64,
}

/// Some durations; `None` where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Spread")]
pub struct Durations {
    /// How many.
    pub n: u64,
    /// Their mean.
    pub mean_ns: Option<f64>,
    /// The shortest.
    pub min_ns: Option<u64>,
    /// Their median.
    pub p50_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
    /// Their standard deviation.
    #[serde(rename = "std_dev_ns")]
    pub deviation_ns: Option<f64>,
}
