// The page of one model: draws it, and answers clicks, keys and searches. No network is used, and
// names from files only ever become text, never markup.

const SVG = "http://www.w3.org/2000/svg";
const FONT = 'system-ui, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif';
const MAX_PIXELS = 8000;  // of a side of a saved image
const model = JSON.parse(document.getElementById("model").textContent);
const nodes = model.nodes, blocks = model.blocks;  // a block: {name, path, parent, nodes}
const folded = new Set(nodes.length > 120 ? topBlocks() : []);
let chosen = null, found = [], foundAt = -1, view = {x: 0, y: 0, scale: 1}, drawn = null;

const $ = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick") made.addEventListener("click", value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function shape(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// -- what is shown --------------------------------------------------------------------------

function topBlocks() {
  return blocks.map((block, i) => i).filter((i) => blocks[i].parent === null);
}

// The outermost folded block around a node, or null.
function folder(index) {
  let outermost = null;
  for (let b = nodes[index].block; b !== null; b = blocks[b].parent) {
    if (folded.has(b)) outermost = b;
  }
  return outermost;
}

function keyOf(index) {
  return drawn.boxOf[index];
}

function visibleGraph() {
  const {boxOf, parts} = divideBlocks(nodes, folder);
  const boxes = new Map(), edges = new Map(), labeled = new Set();
  nodes.forEach((node, i) => {
    const key = boxOf[i];
    if (!boxes.has(key)) boxes.set(key, makeBox(key, i, parts));
    boxes.get(key).members.push(i);
  });
  nodes.forEach((node, i) => {
    for (const [source, output] of node.inputs) {
      const [from, to] = [boxOf[source], boxOf[i]];
      if (from === to || edges.has(`${from}>${to}`)) continue;
      const result = `${source}:${output}`;  // its shape is written once
      const label = labeled.has(result) ? "" : nodes[source].outputs[output] || "";
      labeled.add(result);
      edges.set(`${from}>${to}`, {source: from, target: to, label});
    }
  });
  return {boxes: [...boxes.values()], edges: [...edges.values()], boxOf, parts};
}

function makeBox(key, index, parts) {
  const isBlock = key[0] === "b", node = nodes[index];
  if (!isBlock) {
    const sub = node.kind === "layer" ? node.detail || node.short : node.kind;
    return sizeBox({key, index, isBlock, members: [], title: node.operator || node.name, sub,
                    color: node.color});
  }
  const [number, part] = key.slice(1).split(".").map(Number);
  const count = parts.get(number), block = blocks[number];
  const title = count > 1 ? `${block.name} (${part} of ${count})` : block.name;
  return sizeBox({key, index, isBlock, members: [], title, sub: `${block.nodes.length} layers`});
}

function sizeBox(box) {
  [box.title, box.sub] = [short(box.title), short(box.sub)];
  box.width = Math.max(76, 22 + textWidth(box.title, 12), 22 + textWidth(box.sub, 10));
  return box;
}

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, size) {
  pen.font = `${size}px ${FONT}`;
  return pen.measureText(text).width;
}

function short(text) {
  return text.length > 30 ? text.slice(0, 14) + "…" + text.slice(-14) : text;
}

// -- drawing --------------------------------------------------------------------------------

function draw() {
  const {boxes, edges, boxOf, parts} = visibleGraph();
  for (const box of boxes) {
    const count = box.members.length;
    if (box.isBlock) box.sub = `${count} layer${count === 1 ? "" : "s"}`;
  }
  const layout = layeredLayout(boxes, edges);
  drawn = {boxes, edges, layout, boxOf, parts};
  const lines = edges.map((edge, i) => edgePoints(layout.paths[i], layout));
  $("edges").replaceChildren(...edges.map((edge, i) => drawEdge(edge, lines[i])),
                             ...drawLabels(edges, lines));
  $("boxes").replaceChildren(...boxes.map((box) => drawBox(box, layout)));
  markBoxes();
  drawTree();
}

