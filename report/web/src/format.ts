// All numbers become text here.

import type { Ns } from "./data";

export function duration(ns: Ns | null): string {
  if (ns === null) return "–";
  const a = Math.abs(ns);
  const [value, unit] = a < 1e3 ? [ns, "ns"] : a < 999.5e3 ? [ns / 1e3, "µs"] : a < 999.5e6 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  const digits = unit === "ns" ? 0 : Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
  return `${Math.abs(value) >= 1e4 ? count(value) : value.toFixed(digits)}\u202f${unit}`;
}

/** For columns headed "ms": small figures keep their digits. */
export function milliseconds(ns: Ns | null): string {
  if (ns === null) return "–";
  if (ns === 0) return "0";
  return (ns / 1e6).toFixed(ns < 10_000 ? 4 : ns < 100_000_000 ? 3 : 1);
}

/** For columns headed "µs": three digits, thousands grouped. */
export function microseconds(ns: Ns | null): string {
  if (ns === null) return "–";
  if (ns === 0) return "0";
  return ns >= 999_950 ? count(ns / 1e3) : (ns / 1e3).toFixed(ns < 9_995 ? 2 : 1);
}

/** A length as one would type it: "1 s", "100 µs". */
export function length(ns: Ns): string {
  return duration(ns).replace(/\.?0+(?=\u202f)/, (zeros) => (zeros.startsWith(".") ? "" : zeros));
}

export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function percent(share: number): string {
  const p = share * 100;
  return p === 0 ? "0\u202f%" : p < 0.1 ? "<0.1\u202f%" : `${p.toFixed(1)}\u202f%`;
}

/** A factor between two figures. */
export function ratio(factor: number): string {
  return `×${factor.toFixed(factor < 9.995 ? 2 : factor < 99.95 ? 1 : 0)}`;
}

/** A predicted gain as the change it is. */
export function change(gain: number): string {
  return gain === 0 ? "±0\u202f%" : `${gain > 0 ? "−" : "+"}${percent(Math.abs(gain))}`;
}

/** A value of no known unit. */
export function figure(value: number): string {
  return Number(value.toPrecision(4)).toString();
}

export function bytes(n: number): string {
  return n < 1e6 ? `${(n / 1e3).toFixed(1)}\u202fkB` : `${(n / 1e6).toFixed(1)}\u202fMB`;
}

/** A quantile by its name: 0.99 → "p99", 0.9990 → "p99.9". */
export function quantile(q: number): string {
  return `p${Number((q * 100).toPrecision(Math.max(3, 2 - Math.floor(Math.log10(1 - q)) + 1)))}`;
}

/** The word as a shell reads it back. */
export function shell(words: string[]): string {
  return words.map((w) => (/^[\w\-./=:,@%+]+$/.test(w) ? w : `'${w.replaceAll("'", `'\\''`)}'`)).join(" ");
}

/** "a.b → a.c" loses the prefix that both share. */
export function hopName(from: string, to: string): [string, string] {
  const dot = from.indexOf(".") + 1;
  return dot > 0 && to.startsWith(from.slice(0, dot)) ? [from, to.slice(dot)] : [from, to];
}
