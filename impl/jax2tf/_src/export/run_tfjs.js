// Runs a model of TensorFlow.js once: a request on stdin, the results on stdout, in JSON.
//
//   {folder, inputs: {name: array}, outputs: [name]}  ->  {name: array}
//
// An array is {dtype, shape, content}, its bytes in base64.

"use strict";

const fs = require("fs");
const path = require("path");

// What the library prints must not come before the results.
console.log = console.info = console.warn = () => {};
const tf = require(require.resolve("@tensorflow/tfjs", { paths: [process.cwd(), ...module.paths] }));

function toTensor({ dtype, shape, content }) {
  const bytes = new Uint8Array(Buffer.from(content, "base64"));
  if (dtype === "complex64") {
    const pairs = tf.tensor(new Float32Array(bytes.buffer), [...shape, 2]);
    const [real, imaginary] = tf.split(pairs, 2, -1);
    return tf.complex(real.reshape(shape), imaginary.reshape(shape));
  }
  const values = tf.util.getArrayFromDType(dtype, tf.util.sizeFromShape(shape));
  new Uint8Array(values.buffer).set(bytes);
  return tf.tensor(values, shape, dtype);
}

function toJson(tensor) {
  const { dtype, shape } = tensor;
  let values = tensor.dataSync();
  if (dtype !== "complex64") {
    // The array of the dtype: a Cast leaves bools in an array of bytes.
    const array = tf.util.getArrayFromDType(dtype, values.length);
    array.set(values);
    values = array;
  }
  const content = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
  return { dtype, shape, content: content.toString("base64") };
}

async function main() {
  const request = JSON.parse(fs.readFileSync(0));
  const file = (name) => path.join(request.folder, name);
  const { weightsManifest, ...description } = JSON.parse(fs.readFileSync(file("model.json")));
  const parts = weightsManifest.flatMap(({ paths }) => paths).map((p) => fs.readFileSync(file(p)));
  const weightData = new Uint8Array(Buffer.concat(parts)).buffer;
  const weightSpecs = weightsManifest.flatMap(({ weights }) => weights);
  const artifacts = { ...description, weightSpecs, weightData };
  const model = await tf.loadGraphModel(tf.io.fromMemory(artifacts));
  const feed = {};
  // An input that nothing depends on may be gone.
  for (const name of Object.keys(description.signature.inputs)) {
    feed[name] = toTensor(request.inputs[name]);
  }
  const results = [await model.executeAsync(feed, request.outputs)].flat();
  const named = request.outputs.map((name, i) => [name, toJson(results[i])]);
  process.stdout.write(JSON.stringify(Object.fromEntries(named)));
}

main().catch((error) => {
  process.stderr.write(String(error && error.stack));
  process.exitCode = 1;
});
