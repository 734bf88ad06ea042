// A layered layout: every box below those it reads, few crossings. Long edges get a place of
// their own in each layer they pass, so that they go around boxes.

const GAP = 26, PASSAGE = 14, SWEEPS = 8, STEP = 84, HEIGHT = 42;

// boxes: [{key, width}] in topological order; edges: [{source, target}].
// Returns positions of boxes by key, and the points of each edge.
function layeredLayout(boxes, edges) {
  const order = new Map(boxes.map((box, i) => [box.key, i]));
  // Folded blocks may read each other both ways: edges to earlier boxes do not count for layers.
  const forward = edges.map((e) => order.get(e.source) < order.get(e.target));
  const layer = assignLayers(boxes, edges, forward);
  const depth = Math.max(0, ...layer.values()) + 1;
  const rows = Array.from({length: depth}, () => []);
  const width = new Map();
  for (const box of boxes) {
    rows[layer.get(box.key)].push(box.key);
    width.set(box.key, box.width);
  }
  const paths = edges.map((edge, i) => {
    const [from, to] = [layer.get(edge.source), layer.get(edge.target)];
    const path = [edge.source];
    const step = to > from ? 1 : -1;
    for (let j = from + step; from !== to && j !== to; j += step) {
      const key = `${i}\u0000${j}`;
      rows[j].push(key);
      width.set(key, PASSAGE);
      path.push(key);
    }
    path.push(edge.target);
    return path;
  });
  const [above, below] = neighbors(paths, layer, order);
  orderRows(rows, above, below);
  const x = placeRows(rows, above, below, width);
  const y = new Map();
  rows.forEach((row, j) => row.forEach((key) => y.set(key, j * STEP)));
  return {x, y, paths, forward, depth};
}

function assignLayers(boxes, edges, forward) {
  const sources = new Map(), users = new Map();
  edges.forEach((edge, i) => {
    if (!forward[i]) return;
    push(sources, edge.target, edge.source);
    push(users, edge.source, edge.target);
  });
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

function push(map, key, value) {
  if (!map.has(key)) map.set(key, []);
  map.get(key).push(value);
}

function neighbors(paths, layer) {
  const above = new Map(), below = new Map();
  for (const path of paths) {
    const down = layer.get(path[0]) <= layer.get(path[path.length - 1]);
    for (let i = 0; i + 1 < path.length; i++) {
      const [upper, lower] = down ? [path[i], path[i + 1]] : [path[i + 1], path[i]];
      push(above, lower, upper);
      push(below, upper, lower);
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
