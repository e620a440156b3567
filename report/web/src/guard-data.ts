// What the page of a guard replay is given: its JSON form (docs/guard-replay.schema.json) and the plot's columns.

import type { Ns } from "./data";

export interface GuardTrip {
  at_s: number; state: string; cause: string; share: number; channel: string; is_false: boolean | null; sentence: string;
}
export interface GuardRun {
  name: string; is_guard: boolean; overspeed_trips: number; stale_trips: number; fault_trips: number;
  frames_over: number; largest: number; is_degraded: boolean; source_error_ns: Ns; counters: Record<string, number>;
  judgement: { false_trips: number; found: number; missed: number; delays_ms: number[]; by_silence: number } | null;
  trips: GuardTrip[];
  /** Largest share of the limit in each step of the page's time axis. */
  shares: (number | null)[];
}
export interface GuardReplay {
  kind: "guard"; headline: string; run: string; command: string; stream: string; frames: number; incomplete: number;
  duration_s: number; longest_gap_ns: Ns; parameters_hash: string; truth: string | null;
  overspeeds: { from_s: number; to_s: number; peak_mm_s: number }[];
  runs: GuardRun[];
  tuned: { toml: string; evidence: Record<string, string> } | null;
  damage: string[];
  times_s: number[];
}
