// The page of one model: draws it, and answers clicks, keys and searches. No network is used, and
// names from files only ever become text, never markup.

const SVG = "http://www.w3.org/2000/svg";
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
  const block = folder(index);
  return block === null ? `n${index}` : `b${block}`;
}

function visibleGraph() {
  const boxes = new Map(), edges = new Map(), labeled = new Set();
  nodes.forEach((node, i) => {
    const key = keyOf(i);
    if (!boxes.has(key)) boxes.set(key, makeBox(key, i));
  });
  nodes.forEach((node, i) => {
    for (const [source, output] of node.inputs) {
      const [from, to] = [keyOf(source), keyOf(i)];
      if (from === to || edges.has(`${from}>${to}`)) continue;
      const result = `${source}:${output}`;  // its shape is written once
      const label = labeled.has(result) ? "" : nodes[source].outputs[output] || "";
      labeled.add(result);
      edges.set(`${from}>${to}`, {source: from, target: to, label});
    }
  });
  return {boxes: [...boxes.values()], edges: [...edges.values()]};
}

function makeBox(key, index) {
  const isBlock = key[0] === "b";
  const block = isBlock ? blocks[Number(key.slice(1))] : null;
  const node = nodes[index];
  const title = isBlock ? block.name : (node.operator || node.name);
  const sub = isBlock ? `${block.nodes.length} layers` : (node.operator ? node.detail || node.short : "input");
  const longest = Math.max(title.length * 7.4, short(sub).length * 6.2);
  return {key, index, isBlock, title: short(title), sub: short(sub), color: node.color,
          width: Math.max(76, longest + 22)};
}

function short(text) {
  return text.length > 30 ? text.slice(0, 14) + "…" + text.slice(-14) : text;
}

// -- drawing --------------------------------------------------------------------------------

function draw() {
  const {boxes, edges} = visibleGraph();
  const layout = layeredLayout(boxes, edges);
  drawn = {boxes, edges, layout};
  $("edges").replaceChildren(...edges.flatMap((edge, i) => drawEdge(edge, i, layout)));
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
    rx: nodes[box.index].operator || box.isBlock ? 6 : HEIGHT / 2,
  });
  if (!box.isBlock) rect.setAttribute("fill", box.color);
  const title = shape("text", {y: 18});
  title.textContent = box.title;
  const sub = shape("text", {y: 33, class: "sub"});
  sub.textContent = box.sub;
  const hover = shape("title", {});
  hover.textContent = box.isBlock ? blocks[Number(box.key.slice(1))].path : nodes[box.index].name;
  group.append(hover, rect, title, sub);
  return group;
}

function drawEdge(edge, number, layout) {
  const path = layout.paths[number];
  const up = !layout.forward[number];
  const points = [];
  path.forEach((key, i) => {
    const x = layout.x.get(key), y = layout.y.get(key);
    if (i > 0) points.push([x, up ? y + HEIGHT : y]);
    if (i < path.length - 1) points.push([x, up ? y : y + HEIGHT]);
  });
  let d = `M${points[0][0].toFixed(1)},${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [x0, y0] = points[i - 1], [x1, y1] = points[i];
    const bend = (y0 + y1) / 2;
    d += `C${x0.toFixed(1)},${bend} ${x1.toFixed(1)},${bend} ${x1.toFixed(1)},${y1}`;
  }
  const line = shape("path", {
    class: "edge" + (up ? " back" : ""), d, "data-source": edge.source, "data-target": edge.target,
  });
  if (!edge.label) return [line];
  const [[x0, y0], [x1, y1]] = points;
  const label = shape("text", {class: "edge-label", x: (x0 + x1) / 2 + 5, y: (y0 + y1) / 2 + 4});
  label.textContent = edge.label;
  return [line, label];
}

function markBoxes() {
  const matches = new Set(found.map(keyOf));
  const current = chosen === null ? null : (chosen.block !== undefined ? `b${chosen.block}` : keyOf(chosen.node));
  for (const box of $("boxes").children) {
    box.classList.toggle("match", matches.has(box.dataset.key));
    box.classList.toggle("chosen", box.dataset.key === current);
  }
  for (const edge of $("edges").querySelectorAll(".edge")) {
    edge.classList.toggle("near", current !== null &&
      (edge.dataset.source === current || edge.dataset.target === current));
  }
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
  const parts = [element("h2", {}, node.name), element("p", {class: "op"}, node.operator || "input")];
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
    centerOn(target.block !== undefined ? `b${target.block}` : keyOf(target.node));
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

function fit() {
  const {boxes, layout} = drawn;
  const lefts = boxes.map((b) => layout.x.get(b.key) - b.width / 2);
  const rights = boxes.map((b) => layout.x.get(b.key) + b.width / 2);
  const [left, right] = [Math.min(0, ...lefts), Math.max(1, ...rights)];
  const height = layout.depth * STEP;
  const {width: w, height: h} = area();
  // Long networks start readable at their top rather than whole and tiny.
  const scale = Math.max(0.7, Math.min(1.2, (w - 40) / (right - left), (h - 40) / height));
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

function chosenKey(event) {
  const box = event.target.closest(".box");
  return box ? box.dataset.key : null;
}

function targetOf(key) {
  return key[0] === "b" ? {block: Number(key.slice(1))} : {node: Number(key.slice(1))};
}

function listen() {
  const graph = $("graph");
  let start = null;
  graph.addEventListener("pointerdown", (event) => {
    start = {x: event.clientX, y: event.clientY, view: {...view}, moved: false};
  });
  window.addEventListener("pointermove", (event) => {
    if (!start) return;
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
