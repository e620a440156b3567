// The pages of a lab, top to bottom: of its trials, and of the load that breaks it.

import { chart } from "./chart";
import { bar, h, section, table } from "./dom";
import * as f from "./format";
import type { Bound, Broken, Difference, Lab, Metric, Misfortune, Proportion, Scenario } from "./lab-data";
import { tick } from "./plots";

export function labPage(lab: Lab): HTMLElement {
  const first = lab.scenarios[0];
  const loads = lab.scenarios.flatMap((scenario) => scenario.loads.map((load) => ({ scenario, load })));
  return h("div", { class: "report lab" },
    head(lab, lab.kind === "lab-sweep" ? "taut lab sweep" : "taut lab run", lab.notes),
    h("article", {},
      section("How the trials ended", endTable(lab)),
      loads.length > 0 && section("What the loads reached", table("Over valid trials", ["scenario", "load", "target", "median", "least", "unit", "sent", "CPUs busy"],
        loads.map(({ scenario, load }) => [scenario.name, load.load, number(load.target), number(load.median), number(load.least),
          load.matched === 0 ? `${load.unit}, to no reader` : load.unit, load.sent === null ? "" : number(load.sent), number(load.cpus_busy)]))),
      lab.scenarios.some((scenario) => scenario.processes.length > 0) && section("CPUs that processes kept busy", processTable(lab)),
      ...(first?.metrics ?? []).map((metric, at) => metricSection(lab, metric, at)),
      first !== undefined && first.paths.length > 0 && section("Paths and their deadlines", pathTable(lab)),
      lab.scenarios.some((scenario) => scenario.score) && section("Weighted score", scoreTable(lab), h("p", { class: "aside" },
        "The sum is of weight × median over the weights: its longest term rules it. The ratio is the weighted geometric mean of the metrics' ratios to the baseline. Neither makes up for what stands under “but”.")),
      troubles(lab.scenarios.flatMap((scenario) => scenario.misfortunes.map((one) => ({ who: scenario.name, one })))),
      section("How to read this", h("p", {}, "Intervals are 95 %, each by itself. A trial that failed counts as worse than every number and stands at the failures' edge. Against the baseline: Hodges and Lehmann's estimate over rounds, in which scenarios ran beside each other. Success: Clopper and Pearson's interval, McNemar's exact test.")),
      section("Run it again", h("pre", {}, `taut lab ${lab.kind === "lab-sweep" ? "sweep" : "run"} ${f.shell([lab.file])} -o ${f.shell(["again"])}\n`))));
}

export function breakPage(found: Broken): HTMLElement {
  return h("div", { class: "report lab" },
    head(found, "taut lab break", found.why === null ? [] : [found.why]),
    h("article", {},
      section("Success against load", h("div", { class: "plots" }, successPlot(found), achievedPlot(found))),
      section("What was tried", table("Lightest first", [found.asked.vary, `reached (${found.unit}, median)`, "success", "95 %", "proven"],
        found.probes.map((probe) => [number(probe.value), number(probe.achieved), of(probe.success), span(probe.success), probe.proven ?? "open"]))),
      troubles(found.misfortunes.map((one) => ({ who: "at the lightest load proven broken", one }))),
      section("Run it again", h("pre", {}, `taut lab break ${f.shell([found.file])} -o again\n`))));
}

function head(shown: { title: string; file: string; folder: string; seed: number; headline: string; confinement: string }, verb: string, notes: string[]): HTMLElement {
  return h("header", {},
    h("p", { class: "kicker" }, h("b", {}, verb), ` ${[shown.title || shown.file, shown.folder, `seed ${shown.seed}`, shown.confinement].join(" · ")}`),
    h("p", { class: "headline" }, shown.headline),
    notes.length > 0 && h("ul", { class: "notes" }, ...notes.map((text) => h("li", {}, text))));
}

/** Four significant digits. */
export function number(value: number | null): string {
  if (value === null) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(2);
  return size >= 1000 ? f.count(value) : Number(value.toPrecision(4)).toString();
}
const bound = (value: Bound | null): string => (typeof value === "number" || value === null ? number(value) : value);
const of = (p: Proportion): string => `${p.k} of ${p.n}`;
const span = (p: Proportion): string => (p.n === 0 ? "–" : `${(p.low * 100).toFixed(0)} … ${(p.high * 100).toFixed(0)} %`);

