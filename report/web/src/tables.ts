// The tables of a chain: delays, hops, outcomes, points; and how it was measured.

import type { Chain, Figures, Histogram, Ns, Point, Quantile, Report } from "./data";
import { bar, h, table } from "./dom";
import * as f from "./format";

const quantiles = (d: Figures): string[] => [d.p50_ns, d.p90_ns, d.p95_ns, d.p99_ns, d.p999_ns, d.max_ns].map(f.milliseconds);

export function delayTable(chain: Chain): HTMLElement {
  const rows = [["first to last point", f.count(chain.end_to_end.n), ...quantiles(chain.end_to_end)]];
  if (chain.whole_life.n > chain.end_to_end.n) rows.push(["including dropped", f.count(chain.whole_life.n), ...quantiles(chain.whole_life)]);
  return table("End to end, in ms", ["", "n", "p50", "p90", "p95", "p99", "p99.9", "max"], rows);
}

export function hopTable(chain: Chain): HTMLElement {
  const widest = Math.max(1, ...chain.hops.map((hop) => hop.p99_ns ?? hop.max_ns ?? 0));
  const rows = chain.hops.map((hop) => {
    const [from, to] = f.hopName(hop.from, hop.to);
    const name = h("span", { class: "hop" }, from, h("span", { class: "arrow" }, " → "), h("wbr", {}), to,
      hop.crosses_threads && h("span", { class: "tag", title: "the message changes threads on this hop" }, "⇄ threads"));
    const spread = h("span", { class: "with-bar" }, bar((hop.p99_ns ?? hop.max_ns ?? 0) / widest, "spread"), f.milliseconds(hop.p99_ns));
    const tail = h("span", { class: "with-bar" }, bar(hop.tail_share ?? 0, "tail"), hop.tail_share === null ? "–" : f.percent(hop.tail_share));
    return [name, f.count(hop.n), f.milliseconds(hop.p50_ns), f.milliseconds(hop.p95_ns), spread, f.milliseconds(hop.max_ns), f.milliseconds(hop.pdv_p99_ns), tail];
  });
  return table("Hop by hop, in ms; the last column: where the slow messages lose their time", ["hop", "n", "p50", "p95", "p99", "max", "PDV p99", "share of the tail"], rows);
}

/** How many messages passed each point, then how they ended. The ends sum to the messages. */
export function outcomeFunnel(chain: Chain): HTMLElement {
  const o = chain.outcomes;
  const all = Math.max(1, chain.messages);
  const row = (name: string, n: number, kind: string): (string | Node)[] =>
    [name, f.count(n), f.percent(n / all), bar(n / all, kind)];
  const passed = chain.points.map((point) => row(point.name, point.messages, "passed"));
  const ends = [
    row("applied", o.applied, "good"),
    ...Object.entries(o.dropped).map(([reason, n]) => row(`dropped: ${reason}`, n, "bad")),
    row("in flight at start or end", o.in_flight, "passed"),
    ...(o.lost > 0 ? [row("unknown: stamps were lost", o.lost, "bad")] : []),
    row("unexplained", o.unexplained, "bad"),
  ];
  const sum = o.applied + o.in_flight + o.lost + o.unexplained + Object.values(o.dropped).reduce((a, b) => a + b, 0);
  const verdict = sum === chain.messages
    ? `${f.count(o.applied)} applied + ${f.count(sum - o.applied - o.in_flight - o.lost - o.unexplained)} dropped + ${f.count(o.in_flight)} in flight + ${o.lost > 0 ? `${f.count(o.lost)} unknown + ` : ""}${f.count(o.unexplained)} unexplained = ${f.count(sum)} messages: the account balances.`
    : `The ends sum to ${f.count(sum)} of ${f.count(chain.messages)} messages: ${f.count(chain.messages - sum)} do not balance.`;
  const last = o.last_seen.slice(0, 8).map((l) => [l.point, l.reason, f.count(l.messages)]);
  return h("div", { class: "funnel" },
    table("Messages that passed each point", ["point", "messages", "share", ""], passed),
    table("How they ended", ["outcome", "messages", "share", ""], ends),
    h("p", { class: "balance" }, verdict, o.double > 0 ? ` ${f.count(o.double)} had a second outcome; the first counts.` : ""),
    last.length > 0 && table("Where those that ended early were seen last", ["point", "reason", "messages"], last));
}

