// Runs SQL queries on a trace with Perfetto's own trace processor (the WebAssembly build that its user
// interface uses).
//
//   node trace_processor.mjs DIRECTORY TRACE QUERY...
//
// DIRECTORY has Perfetto's engine_bundle.js and trace_processor*.wasm. Prints a JSON array: for each query
// an array of rows, each an object.
// Speaks protos/perfetto/trace_processor/trace_processor.proto: the few fields needed, by number.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MessageChannel } from "node:worker_threads";
import vm from "node:vm";

const [directory, trace, ...queries] = process.argv.slice(2);

// Protocol buffers.

const varint = (number) => {
    const bytes = [];
    for (let rest = BigInt(number); ; rest >>= 7n) {
        const low = Number(rest & 0x7fn);
        if (rest < 0x80n) return Buffer.from([...bytes, low]);
        bytes.push(low | 0x80);
    }
};
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) => Buffer.concat([varint((field << 3) | 2), varint(value.length), value]);

const readVarint = (buffer, at) => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
        const byte = buffer[at++];
        value |= BigInt(byte & 0x7f) << shift;
        if (byte < 0x80) return [BigInt.asIntN(64, value), at];
    }
};

function* fields(buffer) {
    for (let at = 0, tag, value; at < buffer.length; ) {
        [tag, at] = readVarint(buffer, at);
        const [field, wire] = [Number(tag >> 3n), Number(tag & 7n)];
        if (wire === 0) {
            [value, at] = readVarint(buffer, at);
        } else if (wire === 2) {
            let length;
            [length, at] = readVarint(buffer, at);
            value = buffer.subarray(at, (at += Number(length)));
        } else {
            value = buffer.subarray(at, (at += wire === 1 ? 8 : 4));
        }
        yield [field, value];
    }
}

const packed = (buffer) => {
    const values = [];
    for (let at = 0, value; at < buffer.length; ) {
        [value, at] = readVarint(buffer, at);
        values.push(value);
    }
    return values;
};

// The engine, in a world that looks like a browser's worker.

const channel = new MessageChannel();
const scope = {
    WorkerGlobalScope: class {},
    location: { href: "file:///", origin: "file://", pathname: "/" },
    importScripts() {},
    console: { ...console, log: console.error, warn: console.error },
    // It asks for its WebAssembly.
    XMLHttpRequest: class {
        open(method, file) {
            this.response = readFileSync(join(directory, String(file).split("/").pop()));
        }
        send() {}
    },
    ...{ TextDecoder, TextEncoder, URL, WebAssembly, Uint8Array, TypeError },
    ...{ setTimeout, clearTimeout, performance, crypto },
};
scope.self = scope;
// An error's text would have all of the bundle in it, which is one line.
process.on("uncaughtException", (error) => {
    console.error(String(error?.message ?? error).slice(0, 2000));
    process.exit(1);
});
vm.runInNewContext(readFileSync(join(directory, "engine_bundle.js"), "utf8"), scope);
// Its modules are asked for at once and ready later; what comes before is kept by the port.
scope.self.onmessage({ data: channel.port2 });

const APPEND = 1, FINALIZE = 2, QUERY = 3;
let sequence = 0;
let arrived = Buffer.alloc(0);
const responses = [];
let wake = () => {};
channel.port1.on("message", (data) => {
    arrived = Buffer.concat([arrived, Buffer.from(data)]);
    for (;;) {
        // A response is field 1 of a stream of them.
        if (arrived.length < 2) break;
        let [length, at] = readVarint(arrived, 1);
        if (arrived.length < at + Number(length)) break;
        responses.push(arrived.subarray(at, at + Number(length)));
        arrived = arrived.subarray(at + Number(length));
    }
    wake();
});

const send = (request, ...more) => {
    const message = Buffer.concat([number(1, sequence++), number(2, request), ...more]);
    channel.port1.postMessage(new Uint8Array(bytes(1, message)));
};

async function response() {
    while (responses.length === 0) await new Promise((resolve) => (wake = resolve));
    const message = responses.shift();
    for (const [field, value] of fields(message)) {
        if (field === 5) throw new Error(String(value));
        // What became of a piece of the trace.
        if (field === 201) {
            for (const [part, error] of fields(value)) if (part === 2) throw new Error(String(error));
        }
    }
    return message;
}

async function query(sql) {
    send(QUERY, bytes(103, bytes(1, Buffer.from(sql))));
    const names = [], cells = [];
    for (let last = false; !last; ) {
        for (const [field, result] of fields(await response())) {
            if (field !== 203) continue;
            for (const [part, value] of fields(result)) {
                if (part === 1) names.push(String(value));
                else if (part === 2 && value.length > 0) throw new Error(`${sql}: ${value}`);
                else if (part === 3) last = batch(value, cells);
            }
        }
    }
    const rows = [];
    for (let at = 0; at < cells.length; at += names.length) {
        rows.push(Object.fromEntries(names.map((name, column) => [name, cells[at + column]])));
    }
    return rows;
}

// The cells of one batch, row by row: first what they are, then the values of each kind together.
function batch(message, cells) {
    const kinds = [], integers = [], floats = [], texts = [];
    let last = false;
    for (const [field, value] of fields(message)) {
        if (field === 1) kinds.push(...packed(value).map(Number));
        else if (field === 2) integers.push(...packed(value));
        else if (field === 3) {
            for (let at = 0; at < value.length; at += 8) floats.push(value.readDoubleLE(at));
        } else if (field === 5) texts.push(...String(value).split("\0").slice(0, -1));
        else if (field === 6) last = value !== 0n;
    }
    let [integer, float, text] = [0, 0, 0];
    for (const kind of kinds) {
        if (kind === 2) cells.push(integers[integer++]);
        else if (kind === 3) cells.push(floats[float++]);
        else if (kind === 4) cells.push(texts[text++]);
        else cells.push(null);
    }
    return last;
}

const PIECE = 8 << 20;
const whole = readFileSync(trace);
for (let at = 0; at < whole.length; at += PIECE) {
    send(APPEND, bytes(101, whole.subarray(at, at + PIECE)));
    await response();
}
send(FINALIZE);
await response();
const results = [];
for (const sql of queries) results.push(await query(sql));
// Instants do not fit JavaScript's numbers; they leave digit by digit.
const written = JSON.stringify(results, (_, value) => (typeof value === "bigint" ? `\0${value}\0` : value));
console.log(written.replace(/"\\u0000(-?\d+)\\u0000"/g, "$1"));
process.exit(0);
