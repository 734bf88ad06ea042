"use strict";

const MAX_BARS = 10;
const MAX_POINTS = 60;
const MAX_SHOWN = 4000; // characters of an answer
const SMALL = 64; // numbers that the text field shows as an example

const byId = (id) => document.getElementById(id);
let models = [];
let file = null;
let token = "";
const latencies = [];

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

const headers = (extra) => (token ? { authorization: `Bearer ${token}`, ...extra } : extra || {});
const current = () => models[byId("model").selectedIndex] || models[0];
const inputs = (model) => Object.entries(model.inputs);
const count = (shape) => shape.reduce((a, b) => a * b, 1);

function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < 3) { bytes /= 1024; unit += 1; }
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}

function formatNumber(value) {
  if (value === null) return "not finite";
  return Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-4)
    ? value.toExponential(3) : String(Number(value.toPrecision(5)));
}

/* -- the model ---------------------------------------------------------------------------- */

async function loadModels() {
  const response = await fetch("/models", { headers: headers() });
  byId("token-form").hidden = response.status !== 401;
  if (!response.ok) {
    setState(response.status === 401 ? "needs a token" : `error ${response.status}`, "bad");
    return;
  }
  models = await response.json();
  const select = byId("model");
  select.replaceChildren(...models.map((m) => element("option", `${m.model} (version ${m.version})`)));
  byId("choice").hidden = models.length < 2;
  setState("ready", "good");
  showModel();
  takeFile(null);
}

function setState(text, className) {
  byId("state").textContent = text;
  byId("state").className = className;
}

function describeShape(shape, dtype) {
  return `${shape ? shape.join(" × ") || "a number" : "any shape"}, ${dtype}`;
}

function showModel() {
  const model = current();
  document.title = `${model.model} · mx serve`;
  byId("title").textContent = model.model;
  const rows = [["version", model.version], ["device", model.device]];
  for (const [name, shape] of inputs(model)) rows.push(["input", `${name}: ${describeShape(shape, model.dtypes[name])}`]);
  for (const name of model.outputs) {
    const shape = model.output_shapes[name].slice(1);
    rows.push(["output", shape.length ? `${name}: ${shape.join(" × ")}` : name]);
  }
  rows.push(["parameters", model.parameters.toLocaleString("en")], ["size", formatBytes(model.bytes)]);
  rows.push(["layers", String(model.layers)]);
  if (model.labels) rows.push(["classes", `${model.labels} with names`]);
  byId("card").replaceChildren(...rows.flatMap(([k, v]) => [element("dt", k), element("dd", v)]));
  byId("view").href = `/view?model=${encodeURIComponent(model.model)}`;
  byId("links").hidden = token !== ""; // a link cannot carry the token
  showExample(model);
  byId("code").textContent = exampleCode(model);
  byId("result").replaceChildren();
  showTotal();
}

function isImage(model) {
  const shape = inputs(model)[0][1];
  return inputs(model).length === 1 && (shape === null || shape.length === 3);
}

function showExample(model) {
  const [[name, shape]] = inputs(model);
  const numbers = byId("numbers");
  numbers.value = "";
  numbers.placeholder = "[[0.1, 0.2, …]]";
  byId("random").hidden = shape === null;
  if (shape !== null) {
    byId("hint").textContent = `One sample is ${shape.join(" × ") || "one"}: ${count(shape)} numbers, as nested lists or in a row.`;
    if (inputs(model).length === 1 && count(shape) <= SMALL) numbers.value = JSON.stringify(nest(Array(count(shape)).fill(0), shape));
  } else {
    byId("hint").textContent = `Nested lists for ${name}.`;
  }
}

function nest(values, shape) {
  if (shape.length <= 1) return shape.length ? values : values[0];
  const size = values.length / shape[0];
  return Array.from({ length: shape[0] }, (_, i) => nest(values.slice(i * size, (i + 1) * size), shape.slice(1)));
}

