// What a panel of the page "1-D wave" looks like, on a canvas or in an SVG.

// A line through ys at xs with gaps where y is not finite. on, off: lengths of a dash in points, which the SVG knows too.
function drawLine(ctx, map, xs, ys, on = 1, off = 0) {
  let pen = "moveTo";
  for (let i = 0; i < xs.length; i++) {
    const known = Number.isFinite(ys[i]), there = i % (on + off) <= on;
    if (known && (pen === "moveTo" || there)) ctx[pen](map.x(xs[i]), map.y(ys[i]));
    pen = known && (!off || i % (on + off) < on) ? "lineTo" : "moveTo";
  }
}

function fillBand(ctx, map, xs, low, high) {
  ctx.beginPath();
  xs.forEach((x, i) => ctx[i ? "lineTo" : "moveTo"](map.x(x), map.y(low[i])));
  for (let i = xs.length - 1; i >= 0; i--) ctx.lineTo(map.x(xs[i]), map.y(high[i]));
  ctx.closePath();
  ctx.fill();
}

function drawBands(ctx, map, xs, {low, high, low50, high50, mean, curves}, color) {
  ctx.fillStyle = ctx.strokeStyle = color;
  ctx.globalAlpha = 0.25;
  fillBand(ctx, map, xs, low, high);
  ctx.globalAlpha = 0.35;
  fillBand(ctx, map, xs, low50, high50);
  ctx.globalAlpha = 0.6;
  ctx.lineWidth = unit;
  for (const curve of curves) {
    ctx.beginPath();
    drawLine(ctx, map, xs, curve);
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  ctx.lineWidth = 2.5 * unit;
  ctx.beginPath();
  drawLine(ctx, map, xs, mean);
  ctx.stroke();
}

function drawNuts(ctx, map, xs, {low, high, chains}, color) {
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5 * unit;
  ctx.beginPath();
  for (const side of [low, high]) drawLine(ctx, map, xs, side, 4, 2);
  for (const chain of chains) drawLine(ctx, map, xs, chain, 1, 1);
  ctx.stroke();
}

function drawPoints(ctx, map, points, marked, theme) {
  points.forEach(([x, y], i) => {
    ctx.beginPath();
    const r = (i === marked ? 6 : 3.2) * unit;
    ctx.ellipse(map.x(x), map.y(y), r, r, 0, 0, 2 * Math.PI);
    ctx.fillStyle = i === marked ? theme.ink : theme.muted;
    ctx.fill();
    ctx.strokeStyle = theme.paper;
    ctx.lineWidth = 0.8;
    ctx.stroke();
  });
}
