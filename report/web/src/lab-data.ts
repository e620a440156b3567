// What the page of a lab is given: its JSON form (docs/schemas/lab.schema.json), every valid trial's numbers, every
// round's differences.

/** A number, or on the side of failures, or on the other. */
export type Bound = number | "failed" | "failed less";
export interface Proportion { k: number; n: number; low: number; high: number }
export interface Difference { pairs: number; left_out: number; ratio: boolean; estimate: Bound; interval: [Bound, Bound] | null }
export interface Metric {
  name: string; about: string; unit: string; better: "lower" | "higher"; n: number; failed: number;
  best: Bound | null; median: Bound | null; interval: [Bound, Bound] | null; tenth_worst: Bound | null; worst: Bound | null;
  misses: Proportion | null; difference: Difference | null;
}
export interface Misfortune { status: string; reason: string; trials: number; logs: string }
export interface Scenario {
  name: string; trials: Record<string, number>; success: Proportion;
  success_difference: { pairs: number; only_baseline: number; only_here: number; p: number } | null;
  loads: { load: string; unit: string; target: number | null; median: number; least: number; cpus_busy: number; sent: number | null; matched: number | null }[];
  processes: { name: string; cpus: string | null; median: number; most: number; shares: Record<string, number> }[];
  metrics: Metric[];
  paths: { name: string; deadline: number; criticality: string; misses: Proportion }[];
  score: {
    terms: { metric: string; weight: number; median: Bound | null; share: number | null; ratio: number | null }[];
    sum: number | null; unit: string; ratio: number | null; vetoes: string[];
  } | null;
  misfortunes: Misfortune[];
}
interface Head { file: string; folder: string; title: string; seed: number; headline: string; confinement: string }
export interface Lab extends Head {
  kind: "lab" | "lab-sweep"; baseline: string; scenarios: Scenario[]; notes: string[];
  /** By metric and scenario, each valid trial in its order; null where it failed. */
  shots: Record<string, Record<string, (number | null)[]>>;
  /** By metric and scenario, the difference to the baseline of each round; ratios where the difference is one. */
  differences: Record<string, Record<string, Bound[]>>;
}
export interface Edge { value: number; achieved: number | null; success: Proportion }
export interface Broken extends Head {
  kind: "lab-break"; outcome: string; unit: string; trials: number; invalid: number; why: string | null;
  asked: { scenario: string; vary: string; success: number; from: number; to: number };
  threshold: [number | null, number | null]; fine: Edge | null; broken: Edge | null; misfortunes: Misfortune[];
  probes: (Edge & { proven: string | null })[];
}
