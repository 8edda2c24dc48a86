// What a panel of the page "Function space" looks like, on a canvas or in an SVG.
function line(ctx, map, xs, ys) {
  xs.forEach((x, i) => ctx[i ? "lineTo" : "moveTo"](map.x(x), map.y(ys[i])));
}

// Mean, 1, 2 and 3 standard deviations, and the curve of each member.
function drawMembers(ctx, map, xs, {mean, sd, curves}, color) {
  ctx.fillStyle = ctx.strokeStyle = color;
  ctx.globalAlpha = 0.14;
  for (const times of [3, 2, 1]) {
    ctx.beginPath();
    xs.forEach((x, i) => ctx[i ? "lineTo" : "moveTo"](map.x(x), map.y(mean[i] - times * sd[i])));
    for (let i = xs.length - 1; i >= 0; i--) ctx.lineTo(map.x(xs[i]), map.y(mean[i] + times * sd[i]));
    ctx.closePath();
    ctx.fill();
  }
  ctx.globalAlpha = 0.55;
  ctx.lineWidth = unit;
  for (const curve of curves) {
    ctx.beginPath();
    line(ctx, map, xs, curve);
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  ctx.lineWidth = 2.5 * unit;
  ctx.beginPath();
  line(ctx, map, xs, mean);
  ctx.stroke();
}

// The exact band, dashed: mean +- 2 standard deviations.
function drawExact(ctx, map, xs, {mean, sd}, color) {
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.6 * unit;
  ctx.beginPath();
  for (const times of [-2, 2]) {
    for (let i = 0; i < xs.length - 1; i++) {
      if (i % 5 > 2) continue;
      ctx.moveTo(map.x(xs[i]), map.y(mean[i] + times * sd[i]));
      ctx.lineTo(map.x(xs[i + 1]), map.y(mean[i + 1] + times * sd[i + 1]));
    }
  }
  ctx.stroke();
}

// NUTS's band, dotted: mean +- 2 standard deviations.
function drawSampled(ctx, map, xs, {mean, sd}, color) {
  ctx.fillStyle = color;
  ctx.beginPath();
  for (const times of [-2, 2]) xs.forEach((x, i) => {
    if (i % 3) return;
    const [px, py] = [map.x(x), map.y(mean[i] + times * sd[i])];
    ctx.moveTo(px + 1.3, py);
    ctx.ellipse(px, py, 1.3, 1.3, 0, 0, 2 * Math.PI);
  });
  ctx.fill();
}

function drawData(ctx, map, points, marked, radius, look) {
  points.forEach(([x, y], i) => {
    ctx.beginPath();
    const r = (i === marked ? radius + 3 : radius) * unit;
    ctx.ellipse(map.x(x), map.y(y), r, r, 0, 0, 2 * Math.PI);
    ctx.fillStyle = i === marked ? look.ink : look.muted;
    ctx.fill();
    ctx.strokeStyle = look.paper;
    ctx.lineWidth = 0.8 * unit;
    ctx.stroke();
  });
}

// Points where functions repel: diamonds; on the axis of the regression, or where they lie in the plane.
function drawHandles(ctx, places, marked, look) {
  places.forEach(([x, y], i) => {
    const r = (i === marked ? 9 : 6.5) * (1 + unit) / 2;
    ctx.beginPath();
    ctx.moveTo(x, y - r);
    ctx.lineTo(x + r, y);
    ctx.lineTo(x, y + r);
    ctx.lineTo(x - r, y);
    ctx.closePath();
    ctx.fillStyle = i === marked ? look.ink : look.repulse;
    ctx.fill();
    ctx.strokeStyle = look.paper;
    ctx.lineWidth = 1.5 * unit;
    ctx.stroke();
  });
}

// Pairs of members: how far apart their weights are, and how far apart their functions.
function drawPairs(ctx, map, {weights, functions}, color) {
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.55;
  ctx.beginPath();
  for (let i = 0; i < weights.length; i++) {
    const x = map.x(weights[i]), y = map.y(functions[i]);
    ctx.moveTo(x + 2.2 * unit, y);
    ctx.ellipse(x, y, 2.2 * unit, 2.2 * unit, 0, 0, 2 * Math.PI);
  }
  ctx.fill();
  ctx.globalAlpha = 1;
}

// A map of side x side values from 0 to most, as shades of one colour.
function shadeMap(values, side, most, [r, g, b]) {
  const canvas = document.createElement("canvas"), ctx = sizedCanvas(canvas, side, side, 1);
  const image = ctx.createImageData(side, side);
  for (let i = 0; i < values.length; i++) {
    const o = 4 * ((side - 1 - Math.floor(i / side)) * side + i % side);
    image.data.set([r, g, b, 255 * Math.min(1, Math.max(0, values[i] / most))], o);
  }
  ctx.putImageData(image, 0, 0);
  return canvas;
}

function drawMap(ctx, map, values, side, reach, most, color) {
  const [x, y, x1, y1] = [map.x(-reach), map.y(reach), map.x(reach), map.y(-reach)];
  ctx.drawImage(shadeMap(values, side, most, rgb(color)), x, y, x1 - x, y1 - y);
}

// The border between classes of each member, as dark as the share of members that have it.
function drawBorders(ctx, map, {right, up}, side, reach, color) {
  const cell = 2 * reach / side, at = i => -reach + i * cell;
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.2 * unit;
  for (let level = 1; level <= 5; level++) {
    ctx.globalAlpha = 0.15 * level;
    ctx.beginPath();
    for (let i = 0; i < right.length; i++) {
      const column = i % side, row = Math.floor(i / side);
      if (Math.ceil(5 * right[i]) === level) {
        ctx.moveTo(map.x(at(column + 1)), map.y(at(row)));
        ctx.lineTo(map.x(at(column + 1)), map.y(at(row + 1)));
      }
      if (Math.ceil(5 * up[i]) === level) {
        ctx.moveTo(map.x(at(column)), map.y(at(row + 1)));
        ctx.lineTo(map.x(at(column + 1)), map.y(at(row + 1)));
      }
    }
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

function drawCircle(ctx, map, radius, color) {
  ctx.strokeStyle = color;
  ctx.lineWidth = unit;
  ctx.beginPath();
  for (let k = 0; k < 120; k += 2) {
    const a = k * Math.PI / 60, b = (k + 1) * Math.PI / 60;
    ctx.moveTo(map.x(radius * Math.cos(a)), map.y(radius * Math.sin(a)));
    ctx.lineTo(map.x(radius * Math.cos(b)), map.y(radius * Math.sin(b)));
  }
  ctx.stroke();
}

// Entropies at test points (filled) and far away (outline), as shares of their points.
function drawHistograms(ctx, map, [test, far], most, color, ink) {
  const width = most / test.length;
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.4;
  test.forEach((share, i) => {
    const y = map.y(share);
    ctx.fillRect(map.x(i * width), y, map.x((i + 1) * width) - map.x(i * width), map.y(0) - y);
  });
  ctx.globalAlpha = 1;
  ctx.strokeStyle = ink;
  ctx.lineWidth = 2 * unit;
  ctx.beginPath();
  ctx.moveTo(map.x(0), map.y(0));
  far.forEach((share, i) => {
    ctx.lineTo(map.x(i * width), map.y(share));
    ctx.lineTo(map.x((i + 1) * width), map.y(share));
  });
  ctx.lineTo(map.x(most), map.y(0));
  ctx.stroke();
}

const MOST_SPREAD = 0.4;  // of the map of disagreement

// What is inside the axes of a panel.
function drawInside(ctx, {kind, map, index}, {scene, mine, nuts, color, look, dark, points, marked}) {
  const {grid, blobs, side, reach: far, most, panels} = scene, shown = mine?.panels[index];
  if (kind === "line") {
    ctx.fillStyle = look.muted;
    ctx.globalAlpha = 0.12;
    for (const [a, b] of blobs) ctx.fillRect(map.x(a), map.edges.top, map.x(b) - map.x(a), map.h - map.edges.top - map.edges.bottom);
    ctx.globalAlpha = 1;
    if (shown) drawMembers(ctx, map, grid, shown, color);
    if (mine?.exact && !nuts.mean) drawExact(ctx, map, grid, mine.exact, look.muted);
    if (nuts.mean) drawSampled(ctx, map, grid, nuts, look.ink);
    drawData(ctx, map, points, marked("point"), 2.6, look);
  } else if (kind === "pairs") {
    for (const panel of panels) {
      const one = mine?.panels[panel.index];
      if (one) drawPairs(ctx, map, one, panel.colours[dark ? 1 : 0]);
    }
  } else if (kind === "histogram") {
    if (shown) drawHistograms(ctx, map, shown.histograms, most, color, look.ink);
  } else {
    if (shown) drawMap(ctx, map, shown[kind], side, far, kind === "entropy" ? most : MOST_SPREAD, color);
    if (shown) drawBorders(ctx, map, shown, side, far, look.ink);
    drawCircle(ctx, map, scene.far, look.muted);
    drawData(ctx, map, points, -1, 1.4, look);
  }
}

// Inverse of parts() in stage.py.
function unpack(frame, {grid, side, bins}) {
  const {runs, take} = reader(frame), [, ring, step, count] = take(4), panels = {}, k = grid.length;
  const line = () => take(k, 5, 0.04), map = (...how) => take(side * side, ...how);
  const exact = ring ? null : {mean: line(), sd: line()};
  for (let p = 0; p < count; p++) {
    const [index, at, diverged] = take(3), seen = {step: at, diverged};
    if (ring) {
      Object.assign(seen, {entropy: map(2, 0.1), disagreement: map(2, 0.04), right: map(1, 0.1), up: map(1, 0.1),
        histograms: [take(bins, 1, 0.01), take(bins, 1, 0.01)]});
    } else {
      const [m, pairs] = take(2);
      Object.assign(seen, {mean: line(), sd: line(), curves: Array.from({length: m}, line), weights: take(pairs, 1, 0.25), functions: take(pairs, 1, 0.1)});
    }
    panels[index] = seen;
  }
  return {ring, step, exact, panels, runs};
}