function exampleCode(model) {
  const isOne = models.length === 1;
  const address = `${location.origin}${isOne ? "/predict" : `/predict/${model.model}`}`;
  const [[, shape]] = inputs(model);
  const isSmall = inputs(model).length === 1 && shape !== null && count(shape) <= SMALL;
  const sample = isSmall ? JSON.stringify(nest(Array(count(shape)).fill(0), shape)) : "[…]";
  const curl = isImage(model) ? `curl -F image=@cat.jpg ${address}` : `curl -d '{"inputs": [${sample}]}' \\\n  ${address}`;
  const client = `mx.client("${location.origin}"${isOne ? "" : `, model="${model.model}"`})`;
  return `${curl}\n\nimport mxnet as mx\nclient = ${client}\nclient.predict(array)`;
}

/* -- predictions -------------------------------------------------------------------------- */

async function readImage(blob, maxPixels) {
  let bitmap;
  try { bitmap = await createImageBitmap(blob); } catch { return blob; } // the server says what it is
  const factor = Math.sqrt(maxPixels / (bitmap.width * bitmap.height));
  if (factor >= 1) return blob;
  const canvas = document.createElement("canvas");
  canvas.width = Math.floor(bitmap.width * factor);
  canvas.height = Math.floor(bitmap.height * factor);
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.95));
}

function readNumbers(model, text) {
  const value = JSON.parse(text.trim().startsWith("[") || text.trim().startsWith("{") ? text : `[${text.trim().split(/[\s,;]+/).join(",")}]`);
  if (!Array.isArray(value)) return value.inputs ? value : { inputs: value };
  const shape = inputs(model)[0][1];
  const isFlat = value.every((v) => typeof v === "number");
  if (isFlat && shape === null) return { inputs: [value] }; // one sample
  return { inputs: isFlat && shape && shape.length > 1 && value.length === count(shape) ? nest(value, shape) : value };
}

async function requestFor(model) {
  if (file === null) {
    return { body: JSON.stringify(readNumbers(model, byId("numbers").value)), kind: "application/json" };
  }
  const name = file.name.toLowerCase();
  const kinds = { ".npy": "application/x-npy", ".npz": "application/x-npz", ".json": "application/json", ".safetensors": "application/x-safetensors" };
  const extension = Object.keys(kinds).find((end) => name.endsWith(end));
  if (extension) return { body: file, kind: kinds[extension] };
  const image = await readImage(file, model.max_pixels);
  return { body: image, kind: image.type || "image/jpeg" };
}

async function predict() {
  const model = current();
  const button = byId("predict");
  button.disabled = true;
  try {
    const { body, kind } = await requestFor(model);
    const start = performance.now();
    const response = await fetch(`/predict/${encodeURIComponent(model.model)}?top=${MAX_BARS}`, { method: "POST", body, headers: headers({ "content-type": kind }) });
    const answer = await response.json();
    addLatency(performance.now() - start, response.ok);
    if (response.ok) showAnswer(answer, model);
    else showError(answer.error);
    if (response.status === 401) byId("token-form").hidden = false;
  } catch (error) {
    showError(error instanceof SyntaxError ? `These are not numbers: ${error.message}` : String(error.message || error));
  } finally {
    button.disabled = false;
  }
  await showTotal();
}

function showError(message) {
  byId("result").replaceChildren(element("p", message, "error"));
}

function showAnswer(answer, model) {
  const parts = [];
  for (const [name, values] of Object.entries(answer.outputs)) {
    const best = answer.top && answer.top[name];
    if (best) {
      best.slice(0, 4).forEach((row, i) => {
        parts.push(element("h3", best.length > 1 ? `${name}, sample ${i + 1}` : name), bars(row, model));
      });
    } else {
      parts.push(element("h3", name), element("pre", JSON.stringify(values).slice(0, MAX_SHOWN)));
    }
  }
  const details = element("details");
  details.append(element("summary", "The answer as JSON"), element("pre", JSON.stringify(answer, null, 1).slice(0, MAX_SHOWN)));
  byId("result").replaceChildren(...parts, details);
}

