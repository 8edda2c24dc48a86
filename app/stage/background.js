const FARTHEST = 5;  // so many times its first span an extent widens to each side at most: one particle far out shall not shrink the others to a dot
const CALM = 60;  // frames in a row that the first extent has to hold before it comes back: a noisy edge shall not flicker

const FIRST = 40, RECENT = 20;  // frames that an arrow's usual length is taken from

const middle = seen => seen.map(each => each.size).sort((a, b) => a - b)[seen.length >> 1];

// What stands still behind cards of the same space: axes, density and contours, painted once, off screen, and the one
// arrow scale of that space.
class Background {
  constructor(scene) {
    this.scene = scene;
    this.extent = scene.extent;
    this.scale = 0;  // data units per unit of force
    this.fit();
    this.held = 0;  // frames in a row that the first extent held
  }

  // Paints itself for cards of w x h CSS pixels.
  layout(w, h, ratio, theme, family, edges) {
    const {image, equal} = this.scene, shade = image && shadeImage(image, rgb(theme.shade));
    this.edges = edges;
    this.map = mapping(this.extent, w, h, equal, edges);
    this.home = mapping(this.scene.extent, w, h, equal, edges).extent;
    this.draw = ctx => drawBackground(ctx, this.map, this.scene, shade, theme, family);
    this.bitmap = document.createElement("canvas");
    this.draw(sizedCanvas(this.bitmap, w, h, ratio));
  }

  // Forget the forces so far: the next ones are fitted. usual: those at the start of a run whose start is not shown.
  fit(usual = this.scene.usual) {
    Object.assign(this, {first: usual ? Array(FIRST).fill({step: 0, size: usual}) : [], recent: [], peaks: []});
  }

  // One scale for a run: the usual force of its first frames is a tenth of a card long. It gives way to larger forces that
  // last, and never to smaller ones, so arrows shrink as forces vanish. tables: rows of each panel. A step back finds the
  // scale of that step. limit: most pixels per unit of force.
  followForces(tables, step, limit) {
    const {map} = this, lengths = [];
    for (const name of ["first", "recent", "peaks"]) this[name] = this[name].filter(seen => seen.step <= step);
    for (const rows of tables) {
      for (let i = 0; i < rows.length; i += ROW) {
        lengths.push(Math.hypot(rows[i + 4] * map.kx, rows[i + 5] * map.ky), Math.hypot(rows[i + 6] * map.kx, rows[i + 7] * map.ky));
      }
    }
    const some = Float64Array.from(lengths.filter(v => v > 0 && v < Infinity)).sort();
    const seen = {step, size: some[Math.ceil(0.95 * (some.length - 1))] / map.kx};
    if (some.length && step !== this.recent.at(-1)?.step) {  // a knob that is turned at rest changes no scale
      this.recent = [...this.recent, seen].slice(-RECENT);
      if (this.first.length < FIRST) this.first.push(seen);
      else if (this.recent.length === RECENT && middle(this.recent) > this.size()) this.peaks.push({step, size: middle(this.recent)});
    }
    if (this.first.length) this.scale = Math.min(0.1 * Math.min(map.w, map.h) / this.size(), limit) / map.kx;
  }

  // The force, in data units of the x axis, that is drawn a tenth of a card long.
  size() {
    return Math.max(middle(this.first), this.peaks.at(-1)?.size ?? 0);
  }

  // Widens the extent where a panel has left what is seen, with room to spare so that this is rare; true if it changed.
  // The first extent comes back with a new start, and when it has held all for a while.
  followPositions(panels) {
    const first = this.scene.extent, before = this.extent, anew = panels.some(panel => panel.step === 0);
    let extent = [...(anew ? first : before)];
    if (this.widen(extent, anew ? this.home : this.map.extent, panels)) {
      this.widen(extent, extent, panels);  // what only the margins of equal axes held: they go where one side widens
    }
    this.held = this.widen([...first], this.home, panels) ? 0 : this.held + 1;
    if (this.held > CALM) extent = [...first];
    this.extent = extent;
    return extent.some((v, i) => v !== before[i]);
  }

  // Moves the sides of `extent` so that it holds what lies beyond `seen`; whether something did.
  widen(extent, seen, panels) {
    const first = this.scene.extent;
    seen = [...seen];
    let beyond = false;
    for (const {rows} of panels) {
      for (let i = 0; i < rows.length; i += ROW) {
        for (const axis of [0, 1]) {
          const v = rows[i + axis], lo = 2 * axis, hi = lo + 1, room = 0.25 * (extent[hi] - extent[lo]);
          const most = FARTHEST * (first[hi] - first[lo]);
          if (v < seen[lo]) seen[lo] = extent[lo] = Math.max(v - room, first[lo] - most);
          else if (v > seen[hi]) seen[hi] = extent[hi] = Math.min(v + room, first[hi] + most);
          else continue;
          beyond = true;
        }
      }
    }
    return beyond;
  }
}

function ticks(lo, hi, count) {
  const step = niceBelow((hi - lo) / count * 2), out = [];
  for (let k = Math.ceil(lo / step); k * step <= hi; k++) out.push(+(k * step).toPrecision(6));
  return out;
}

