// What the page of a budget is given: its JSON form (docs/schemas/bus_budget.schema.json).

import type { Figures, Ns } from "./data";

export interface Term {
  name: string; stage: string; resource: string; phase: string; count: number;
  each_us: number; total_us: number; share: number | null; origin: string; note: string;
}
export interface Lane {
  name: string; resource: string; parallel: boolean; decides: boolean; servos: number; start_us: number;
  busy_us: number; busy_p99_us: number | null; utilisation: number; slack_us: number;
  segments: { term: string; start_us: number; us: number }[];
}
export interface Phase {
  phase: string; n: number | null; mean_us: number | null; p50_us: number | null; p99_us: number | null;
  model_us: number; typical_us: number | null; tail_us: number | null;
}
export interface Residual {
  term: string; phase: string; model_us: number; measured_us: number | null; typical_us: number | null; tail_us: number | null;
  alone: boolean; needed_each_us: number | null;
}
export interface Budget {
  kind: "bus_budget"; name: string; command: string; title: string; about: string; headline: string; honesty: string[];
  published: { sentence: string } | null; target_hz: number | null; servos: number;
  cycle: {
    mean_us: number; rate_hz: number; drawn: Figures; histogram: [from: Ns, to: Ns, count: number][]; sentence: string;
    misses: { period_us: number } | null;
  };
  polled: { sentence: string } | null;
  terms: Term[]; lanes: Lane[];
  sensitivity: { key: string; gain_us: number; per_unit_us: number; words: [now: string, better: string, slope: string] }[];
  solved: { target_hz: number; answers: { key: string; sentence: string }[] } | null;
  against: { recording: string; sentence: string; phases: Phase[]; cycle: Phase; terms: Residual[] } | null;
}
