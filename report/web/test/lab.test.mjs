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
    assert.ok(await page.locator(".strip .shot").count() > 30);
    const search = await opened({ dark }, "lab-break");
    assert.ok(await search.page.locator("article canvas").count() >= 1);
    assert.deepEqual([...trouble, ...search.trouble], []);
  }
});

test("every status that occurred has its column, and no other", async () => {
  const { page } = await opened();
  const head = await page.locator("section:has(h2:text-is('How the trials ended')) thead th").allTextContents();
  assert.deepEqual(head.slice(0, 3), ["scenario", "success", "planning_failed"]);
  assert.ok(!head.includes("execution_failed") && !head.includes("timeout"));
  assert.match(await page.locator(".results").textContent(), /flood: 2 × planning_failed\. no plan/);
});

test("the differences to the baseline have a dot for each round, a band, and a line of no difference", async () => {
  const { page } = await opened();
  const data = JSON.parse(await page.locator("#data").textContent())[0];
  const against = page.locator("section:has(h2:has-text('ask_ms')) .against");
  const row = against.locator(".strip").first();
  assert.equal(await row.locator(".shot").count(), data.differences.ask_ms.flood.length);
  assert.equal(await row.locator(".shot.bad").count(), 2);
  const left = (selector) => row.locator(selector).evaluate((element) => element.getBoundingClientRect().left);
  // Twice the time: the estimate stands right of the line of no difference.
  assert.ok(await left(".middle") > await left(".same"));
  assert.match(await row.locator(".track").getAttribute("aria-label"), /flood against none: × 2 \(2 … failed\), 8 rounds/);
});

test("processes are told with the CPUs that they ran on", async () => {
  const { page } = await opened();
  const rows = await page.locator("section:has(h2:text-is('CPUs that processes kept busy')) tbody tr").allTextContents();
  assert.ok(rows.some((row) => /robot/.test(row) && /CPU 1 100 %/.test(row)), rows.join("\n"));
});

test("nothing is wider than a narrow page", async () => {
  for (const name of ["lab", "lab-break"]) {
    const { page } = await opened({ width: 390 }, name);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }
});
