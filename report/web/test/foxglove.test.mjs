// A recording through the parsers that Foxglove itself reads with: its MCAP reader, its ros2msg parser, its CDR reader; and
// whether the layout's paths lead to numbers. `cargo test -p taut-report` writes the sample.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { after, before, test } from "node:test";
import { parse } from "@foxglove/rosmsg";
import { MessageReader } from "@foxglove/rosmsg2-serialization";
import * as zstd from "@foxglove/wasm-zstd";
import { McapIndexedReader } from "@mcap/core";

const path = new URL("../../../target/sample-telemetry.mcap", import.meta.url).pathname;

let file, reader;
const messages = new Map();

before(async () => {
  assert.ok(existsSync(path), `${path} is missing: run cargo test -p taut-report first`);
  await zstd.isLoaded;
  file = await open(path);
  const readable = {
    size: async () => BigInt((await file.stat()).size),
    read: async (offset, length) => (await file.read(new Uint8Array(Number(length)), 0, Number(length), Number(offset))).buffer,
  };
  const decompressHandlers = { zstd: (bytes, size) => zstd.decompress(bytes, Number(size)) };
  reader = await McapIndexedReader.Initialize({ readable, decompressHandlers });
  const decoders = new Map();
  for (const { id, topic, schemaId, messageEncoding } of reader.channelsById.values()) {
    const schema = reader.schemasById.get(schemaId);
    assert.deepEqual([messageEncoding, schema?.encoding], ["cdr", "ros2msg"], topic);
    decoders.set(id, new MessageReader(parse(new TextDecoder().decode(schema.data), { ros2: true })));
    messages.set(topic, []);
  }
  // Its player asks for the messages in the order of time, of the topics shown.
  const topics = ["/telemetry/leg", "/value/leg1.knee"];
  for await (const { channelId, sequence, logTime, data } of reader.readMessages({ topics })) {
    const { topic } = reader.channelsById.get(channelId);
    messages.get(topic).push({ sequence, logTime, message: decoders.get(channelId).readMessage(data) });
  }
});
after(() => file?.close());

test("every channel has a schema that parses, and an index", () => {
  assert.ok(reader.channelsById.size > 2, "the raw channels too");
  assert.ok(reader.chunkIndexes.length > 0 && reader.statistics.channelMessageCounts.size >= 2);
});

test("every message decodes to what was written", () => {
  const legs = messages.get("/telemetry/leg");
  assert.equal(legs.length, 100);
  for (const [cycle, { sequence, logTime, message }] of legs.entries()) {
    assert.equal(sequence, cycle);
    assert.equal(logTime, 1_700_000_000_000_000_000n + BigInt(cycle) * 2_500_000n);
    const { cycle: told, joint, contact, state, force } = message;
    assert.deepEqual([told, state, [...contact], [...force]], [BigInt(cycle), "trot", [cycle % 2 === 1, false, false, false], [0, 0, 0 - cycle]]);
    assert.deepEqual(joint.map((j) => [j.position, j.torque, j.mode]), [[0, 0, 0], [cycle / 4, cycle / 8, 10]]);
  }
});

test("every path of the layout leads to a number", () => {
  const layout = JSON.parse(readFileSync(path.replace(".mcap", ".foxglove.json"), "utf8"));
  const paths = Object.values(layout.configById).flatMap((panel) => panel.paths.map(({ value }) => value));
  assert.ok(paths.includes("/telemetry/leg.joint[1].position") && paths.includes("\"/value/leg1.knee\".value"), paths.join(" "));
  for (const value of paths) {
    // A message path: the topic, in quotes if it has special characters, and fields.
    const [, quoted, plain, fields] = /^(?:"([^"]+)"|([\w/-]+))\.(.+)$/.exec(value) ?? [];
    const { message } = messages.get(quoted ?? plain).at(-1);
    const found = fields.replace(/\[(\d+)\]/g, ".$1").split(".").reduce((at, name) => at?.[name], message);
    assert.ok(["number", "bigint", "boolean"].includes(typeof found), `${value}: ${found}`);
  }
});
