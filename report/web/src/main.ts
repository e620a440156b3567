// A recording's page, top to bottom; the others have files of their own.

import { causeSection } from "./causes";
import type { Chain, Report } from "./data";
import { drawCharts } from "./document";
import { h, section } from "./dom";
import * as f from "./format";
import { worstMessages } from "./lanes";
import { loopSection } from "./loops";
import { histogramPlot, percentilePlot, timePlot } from "./plots";
import { flameGraph } from "./profile";
import { rosSections } from "./ros";
import { signalSection } from "./signals";
import { delayTable, histogramTable, hopTable, measured, outcomeFunnel, pointTable } from "./tables";
import { telemetrySection } from "./telemetry";

function chainSections(chain: Chain): HTMLElement {
  const started = chain.startup && h("p", { class: "aside" }, h("strong", {}, "Start-up apart: "), chain.startup.sentence, ".");
  const deadline = chain.deadline_ns !== null && h("p", { class: "aside" },
    h("strong", {}, `Deadline ${f.duration(chain.deadline_ns)}: `), `${f.count(chain.missed ?? 0)} of ${f.count(chain.end_to_end.n)} messages missed it.`);
  const branches = chain.branches.length > 0 && h("p", { class: "aside" }, h("strong", {}, "Beside the line: "),
    chain.branches.map((b) => `${b.point} after ${b.after} (${f.count(b.messages)} messages)`).join(", "), ".");
  const plots = chain.end_to_end.n > 1
    ? h("div", { class: "plots" }, percentilePlot([{ name: chain.name, chain }]), histogramPlot(chain), timePlot(chain))
    : h("p", { class: "aside" }, "Too few messages went all the way for a plot.");
  return h("article", {},
    h("h1", { class: "chain" }, chain.name),
    section("How late", delayTable(chain), deadline, started, plots),
    section("Which hop", hopTable(chain), branches),
    section("Causes", causeSection(chain), worstMessages(chain)),
    section("Where the messages ended", outcomeFunnel(chain)),
    section("Rate and period", pointTable(chain.points)));
}

/** How the recording came to be; of one that was imported, its source has another name. */
function origin({ name, recording: { command, hosts } }: Report): string {
  if (hosts[0]?.facts.imported_from !== undefined) return "";
  return `taut record -o ${f.shell([name])}${command.length > 0 ? ` -- ${f.shell(command)}` : " --pid PID"}\n`;
}

function page(report: Report, at: number): HTMLElement {
  const r = report.recording;
  const isUnmodified = report.chains.every((chain) => chain.source === "wakes");
  const warn = [...report.damage.map((text) => `Damaged: ${text}.`), ...report.notes];
  return h("div", { class: "report", id: `recording-${at + 1}` },
    h("header", {},
      h("p", { class: "kicker" }, h("b", {}, "taut"), ` ${report.name} · ${r.duration_s.toFixed(1)} s · ${r.stamps === 0 && r.ros_events > 0 ? `${f.count(r.ros_events)} ROS 2 events` : `${f.count(r.stamps)} stamps`} · ${r.tier} tier`),
      h("p", { class: "headline" }, report.headline),
      warn.length > 0 && h("ul", { class: "notes" }, ...warn.map((text) => h("li", {}, text)))),
    isUnmodified && loopSection(report),
    ...report.chains.map(chainSections),
    !isUnmodified && loopSection(report),
    ...rosSections(report),
    report.points.length > 0 && section("Points of no chain", pointTable(report.points)),
    report.histograms.length > 0 && section("Distributions without messages", histogramTable(report.histograms)),
    signalSection(report),
    telemetrySection(report),
    report.profile && section("Where CPU time went", flameGraph(report.profile, report.name)),
    report.next_step && h("p", { class: "aside" }, h("strong", {}, "Next: "), report.next_step, "."),
    section("How this was measured", measured(report)),
    section("Reproduce", h("pre", {}, `${origin(report)}taut report ${f.shell([report.name])} --format html -o report.html`)));
}

const reports = JSON.parse(document.getElementById("data")?.textContent ?? "[]") as Report[];
document.getElementById("report")?.append(...reports.map(page));
drawCharts();