/** A proportion as a point with its interval, from 0 to 1. */
function gauge(p: Proportion): HTMLElement {
  if (p.n === 0) return h("span", {}, "–");
  const at = (share: number): string => `${(100 * share).toFixed(2)}%`;
  return h("span", { class: "with-bar" }, h("span", { class: "range", "aria-hidden": "true" },
    h("span", { class: "reach", style: `left:${at(p.low)};width:${at(p.high - p.low)}` }),
    h("span", { class: "point", style: `left:${at(p.k / p.n)}` })), span(p));
}

function endTable(lab: Lab): HTMLElement {
  const all = ["success", "planning_failed", "execution_failed", "failed", "timeout", "crashed", "invalid"];
  const ways = all.filter((way) => way === "success" || lab.scenarios.some((scenario) => (scenario.trials[way] ?? 0) > 0));
  return table("Each trial once; success of the valid ones", ["scenario", ...ways, "success, 95 %", "only baseline", "only here", "p"],
    lab.scenarios.map((scenario) => {
      const d = scenario.success_difference;
      return [scenario.name, ...ways.map((way) => f.count(scenario.trials[way] ?? 0)), gauge(scenario.success),
        ...(d ? [f.count(d.only_baseline), f.count(d.only_here), d.p.toPrecision(2)] : ["baseline", "", ""])];
    }));
}

function metricSection(lab: Lab, metric: Metric, at: number): HTMLElement {
  const rows = lab.scenarios.flatMap((scenario) => { const own = scenario.metrics[at]; return own ? [{ scenario, own }] : []; });
  const unit = metric.unit && ` (${metric.unit})`;
  return section(`${metric.name}${unit}`,
    metric.about !== "" && h("p", { class: "aside" }, metric.about),
    trialStrips(lab, metric.name, rows),
    ...differenceStrips(lab, metric.name, rows),
    table("Over valid trials", ["scenario", "n", "failed", "best", "median", "95 %", "p90", "worst", "missed", "against baseline"],
      rows.map(({ scenario, own }) => [scenario.name, f.count(own.n), f.count(own.failed), bound(own.best), bound(own.median),
        own.interval ? `${bound(own.interval[0])} … ${bound(own.interval[1])}` : "–", bound(own.tenth_worst), bound(own.worst),
        own.misses ? of(own.misses) : "–", own.difference ? against(own.difference, own) : "–"])));
}

function against(d: Difference, metric: Metric): string {
  const one = (b: Bound): string => (typeof b !== "number" ? b : d.ratio ? `× ${number(b)}` : `${b < 0 ? "−" : "+"}${number(Math.abs(b))} ${metric.unit}`.trim());
  return d.interval ? `${one(d.estimate)} (${d.interval.map((b) => one(b).replace("× ", "")).join(" … ")})` : one(d.estimate);
}

/** Dots on one axis with others below and above it. */
interface Strip {
  name: string;
  /** For those who do not see it. */
  said: string;
  values: Bound[];
  /** What a dot is, before its number: "trial 3". */
  one: (at: number) => string;
  middle: Bound | null;
  interval: [Bound, Bound] | null;
}

