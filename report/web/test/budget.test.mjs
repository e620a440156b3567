// The page of a cycle budget in a real browser, from the samples that `cargo test -p taut-report` writes.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { open } from "../browser.mjs";

const path = (name) => new URL(`../../../target/budget-${name}.html`, import.meta.url).pathname;
const sessions = [];

before(() => assert.ok(existsSync(path("parallel")), `${path("parallel")} is missing: run cargo test -p taut-report first`));
after(() => Promise.all(sessions.map(({ browser }) => browser.close())));

async function opened(name, options) {
  const session = await open(path(name), options);
  sessions.push(session);
  return session;
}

test("it draws without errors and without the network, in light and dark", async () => {
  for (const [name, dark] of [["parallel", false], ["parallel", true], ["answers", false]]) {
    const { page, trouble } = await opened(name, { dark });
    assert.equal(await page.locator("figure canvas").count(), 1);
    assert.deepEqual(trouble, []);
  }
});

test("each resource is a bar as long as its work, on one axis with the period", async () => {
  const { page } = await opened("parallel");
  const drawing = page.locator("figure.lanes svg.drawn");
  assert.equal(await drawing.locator("text.row").count(), 5);
  const ends = await drawing.evaluate((svg) => {
    const end = (rect) => rect.x.baseVal.value + rect.width.baseVal.value;
    const rows = new Map();
    for (const rect of svg.querySelectorAll("rect.piece")) rows.set(rect.y.baseVal.value, Math.max(rows.get(rect.y.baseVal.value) ?? 0, end(rect)));
    return { rows: [...rows.values()], moments: [...svg.querySelectorAll("line.moment")].map((line) => line.x1.baseVal.value) };
  });
  // The longest ends where the cycle does, and that is before its period.
  const [cycle, period] = ends.moments;
  assert.ok(Math.abs(Math.max(...ends.rows) - cycle) < 1, JSON.stringify(ends));
  assert.ok(period === undefined || cycle < period);
  const busy = await page.locator("table", { hasText: "slack" }).locator("tbody tr").count();
  assert.equal(busy, 5);
});

test("fits are said and marked", async () => {
  const { page } = await opened("answers");
  assert.match(await page.locator("main > p", { hasText: "Fitted" }).textContent(), /Fitted, so that the total comes out: the rest of the host 17\.0 µs/);
  assert.equal(await page.locator("figure.lanes .piece.undecided").count(), 1);
});

test("nothing is wider than a narrow page", async () => {
  for (const name of ["parallel", "answers"]) {
    const { page } = await opened(name, { width: 400 });
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= window, `${name}: ${wide} of ${window}`);
  }
});
