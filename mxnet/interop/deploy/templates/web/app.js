// Runs model.onnx in this page by onnxruntime-web. "Check" runs the sample that came with the model
// and compares the answers with those of the network it was made from.
const model = await (await fetch("model.json")).json();
const ort = await import(new URL(model.runtime + "ort.wasm.min.mjs", location.href));
ort.env.wasm.wasmPaths = new URL(model.runtime, location.href).href;
ort.env.wasm.numThreads = self.crossOriginIsolated ? navigator.hardwareConcurrency : 1;

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array,
  int8: Int8Array, uint8: Uint8Array, bool: Uint8Array,
};
const TOP = 5;
const element = (name, text = "") => Object.assign(document.createElement(name), { textContent: text });
const find = (id) => document.getElementById(id);
const show = (text) => { find("status").textContent = text; };
const count = (shape) => shape.reduce((a, b) => a * b, 1);

function decode(text, kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new ARRAYS[kind](bytes.buffer);
}

function isImage({ shape, dtype }) {
  return dtype === "float32" && shape.length === 4 && shape[0] === 1 && [1, 3].includes(shape[1]);
}

// An image is drawn at the size of the input; its pixels become (value / 255 - mean) / std.
function addImage(box, input) {
  const [, channels, height, width] = input.shape;
  const canvas = Object.assign(element("canvas"), { width, height });
  const file = Object.assign(element("input"), { type: "file", accept: "image/*" });
  const options = ["mean", "std"].map((name) => {
    const field = Object.assign(element("input"), { value: name === "mean" ? "0" : "1", size: 12 });
    box.append(element("label", ` ${name} `), field);
    return () => field.value.split(",").map(Number);
  });
  file.onchange = async () => {
    const image = await createImageBitmap(file.files[0]);
    canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  };
  box.append(file, canvas);
  return () => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    const [mean, std] = options.map((read) => read());
    const data = new Float32Array(count(input.shape));
    for (let c = 0; c < channels; c++) {
      for (let i = 0; i < width * height; i++) {
        const gray = (pixels[4 * i] + pixels[4 * i + 1] + pixels[4 * i + 2]) / 3;
        const value = (channels === 1 ? gray : pixels[4 * i + c]) / 255;
        data[c * width * height + i] = (value - mean[c % mean.length]) / std[c % std.length];
      }
    }
    return data;
  };
}

function addNumbers(box, input) {
  const field = Object.assign(element("textarea"), { rows: 4 });
  field.placeholder = `${count(input.shape)} numbers, separated by spaces or commas; none means zeros`;
  box.append(field);
  return () => {
    const numbers = field.value.split(/[\s,;[\]]+/).filter(Boolean);
    const expected = count(input.shape);
    if (numbers.length && numbers.length !== expected) {
      throw new Error(`${input.name}: ${expected} numbers are needed, ${numbers.length} are given`);
    }
    const kind = ARRAYS[input.dtype];
    return numbers.length ? kind.from(numbers, kind === BigInt64Array ? BigInt : Number) : new kind(expected);
  };
}

async function run(values) {
  const feed = {};
  model.inputs.forEach((input, i) => {
    feed[input.name] = new ort.Tensor(input.dtype, values[i], input.shape);
  });
  const start = performance.now();
  const results = await session.run(feed);
  return [model.outputs.map((name) => results[name]), performance.now() - start];
}

function showAnswer(outputs, time) {
  find("answer").replaceChildren();
  outputs.forEach((output, i) => {
    const numbers = Array.from(output.data, Number);
    const order = numbers.map((_, index) => index).sort((a, b) => numbers[b] - numbers[a]);
    const table = element("table");
    for (const index of order.slice(0, TOP)) {
      const row = element("tr");
      row.append(element("td", index), element("td", numbers[index].toPrecision(7)));
      table.append(row);
    }
    find("answer").append(element("h3", `${model.outputs[i]} ${output.dims.join(" × ")}`), table);
  });
  show(`${time.toFixed(1)} ms`);
}

// The largest error of any output, in units of its largest number.
async function check() {
  const inputs = model.sample.inputs.map((x, i) => decode(x, model.inputs[i].dtype));
  await run(inputs); // the first run sets things up; the time of the second is shown
  const [outputs, time] = await run(inputs);
  let worst = 0;
  outputs.forEach((output, i) => {
    const expected = Array.from(decode(model.sample.outputs[i], output.type), Number);
    const largest = expected.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-30);
    expected.forEach((value, j) => {
      worst = Math.max(worst, Math.abs(Number(output.data[j]) - value) / largest);
    });
  });
  showAnswer(outputs, time);
  show(`largest relative error ${worst.toExponential(2)}, ${time.toFixed(1)} ms`);
}

const guard = (action) => async (event) => {
  event?.preventDefault();
  try { await action(); } catch (error) { show(`error: ${error.message}`); }
};

document.title = find("title").textContent = model.name;
const readers = model.inputs.map((input) => {
  const box = element("fieldset");
  box.append(element("legend", `${input.name}: ${input.dtype} ${input.shape.join(" × ")}`));
  find("form").append(box);
  return (isImage(input) ? addImage : addNumbers)(box, input);
});
let session;
await guard(async () => {
  session = await ort.InferenceSession.create("model.onnx", { executionProviders: ["wasm"] });
  show("ready");
  find("run").onclick = guard(async () => showAnswer(...await run(readers.map((read) => read()))));
  find("check").onclick = guard(check);
  find("run").disabled = find("check").disabled = false;
  if (location.search === "?check") await check();
})();
