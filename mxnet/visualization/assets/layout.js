// A layered layout: every box below those it reads, few crossings. Long edges get a place of
// their own in each layer they pass, so that they go around boxes.

const GAP = 26, PASSAGE = 14, SWEEPS = 8, STEP = 90, HEIGHT = 42, TEXT_HEIGHT = 12;

// boxes: [{key, width}] and edges: [{source, target}] of a graph without cycles.
// Returns positions of boxes by key, and the points of each edge.
function layeredLayout(boxes, edges) {
  const layer = assignLayers(sortBoxes(boxes, edges), edges);
  const depth = Math.max(0, ...layer.values()) + 1;
  const rows = Array.from({length: depth}, () => []);
  const width = new Map();
  for (const box of boxes) {
    rows[layer.get(box.key)].push(box.key);
    width.set(box.key, box.width);
  }
  const paths = edges.map((edge, i) => {
    const path = [edge.source];
    for (let j = layer.get(edge.source) + 1; j < layer.get(edge.target); j++) {
      const key = `${i}\u0000${j}`;
      rows[j].push(key);
      width.set(key, PASSAGE);
      path.push(key);
    }
    path.push(edge.target);
    return path;
  });
  const [above, below] = neighbors(paths);
  orderRows(rows, above, below);
  const x = placeRows(rows, above, below, width);
  const y = new Map();
  rows.forEach((row, j) => row.forEach((key) => y.set(key, j * STEP)));
  return {x, y, paths, depth};
}

// Boxes such that each comes after those it reads, otherwise in their order.
function sortBoxes(boxes, edges) {
  const users = new Map(), open = new Map(boxes.map((box) => [box.key, 0]));
  for (const edge of edges) {
    push(users, edge.source, edge.target);
    open.set(edge.target, open.get(edge.target) + 1);
  }
  const byKey = new Map(boxes.map((box) => [box.key, box]));
  const sorted = boxes.filter((box) => !open.get(box.key));
  for (let i = 0; i < sorted.length; i++) {
    for (const key of users.get(sorted[i].key) || []) {
      open.set(key, open.get(key) - 1);
      if (!open.get(key)) sorted.push(byKey.get(key));
    }
  }
  return sorted;
}

function assignLayers(boxes, edges) {
  const sources = new Map(), users = new Map();
  for (const edge of edges) {
    push(sources, edge.target, edge.source);
    push(users, edge.source, edge.target);
  }
  const layer = new Map();
  for (const box of boxes) {
    const above = (sources.get(box.key) || []).map((key) => layer.get(key) + 1);
    layer.set(box.key, Math.max(0, ...above));
  }
  for (const box of boxes) {  // what reads nothing stands just above its first user
    const readers = users.get(box.key);
    if (!sources.has(box.key) && readers) {
      layer.set(box.key, Math.min(...readers.map((key) => layer.get(key))) - 1);
    }
  }
  return layer;
}

// Divides folded blocks so that the graph of boxes has no cycle: a layer joins the latest box of
// its block unless something between them reads that box. blockOf(i) is the folded block of node i or null;
// returns the box of each node as [block, part], and how many parts each block has.
function divideBlocks(nodes, blockOf) {
  const boxOf = [], users = new Map(), parts = new Map();
  const reaches = (start, goal) => {
    const stack = [start], seen = new Set(stack);
    while (stack.length) {
      const key = stack.pop();
      if (key === goal) return true;
      for (const next of users.get(key) || []) {
        if (!seen.has(next)) { seen.add(next); stack.push(next); }
      }
    }
    return false;
  };
  nodes.forEach((node, i) => {
    const block = blockOf(i);
    const read = [...new Set(node.inputs.map(([source]) => boxOf[source]))];
    if (block === null) boxOf.push(`n${i}`);
    else {
      let part = parts.get(block) || 1;
      const key = `b${block}.${part}`;
      if (read.some((other) => other !== key && reaches(key, other))) part += 1;
      parts.set(block, part);
      boxOf.push(`b${block}.${part}`);
    }
    for (const other of read) {
      if (other === boxOf[i]) continue;
      if (!users.has(other)) users.set(other, new Set());
      users.get(other).add(boxOf[i]);
    }
  });
  return {boxOf, parts};
}

// Places for texts on edges, so that none covers another: beside the middle of the edge, else a
// line higher or lower, else nowhere. texts: [{x, y, width}]; returns y of each, or null.
function placeTexts(texts) {
  const rows = new Map();
  return texts.map((text) => {
    for (const shift of [0, -TEXT_HEIGHT, TEXT_HEIGHT]) {
      const y = text.y + shift;
      const taken = rows.get(y) || [];
      const [left, right] = [text.x - 3, text.x + text.width + 3];
      if (taken.some(([a, b]) => left < b && a < right)) continue;
      rows.set(y, [...taken, [left, right]]);
      return y;
    }
    return null;
  });
}

function push(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}

function neighbors(paths) {
  const above = new Map(), below = new Map();
  for (const path of paths) {
    for (let i = 0; i + 1 < path.length; i++) {
      push(above, path[i + 1], path[i]);
      push(below, path[i], path[i + 1]);
    }
  }
  return [above, below];
}

function mean(keys, place, fallback) {
  let sum = 0, count = 0;
  for (const key of keys || []) {
    if (place.has(key)) { sum += place.get(key); count += 1; }
  }
  return count ? sum / count : fallback;
}

function orderRows(rows, above, below) {
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    const near = down ? above : below;
    const walk = down ? rows : [...rows].reverse();
    for (let i = 1; i < walk.length; i++) {
      const place = new Map(walk[i - 1].map((key, j) => [key, j]));
      const wanted = new Map(walk[i].map((key, j) => [key, mean(near.get(key), place, j)]));
      walk[i].sort((a, b) => wanted.get(a) - wanted.get(b));
    }
  }
}

function placeRows(rows, above, below, width) {
  const x = new Map();
  for (const row of rows) spread(row, row.map(() => 0), width, x);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    const near = down ? above : below;
    for (const row of down ? rows : [...rows].reverse()) {
      spread(row, row.map((key) => mean(near.get(key), x, x.get(key))), width, x);
    }
  }
  return x;
}

// Put a row as near as it can be to where its members want to be, without overlap.
function spread(row, wanted, width, x) {
  const steps = row.slice(1).map((key, i) => (width.get(row[i]) + width.get(key)) / 2 + GAP);
  const pushed = (values, gaps) => {
    const placed = [];
    values.forEach((value, i) => {
      placed.push(i === 0 ? value : Math.max(value, placed[i - 1] + gaps[i - 1]));
    });
    return placed;
  };
  const left = pushed(wanted, steps);
  const reversed = pushed([...wanted].reverse().map((v) => -v), [...steps].reverse());
  const right = reversed.map((v) => -v).reverse();
  row.forEach((key, i) => x.set(key, (left[i] + right[i]) / 2));
}
