// `taut telemetry --live` through the client that Foxglove's own protocol package has: what is logged arrives, whole and in order,
// while it is recorded; and who comes too late, or is too slow, is told.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parse } from "@foxglove/rosmsg";
import { MessageReader } from "@foxglove/rosmsg2-serialization";
import protocol from "@foxglove/ws-protocol";
import WebSocket from "ws";

const { FoxgloveClient } = protocol;
const venv = new URL("../../../.venv/bin/", import.meta.url).pathname;
// So many messages each 10 ms, until its input ends.
const LOOP = `
import sys, threading
import taut
from taut.telemetry import Channel

each = int(sys.argv[1])
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
log = Channel("quad", [("cycle", "u8"), ("torque", "f8", (500,))], rate_hz=100 * each)
cycle = 0
while not over.wait(0.01):
    for _ in range(each):
        log.row["cycle"] = cycle
        log.row["torque"][-1] = cycle / 2
        log.write()
        taut.value("knee", cycle / 4)
        cycle += 1
`;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const running = new Set();
let folder;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "taut-live-test-"));
  writeFileSync(join(folder, "loop.py"), LOOP);
});
after(() => {
  for (const child of running) child.kill();
  rmSync(folder, { recursive: true });
});

function start(words, stdio) {
  const child = spawn(`${venv}taut`, words, { stdio });
  running.add(child);
  child.ended = new Promise((resolve) => child.on("exit", resolve));
  child.ended.then(() => running.delete(child));
  return child;
}

async function record(name, each) {
  const run = join(folder, name);
  const recorder = start(["record", "-q", "--tier", "stamps", "-o", run, "--", `${venv}python`, join(folder, "loop.py"), each], ["pipe", "inherit", "inherit"]);
  while (!existsSync(run)) await sleep(20);
  return { run, recorder };
}

// Starts it; the address is known once it listens.
async function live(run) {
  const server = start(["telemetry", run, "--live", "127.0.0.1:0"], ["ignore", "ignore", "pipe"]);
  server.said = "";
  server.address = await new Promise((resolve, reject) => {
    server.stderr.setEncoding("utf8").on("data", (text) => {
      server.said += text;
      // With the semicolon behind it: a line may come in pieces.
      const [, address] = /(ws:\/\/[\d.:]+);/.exec(server.said) ?? [];
      if (address) resolve(address);
    });
    server.stderr.on("close", () => reject(new Error(server.said)));
  });
  return server;
}

function connect(server) {
  const socket = new WebSocket(server.address, ["foxglove.sdk.v1"]);
  return { socket, client: new FoxgloveClient({ ws: socket }) };
}

test("what is logged comes as it is recorded, and the end is told", async () => {
  const { run, recorder } = await record("run.mcap", 1);
  const server = await live(run);
  const { client } = connect(server);
  const channels = new Map();
  const cycles = [], knees = [], told = [];
  let info;
  client.on("serverInfo", (event) => (info = event));
  client.on("status", ({ message }) => told.push(message));
  client.on("advertise", (advertised) => {
    for (const { id, topic, encoding, schemaName, schema, schemaEncoding } of advertised) {
      assert.deepEqual([encoding, schemaEncoding], ["cdr", "ros2msg"]);
      channels.set(client.subscribe(id), { topic, schemaName, reader: new MessageReader(parse(schema, { ros2: true })) });
    }
  });
  const closed = new Promise((resolve) => client.on("close", resolve));
  const enough = new Promise((resolve) => {
    client.on("message", ({ subscriptionId, timestamp, data }) => {
      const { topic, schemaName, reader } = channels.get(subscriptionId);
      const message = reader.readMessage(data);
      if (topic === "/telemetry/quad") {
        assert.equal(schemaName, "telemetry/msg/Quad");
        assert.equal(message.torque.at(-1), Number(message.cycle) / 2);
        cycles.push({ cycle: Number(message.cycle), timestamp });
      } else {
        knees.push(message.value);
      }
      if (cycles.length >= 100 && knees.length >= 100) resolve();
    });
  });
  await enough;
  assert.equal(info.name, "taut: run.mcap");
  recorder.stdin.end();
  await closed;
  assert.equal(await server.ended, 0, server.said);
  assert.ok(cycles.every(({ cycle, timestamp }, i) => i === 0 || (cycle === cycles[i - 1].cycle + 1 && timestamp > cycles[i - 1].timestamp)), "whole and in order");
  assert.ok(knees.every((knee, i) => i === 0 || knee === knees[i - 1] + 0.25), knees.join(" "));
  assert.match(server.said, /the recording has ended\n.* messages of 2 channels/);
  assert.deepEqual(told, ["the recording has ended"]);
  assert.equal(await recorder.ended, 0);
});

test("a viewer that takes less than comes is told of", async () => {
  const { run, recorder } = await record("much.mcap", 50);
  const server = await live(run);
  const { socket, client } = connect(server);
  client.on("advertise", (channels) => {
    for (const { id } of channels) client.subscribe(id);
  });
  client.on("message", () => socket.pause());
  while (!server.said.includes("a viewer takes less than comes")) {
    assert.equal(server.exitCode, null, server.said);
    await sleep(50);
  }
  socket.terminate();
  recorder.stdin.end();
  assert.equal(await server.ended, 0, server.said);
});

test("a recording that has ended is refused", async () => {
  const { run, recorder } = await record("over.mcap", 1);
  recorder.stdin.end();
  await recorder.ended;
  const refused = await live(run).then(() => "was not", ({ message }) => message);
  assert.match(refused, /^taut: .*over\.mcap: has ended; .*\n$/);
});
