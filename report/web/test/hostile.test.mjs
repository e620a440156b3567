// Pages with hostile names in a real browser: they run nothing and add no element. `cargo test -p taut-report` writes them.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { open } from "../browser.mjs";

const target = new URL("../../../target/", import.meta.url).pathname;
const pages = readdirSync(target).filter((name) => /^hostile-.*\.html$/.test(name));

test("there are such pages", () => assert.ok(pages.length >= 12, "run cargo test -p taut-report first"));

for (const name of pages) {
  test(`${name} shows names as text`, async () => {
    const dialogs = [];
    const { browser, page, trouble } = await open(target + name);
    page.on("dialog", (dialog) => { dialogs.push(dialog.message()); dialog.dismiss(); });
    await page.reload();
    await page.waitForTimeout(200);
    const found = await page.evaluate(() => ({
      foreign: document.querySelectorAll("main script:not([type='application/json']), main img[src=x], head img, main style, main iframe").length,
      handlers: [...document.querySelectorAll("*")].filter((e) => [...e.attributes].some((a) => a.name.startsWith("on"))).length,
      text: document.querySelector("main").textContent.includes("alert(1)"),
    }));
    await browser.close();
    assert.deepEqual(dialogs, []);
    assert.deepEqual(trouble, []);
    assert.deepEqual(found, { foreign: 0, handlers: 0, text: true });
  });
}