function bars(rows) {
  const scores = rows.map((row) => row.score ?? 0);
  const areShares = scores.every((s) => s >= 0 && s <= 1);
  const largest = areShares ? 1 : Math.max(...scores.map(Math.abs), 1e-9);
  const list = element("ol", undefined, "bars");
  rows.forEach((row) => {
    const item = element("li");
    const bar = element("span", undefined, "bar");
    bar.style.width = `${Math.max(0, Math.min(1, (row.score ?? 0) / largest)) * 100}%`;
    const score = areShares ? `${(row.score * 100).toFixed(1)} %` : formatNumber(row.score);
    item.append(bar, element("span", row.label ?? `class ${row.class}`, "name"), element("span", score, "score"));
    list.append(item);
  });
  return list;
}

/* -- latency ------------------------------------------------------------------------------ */

function addLatency(milliseconds) {
  latencies.push(milliseconds);
  if (latencies.length > MAX_POINTS) latencies.shift();
  const sorted = [...latencies].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  const text = `last ${milliseconds.toFixed(1)} ms, median ${median.toFixed(1)} ms, slowest ${sorted.at(-1).toFixed(1)} ms of ${sorted.length}`;
  byId("latency").textContent = text;
  const plot = byId("plot");
  plot.setAttribute("aria-label", text);
  const top = Math.max(sorted.at(-1), 1);
  plot.replaceChildren(...latencies.map((value, i) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const height = Math.max(2, (value / top) * 76);
    for (const [k, v] of Object.entries({ x: i * 5, y: 80 - height, width: 4, height })) rect.setAttribute(k, v);
    return rect;
  }));
}

async function showTotal() {
  const response = await fetch("/metrics", { headers: headers() });
  const lines = response.ok ? (await response.text()).split("\n") : [];
  const start = `mx_predictions_total{model="${current().model}"} `;
  const line = lines.find((text) => text.startsWith(start));
  const total = line ? Number(line.slice(start.length)) : 0;
  byId("total").textContent = `${total.toLocaleString("en")} ${total === 1 ? "request" : "requests"} to this model in all`;
}

/* -- files and events --------------------------------------------------------------------- */

function takeFile(chosen) {
  file = chosen;
  const preview = byId("preview");
  if (preview.src) URL.revokeObjectURL(preview.src);
  preview.hidden = true;
  preview.removeAttribute("src");
  byId("drop-title").textContent = isImage(current()) ? "Choose an image or a file of numbers" : "Choose a file of numbers";
  if (!chosen) return;
  byId("drop-title").textContent = chosen.name || "image";
  if (chosen.type.startsWith("image/")) {
    preview.src = URL.createObjectURL(chosen);
    preview.alt = `preview of ${chosen.name}`;
    preview.hidden = false;
  }
  predict();
}

byId("file").addEventListener("change", (event) => takeFile(event.target.files[0] || null));
byId("numbers").addEventListener("input", () => { file = null; byId("preview").hidden = true; byId("file").value = ""; });
byId("numbers").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); predict(); }
});
byId("form").addEventListener("submit", (event) => { event.preventDefault(); predict(); });
byId("token-form").addEventListener("submit", (event) => { event.preventDefault(); token = byId("token").value; loadModels(); });
byId("model").addEventListener("change", () => { showModel(); takeFile(null); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && models.length) showTotal(); });
byId("random").addEventListener("click", () => {
  takeFile(null);
  const model = current();
  const random = (shape) => [nest(Array.from({ length: count(shape) }, () => Number(Math.random().toFixed(3))), shape)];
  const named = Object.fromEntries(inputs(model).map(([name, shape]) => [name, random(shape || [1])]));
  byId("numbers").value = JSON.stringify(inputs(model).length === 1 ? Object.values(named)[0] : { inputs: named });
  predict();
});
const drop = byId("drop");
for (const name of ["dragenter", "dragover"]) drop.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
for (const name of ["dragleave", "drop"]) drop.addEventListener(name, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => { event.preventDefault(); if (event.dataTransfer.files[0]) takeFile(event.dataTransfer.files[0]); });
document.addEventListener("paste", (event) => { const [pasted] = event.clipboardData.files; if (pasted) takeFile(pasted); });

loadModels().catch((error) => setState(String(error.message || error), "bad"));
