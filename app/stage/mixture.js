// The mixture that guides make: contours of its mass in the plane, bells and their sum on a line.
const CELLS = 72, HELD = 60;  // of the grid along each side; milliseconds that contours are kept

// Segments x, y, x, y of the contour of `values` at `level`, in cells of the grid (march through its squares).
function isolines(values, level) {
  const found = [];
  for (let j = 0; j < CELLS - 1; j++) {
    for (let i = 0; i < CELLS - 1; i++) {
      const o = j * CELLS + i, a = values[o], b = values[o + 1], c = values[o + 1 + CELLS], d = values[o + CELLS];
      const pa = a >= level, pb = b >= level, pc = c >= level, pd = d >= level;
      if (pa === pb && pb === pc && pc === pd) continue;
      if (pa !== pb) found.push(i + (level - a) / (b - a), j);
      if (pb !== pc) found.push(i + 1, j + (level - b) / (c - b));
      if (pd !== pc) found.push(i + (level - d) / (c - d), j + 1);
      if (pa !== pd) found.push(i, j + (level - a) / (d - a));
    }
  }
  return found;
}

// What is seen of the guides, with four sds of each: the grid shall not be coarser than it needs to be.
function around(rows, [x0, x1, y0, y1]) {
  const box = [Infinity, -Infinity, Infinity, -Infinity];
  for (let r = 0; r < rows.length; r += ROW) {
    for (const axis of [0, 1]) {
      const at = rows[r + axis], far = 4 * rows[r + 2 + axis];
      box[2 * axis] = Math.min(box[2 * axis], at - far);
      box[2 * axis + 1] = Math.max(box[2 * axis + 1], at + far);
    }
  }
  const inner = [Math.max(box[0], x0), Math.min(box[1], x1), Math.max(box[2], y0), Math.min(box[3], y1)];
  return inner[0] < inner[1] && inner[2] < inner[3] ? inner : [x0, x1, y0, y1];
}

// The contours of an equal mixture of normals that hold these shares of its visible mass, as `isolines`, in data units.
function mixtureContours(rows, seen, shares) {
  const [x0, x1, y0, y1] = around(rows, seen);
  const dx = (x1 - x0) / (CELLS - 1), dy = (y1 - y0) / (CELLS - 1), values = new Float64Array(CELLS * CELLS);
  const bell = (from, step, mean, sd) => {
    const wide = Math.max(sd, 0.6 * step);  // narrower than a cell it would fall between two points
    return Float64Array.from({length: CELLS}, (_, i) => Math.exp(-0.5 * ((from + i * step - mean) / wide) ** 2) / wide);
  };
  for (let r = 0; r < rows.length; r += ROW) {
    const rho = rows[r + 8];
    if (rho) {  // the mean and the sd of x at each y
      const up = bell(y0, dy, rows[r + 1], rows[r + 3]), sd = rows[r + 2] * Math.sqrt(1 - rho * rho);
      for (let j = 0; j < CELLS; j++) {
        if (up[j] < 1e-9) continue;
        const across = bell(x0, dx, rows[r] + rho * rows[r + 2] * (y0 + j * dy - rows[r + 1]) / rows[r + 3], sd);
        for (let i = 0, o = j * CELLS; i < CELLS; i++) values[o + i] += up[j] * across[i];
      }
      continue;
    }
    const across = bell(x0, dx, rows[r], rows[r + 2]), up = bell(y0, dy, rows[r + 1], rows[r + 3]);
    for (let j = 0; j < CELLS; j++) {
      const weight = up[j];
      if (weight < 1e-9) continue;
      for (let i = 0, o = j * CELLS; i < CELLS; i++) values[o + i] += weight * across[i];
    }
  }
  const ranked = values.slice().sort().reverse(), total = ranked.reduce((sum, v) => sum + v, 0);
  return shares.map(share => {
    let sum = 0;
    const level = ranked[ranked.findIndex(v => (sum += v) >= share * total)];
    return isolines(values, level).map((v, i) => i % 2 ? y0 + v * dy : x0 + v * dx);
  });
}

// A full line around half of the mixture, dots around 90 % of it.
function drawMixture(ctx, map, card, rows, color) {
  const now = performance.now();
  if (!card.mixture || card.mixture.rows.length !== rows.length || now - card.mixture.at > HELD || card.mixture.map !== map) {
    card.mixture = {at: now, rows, map, contours: mixtureContours(rows, map.extent, [0.5, 0.9])};
  }
  const [half, most] = card.mixture.contours;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = 2.5 * unit;
  ctx.beginPath();
  for (let i = 0; i < half.length; i += 4) {
    ctx.moveTo(map.x(half[i]), map.y(half[i + 1]));
    ctx.lineTo(map.x(half[i + 2]), map.y(half[i + 3]));
  }
  ctx.stroke();
  ctx.beginPath();
  for (let i = 0; i < most.length; i += 4) {
    const x = map.x((most[i] + most[i + 2]) / 2), y = map.y((most[i + 1] + most[i + 3]) / 2), r = 1.4 * unit;
    ctx.moveTo(x + r, y);
    ctx.ellipse(x, y, r, r, 0, 0, 2 * Math.PI);
  }
  ctx.fill();
}

// In one dimension: the density of each guide and, thick, their sum. area: that of the target's curve, whose height is 1.
function drawBells(ctx, map, rows, area, color) {
  const [x0, x1] = map.extent, count = rows.length / ROW, steps = 240, sum = new Float64Array(steps + 1);
  const line = values => {
    ctx.beginPath();
    values.forEach((v, i) => ctx[i ? "lineTo" : "moveTo"](map.x(x0 + (x1 - x0) * i / steps), map.y(v)));
    ctx.stroke();
  };
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5 * unit;
  ctx.globalAlpha = count > 100 ? 0.15 : 0.5;
  for (let r = 0; r < rows.length; r += ROW) {
    const [mean, , sd] = rows.subarray(r, r + 3), height = area / count / sd / Math.sqrt(2 * Math.PI);
    const bell = sum.map((_, i) => height * Math.exp(-0.5 * ((x0 + (x1 - x0) * i / steps - mean) / sd) ** 2));
    bell.forEach((v, i) => { sum[i] += v; });
    line(bell);
  }
  ctx.globalAlpha = 1;
  ctx.lineWidth = 2.5 * unit;
  line(sum);
}

// The path of a sampler's mean as z moves along a line: dark on a light seam, so that it reads over any density.
function drawCurve(ctx, map, points, theme) {
  for (const [colour, width] of [[theme.paper, 5], [theme.ink, 2]]) {
    ctx.strokeStyle = colour;
    ctx.lineWidth = width * unit;
    ctx.beginPath();
    for (let i = 0; i < points.length; i += 2) ctx[i ? "lineTo" : "moveTo"](map.x(points[i]), map.y(points[i + 1]));
    ctx.stroke();
  }
}
