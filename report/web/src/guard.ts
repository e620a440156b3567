// The page of a guard replay, top to bottom.

import { chart } from "./chart";
import { h, section, table } from "./dom";
import * as f from "./format";
import type { GuardReplay, GuardRun, GuardTrip } from "./guard-data";
import { tick } from "./plots";

/** Trips told in words for each run; the rest is in the JSON. */
const TOLD = 20;

export function guardPage(replay: GuardReplay): HTMLElement {
  const about = [replay.run, replay.stream, `${f.count(replay.frames)} frames`, `${replay.duration_s.toFixed(1)} s`, `parameters ${replay.parameters_hash}`];
  const warn = [
    ...replay.damage.map((text) => `Damaged: ${text}.`),
    ...(replay.incomplete > 0 ? [`${f.count(replay.incomplete)} frames lost a value and are left out.`] : []),
  ];
  const ours = replay.runs[0];
  return h("div", { class: "report" },
    h("header", {},
      h("p", { class: "kicker" }, h("b", {}, "taut guard replay"), ` ${about.join(" · ")}`),
      h("p", { class: "headline" }, replay.headline),
      warn.length > 0 && h("ul", { class: "notes" }, ...warn.map((text) => h("li", {}, text)))),
    h("article", {},
      section("Speed over time", h("div", { class: "plots" }, speedPlot(replay))),
      section("What would have tripped", overview(replay)),
      section("Why", ...replay.runs.filter((run) => run.trips.length > 0).map(why),
        replay.runs.every((run) => run.trips.length === 0) && h("p", { class: "aside" }, "Nothing tripped.")),
      ours !== undefined && section("What the guard counted", counters(ours)),
      replay.tuned && section("Parameters for this stream", h("pre", {}, replay.tuned.toml)),
      section("Replay it again", h("pre", {}, `${replay.command}\n`))));
}

const share = (value: number): string => (value < 100 ? value.toFixed(2) : f.count(value));
const trips = (run: GuardRun): number => run.overspeed_trips + run.stale_trips + run.fault_trips;

function speedPlot(replay: GuardReplay): HTMLElement {
  const xs = replay.times_s;
  // What nobody's arm can do would flatten all else: the axis is logarithmic then, and nothing lies below its foot.
  const most = Math.max(...replay.runs.map((run) => run.largest));
  const log = most > 5;
  const foot = 0.05;
  const shown = (value: number | null): number | null => (value === null ? null : log ? Math.max(foot, value) : value);
  const at = (trip: GuardTrip): number => {
    const after = xs.findIndex((x) => x > trip.at_s);
    return Math.max(0, (after < 0 ? xs.length : after) - 1);
  };
  const tripped = replay.runs.map((run) => {
    const column: (number | null)[] = xs.map(() => null);
    // A stop for silence has no speed: it stands on the limit.
    for (const trip of run.trips) column[at(trip)] = shown(trip.share > 0 ? Math.max(trip.share, column[at(trip)] ?? 0) : 1);
    return column;
  });
  const marked = replay.runs.map((run, n) => ({ run, n })).filter(({ run }) => run.trips.length > 0);
  const step = (xs[1] ?? 0) - (xs[0] ?? 0);
  const largest = (run: GuardRun): string => `${run.name} at most ${share(run.largest)}`;
  return chart({
    title: "Speed as a share of its limit",
    finding: `${replay.runs.slice(0, 3).map(largest).join(", ")}. Dots are trips${marked.length === 0 ? ", of which there are none" : ""}; of ${step < 0.015 ? "each frame" : `every ${f.duration((step * 1e9) as never)}`} the largest is drawn.`,
    data: [xs, ...replay.runs.map((run) => run.shares.map(shown)), ...marked.map(({ n }) => tripped[n] ?? [])],
    axes: {
      x: { label: "time (s)", format: (v) => Number(v.toPrecision(4)).toString() },
      y: { label: "speed / limit", log, format: tick, ...(log ? {} : { min: 0, max: 1.1 * Math.max(1.1, most) }) },
    },
    series: [
      ...replay.runs.map((run, n) => ({ label: run.name, kind: "line" as const, color: n, ...(n > 0 ? { thin: true } : {}) })),
      ...marked.map(({ run, n }) => ({ label: `${run.name}: trips`, kind: "points" as const, color: n, keys: [run.name] })),
    ],
    limits: [{ value: 1, label: "limit" }],
    wide: true,
    describe: (i) => `At ${(xs[i] ?? 0).toFixed(3)} s: ${replay.runs.filter((run) => run.shares[i] != null).map((run) => `${run.name} ${share(run.shares[i] ?? 0)}`).join(", ")}`,
    table: table("largest speed / limit", ["", "largest"], replay.runs.map((run) => [run.name, share(run.largest)]), true),
  });
}

function overview(replay: GuardReplay): HTMLElement {
  const judged = replay.truth !== null;
  const head = ["", "overspeed", "stale", "fault", "frames over", "largest", ...(judged ? ["false", "found", "missed", "p50 (ms)", "max (ms)"] : [])];
  const caption = `Trips, frames after which the speed stood above the limit, and the largest speed as a share of it. One trip of a kind a second is counted at most.${judged ? ` Truth: ${replay.truth}; ${f.count(replay.overspeeds.length)} true overspeeds.` : ""}`;
  return table(caption, head, replay.runs.map((run) => {
    const delays = [...(run.judgement?.delays_ms ?? [])].sort((a, b) => a - b);
    const delay = (at: number): string => delays[at]?.toFixed(1) ?? "–";
    const own = (n: number): string => (run.is_guard ? f.count(n) : "–");
    return [
      run.is_guard ? h("strong", {}, run.name) : run.name, f.count(run.overspeed_trips), own(run.stale_trips), own(run.fault_trips), f.count(run.frames_over), share(run.largest),
      ...(run.judgement ? [f.count(run.judgement.false_trips), f.count(run.judgement.found), f.count(run.judgement.missed), delay(Math.floor((delays.length - 1) / 2)), delay(delays.length - 1)] : []),
    ];
  }));
}

function why(run: GuardRun): HTMLElement {
  const rest = trips(run) - Math.min(TOLD, run.trips.length);
  return h("div", {}, h("h3", {}, run.name),
    h("ul", { class: "results" }, ...run.trips.slice(0, TOLD).map((trip) => h("li", {}, trip.sentence))),
    rest > 0 && h("p", { class: "aside" }, `… and ${f.count(rest)} more.`));
}

function counters(run: GuardRun): HTMLElement {
  const e = run.source_error_ns > 0 ? ` e stood at ${f.duration(run.source_error_ns)} at its widest.` : "";
  return table(`What became of the frames, and what was odd about them.${e}`, ["", "frames"],
    Object.entries(run.counters).map(([name, n]) => [name.replaceAll("_", " "), f.count(n)]));
}
