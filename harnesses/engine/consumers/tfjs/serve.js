// The process that runs models of TensorFlow.js: a request a line on stdin, an answer a line on
// stdout, in JSON.
//
//   {"load": folder}                      loads the model.json of the folder, in place of the last
//   {"run": inputs, "outputs": nodes}     runs it; the value is the outputs, in the order of nodes
//
// An array is {dtype, shape, content}, the content in base64. An answer is {value} or {problem}.

"use strict";

const fs = require("fs");
const path = require("path");
const readline = require("readline");

// What the library prints must not come between the answers.
console.log = console.info = console.warn = () => {};
const tf = require("@tensorflow/tfjs");

let model = null;

async function load(folder) {
  const description = JSON.parse(fs.readFileSync(path.join(folder, "model.json")));
  const groups = description.weightsManifest;
  const read = (file) => fs.readFileSync(path.join(folder, file));
  const weights = Buffer.concat(groups.flatMap((group) => group.paths).map(read));
  if (model !== null) model.dispose();
  model = null;
  model = await tf.loadGraphModel(
    tf.io.fromMemory({
      ...description,
      weightSpecs: groups.flatMap((group) => group.weights),
      weightData: new Uint8Array(weights).buffer,
    }),
  );
  return null;
}

async function run(inputs, outputs) {
  const feed = {};
  // An input that nothing depends on is not in the model.
  for (const { name } of model.inputs) feed[name] = decoded(inputs[name]);
  const results = await model.executeAsync(feed, outputs);
  const tensors = Array.isArray(results) ? results : [results];
  const answer = tensors.map(encoded);
  tf.dispose([feed, tensors]);
  return answer;
}

function decoded({ dtype, shape, content }) {
  const bytes = new Uint8Array(Buffer.from(content, "base64"));
  if (dtype === "complex64") {
    const parts = new Float32Array(bytes.buffer);
    const part = (i) => tf.tensor(parts.filter((_, at) => at % 2 === i), shape);
    return tf.complex(part(0), part(1));
  }
  const values = tf.util.getArrayFromDType(dtype, tf.util.sizeFromShape(shape));
  new Uint8Array(values.buffer).set(bytes);
  return tf.tensor(values, shape, dtype);
}

function encoded(tensor) {
  const values = typed(tensor.dtype, tensor.dataSync());
  const content = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return { dtype: tensor.dtype, shape: tensor.shape, content: content.toString("base64") };
}

// The elements in an array of the type that is the dtype's: a Cast of bools leaves them in that of
// bools.
function typed(dtype, values) {
  if (dtype === "complex64") return values;
  const array = tf.util.getArrayFromDType(dtype, values.length);
  array.set(values);
  return array;
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
