// The page of a guard replay in a real browser, from the sample that `cargo test -p taut-report` writes.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { open } from "../browser.mjs";

const path = new URL("../../../target/guard-replay.html", import.meta.url).pathname;
const sessions = [];

before(() => assert.ok(existsSync(path), `${path} is missing: run cargo test -p taut-report first`));
after(() => Promise.all(sessions.map(({ browser }) => browser.close())));

async function opened(options) {
  const session = await open(path, options);
  sessions.push(session);
  return session;
}

test("it draws without errors and without the network, in light and dark", async () => {
  for (const dark of [false, true]) {
    const { page, trouble } = await opened({ dark });
    assert.equal(await page.locator("figure canvas").count(), 1);
    assert.deepEqual(trouble, []);
  }
});

test("every run has its series and its trips, and one switch for both", async () => {
  const { page } = await opened();
  const runs = page.locator("table", { hasText: "stale" }).locator("tbody");
  const names = await runs.locator("th").allTextContents();
  assert.deepEqual(await page.locator(".legend button").allTextContents(), names);
  const [ours, naive] = await runs.locator("tr").allTextContents();
  assert.match(ours, /^taut guard/);
  assert.match(naive, /^Δp\/Δt, arrival, 1\/1/);
});

test("trips are told with their proof", async () => {
  const { page } = await opened();
  const trips = page.locator("table:has(th:text-is('trip'))");
  assert.match(await trips.first().textContent(), /OVERSPEED: the measured speed, 1\.\d\d of the limit\. .* by samples that came at/);
  assert.match(await trips.nth(1).textContent(), /False: the true speed was below the limit\./);
});

test("nothing is wider than a narrow page", async () => {
  const { page } = await opened({ width: 390 });
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
});
