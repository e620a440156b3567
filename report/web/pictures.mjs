// Pictures of report pages for docs/howto/reading-a-report.md: what is seen of each page without scrolling, as WebP.
//   node pictures.mjs TAUT RECORDINGS OUT
// RECORDINGS holds teleop.mcap, ros2.mcap, unmodified.mcap, bag.mcap, hosts.mcap, damaged.mcap, before.mcap and after.mcap.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { open } from "./browser.mjs";

const PAGES = [["teleop"], ["ros2"], ["unmodified"], ["bag"], ["before", "after"], ["hosts"], ["damaged"]];
const DESK = { width: 1280, height: 1000 };
const PHONE = { width: 390, height: 844, dark: true };
// On a phone a page is the same: two are enough to see that.
const ON_PHONES = ["teleop", "unmodified"];
const MOST_BYTES = 150_000;

const [taut, recordings, out] = process.argv.slice(2).map((path) => resolve(path));
mkdirSync(out, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "taut-pictures-"));

async function picture(path, name, { width, height, dark }) {
  const { browser, page, trouble } = await open(path, { width, height, dark });
  if (trouble.length > 0) throw new Error(`${name}: ${trouble.join("; ")}`);
  const client = await page.context().newCDPSession(page);
  const clip = { x: 0, y: 0, width, height, scale: width > 1000 ? 0.75 : 1 };
  const { data } = await client.send("Page.captureScreenshot", { format: "webp", quality: 70, clip });
  await browser.close();
  const file = join(out, `${name}.webp`);
  writeFileSync(file, Buffer.from(data, "base64"));
  const { size } = statSync(file);
  if (size > MOST_BYTES) throw new Error(`${file} has ${size} bytes, more than ${MOST_BYTES}`);
  console.log(`${file}: ${size} bytes`);
}

try {
  for (const names of PAGES) {
    const name = names.length > 1 ? "comparison" : names[0];
    const page = join(scratch, `${name}.html`);
    const { status, stderr } = spawnSync(taut, ["report", ...names.map((of) => `${of}.mcap`), "--format", "html", "-o", page], { cwd: recordings });
    // 5: finished, and data was damaged.
    if (status !== 0 && status !== 5) throw new Error(`${name}: ${stderr}`);
    await picture(page, name, DESK);
    if (ON_PHONES.includes(name)) await picture(page, `${name}-phone`, PHONE);
  }
} finally {
  rmSync(scratch, { recursive: true });
}
