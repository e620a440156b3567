// What the page is given of several recordings: docs/comparison.schema.json.

import type { Figures, Ns } from "./data";

export interface Side {
  run: number; messages: number; end_to_end: Figures; pdv_p99_ns: Ns | null; p50_ratio: number | null; p99_ratio: number | null;
  applied: number; dropped: number; silent: number; in_flight: number; unexplained: number; tail_messages: number;
}
export interface Compared {
  name: string; runs: Side[]; dropped: [reason: string, of: number[]][];
  causes: { cause: string; of: { tail_share: number; per_message_ns: Ns }[] }[];
}
export interface Comparison {
  kind: "comparison"; headline: string;
  runs: { name: string; short: string; duration_s: number; failure: string | null; trips: number | null; false_trips: number | null }[];
  chains: Compared[]; alone: { run: number; chain: string; messages: number }[]; notes: string[];
}
