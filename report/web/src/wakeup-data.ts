// What a probe's page is given: the JSON form (docs/schemas/wakeup.schema.json) and what its series are.

import type { Figures, Ns } from "./data";

export interface Series {
  wakeups: Figures; cycles: Figures; missed: number; lost: number;
  curve: [quantile: number, value: Ns][]; cycles_curve: [quantile: number, value: Ns][];
  histogram: [from: Ns, to: Ns, count: number][];
  /** End of the stretch in s of measured time, its worst wake. */
  worst: [end: number, value: Ns][];
}
export interface Cpu extends Series { cpu: number | null }
export interface Variant {
  label: string; settings: Record<string, string>; interval_ns: Ns; own_cpu: number; page_faults: number;
  frequency_khz: number | null; idle_states: { name: string; entered: number; ns: Ns }[]; normality: string | null;
  all: Series; cpus: Cpu[];
}
export interface SlackFit { way: string; wake: string; sleep_ns: Ns; p50_ns: Ns | null; slack_ns: Ns; rest_ns: Ns | null }
export interface Explained {
  threshold_ns: Ns; late: number; recorded: number; lost_kernel_events: number; tier: string; sentence: string;
  parts: { what: string; ns: Ns; wakes: number }[];
  responsible: { kind: string; name: string; ns: Ns; wakes: number }[];
  worst: { due_ns: number; cpu: number | null; late_ns: Ns; parts: { what: string; who: string; ns: Ns }[] }[];
}
export interface Wakeup {
  kind: "wakeup"; headline: string; machine: Record<string, string>; started_s: number; measured_s: number; notes: string[];
  variants: Variant[]; slack: SlackFit[]; explained: Explained | null;
  stalls: { sentence: string } | null; throttling: { sentence: string; gaps_ns: Ns[] } | null;
  /** What wakeups and cycles are. */
  series: string;
}

/** A line of a plot or a row of a table: a variant as a whole, or one of its CPUs. */
export interface Line { name: string; variant: Variant; series: Series; at: number; cpu: boolean }

export const cpuName = (cpu: number | null): string => (cpu === null ? "not pinned" : `CPU ${cpu}`);

/** Each variant, followed by its CPUs. */
export function lines(variants: Variant[]): Line[] {
  return variants.flatMap((variant, at) => [
    { name: variant.label || (variant.cpus.length > 0 ? "all CPUs" : "wakeups"), variant, series: variant.all, at, cpu: false },
    ...variant.cpus.map((cpu) => ({ name: cpuName(cpu.cpu), variant, series: cpu, at, cpu: true })),
  ]);
}

/** The ways to sleep that were tried at several lengths, shortest first. */
export function sweeps(slack: SlackFit[]): { way: string; fits: SlackFit[] }[] {
  const ways = [...new Set(slack.map((fit) => fit.way))];
  return ways.map((way) => ({ way, fits: slack.filter((fit) => fit.way === way).sort((a, b) => a.sleep_ns - b.sleep_ns) }))
    .filter(({ fits }) => fits.length > 1);
}
