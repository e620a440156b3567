// All numbers become text here.

export function duration(ns: number): string {
  const a = Math.abs(ns);
  const [value, unit] = a < 1e3 ? [ns, "ns"] : a < 999.5e3 ? [ns / 1e3, "µs"] : a < 999.5e6 ? [ns / 1e6, "ms"] : [ns / 1e9, "s"];
  const digits = unit === "ns" ? 0 : Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2;
  return `${Math.abs(value) >= 1e4 ? count(value) : value.toFixed(digits)}\u202f${unit}`;
}

/** A length as one would type it: "1 s", "100 µs". */
export function length(ns: number): string {
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