/** Strips below each other; failures stand at the right edge, those of the other side at the left one. */
function strips(finding: string, all: Strip[], { log, same, format = number }: { log?: boolean; same?: number; format?: (value: number) => string }): HTMLElement {
  const values = all.flatMap((strip) => strip.values).filter((value): value is number => typeof value === "number");
  if (values.length === 0) return h("p", { class: "aside" }, "No trial has this number.");
  const ends = same === undefined ? values : [...values, same];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  // Logarithmic where the largest is ten times the smallest.
  const isLog = log ?? (low > 0 && high > 10 * low);
  const scale = (value: number): number => (high > low ? (isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low)) : 0.5);
  const anyLess = all.some((strip) => [...strip.values, ...(strip.interval ?? [])].includes("failed less"));
  const from = anyLess ? 12 : 2;
  const left = (value: number): string => `${(from + (88 - from) * Math.max(0, Math.min(1, scale(value)))).toFixed(2)}%`;
  const place = (b: Bound): string => (b === "failed" ? "95%" : b === "failed less" ? "4%" : left(b));
  const row = (strip: Strip): HTMLElement => h("div", { class: "strip" }, h("span", { class: "strip-name" }, strip.name),
    h("div", { class: "track", role: "img", "aria-label": strip.said },
      strip.interval && h("span", { class: "reach", style: `left:${place(strip.interval[0])};right:calc(100% - ${place(strip.interval[1])})` }),
      same !== undefined && h("span", { class: "same", style: `left:${left(same)}` }),
      ...strip.values.map((value, i) => h("span", { class: value === "failed" ? "shot bad" : "shot",
        style: `left:${place(value)};top:${12 + ((i * 37) % 50)}%`, title: `${strip.one(i)}: ${typeof value === "number" ? format(value) : value}` })),
      strip.middle !== null && h("span", { class: "middle", style: `left:${place(strip.middle)}` })));
  return h("div", { class: "strips" },
    h("p", { class: "finding" }, `${finding}${isLog ? " Logarithmic." : ""}`),
    ...all.map(row),
    h("div", { class: "strip", "aria-hidden": "true" }, h("span", { class: "strip-name" }), h("div", { class: "track ticks" },
      h("span", { style: `left:${left(low)}` }, format(low)), high > low && h("span", { style: `left:${left(high)}` }, format(high)),
      same !== undefined && low < same && same < high && Math.abs(scale(same) - 0.5) < 0.42 && h("span", { style: `left:${left(same)}` }, format(same)),
      anyLess && h("span", { style: "left:4%" }, "failed less"), h("span", { style: "left:95%" }, "failed"))));
}

/** Every trial a dot. */
function trialStrips(lab: Lab, metric: string, rows: { scenario: Scenario; own: Metric }[]): HTMLElement {
  const strip = ({ scenario, own }: { scenario: Scenario; own: Metric }): Strip => ({
    name: scenario.name, said: `${scenario.name}: median ${bound(own.median)}, ${own.n} trials, ${own.failed} failed`,
    values: (lab.shots[metric]?.[scenario.name] ?? []).map((value) => value ?? "failed"), one: (at) => `trial ${at}`,
    middle: own.median, interval: own.interval,
  });
  return strips("Each dot is a trial; the line is the median, the band its 95 % interval; failures at the right.", rows.map(strip), {});
}

/** Every round a dot: the scenario against the baseline that ran beside it. Ratios and differences have an axis each. */
function differenceStrips(lab: Lab, metric: string, rows: { scenario: Scenario; own: Metric }[]): (HTMLElement | false)[] {
  return [true, false].map((ratio) => {
    const all = rows.flatMap(({ scenario, own }): Strip[] => {
      const d = own.difference;
      if (!d || d.ratio !== ratio) return [];
      return [{ name: scenario.name, said: `${scenario.name} against ${lab.baseline}: ${against(d, own)}, ${d.pairs} rounds`,
        values: lab.differences[metric]?.[scenario.name] ?? [], one: (at) => `pair ${at}`, middle: d.estimate, interval: d.interval }];
    });
    const format = (value: number): string => (ratio ? `× ${number(value)}` : `${value < 0 ? "−" : "+"}${number(Math.abs(value))}`);
    return all.some((strip) => strip.values.length > 0) && h("div", { class: "against" },
      h("h3", {}, `Against ${lab.baseline}, round by round`),
      strips("Each dot is a round; the line is Hodges and Lehmann's estimate, the band its 95 % interval, the dashed line no difference.", all,
        { log: ratio, same: ratio ? 1 : 0, format }));
  });
}

function processTable(lab: Lab): HTMLElement {
  const shares = (all: Record<string, number>): string =>
    Object.entries(all).sort(([, a], [, b]) => b - a).slice(0, 4).map(([cpu, share]) => `CPU ${cpu} ${(share * 100).toFixed(0)} %`).join(", ") || "–";
  return table("With all that they started; loads are numbered from 0", ["scenario", "process", "median", "most", "bound to CPU", "ran on"],
    lab.scenarios.flatMap((scenario) => scenario.processes.map((process) =>
      [scenario.name, process.name, number(process.median), number(process.most), process.cpus ?? "–", shares(process.shares)])));
}

