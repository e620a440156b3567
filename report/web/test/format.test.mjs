import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";

const { outputFiles } = await build({ entryPoints: [new URL("../src/format.ts", import.meta.url).pathname], bundle: true, format: "esm", write: false });
const f = await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
const plain = (text) => text.replaceAll("\u202f", " ");

test("durations keep three digits", () => {
  assert.deepEqual([740, 1060, 999_600, 12_345_678, 2.5e9].map(f.duration).map(plain), ["740 ns", "1.06 µs", "1.00 ms", "12.3 ms", "2.50 s"]);
  assert.equal(plain(f.duration(8e18)), "8 000 000 000 s");
});

test("counts are grouped, shares never round to nothing", () => {
  assert.equal(plain(f.count(1234567)), "1 234 567");
  assert.deepEqual([0, 0.0001, 0.712].map(f.percent).map(plain), ["0 %", "<0.1 %", "71.2 %"]);
});

test("quantiles have their names", () => {
  assert.deepEqual([0, 0.5, 0.9, 0.99, 0.999, 0.9999].map(f.quantile), ["p0", "p50", "p90", "p99", "p99.9", "p99.99"]);
});
