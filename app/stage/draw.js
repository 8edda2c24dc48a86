// What the stage looks like. All draw functions take a context, so that the export can pass an
// SvgContext; they use hex colours with globalAlpha and alphabetic baselines only, which every
// SVG reader knows.
// THEMES, the tokens of both themes, comes from Python.
const rgb = color => [1, 3, 5].map(i => parseInt(color.slice(i, i + 2), 16));
const BATCH = 16 * 8;  // one path for 16 rows: fewer strokes than particles, no path too complex to fill fast
const LEFT = 46, RIGHT = 8, TOP = 32, BOTTOM = 44, ROW = 8, LEGEND = 26, CROWD = 500, CAP = 0.15, PALE = 5;

function number(v) {
  if (!Number.isFinite(v)) return "–";
  const a = Math.abs(v);
  if (a && (a < 1e-3 || a >= 1e5)) return v.toExponential(2).replace("-", "−").replace("e-", "e−").replace("e+", "e");
  return (a >= 1e4 ? v.toFixed(0) : v.toPrecision(4)).replace("-", "−");
}

function niceBelow(v) {
  const power = 10 ** Math.floor(Math.log10(v));
  return [5, 2, 1].find(k => k * power <= v * 1.0001) * power;
}

function clipPlot(ctx, map) {
  ctx.beginPath();
  ctx.rect(LEFT, TOP, map.w - LEFT - RIGHT, map.h - TOP - BOTTOM);
  ctx.clip();
}