function drawBox(box, layout) {
  const [x, y] = [layout.x.get(box.key), layout.y.get(box.key)];
  const group = shape("g", {
    class: "box" + (box.isBlock ? " block" : ""), "data-key": box.key,
    transform: `translate(${x.toFixed(1)},${y})`, tabindex: "0", role: "button",
  });
  const rect = shape("rect", {
    x: -box.width / 2, width: box.width, height: HEIGHT,
    rx: nodes[box.index].kind === "layer" || box.isBlock ? 6 : HEIGHT / 2,
  });
  if (!box.isBlock) rect.setAttribute("fill", box.color);
  const title = shape("text", {y: 18});
  title.textContent = box.title;
  const sub = shape("text", {y: 33, class: "sub"});
  sub.textContent = box.sub;
  const hover = shape("title", {});
  hover.textContent = box.isBlock ? blocks[blockNumber(box.key)].path : nodes[box.index].name;
  group.append(hover, rect, title, sub);
  return group;
}

function edgePoints(path, layout) {
  const points = [];
  path.forEach((key, i) => {
    const x = layout.x.get(key), y = layout.y.get(key);
    if (i > 0) points.push([x, y]);
    if (i < path.length - 1) points.push([x, y + HEIGHT]);
  });
  return points;
}

function drawEdge(edge, points) {
  let d = `M${points[0][0].toFixed(1)},${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1], [x1, y1] = points[i];
    const bend = (y0 + y1) / 2;
    d += `C${x0.toFixed(1)},${bend} ${x1.toFixed(1)},${bend} ${x1.toFixed(1)},${y1}`;
  }
  return shape("path", {class: "edge", d, "data-source": edge.source, "data-target": edge.target});
}

function drawLabels(edges, lines) {
  const texts = edges.flatMap((edge, i) => {
    if (!edge.label) return [];
    const [[x0, y0], [x1, y1]] = lines[i];
    return [{x: (x0 + x1) / 2 + 5, y: (y0 + y1) / 2 + 4, width: textWidth(edge.label, 10),
             label: edge.label}];
  });
  return placeTexts(texts).flatMap((y, i) => {
    if (y === null) return [];
    const text = shape("text", {class: "edge-label", x: texts[i].x, y});
    text.textContent = texts[i].label;
    return [text];
  });
}

function blockNumber(key) {
  return Number(key.slice(1).split(".")[0]);
}

function markBoxes() {
  const matches = new Set(found.map(keyOf));
  const current = new Set(chosenKeys(chosen));
  for (const box of $("boxes").children) {
    box.classList.toggle("match", matches.has(box.dataset.key));
    box.classList.toggle("chosen", current.has(box.dataset.key));
  }
  for (const edge of $("edges").querySelectorAll(".edge")) {
    edge.classList.toggle("near", current.has(edge.dataset.source) || current.has(edge.dataset.target));
  }
}

// The boxes of what was chosen: one, but for blocks that are divided.
function chosenKeys(target) {
  if (target === null) return [];
  if (target.block === undefined) return [keyOf(target.node)];
  return drawn.boxes.map((box) => box.key).filter((key) => key[0] === "b" && blockNumber(key) === target.block);
}

// -- panels ---------------------------------------------------------------------------------

function drawTree() {
  const rows = [];
  const visit = (parent, depth) => blocks.forEach((block, i) => {
    if (block.parent !== parent) return;
    const row = element("div", {
      class: "tree-row", "data-block": i, style: `padding-left:${depth * 14 + 4}px`,
      title: "fold or unfold", onclick: () => toggle(i),
    });
    row.append(element("span", {class: "mark"}, folded.has(i) ? "▸" : "▾"),
               element("span", {}, block.name),
               element("span", {class: "count"}, String(block.nodes.length)));
    rows.push(row);
    if (!folded.has(i)) visit(i, depth + 1);
  });
  visit(null, 0);
  if (!rows.length) rows.push(element("p", {class: "hint"}, "The names of the layers form no blocks."));
  $("tree").replaceChildren(...rows);
}

function table(pairs) {
  return element("table", {}, ...pairs.map(([key, value]) => element(
    "tr", {}, element("td", {}, key), element("td", {}, value))));
}

function section(title, ...content) {
  return [element("h3", {}, title), ...content];
}

function showDetails() {
  if (chosen === null) {
    $("details").replaceChildren(
      element("p", {class: "hint"}, "Click a layer for its details. Drag to move, scroll to zoom, " +
        "double-click a block to unfold it or a layer to fold its block."),
      ...section("Model", table(Object.entries(model.facts))));
  } else if (chosen.block !== undefined) showBlock(blocks[chosen.block], chosen.block);
  else showNode(nodes[chosen.node], chosen.node);
}

function showBlock(block, index) {
  $("details").replaceChildren(
    element("h2", {}, block.path), element("p", {class: "op"}, `${block.nodes.length} layers`),
    element("button", {onclick: () => toggle(index)}, folded.has(index) ? "Unfold" : "Fold"),
    ...section("Layers", ...block.nodes.map((i) => element("div", {}, link(i)))));
}

function link(index) {
  const node = nodes[index];
  return element("a", {onclick: () => choose({node: index}, true)}, node.name);
}

function showNode(node, index) {
  const parts = [element("h2", {}, node.name), element("p", {class: "op"}, node.operator || node.kind)];
  for (let b = node.block; b !== null; b = blocks[b].parent) {
    const block = b;
    parts.push(element("div", {}, "in ", element("a", {onclick: () => toggle(block)}, blocks[b].path)));
  }
  const attributes = Object.entries(node.attributes);
  if (attributes.length) parts.push(...section("Attributes", table(attributes)));
  if (node.inputs.length) parts.push(...section("Inputs", ...node.inputs.map(([source, output]) =>
    element("div", {}, link(source), ` ${nodes[source].outputs[output] || ""}`))));
  const users = nodes.flatMap((n, i) => n.inputs.some(([s]) => s === index) ? [i] : []);
  const outputs = node.outputs.filter(Boolean);
  if (outputs.length) parts.push(...section("Outputs", ...outputs.map((o) => element("div", {}, o))));
  if (users.length) parts.push(...section("Used by", ...users.map((i) => element("div", {}, link(i)))));
  if (node.costs) parts.push(...section("Costs", table(Object.entries(node.costs))));
  if (node.weights.length) parts.push(...section("Parameters", ...node.weights.map(showWeight)));
  $("details").replaceChildren(...parts);
}

function showWeight(weight) {
  const parts = [element("div", {class: "name"}, weight.name),
                 element("div", {class: "numbers"}, `${weight.shape} ${weight.dtype || ""}`)];
  if (weight.histogram) {
    const most = Math.max(1, ...weight.histogram);
    const picture = shape("svg", {class: "histogram", viewBox: `0 0 ${weight.histogram.length} 40`,
                                  preserveAspectRatio: "none"});
    weight.histogram.forEach((count, i) => {
      const height = count ? Math.max(0.7, count / most * 40) : 0;
      picture.append(shape("rect", {x: i + 0.05, y: 40 - height, width: 0.9, height}));
    });
    parts.push(picture, element("div", {class: "numbers"}, weight.statistics));
  }
  return element("div", {class: "weight"}, ...parts);
}

// -- actions --------------------------------------------------------------------------------

function toggle(block) {
  const isOpen = !folded.has(block);
  if (isOpen) folded.add(block); else folded.delete(block);
  draw();
  choose(isOpen ? {block} : {node: blocks[block].nodes[0]}, true);
}

function choose(target, center) {
  if (target !== null && target.node !== undefined && center) {
    let changed = false;
    for (let b = nodes[target.node].block; b !== null; b = blocks[b].parent) {
      changed = folded.delete(b) || changed;
    }
    if (changed) draw();
  }
  chosen = target;
  markBoxes();
  showDetails();
  if (center && target !== null) {
    centerOn(chosenKeys(target)[0]);
  }
}

function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  found = !words.length ? [] : nodes.flatMap((node, i) => {
    const hay = `${node.name} ${node.operator} ${node.detail}`.toLowerCase();
    return words.every((word) => hay.includes(word)) ? [i] : [];
  });
  foundAt = -1;
  $("matches").textContent = words.length ? `${found.length} found` : "";
  markBoxes();
}

function nextMatch(step) {
  if (!found.length) return;
  foundAt = (foundAt + step + found.length) % found.length;
  $("matches").textContent = `${foundAt + 1} of ${found.length}`;
  choose({node: found[foundAt]}, true);
}

function applyView() {
  $("scene").setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`);
}