export function pointTable(points: Point[]): HTMLElement {
  const rows = points.map((p) => [
    p.name, f.count(p.messages), p.rate_hz === null ? "–" : p.rate_hz.toFixed(2), f.milliseconds(p.period.p50_ns), f.milliseconds(p.period.p99_ns), f.milliseconds(p.period.max_ns),
    f.milliseconds(p.period_jitter.p50_ns), f.milliseconds(p.period_jitter.p99_ns), f.milliseconds(p.period_jitter.max_ns), f.count(p.gaps), p.threads.slice(0, 2).join(", "),
  ]);
  return table("Period and its jitter (|period − median|) at each point, in ms; gaps: periods above 1.5 times the median",
    ["point", "messages", "rate (Hz)", "period p50", "p99", "max", "jitter p50", "jitter p99", "jitter max", "gaps", "threads"], rows);
}

/** Distributions that came without messages: quantiles no finer than their buckets. */
export function histogramTable(histograms: Histogram[]): HTMLElement {
  const rows = histograms.map((of) => {
    const figure = (value: number | null): string => (of.unit === "ns" ? f.milliseconds(value as Ns | null) : value === null ? "–" : f.count(value));
    const quantile = (q: Quantile | null): string => (q === null ? "–" : "at_least" in q ? `≥ ${figure(q.at_least)}` : figure(q.at_most));
    const beyond = of.overflow === 0 ? "0" : `${f.count(of.overflow)} ≥ ${figure(of.overflow_from)}`;
    return [of.unit === "ns" ? of.name : `${of.name} (${of.unit})`, f.count(of.n), figure(of.min), ...[of.p50, of.p90, of.p99, of.p999].map(quantile), figure(of.max), beyond];
  });
  return table("In ms; beyond: values above the source's last bucket, of which no more is known", ["of", "n", "min", "p50", "p90", "p99", "p99.9", "max", "beyond"], rows);
}

/** What is known of a host, each name behind `prefix`. */
function ofHost(host: Report["recording"]["hosts"][number], prefix: string): [string, string][] {
  const facts: [string, string][] = [
    ["Host", host.cpus === 0 ? "" : `${host.name}, ${host.cpus} × ${host.cpu}`], ["Kernel", host.kernel],
    ...Object.entries(host.facts).map(([key, value]): [string, string] => [key.replaceAll("_", " "), value]),
  ];
  return facts.map(([key, value]) => [prefix + key, value]);
}

export function measured(report: Report): HTMLElement {
  const r = report.recording;
  const lost = (n: number, isEstimate: boolean): string =>
    n > 0 ? `${isEstimate ? "about " : ""}${f.count(n)} lost` : isEstimate ? "some lost" : "none lost";
  const host = r.hosts[0];
  const imported = host?.facts.imported_from !== undefined;
  const facts: [string, string][] = [
    ["Command", f.shell(r.command)],
    // What was imported may know no time of day.
    ["Recorded", r.start_realtime_ns === 0 ? "" : new Date(r.start_realtime_ns / 1e6).toISOString().replace("T", " ").slice(0, 19) + " UTC"],
    ["Duration", `${r.duration_s.toFixed(1)} s`], ["Stamps", `${f.count(r.stamps)}, ${lost(r.lost_stamps, r.lost_stamps_is_estimate)}`],
    ["ROS 2 events", r.ros_events === 0 ? "" : `${f.count(r.ros_events)}, ${lost(r.lost_ros_events, r.lost_ros_events_is_estimate)}`],
    ["Kernel events", r.kernel_events === 0 ? "none" : `${f.count(r.kernel_events)} by ${r.kernel_source}, ${lost(r.lost_kernel_events, r.lost_kernel_events_is_estimate)}`],
    ["Tier", r.tier + (r.tier_reason ? `: ${r.tier_reason}` : "")],
    ["Clock", imported ? "" : r.clock_error_ns === null ? "error unknown" : `stamps to CLOCK_MONOTONIC within ${r.clock_error_ns.toFixed(0)} ns`],
    [imported ? "Recording" : "Recorder", imported ? f.bytes(r.file_bytes) : (r.recorder_cpu_ns === null ? "killed before its end" : `${(r.recorder_cpu_ns / 1e7 / Math.max(r.duration_s, 1e-9)).toFixed(1)} % of one core`) + `, ${f.bytes(r.file_bytes)}`],
    ...r.hosts.flatMap((one, number) => ofHost(one, number === 0 ? "" : `${one.name}: `)),
    ["Git revision", r.git_revision], ["taut", r.taut_version],
  ];
  return h("dl", {}, ...facts.filter(([, value]) => value !== "").flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]));
}
