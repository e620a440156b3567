// Loops that kernel events show: a table, and how each was found.

import type { Loop, Report } from "./data";
import { h, section, table } from "./dom";
import * as f from "./format";

export function loopSection(report: Report): HTMLElement | null {
  if (report.loops.length === 0) return null;
  const number = (n: number | null): string => (n === null ? "–" : f.count(n));
  const row = (of: Loop): string[] => [
    of.name, of.thread, f.count(of.activations), of.rate_hz === null ? "–" : of.rate_hz.toFixed(1),
    ...[of.release_latency.p50_ns, of.release_latency.p99_ns, of.release_latency.max_ns, of.response_time.p99_ns, of.cpu_time.p99_ns].map(f.milliseconds),
    number(of.overruns), number(of.skipped),
  ];
  const others = report.waking_threads.slice(0, 8).map((of) => `${of.thread} (${f.count(of.wakes)} wakes, ${of.waits_for})`);
  return section("Loops",
    table("In ms; late: from release to start; busy: from release until it waits again; overran: not done at the next release; skipped: releases without a start",
      ["loop", "thread", "n", "rate (Hz)", "late p50", "p99", "max", "busy p99", "cpu p99", "overran", "skipped"], report.loops.map(row)),
    h("ul", {}, ...report.loops.slice(0, 8).map((of) => h("li", {}, of.sentence))),
    others.length > 0 && h("p", { class: "aside" }, `No loops: ${others.join(", ")}${report.waking_threads.length > 8 ? `, and ${report.waking_threads.length - 8} more` : ""}.`));
}
