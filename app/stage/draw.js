// What the stage looks like. All draw functions take a context, so that the export can pass an
// SvgContext; they use hex colours with globalAlpha and alphabetic baselines only, which every SVG reader knows.
// THEMES, the tokens of both themes, comes from Python.
const rgb = color => [1, 3, 5].map(i => parseInt(color.slice(i, i + 2), 16));
const BATCH = 16 * 9;  // one path for 16 rows: fewer strokes than particles, no path too complex to fill fast
const LEFT = 46, RIGHT = 8, TOP = 32, BOTTOM = 44, ROW = 9, LEGEND = 28, TITLE = 30, CROWD = 500, CAP = 0.15, PALE = 5;
const FEW = 8;  // guides that are drawn one by one; of more the mixture is drawn, too
let unit = 1;  // 2 in lecture mode: text, lines and dots of twice the size
const textOf = (size, family, weight = 400) => `${weight} ${size * unit}px ${family}`;

function number(v) {
  if (!Number.isFinite(v)) return "–";
  if (!v) return "0";  // exactly
  const a = Math.abs(v);
  if (a < 1e-3 || a >= 1e5) return v.toExponential(2).replace("-", "−").replace("e-", "e−").replace("e+", "e");
  return (a >= 1e4 ? v.toFixed(0) : v.toPrecision(4)).replace("-", "−");
}

function niceBelow(v) {
  const power = 10 ** Math.floor(Math.log10(v));
  return [5, 2, 1].find(k => k * power <= v * 1.0001) * power;
}

function clipPlot(ctx, {w, h, edges: {left, right, top, bottom}}) {
  ctx.beginPath();
  ctx.rect(left, top, w - left - right, h - top - bottom);
  ctx.clip();
}