function pathTable(lab: Lab): HTMLElement {
  return table("Late, failed or incomplete trials", ["path", "scenario", "deadline", "criticality", "missed", "95 %"],
    (lab.scenarios[0]?.paths ?? []).flatMap((_, at) => lab.scenarios.flatMap((scenario) => {
      const path = scenario.paths[at];
      return path ? [[path.name, scenario.name, number(path.deadline), path.criticality, of(path.misses), gauge(path.misses)]] : [];
    })));
}

function scoreTable(lab: Lab): HTMLElement {
  const terms = lab.scenarios.find((scenario) => scenario.score)?.score?.terms ?? [];
  return table("Each term with its part of the sum", ["scenario", "sum", ...terms.map((term) => `${number(term.weight)} × ${term.metric}`), "ratio to baseline", "but"],
    lab.scenarios.flatMap(({ name, score }) => (score ? [[name, score.sum === null ? "–" : `${number(score.sum)} ${score.unit}`,
      ...score.terms.map((term) => (term.share === null ? bound(term.median) : h("span", { class: "with-bar" }, bar(term.share, "spread"), `${bound(term.median)}`))),
      score.ratio === null ? "–" : `× ${number(score.ratio)}`, score.vetoes.join("; ")]] : [])));
}

function troubles(all: { who: string; one: Misfortune }[]): HTMLElement | false {
  return all.length > 0 && section("What went wrong", h("ul", { class: "results" }, ...all.map(({ who, one }) =>
    h("li", {}, h("strong", {}, `${who}: ${one.trials} × ${one.status}. `), one.reason, one.logs !== "" && h("span", { class: "quiet" }, ` (${one.logs})`)))));
}

function successPlot(found: Broken): HTMLElement {
  const probes = found.probes;
  const { fine, broken } = found;
  const limits = [{ value: found.asked.success, label: `asked: ${(100 * found.asked.success).toFixed(0)} %` }];
  return chart({
    title: "Success by load", wide: true,
    finding: fine && broken ? `Proven fine up to ${number(fine.value)}, proven broken from ${number(broken.value)}.` : "An end of the answer stays open.",
    data: [probes.map((p) => p.value), probes.map((p) => p.success.k / Math.max(1, p.success.n)), probes.map((p) => p.success.low), probes.map((p) => p.success.high)],
    axes: { x: { label: found.asked.vary, log: true, tight: true, format: tick }, y: { label: "success", min: 0, max: 1, format: (v) => v.toFixed(1) } },
    series: [{ label: "share", kind: "line", marks: true }, { label: "95 %", kind: "line", dash: [3, 3], thin: true, color: 0, keys: ["95 %"] }, { label: "95 %", kind: "line", dash: [3, 3], thin: true, color: 0, keys: ["95 %"] }],
    limits,
    describe: (i) => { const p = probes[i]; return p ? `${found.asked.vary} ${number(p.value)}: ${of(p.success)} (${span(p.success)}), ${p.proven ?? "open"}` : ""; },
    table: table("success by load", [found.asked.vary, "success", "95 %"], probes.map((p) => [number(p.value), of(p.success), span(p.success)]), true),
  });
}

/** What the load came to where it was asked for: the answer is no better than its load. */
function achievedPlot(found: Broken): HTMLElement | false {
  const probes = found.probes.filter((p) => p.achieved !== null && p.achieved > 0);
  return probes.length > 1 && chart({
    title: `Load reached (${found.unit})`, wide: true,
    finding: "Where the curve bends away from a straight line the machine, and not the system, is at its end.",
    data: [probes.map((p) => p.value), probes.map((p) => p.achieved)],
    axes: { x: { label: found.asked.vary, log: true, tight: true, format: tick }, y: { label: found.unit, log: true, format: tick } },
    series: [{ label: "median", kind: "line", marks: true, color: 1 }],
    describe: (i) => { const p = probes[i]; return p ? `${found.asked.vary} ${number(p.value)}: ${number(p.achieved)} ${found.unit}` : ""; },
    table: table("load reached", [found.asked.vary, found.unit], probes.map((p) => [number(p.value), number(p.achieved)]), true),
  });
}