function zoom(factor, x, y) {
  const scale = Math.min(4, Math.max(0.02, view.scale * factor));
  const ratio = scale / view.scale;
  view = {x: x - (x - view.x) * ratio, y: y - (y - view.y) * ratio, scale};
  applyView();
}

function area() {
  return $("graph").getBoundingClientRect();
}

function extent() {
  const {boxes, layout} = drawn;
  let left = 0, right = 1;
  for (const box of boxes) {
    left = Math.min(left, layout.x.get(box.key) - box.width / 2);
    right = Math.max(right, layout.x.get(box.key) + box.width / 2);
  }
  return {left, right, height: layout.depth * STEP};
}

function fit() {
  const {left, right, height} = extent();
  const {width: w, height: h} = area();
  // Long networks start readable at their top rather than whole and tiny.
  const least = w < 720 ? 0.45 : 0.7;
  const scale = Math.max(least, Math.min(1.2, (w - 40) / (right - left), (h - 40) / height));
  view = {x: w / 2 - (left + right) / 2 * scale, y: 24, scale};
  applyView();
}

function centerOn(key) {
  const {layout} = drawn;
  if (!layout.x.has(key)) return;
  const {width: w, height: h} = area();
  const scale = Math.max(view.scale, 0.6);
  view = {x: w / 2 - layout.x.get(key) * scale, y: h / 2 - layout.y.get(key) * scale, scale};
  applyView();
}