// Five strokes of rising opacity; a stroke per particle and age would be thousands.
function drawTrails(ctx, map, trail, color) {
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.2;
  const last = trail.length - 1, count = trail[last].length;
  for (let band = 0; band < 5; band++) {
    const from = Math.floor(band * last / 5), to = Math.floor((band + 1) * last / 5);
    ctx.globalAlpha = 0.1 + 0.1 * band;
    ctx.beginPath();
    for (let i = 0; i < count; i += 2) {
      let pen = "moveTo";
      for (let t = from; t <= to; t++) {
        if (i >= trail[t].length) continue;  // this particle was added later
        ctx[pen](map.x(trail[t][i]), map.y(trail[t][i + 1]));
        pen = "lineTo";
      }
    }
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

function drawGuides(ctx, map, rows, color) {
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = 1;
  for (const [sd, fill, line] of [[2, 0.05, 0.3], [1, 0.1, 0.75]]) {
    ctx.beginPath();
    for (let i = 0; i < rows.length; i += ROW) {
      const rx = sd * rows[i + 2] * map.kx, ry = sd * rows[i + 3] * map.ky, x = map.x(rows[i]), y = map.y(rows[i + 1]);
      ctx.moveTo(x + rx, y);
      ctx.ellipse(x, y, rx, ry, 0, 0, 2 * Math.PI);
    }
    ctx.globalAlpha = fill;
    ctx.fill();
    ctx.globalAlpha = line;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

// One arrow per row from columns `col` and `col + 1` (plus those from `also`), `scale` data units long per unit of force.
// An arrow is at most CAP of the panel long, and pale below PALE pixels.
function drawArrows(ctx, map, rows, col, scale, color, open, also = 0) {
  const most = CAP * Math.min(map.w, map.h);
  drawSomeArrows(ctx, map, rows, col, scale, color, open, also, 1.5, PALE, 0.4, most);
  drawSomeArrows(ctx, map, rows, col, scale, color, open, also, PALE, Infinity, 1, most);
}

function drawSomeArrows(ctx, map, rows, col, scale, color, open, also, least, below, opacity, most) {
  const heads = [];
  const crowd = rows.length > CROWD * ROW, longest = crowd ? 5 : 7;
  ctx.globalAlpha = opacity;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = crowd ? 1 : 1.4;
  ctx.beginPath();
  for (let i = 0; i < rows.length; i += ROW) {
    if (i % BATCH === 0) {
      ctx.stroke();
      ctx.beginPath();
    }
    const x = map.x(rows[i]), y = map.y(rows[i + 1]);
    const fx = rows[i + col] + (also && rows[i + also]), fy = rows[i + col + 1] + (also && rows[i + also + 1]);
    let dx = fx * scale * map.kx, dy = -fy * scale * map.ky, length = Math.hypot(dx, dy);
    if (!(length > least && length <= below)) continue;
    if (length > most) [dx, dy, length] = [dx * most / length, dy * most / length, most];
    const head = Math.min(longest, 0.5 * length), ux = dx / length * head, uy = dy / length * head, tx = x + dx, ty = y + dy;
    const ax = tx - ux - 0.5 * uy, ay = ty - uy + 0.5 * ux, bx = tx - ux + 0.5 * uy, by = ty - uy - 0.5 * ux;
    ctx.moveTo(x, y);
    if (open) {
      ctx.lineTo(tx, ty);
      ctx.moveTo(ax, ay);
      ctx.lineTo(tx, ty);
      ctx.lineTo(bx, by);
    } else {
      ctx.lineTo(tx - ux, ty - uy);
      heads.push(ax, ay, tx, ty, bx, by);
    }
  }
  ctx.stroke();
  ctx.beginPath();
  for (let i = 0; i < heads.length; i += 6) {
    if (i % (6 * 32) === 0) {
      ctx.fill();
      ctx.beginPath();
    }
    ctx.moveTo(heads[i], heads[i + 1]);
    ctx.lineTo(heads[i + 2], heads[i + 3]);
    ctx.lineTo(heads[i + 4], heads[i + 5]);
    ctx.closePath();
  }
  ctx.fill();
  ctx.globalAlpha = 1;
}

function drawDots(ctx, map, rows, radius, fill, line) {
  ctx.beginPath();
  for (let i = 0; i < rows.length; i += ROW) {
    const x = map.x(rows[i]), y = map.y(rows[i + 1]);
    ctx.moveTo(x + radius, y);
    ctx.ellipse(x, y, radius, radius, 0, 0, 2 * Math.PI);
  }
  ctx.fillStyle = fill;
  ctx.fill();
  if (rows.length > CROWD * ROW) return;  // the rims would cover the dots
  ctx.strokeStyle = line;
  ctx.lineWidth = 1;
  ctx.stroke();
}

// Exact fixed points: hollow targets.
function drawFixed(ctx, map, points, color) {
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.4;
  ctx.beginPath();
  for (let i = 0; i < points.length; i += 2) {
    const x = map.x(points[i]), y = map.y(points[i + 1]);
    ctx.moveTo(x + 8, y);
    ctx.ellipse(x, y, 8, 8, 0, 0, 2 * Math.PI);
    for (const [ux, uy] of [[1, 0], [0, 1], [-1, 0], [0, -1]]) {
      ctx.moveTo(x + 5 * ux, y + 5 * uy);
      ctx.lineTo(x + 12 * ux, y + 12 * uy);
    }
  }
  ctx.stroke();
}

// How long an arrow of a round force is.
function drawBar(ctx, map, scale, theme, family) {
  const unit = niceBelow(60 / scale / map.kx), length = unit * scale * map.kx, x = map.w - RIGHT - 12 - length, y = TOP + 14;
  drawArrows(ctx, {...map, w: Infinity, h: Infinity, kx: 1, ky: 1, x: () => x, y: () => y}, [0, 0, 0, 0, length, 0, 0, 0], 4, 1, theme.muted, false);
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "right";
  ctx.font = `12px ${family}`;
  ctx.fillText(`force ${+unit.toPrecision(1)}`.replace("-", "−"), x - 7, y + 4);
}

// How many rows lie beyond the axes.
function outside({extent: [x0, x1, y0, y1]}, rows) {
  let away = 0;
  for (let i = 0; i < rows.length; i += ROW) away += !(rows[i] >= x0 && rows[i] <= x1 && rows[i + 1] >= y0 && rows[i + 1] <= y1);
  return away;
}

// One panel over its background. look: theme, family, show, hover (particle index or -1), bars (a scale bar in it).
function drawPanel(ctx, card, panel, look) {
  const {title, color, trail, note, arrows: forces, background: {map, scale}} = card, {theme, family, show, hover} = look;
  ctx.fillStyle = color;
  ctx.fillRect(LEFT, 11, 10, 10);
  ctx.fillStyle = theme.ink;
  ctx.textAlign = "left";
  ctx.font = `600 14px ${family}`;
  ctx.fillText(title, LEFT + 17, 21);
  ctx.fillStyle = theme.muted;
  ctx.font = `12px ${family}`;
  ctx.textAlign = "center";
  if (note) ctx.fillText(note, (map.w + LEFT - RIGHT) / 2, (map.h + TOP - BOTTOM) / 2);
  if (note || !panel) return;
  ctx.textAlign = "right";
  ctx.fillText(`n = ${panel.count} · step ${panel.step}`, map.w - RIGHT, 21);
  ctx.save();
  clipPlot(ctx, map);
  const {rows} = panel, arrows = show.attract || show.repulse || show.sum;
  if (show.trails && trail.length > 1) drawTrails(ctx, map, trail, color);
  if (show.guides && panel.hasScale) drawGuides(ctx, map, rows, color);
  if (show.fixed) drawFixed(ctx, map, panel.fixed, theme.ink);
  if (show.attract) drawArrows(ctx, map, forces, 4, scale, theme.attract, false);
  if (show.repulse) drawArrows(ctx, map, forces, 6, scale, theme.repulse, true);
  if (show.sum) drawArrows(ctx, map, forces, 4, scale, theme.ink, false, 6);
  drawDots(ctx, map, rows, panel.count > CROWD ? 2 : panel.count > 100 ? 3 : 4, color, theme.paper);
  if (hover >= 0 && hover < panel.count) {
    drawDots(ctx, map, rows.subarray(hover * ROW, (hover + 1) * ROW), 6, theme.ink, theme.paper);
  }
  ctx.restore();
  const away = outside(map, rows);
  if (away) {
    ctx.fillStyle = theme.ink;
    ctx.textAlign = "right";
    ctx.font = `600 12px ${family}`;
    ctx.fillText(`${away} of ${panel.count} outside`, map.w - RIGHT - 8, map.h - BOTTOM - 9);
  }
  if (look.bars && arrows && scale > 0 && panel.count) drawBar(ctx, map, scale, theme, family);
}

// What the colours and arrow heads mean, with the length of a horizontal arrow as the scale where all cards share one.
// A row of `width` pixels that goes on in a second one.
function drawLegend(ctx, width, {map, scale}, look, panels) {
  const {theme, family, show} = look;
  let x = LEFT, y = 13;
  ctx.font = `12px ${family}`;
  ctx.textAlign = "left";
  const item = (length, text, glyph) => {
    const needed = length + 7 + ctx.measureText(text).width;
    if (x + needed > width) [x, y] = [LEFT, y + LEGEND];
    glyph({...map, w: Infinity, h: Infinity, kx: 1, ky: 1, x: () => x, y: () => y}, [0, 0, 0, 0, length, 0, length, 0]);
    ctx.fillStyle = theme.muted;
    ctx.fillText(text, x + length + 7, y + 4);
    x += needed + 22;
  };
  if (show.attract) item(26, "attraction", (at, row) => drawArrows(ctx, at, row, 4, 1, theme.attract, false));
  if (show.repulse) item(26, "repulsion", (at, row) => drawArrows(ctx, at, row, 6, 1, theme.repulse, true));
  if (show.sum) item(26, "sum", (at, row) => drawArrows(ctx, at, row, 4, 1, theme.ink, false));
  if (!look.bars && (show.attract || show.repulse) && scale > 0) {
    const unit = niceBelow(50 / scale / map.kx), text = `= ${+unit.toPrecision(1)}`.replace("-", "−");
    item(unit * scale * map.kx, text, (at, row) => drawArrows(ctx, at, row, 4, 1, theme.muted, false));
  }
  if ((show.attract || show.repulse || show.sum) && panels.some(p => p.noisy)) {
    item(0, "guides' arrows: mean of recent frames", () => {});
  }
  if (show.guides && panels.some(p => p.hasScale)) {
    item(24, "guide, 1 and 2 sd", at => drawGuides(ctx, {...at, x: () => x + 12, kx: 6, ky: 4.5},
      [0, 0, 1, 1, 0, 0, 0, 0], theme.ink));
  }
  if (show.fixed && panels.some(p => p.fixed.length)) {
    item(24, "exact fixed points", at => drawFixed(ctx, {...at, x: () => x + 12}, [0, 0], theme.ink));
  }
}

// A short line of recent values; gaps where a value is missing (or not positive on a log scale).
function drawSparkline(ctx, w, h, values, log, color) {
  const ys = values.map(v => log ? (v > 0 ? Math.log10(v) : NaN) : v), known = ys.filter(Number.isFinite);
  ctx.clearRect(0, 0, w, h);
  if (!known.length) return;
  const span = Math.max(...known) - Math.min(...known) || 1, lo = (Math.max(...known) + Math.min(...known) - span) / 2;
  const x = i => 3 + i / Math.max(1, ys.length - 1) * (w - 6), y = v => h - 4 - (v - lo) / span * (h - 8);
  let pen = "moveTo";
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ys.forEach((v, i) => {
    if (Number.isFinite(v)) ctx[pen](x(i), y(v));
    pen = Number.isFinite(v) ? "lineTo" : "moveTo";
  });
  ctx.stroke();
  if (pen === "lineTo") ctx.fillRect(x(ys.length - 1) - 2, y(ys[ys.length - 1]) - 2, 4, 4);
}
