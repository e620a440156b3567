// What the page is given: the JSON report (docs/report.schema.json) and each chain's series.

/** Nanoseconds: a plain number must not pass for one. */
export type Ns = number & { readonly unit: "ns" };

export interface Figures {
  n: number;
  min_ns: Ns | null; p50_ns: Ns | null; p90_ns: Ns | null; p95_ns: Ns | null;
  p99_ns: Ns | null; p999_ns: Ns | null; max_ns: Ns | null;
  /** Of those that are null: [low, value, high] by name. */
  estimates: Record<string, [low: Ns, value: Ns, high: Ns | null]>;
}
export interface Delay extends Figures {
  histogram: [from: Ns, to: Ns, count: number][];
  percentiles: [quantile: number, value: Ns][];
}
export interface Hop extends Delay {
  from: string; to: string; pdv_p99_ns: Ns | null; tail_share: number | null; crosses_threads: boolean;
  causes: CauseShare[];
}
export interface Point {
  name: string; messages: number; rate_hz: number | null; period: Figures; period_jitter: Figures; gaps: number; threads: string[];
}
/** Of a distribution without messages: the end of the quantile's bucket, or what it reaches at least. */
export type Quantile = { at_most: number } | { at_least: number };
export interface Histogram {
  name: string; unit: string; n: number; min: number | null; max: number | null;
  p50: Quantile | null; p90: Quantile | null; p99: Quantile | null; p999: Quantile | null;
  overflow: number; overflow_from: number; buckets: [from: number, to: number, count: number][];
}
export interface Outcomes {
  applied: number; in_flight: number; dropped: Record<string, number>; lost: number; unexplained: number; double: number;
  last_seen: { point: string; reason: string; messages: number }[];
}
export interface CauseShare { cause: string; detail: string; tail_share: number; time_ns: Ns; typical_ns: Ns; messages: number }
export interface Party { kind: string; name: string; time_ns: Ns; messages: number; causes: string[] }
export interface Hypothesis {
  hypothesis: string; result: "contributes" | "does_not_contribute" | "undecided"; wait: Figures; messages: number; tail_share: number;
  interval: [low: number, high: number]; sentence: string;
}
export interface Predicted { quantile: number; before_ns: Ns; after_ns: Ns; interval: [low: Ns, high: Ns] }
export interface Prediction {
  without: string; p50_ns: Ns | null; p99_ns: Ns | null; interval: [low: Ns, high: Ns] | null; quantiles: Predicted[]; gain_quantile: number | null; gain: number;
  replayed: boolean; assumption: string;
}
export interface Mode {
  from_ns: Ns; to_ns: Ns; p50_ns: Ns; messages: number; share: number; causes: { cause: string; detail: string; share: number }[];
}
export interface Recommendation { against: string; evidence: string; remedy: string; gain: number; verify: string }
/** One of the worst messages; moments are ns since the recording's start. */
export interface MessagePath {
  /** Text where a number would not be exact. */
  id: number | string; start_ns: number; total_ns: Ns; causes: { cause: string; detail: string; time_ns: Ns }[];
  passes: [point: number, ns: number][];
  path: { from_ns: number; to_ns: number; hop: number; lane: number; cause: string; detail: string; note: string }[];
  lanes: { thread: string; states: [from: number, to: number, state: string][] }[];
}
export interface Chain {
  name: string; source: "stamps" | "ros" | "wakes"; is_loop: boolean; declared: boolean; deadline_ns: Ns | null; missed: number | null; messages: number;
  end_to_end: Delay; whole_life: Delay; hops: Hop[]; points: Point[];
  startup: { messages: number; until_ns: Ns; max_ns: Ns; sentence: string } | null;
  outcomes: Outcomes; branches: { point: string; after: string; messages: number }[];
  /** (start in µs, latency in ns) */
  series: [startUs: number, latency: Ns][];
  tail: { explained: number; messages: number; quantile: number | null; limit_ns: Ns; selected: "tail" | "deadline" | "above" | "none" };
  causes: CauseShare[]; by_cause: CauseShare[]; modes: Mode[]; responsible: Party[]; hypotheses: Hypothesis[]; predictions: Prediction[]; recommendations: Recommendation[];
  worst?: MessagePath[];
}
/** A thread that waits for the same thing again and again; `sentence` says how it was found. */
export interface Loop {
  name: string; thread: string; process: string; period_ns: Ns; rate_hz: number | null; activations: number;
  release_latency: Figures; response_time: Figures; cpu_time: Figures; overruns: number | null; skipped: number | null; sentence: string;
}
export interface Signal {
  name: string; n: number; min: number | null; max: number | null; last: number | null;
  /** (time in µs, value) of those that are drawn. */
  series?: [us: number, value: number][];
}
/** `gaps`: holes in the sequence; null where several wrote by turns. */
export interface Telemetry {
  topic: string; type: string; values: number; messages: number; bytes: number; rate_hz: number | null; period: Figures;
  lost: number; gaps: { count: number; messages: number } | null;
}
/** The picture, and what it is made of in words. */
export interface Profile { samples: number; lost_samples: number; svg: string; sentence: string }
export interface Report {
  kind: "report"; name: string; headline: string; chains: Chain[];
  loops: Loop[]; waking_threads: { thread: string; wakes: number; waits_for: string }[];
  /** Topics, callbacks and executors, as text. */
  ros_tables: { section: string; caption: string; header: string[]; rows: string[][] }[];
  signals: Signal[]; tracking: { name: string; n: number; p50: number; p99: number; max: number }[];
  telemetry: Telemetry[]; points: Point[]; histograms: Histogram[]; profile: Profile | null; damage: string[]; notes: string[]; next_step: string | null;
  recording: {
    duration_s: number; stamps: number; lost_stamps: number; ros_events: number; lost_ros_events: number; kernel_events: number; lost_kernel_events: number;
    lost_stamps_is_estimate: boolean; lost_ros_events_is_estimate: boolean; lost_kernel_events_is_estimate: boolean;
    file_bytes: number; tier: string; tier_reason: string; kernel_source: string; clock_error_ns: number | null;
    start_realtime_ns: number; finished: boolean; exit_code: number | null; recorder_cpu_ns: number | null;
    command: string[]; directory: string; git_revision: string; taut_version: string;
    hosts: { name: string; kernel: string; cpu: string; cpus: number; facts: Record<string, string> }[];
  };
}