// -- saving ---------------------------------------------------------------------------------

// The whole drawing as the text of an SVG file of its own, with the colors it has here.
function svgText() {
  const {left, right, height} = extent();
  const box = [left - 20, -20, right - left + 40, height + 20];
  const svg = shape("svg", {xmlns: SVG, viewBox: box.map(Math.round).join(" "),
                            width: Math.round(box[2]), height: Math.round(box[3])});
  const style = shape("style", {});
  const colors = getComputedStyle(document.documentElement);
  const rules = [...document.styleSheets[0].cssRules].map((rule) => rule.cssText)
    .filter((text) => /^(\.edge|\.box|#arrow)/.test(text)).join("\n");
  style.textContent = `svg{font-family:${FONT}}` +
    rules.replace(/var\((--[a-z-]+)\)/g, (_, name) => colors.getPropertyValue(name).trim());
  const ground = shape("rect", {x: box[0], y: box[1], width: box[2], height: box[3],
                                fill: colors.getPropertyValue("--ground").trim()});
  svg.append(style, $("graph").querySelector("defs").cloneNode(true), ground,
             $("edges").cloneNode(true), $("boxes").cloneNode(true));
  return new XMLSerializer().serializeToString(svg);
}

function save(blob, suffix) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${model.title.replace(/[^\w.-]+/g, "_") || "model"}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function saveSvg() {
  save(new Blob([svgText()], {type: "image/svg+xml"}), "svg");
}

function drawPng(done) {
  const {left, right, height} = extent();
  const [w, h] = [right - left + 40, height + 20];
  const scale = Math.min(2, MAX_PIXELS / Math.max(w, h));
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.max(1, w * scale), Math.max(1, h * scale)];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    canvas.toBlob(done, "image/png");
  };
  image.src = URL.createObjectURL(new Blob([svgText()], {type: "image/svg+xml"}));
}

