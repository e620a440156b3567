// The pages of a lab in a real browser, from the samples that `cargo test -p taut-report` writes.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { open } from "../browser.mjs";

const at = (name) => new URL(`../../../target/${name}.html`, import.meta.url).pathname;
const sessions = [];

before(() => ["lab", "lab-break"].forEach((name) => assert.ok(existsSync(at(name)), `${at(name)} is missing: run cargo test -p taut-report first`)));
after(() => Promise.all(sessions.map(({ browser }) => browser.close())));

async function opened(options, name = "lab") {
  const session = await open(at(name), options);
  sessions.push(session);
  return session;
}

test("both pages draw without errors and without the network, in light and dark", async () => {
  for (const dark of [false, true]) {
    const { page, trouble } = await opened({ dark });
    assert.equal(await page.locator("svg.drawn").count(), 4);
    const search = await opened({ dark }, "lab-break");
    assert.equal(await search.page.locator("figure canvas").count(), 2);
    assert.deepEqual([...trouble, ...search.trouble], []);
  }
});

test("every status that occurred is counted, and no other", async () => {
  const { page } = await opened();
  const trials = await page.locator("table", { hasText: "only baseline" }).locator("tbody tr").allTextContents();
  assert.match(trials[1], /flood.*6.success, 2.planning_failed/);
  assert.ok(!trials.some((row) => /timeout|execution_failed/.test(row)));
  assert.match(await page.locator(".findings").textContent(), /2 × planning_failed: no plan/);
});

test("the differences to the baseline have a dot for each round, a band of failures, and a line of no difference", async () => {
  const { page } = await opened();
  const rounds = page.locator("figure", { has: page.getByRole("heading", { name: "Against none, round by round" }) }).first();
  const { dots, band, same, estimate } = await rounds.locator("svg").evaluate((svg) => ({
    dots: [...svg.querySelector("path.points").getAttribute("d").matchAll(/M(-?\d+) /g)].map(([, x]) => Number(x)),
    band: svg.querySelector(".band").x.baseVal.value,
    same: svg.querySelector("line.limit").x1.baseVal.value,
    estimate: svg.querySelector("circle.dot").cx.baseVal.value,
  }));
  assert.equal(dots.length, 8);
  assert.equal(dots.filter((x) => x > band).length, 2);
  // Twice the time: the estimate stands right of the line of no difference.
  assert.ok(estimate > same);
  assert.match(await page.locator("table", { hasText: "against baseline" }).first().textContent(), /× 2 \(2 … failed\)/);
});

test("processes are told with the CPUs that they ran on", async () => {
  const { page } = await opened();
  const rows = await page.locator("table", { hasText: "bound to CPU" }).locator("tbody tr").allTextContents();
  assert.ok(rows.some((row) => /robot/.test(row) && /CPU 1 100 %/.test(row)), rows.join("\n"));
});

test("nothing is wider than a narrow page", async () => {
  for (const name of ["lab", "lab-break"]) {
    const { page } = await opened({ width: 390 }, name);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }
});