// Where data coordinates lie on a panel of w x h CSS pixels; `equal` widens one range so that both axes share a unit. edges:
// pixels around the plot.
function mapping([x0, x1, y0, y1], w, h, equal, edges = {left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM}) {
  const {left, right, top, bottom} = edges, width = w - left - right, height = h - top - bottom;
  if (equal) {
    const unit = Math.max((x1 - x0) / width, (y1 - y0) / height), dx = (unit * width - x1 + x0) / 2, dy = (unit * height - y1 + y0) / 2;
    [x0, x1, y0, y1] = [x0 - dx, x1 + dx, y0 - dy, y1 + dy];
  }
  const kx = width / (x1 - x0), ky = height / (y1 - y0), within = (v, low, high) => Math.min(Math.max(v, low), high);
  const data = (px, py) => [x0 + (px - left) / kx, y0 + (h - bottom - py) / ky];
  return {w, h, kx, ky, edges, extent: [x0, x1, y0, y1], x: v => left + (v - x0) * kx, y: v => h - bottom - (v - y0) * ky,
    data, nearest: (px, py) => data(within(px, left, w - right), within(py, top, h - bottom)),
    holds: (px, py) => px >= left && px <= w - right && py >= top && py <= h - bottom};
}

function shadeImage({width, height, data}, [r, g, b]) {
  const canvas = document.createElement("canvas"), bytes = atob(data);
  const ctx = sizedCanvas(canvas, width, height, 1), image = ctx.createImageData(width, height);
  for (let i = 0; i < bytes.length; i++) {
    const o = 4 * ((height - 1 - Math.floor(i / width)) * width + i % width);
    image.data.set([r, g, b, bytes.charCodeAt(i) * 0.46], o);
  }
  ctx.putImageData(image, 0, 0);
  return canvas;
}

function polyline(ctx, map, flat) {
  for (let i = 0; i < flat.length; i += 2) ctx[i ? "lineTo" : "moveTo"](map.x(flat[i]), map.y(flat[i + 1]));
}

function drawBackground(ctx, map, scene, shade, theme, family) {
  ctx.save();
  clipPlot(ctx, map);
  const [x0, x1, y0, y1] = scene.extent;
  if (shade) ctx.drawImage(shade, map.x(x0), map.y(y1), (x1 - x0) * map.kx, (y1 - y0) * map.ky);
  ctx.strokeStyle = ctx.fillStyle = theme.shade;
  if (scene.curve) {
    const c = scene.curve;
    ctx.globalAlpha = 0.18;
    ctx.beginPath();
    polyline(ctx, map, [c[0], 0, ...c, c[c.length - 2], 0]);
    ctx.fill();
    ctx.globalAlpha = 0.9;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    polyline(ctx, map, c);
    ctx.stroke();
  }
  ctx.globalAlpha = 0.45;
  ctx.lineWidth = unit;
  ctx.beginPath();
  for (const line of scene.contours) polyline(ctx, map, line);
  ctx.stroke();
  ctx.restore();
  drawAxes(ctx, map, scene, theme, family);
}

// Names of the axes stand outside if there is room for them, else in the corners of the plot.
function drawAxes(ctx, map, {labels}, theme, family) {
  const {w, h, extent: [x0, x1, y0, y1], edges: {left, right, top, bottom}} = map, text = v => String(v).replace("-", "−");
  const within = bottom < 40, bare = bottom < 20;
  ctx.lineWidth = 1;
  ctx.strokeStyle = theme.line;
  ctx.fillStyle = theme.muted;
  ctx.font = `13px ${family}`;
  ctx.beginPath();
  ctx.rect(left, top, w - left - right, h - top - bottom);
  ctx.textAlign = "center";
  for (const v of bare ? [] : ticks(x0, x1, Math.min(w / 80, 7))) {
    ctx.moveTo(map.x(v), h - bottom);
    ctx.lineTo(map.x(v), h - bottom + 4);
    ctx.fillText(text(v), Math.min(map.x(v), w - 8), h - bottom + 18);
  }
  ctx.textAlign = "right";
  for (const v of bare ? [] : ticks(y0, y1, Math.min(h / 60, 7))) {
    ctx.moveTo(left, map.y(v));
    ctx.lineTo(left - 4, map.y(v));
    ctx.fillText(text(v), left - 7, Math.max(map.y(v) + 4, 12));
  }
  ctx.stroke();
  if (bare) return;
  if (within) {
    ctx.fillText(labels[0], w - right - 8, h - bottom - 9);
    ctx.textAlign = "left";
    ctx.fillText(labels[1], left + 8, top + 18);
    return;
  }
  ctx.textAlign = "center";
  ctx.fillText(labels[0], (w + left - right) / 2, h - 8);
  ctx.save();
  ctx.translate(13, (h + top - bottom) / 2);
  ctx.rotate(-Math.PI / 2);
  ctx.fillText(labels[1], 0, 0);
  ctx.restore();
}