// -- events ---------------------------------------------------------------------------------

function chosenKey(event) {
  const box = event.target.closest(".box");
  return box ? box.dataset.key : null;
}

function targetOf(key) {
  return key[0] === "b" ? {block: blockNumber(key)} : {node: Number(key.slice(1))};
}

// Two fingers zoom about the point between them.
function pinch(fingers, event) {
  const apart = () => {
    const [a, b] = [...fingers.values()];
    return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  };
  const before = apart();
  fingers.set(event.pointerId, event);
  const [a, b] = [...fingers.values()], {left, top} = area();
  if (before > 0) {
    zoom(apart() / before, (a.clientX + b.clientX) / 2 - left, (a.clientY + b.clientY) / 2 - top);
  }
}

function listen() {
  const graph = $("graph");
  let start = null;
  const fingers = new Map();
  graph.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event);
    start = {x: event.clientX, y: event.clientY, view: {...view}, moved: fingers.size > 1};
  });
  window.addEventListener("pointercancel", (event) => { fingers.delete(event.pointerId); start = null; });
  window.addEventListener("pointermove", (event) => {
    if (!start) return;
    if (fingers.size === 2 && fingers.has(event.pointerId)) {
      pinch(fingers, event);
      return;
    }
    const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
    if (Math.abs(dx) + Math.abs(dy) > 4) start.moved = true;
    if (!start.moved) return;
    graph.classList.add("dragging");
    view = {...start.view, x: start.view.x + dx, y: start.view.y + dy};
    applyView();
  });
  window.addEventListener("pointerup", (event) => {
    const ended = start;
    start = null;
    fingers.delete(event.pointerId);
    graph.classList.remove("dragging");
    if (!ended || ended.moved || !graph.contains(event.target)) return;
    const key = chosenKey(event);
    choose(key === null ? null : targetOf(key), false);
  });
  graph.addEventListener("dblclick", (event) => {
    const key = chosenKey(event);
    if (key === null) return;
    const target = targetOf(key);
    const block = target.block !== undefined ? target.block : nodes[target.node].block;
    if (block !== null) toggle(block);
  });
  graph.addEventListener("wheel", (event) => {
    event.preventDefault();
    const {left, top} = area();
    zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - left, event.clientY - top);
  }, {passive: false});
  graph.addEventListener("keydown", (event) => {
    const box = event.target.closest(".box");
    if (box && event.key === "Enter") choose(targetOf(box.dataset.key), false);
  });
  const middle = (factor) => () => { const {width, height} = area(); zoom(factor, width / 2, height / 2); };
  $("fit").addEventListener("click", fit);
  $("zoom-in").addEventListener("click", middle(1.3));
  $("zoom-out").addEventListener("click", middle(1 / 1.3));
  $("fold").addEventListener("click", () => { topBlocks().forEach((b) => folded.add(b)); draw(); fit(); });
  $("unfold").addEventListener("click", () => { folded.clear(); draw(); fit(); });
  $("save-svg").addEventListener("click", saveSvg);
  $("save-png").addEventListener("click", () => drawPng((blob) => save(blob, "png")));
  $("search").addEventListener("input", (event) => search(event.target.value));
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
  });
  window.addEventListener("keydown", (event) => {
    if (event.target === $("search")) return;
    if (event.key === "/") { event.preventDefault(); $("search").focus(); }
    else if (event.key === "0") fit();
    else if (event.key === "+") middle(1.3)();
    else if (event.key === "-") middle(1 / 1.3)();
    else if (event.key === "Escape") choose(null, false);
  });
}

$("title").textContent = model.title;
$("totals").textContent = Object.entries(model.facts).map(([k, v]) => `${v} ${k}`).join(" · ");
listen();
draw();
fit();
showDetails();
