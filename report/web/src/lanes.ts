// The worst messages on the lanes of their threads: what each thread did, and the critical path on top.
// Wheel or +/− zooms, dragging moves, arrow keys walk along the path, 0 shows all again.

import { family } from "./causes";
import type { Chain, MessagePath } from "./data";
import { h, table } from "./dom";
import * as f from "./format";

const ROW = 34;
const TOP = 20;
const svg = (tag: string, attributes: Record<string, string | number>, text = ""): SVGElement => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text) element.textContent = text;
  return element;
};

export function worstMessages(chain: Chain): HTMLElement | string {
  const paths = chain.worst ?? [];
  if (paths.length === 0 || paths.every((path) => path.path.every((piece) => piece.cause === "unknown"))) return "";
  const stage = h("div", { class: "stage" });
  const list = h("ol", { class: "worst", role: "listbox", tabindex: "0", "aria-label": "Worst messages; up and down choose one" });
  const options = paths.map((path) => {
    const most = path.causes[0];
    const option = h("li", { role: "option" }, h("b", {}, `${path.id}`), ` ${f.duration(path.total_ns)} `,
      h("span", { class: "quiet" }, most ? `${most.cause} ${f.percent(most.time_ns / Math.max(1, path.total_ns))}` : ""));
    list.append(option);
    return option;
  });
  let at = 0;
  const choose = (to: number): void => {
    at = Math.max(0, Math.min(paths.length - 1, to));
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    const path = paths[at];
    if (path) stage.replaceChildren(lanes(chain, path));
  };
  options.forEach((option, i) => option.addEventListener("click", () => choose(i)));
  list.addEventListener("keydown", (event) => {
    const to = ({ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: paths.length - 1 } as Record<string, number>)[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  choose(0);
  return h("div", { class: "messages" }, list, stage);
}

function lanes(chain: Chain, message: MessagePath): HTMLElement {
  const start = message.start_ns;
  const end = start + message.total_ns;
  const margin = message.total_ns / 20;
  let [from, to] = [start - margin, end + margin];
  let piece = -1;
  const height = TOP + ROW * message.lanes.length + 18;
  const drawing = svg("svg", { class: "lanes", height, width: "100%" });
  const box = h("div", {
    class: "plot lane-plot", tabindex: "0", role: "img",
    "aria-label": `Message ${message.id} on ${message.lanes.length} threads. Arrow keys walk along its path, plus and minus zoom, 0 shows all.`,
  });
  const live = h("p", { class: "readout", "aria-live": "polite" }, "");
  const hopName = (hop: number): string => { const x = chain.hops[hop]; return x ? f.hopName(x.from, x.to).join(" → ") : ""; };
  const words = (i: number): string => {
    const p = message.path[i];
    if (!p) return "";
    const what = [p.detail, p.note].filter((text) => text !== "").join("; ");
    return `+${f.duration((p.from_ns - start) as typeof message.total_ns)}: ${f.duration((p.to_ns - p.from_ns) as typeof message.total_ns)} ${p.cause}${what ? ` (${what})` : ""} in ${message.lanes[p.lane]?.thread ?? "?"}, ${hopName(p.hop)}`;
  };

  const draw = (): void => {
    const width = Math.max(240, box.clientWidth);
    const x = (ns: number): number => ((ns - from) / (to - from)) * width;
    const rect = (a: number, b: number, y: number, tall: number, kind: string, text: string): SVGElement | null => {
      const [left, right] = [Math.max(-2, x(a)), Math.min(width + 2, x(b))];
      if (right < 0 || left > width) return null;
      const element = svg("rect", { x: left, y, width: Math.max(0.7, right - left), height: tall, class: kind });
      element.append(svg("title", {}, text));
      return element;
    };
    const parts: (SVGElement | null)[] = [];
    message.lanes.forEach((lane, i) => {
      const y = TOP + ROW * i;
      for (const [a, b, state] of lane.states) {
        parts.push(rect(a, b, y + (state === "blocked" ? 13 : 9), state === "blocked" ? 2 : 10, `s-${state}`, `${lane.thread}: ${state} ${f.duration((b - a) as typeof message.total_ns)}`));
      }
    });
    message.path.forEach((p, i) => {
      parts.push(rect(p.from_ns, p.to_ns, TOP + ROW * p.lane + 4, 20, `c-${family(p.cause)}${i === piece ? " chosen" : ""}`, words(i)));
      const wide = x(p.to_ns) - x(p.from_ns);
      if (wide > 9 * p.cause.length) parts.push(svg("text", { x: Math.max(2, x(p.from_ns) + 4), y: TOP + ROW * p.lane + 18, class: "on-piece" }, p.cause));
    });
    let free = -1;
    for (const [point, ns] of message.passes) {
      const left = x(ns);
      if (left < 0 || left > width) continue;
      parts.push(svg("line", { x1: left, x2: left, y1: TOP - 6, y2: height - 16, class: "pass" }));
      const name = chain.points[point]?.name.split(".").at(-1) ?? "";
      if (left > free && left + 6.5 * name.length < width) { parts.push(svg("text", { x: left + 2, y: TOP - 8, class: "pass-name" }, name)); free = left + 7 * name.length; }
    }
    message.lanes.forEach((lane, i) => parts.push(svg("text", { x: 4, y: TOP + ROW * i + 3, class: "lane-name" }, lane.thread)));
    const ticks = 5;
    for (let i = 0; i <= ticks; i++) {
      const ns = from + ((to - from) * i) / ticks;
      parts.push(svg("text", { x: (width * i) / ticks, y: height - 3, "text-anchor": i === 0 ? "start" : i === ticks ? "end" : "middle", class: "pass-name" }, f.duration((ns - start) as typeof message.total_ns)));
    }
    drawing.replaceChildren(...parts.filter((part) => part !== null));
  };
  const zoom = (factor: number, around: number): void => {
    const least = 1000;
    const span = Math.max(least, Math.min((end - start) * 1.2, (to - from) * factor));
    const share = (around - from) / (to - from);
    from = around - span * share;
    to = from + span;
    draw();
  };
  const choose = (to_: number): void => {
    piece = Math.max(0, Math.min(message.path.length - 1, to_));
    const p = message.path[piece];
    if (p && (p.from_ns < from || p.to_ns > to)) {
      const span = to - from;
      from = (p.from_ns + p.to_ns) / 2 - span / 2;
      to = from + span;
    }
    live.textContent = words(piece);
    draw();
  };
  box.addEventListener("keydown", (event) => {
    const middle = piece >= 0 ? ((message.path[piece]?.from_ns ?? 0) + (message.path[piece]?.to_ns ?? 0)) / 2 : (from + to) / 2;
    const actions: Record<string, () => void> = {
      ArrowRight: () => choose(piece + 1), ArrowLeft: () => choose(piece - 1), Home: () => choose(0), End: () => choose(message.path.length - 1),
      "+": () => zoom(0.5, middle), "=": () => zoom(0.5, middle), "-": () => zoom(2, middle),
      "0": () => { [from, to] = [start - margin, end + margin]; draw(); },
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  box.addEventListener("wheel", (event) => {
    event.preventDefault();
    const share = (event.clientX - box.getBoundingClientRect().left) / Math.max(1, box.clientWidth);
    zoom(event.deltaY > 0 ? 1.25 : 0.8, from + share * (to - from));
  }, { passive: false });
  let grabbed: number | null = null;
  box.addEventListener("pointerdown", (event) => { grabbed = event.clientX; box.setPointerCapture(event.pointerId); });
  box.addEventListener("pointerup", () => { grabbed = null; });
  box.addEventListener("pointermove", (event) => {
    if (grabbed === null) return;
    const shift = ((grabbed - event.clientX) / Math.max(1, box.clientWidth)) * (to - from);
    [from, to, grabbed] = [from + shift, to + shift, event.clientX];
    draw();
  });
  box.append(drawing);
  new ResizeObserver(draw).observe(box);
  const share = (ns: number): string => f.percent(ns / Math.max(1, message.total_ns));
  return h("figure", {},
    h("h3", {}, `Message ${message.id}: ${f.duration(message.total_ns)}`),
    h("p", { class: "finding" }, message.causes.slice(0, 4).map((b) => `${b.cause}${b.detail ? ` ${b.detail}` : ""} ${share(b.time_ns)}`).join(", ")),
    box, live,
    table("its critical path", ["at (µs)", "µs", "cause", "thread", "hop", ""], message.path.map((p) => [
      ((p.from_ns - start) / 1e3).toFixed(1), ((p.to_ns - p.from_ns) / 1e3).toFixed(1), p.cause, message.lanes[p.lane]?.thread ?? "", hopName(p.hop),
      [p.detail, p.note].filter((text) => text !== "").join("; "),
    ]), true));
}
