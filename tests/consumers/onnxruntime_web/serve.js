// The process that runs models in onnxruntime-web, with WebAssembly: a request a line on stdin, an
// answer a line on stdout, in JSON.
//
//   {"load": file}                        loads a model, in place of the last; the value is its inputs
//   {"run": inputs, "outputs": names}     runs it; the value is the outputs, in the order of names
//
// An array is {type, shape, content}, the content in base64. An answer is {value} or {problem}.

"use strict";

const fs = require("fs");
const readline = require("readline");

// What the library prints must not come between the answers.
console.log = console.info = console.warn = () => {};
const ort = require("onnxruntime-web");
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";

let session = null;

async function load(file) {
  if (session !== null) await session.release();
  session = null;
  const options = { executionProviders: ["wasm"], logSeverityLevel: 4 };
  session = await ort.InferenceSession.create(new Uint8Array(fs.readFileSync(file)), options);
  return session.inputNames;
}

async function run(inputs, outputs) {
  const feed = {};
  for (const name of session.inputNames) feed[name] = decoded(inputs[name]);
  const results = await session.run(feed, outputs);
  return outputs.map((name) => encoded(results[name]));
}

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int32: Int32Array, uint32: Uint32Array,
  int8: Int8Array, uint8: Uint8Array, bool: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  float16: Uint16Array, int64: BigInt64Array, uint64: BigUint64Array,
};

function decoded({ type, shape, content }) {
  const bytes = new Uint8Array(Buffer.from(content, "base64"));
  return new ort.Tensor(type, new ARRAYS[type](bytes.buffer), shape);
}

function encoded({ type, dims, data }) {
  const content = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return { type, shape: dims, content: content.toString("base64") };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    let answer;
    try {
      const value = "load" in request ? load(request.load) : run(request.run, request.outputs);
      answer = { value: await value };
    } catch (error) {
      answer = { problem: String(error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
}

main();