// Five strokes of rising opacity; a stroke per particle and age would be thousands. The path of a few stays visible.
function drawTrails(ctx, map, trail, color, most = Infinity) {
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.5 * unit;
  const last = trail.length - 1, count = Math.min(trail[last].length, 2 * most);
  for (let band = 0; band < 5; band++) {
    const from = Math.floor(band * last / 5), to = Math.floor((band + 1) * last / 5);
    ctx.globalAlpha = (count <= 2 * PATHS ? 0.3 : 0.05) + 0.08 * band;
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

// Half axes and angle of the ellipse of one standard deviation, of two sds and their correlation.
function axesOf(sx, sy, correlation) {
  if (!correlation) return [sx, sy, 0];
  const half = (sx * sx - sy * sy) / 2, middle = (sx * sx + sy * sy) / 2, shared = correlation * sx * sy, r = Math.hypot(half, shared);
  return [Math.sqrt(middle + r), Math.sqrt(Math.max(0, middle - r)), Math.atan2(shared, half) / 2];
}

function drawGuides(ctx, map, rows, color) {
  const count = rows.length / ROW;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = (count > FEW ? 1.5 : 2) * unit;
  ctx.beginPath();
  for (let i = 0; i < rows.length; i += ROW) {
    const [long, short, turn] = axesOf(rows[i + 2] * map.kx, rows[i + 3] * map.ky, -rows[i + 8]);
    const x = map.x(rows[i]), y = map.y(rows[i + 1]);
    ctx.moveTo(x + long * Math.cos(turn), y + long * Math.sin(turn));
    ctx.ellipse(x, y, long, short, turn, 0, 2 * Math.PI);
  }
  ctx.globalAlpha = count > 100 ? 0.03 : 0.1;
  ctx.fill();
  ctx.globalAlpha = count > 100 ? 0.2 : count > FEW ? 0.5 : 0.8;
  ctx.stroke();
  ctx.globalAlpha = 1;
}

// One arrow per row from columns `col` and `col + 1` (plus those from `also`), `scale` data units long per unit of force.
// An arrow is at most CAP of the panel long, and pale below PALE pixels.
function drawArrows(ctx, map, rows, col, scale, color, open, also = 0, lit = 0) {
  const most = CAP * Math.min(map.w, map.h), full = lit < 0 ? 0.22 : 1;
  drawSomeArrows(ctx, map, rows, col, scale, color, open, also, 1.5, PALE, 0.4 * full, most, lit);
  drawSomeArrows(ctx, map, rows, col, scale, color, open, also, PALE, Infinity, full, most, lit);
}

// lit: 1 for arrows that come forward, -1 for those that step back.
function drawSomeArrows(ctx, map, rows, col, scale, color, open, also, least, below, opacity, most, lit) {
  const heads = [];
  const crowd = rows.length > CROWD * ROW, longest = (crowd ? 5 : 8) * unit * (lit > 0 ? 1.4 : 1);
  ctx.globalAlpha = opacity;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = (crowd ? 1 : lit > 0 ? 3.2 : 1.8) * unit;
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

// line: colour of the rims, or "" for none.
function drawDots(ctx, map, rows, radius, fill, line) {
  ctx.beginPath();
  for (let i = 0; i < rows.length; i += ROW) {
    const x = map.x(rows[i]), y = map.y(rows[i + 1]);
    ctx.moveTo(x + radius, y);
    ctx.ellipse(x, y, radius, radius, 0, 0, 2 * Math.PI);
  }
  ctx.fillStyle = fill;
  ctx.globalAlpha = line ? 1 : 0.8;
  ctx.fill();
  ctx.globalAlpha = 1;
  if (!line) return;
  ctx.strokeStyle = line;
  ctx.lineWidth = 1.2 * unit;
  ctx.stroke();
}

// Exact draws of the target, behind everything.
function drawGhosts(ctx, map, draws, color) {
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.45;
  ctx.beginPath();
  for (let i = 0; i < draws.length; i += 2) {
    const x = map.x(draws[i]), y = map.y(draws[i + 1]), r = 1.7 * unit;
    ctx.moveTo(x + r, y);
    ctx.ellipse(x, y, r, r, 0, 0, 2 * Math.PI);
  }
  ctx.fill();
  ctx.globalAlpha = 1;
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
  const force = niceBelow(60 / scale / map.kx), length = force * scale * map.kx, x = map.w - map.edges.right - 12 - length, y = map.edges.top + 16;
  drawArrows(ctx, {...map, w: Infinity, h: Infinity, kx: 1, ky: 1, x: () => x, y: () => y}, [0, 0, 0, 0, length, 0, 0, 0], 4, 1, theme.muted, false);
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "right";
  ctx.font = textOf(13, family);
  ctx.fillText(`force ${+force.toPrecision(1)}`.replace("-", "−"), x - 7, y + 4);
}

// How many rows lie beyond the axes.
function outside({extent: [x0, x1, y0, y1]}, rows) {
  let away = 0;
  for (let i = 0; i < rows.length; i += ROW) away += !(rows[i] >= x0 && rows[i] <= x1 && rows[i + 1] >= y0 && rows[i + 1] <= y1);
  return away;
}

// One panel over its background. rows, forces: what is drawn of its particles, and their arrows. look: theme, family, show,
// hover (particle index or -1), lit ("attract", "repulse" or ""), bars (a scale bar in it).
function drawPanel(ctx, card, panel, {rows, forces}, look) {
  const {color, trail, note, background: {map, scale, scene}} = card, {theme, family, show} = look;
  const {edges: {left, right, bottom, top}} = map;
  ctx.fillStyle = theme.muted;
  ctx.font = textOf(15, family);
  ctx.textAlign = "center";
  if (note) ctx.fillText(note, (map.w + left - right) / 2, (map.h + top - bottom) / 2);
  if (note || !panel) return;
  ctx.save();
  clipPlot(ctx, map);
  if (show.draws && scene.draws) drawGhosts(ctx, map, scene.draws, theme.muted);
  if (show.trails && trail.length > 1) drawTrails(ctx, map, trail, color, panel.crowd && CROWDED.trails);
  drawParticles(ctx, card, panel, map, rows, forces, look);
  ctx.restore();
  if (!scene.curve) drawLens(ctx, card, map, rows, look, (ctx, map) => drawParticles(ctx, card, panel, map, rows, forces, look));
  const away = outside(map, rows);
  if (away) {
    ctx.fillStyle = theme.ink;
    ctx.textAlign = "right";
    ctx.font = textOf(13, family, 600);
    ctx.fillText(`${away} of ${panel.drawn}${panel.crowd ? " drawn" : ""} outside`, map.w - right - 8, map.h - bottom - 26);
  }
  if (look.bars && (show.attract || show.repulse || show.sum) && scale > 0 && panel.count) drawBar(ctx, map, scale, theme, family);
}

// The particles of a panel, with all that belongs to each.
function drawParticles(ctx, card, panel, map, rows, forces, look) {
  const {color, background: {scale, scene}} = card, {theme, show, hover} = look;
  const lit = name => look.lit ? look.lit === name ? 1 : -1 : 0, {crowd} = panel;
  if (crowd) drawCrowd(ctx, map, crowd, color, scene);
  if (show.guides && panel.hasScale) {
    if (scene.curve) {
      drawBells(ctx, map, rows, scene.area, color);
    } else if (!crowd) {
      drawGuides(ctx, map, rows, color);
      if (panel.count > FEW && !map.lens) drawMixture(ctx, map, card, rows, color);
    }
  }
  if (crowd) forces = forces.subarray(0, CROWDED.arrows * ROW);
  if (show.fixed) drawFixed(ctx, map, panel.fixed, theme.ink);
  if (show.curve) drawCurve(ctx, map, panel.fixed, theme);
  if (show.attract) drawArrows(ctx, map, forces, 4, scale, theme.attract, false, 0, lit("attract"));
  if (show.repulse) drawArrows(ctx, map, forces, 6, scale, theme.repulse, true, 0, lit("repulse"));
  if (show.sum) drawArrows(ctx, map, forces, 4, scale, theme.ink, false, 6);
  const radius = unit * (crowd ? CROWDED.dot : panel.count > CROWD ? 2 : panel.count > 100 ? 3 : 4.5);
  drawDots(ctx, map, rows, radius, crowd ? theme.ink : color, crowd || isCrowded(map, rows, radius) ? "" : theme.paper);
  if (hover >= 0 && hover < panel.drawn) {
    drawDots(ctx, map, rows.subarray(hover * ROW, (hover + 1) * ROW), 1.5 * radius, theme.ink, theme.paper);
  }
}

// What stands over a panel in an export: its colour, its title, how many particles it has and its step.
function drawHead(ctx, card, panel, {w}, {theme, family}) {
  ctx.fillStyle = card.color;
  ctx.fillRect(0, 8, 11, 11);
  ctx.fillStyle = theme.ink;
  ctx.textAlign = "left";
  ctx.font = `600 16px ${family}`;
  ctx.fillText(card.title, 18, 19);
  if (!panel) return;
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "right";
  ctx.font = `14px ${family}`;
  ctx.fillText(`n = ${panel.count.toLocaleString("en")} · step ${panel.step}`, w, 19);
}

// What the colours and arrow heads mean, in one row: the legend of an export.
function drawLegend(ctx, marks, {map, scale}, look, panels) {
  const {theme, family, show} = look, noisy = panels.some(p => p.noisy);
  let x = 0;
  ctx.font = `14px ${family}`;
  ctx.textAlign = "left";
  const item = (length, text, glyph) => {
    glyph({...map, w: Infinity, h: Infinity, kx: 1, ky: 1, x: () => x, y: () => 13}, [0, 0, 0, 0, length, 0, length, 0]);
    ctx.fillStyle = theme.muted;
    ctx.fillText(text, x + length + 7, 18);
    x += length + 29 + ctx.measureText(text).width;
  };
  const glyphs = {
    attract: (at, row) => drawArrows(ctx, at, row, 4, 1, theme.attract, false),
    repulse: (at, row) => drawArrows(ctx, at, row, 6, 1, theme.repulse, true),
    sum: (at, row) => drawArrows(ctx, at, row, 4, 1, theme.ink, false),
    guides: at => drawGuides(ctx, {...at, x: () => x + 13, kx: 11, ky: 7}, [0, 0, 1, 1, 0, 0, 0, 0], theme.ink),
    fixed: at => drawFixed(ctx, {...at, x: () => x + 13}, [0, 0], theme.ink),
    curve: at => drawCurve(ctx, {...at, x: v => x + v}, [4, 0, 22, 0], theme),
    draws: at => drawGhosts(ctx, {...at, kx: 1, x: v => x + 13 + v}, [-9, 0, 0, 0, 9, 0], theme.muted),
  };
  const there = {guides: panels.some(p => p.hasScale), fixed: panels.some(p => p.fixed.length), curve: panels.some(p => p.fixed.length)};
  for (const [name, text] of Object.entries(marks)) {
    if (show[name] && glyphs[name] && there[name] !== false) item(26, text, glyphs[name]);
  }
  if (!look.bars && (show.attract || show.repulse) && scale > 0) {
    const force = niceBelow(50 / scale / map.kx), text = `= ${+force.toPrecision(1)}`.replace("-", "−");
    item(force * scale * map.kx, text, (at, row) => drawArrows(ctx, at, row, 4, 1, theme.muted, false));
  }
  if (crowdText(panels)) item(0, crowdText(panels), () => {});
  if (noisy && (show.attract || show.repulse || show.sum)) item(0, "arrows: mean of recent frames", () => {});
}
