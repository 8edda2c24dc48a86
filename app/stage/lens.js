// A lens: a cloud that is narrower than a tenth of its panel is shown again, larger, in an empty corner of it.
const LENS = {least: 5, within: 0.1, until: 0.12, share: 0.36, times: 3, air: 10};  // particles; of the panel; how large; pixels to its edge

// The box around the particles in pixels, with two sds of each guide: [x0, x1, y0, y1].
function boxOf(map, rows) {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < rows.length; i += ROW) {
    const x = map.x(rows[i]), y = map.y(rows[i + 1]), w = 2 * rows[i + 2] * map.kx || 0, h = 2 * rows[i + 3] * map.ky || 0;
    [x0, x1, y0, y1] = [Math.min(x0, x - w), Math.max(x1, x + w), Math.min(y0, y - h), Math.max(y1, y + h)];
  }
  return [x0, x1, y0, y1];
}

// Where the lens is, {left, top, size, x, y: its centre in the panel}, or null. It stays on a little longer than it comes.
function lensOf(card, map, rows, lecture) {
  const {edges: {left, right, top, bottom}} = map, w = map.w - left - right, h = map.h - top - bottom, side = Math.min(w, h);
  const [x0, x1, y0, y1] = boxOf(map, rows), span = Math.max(x1 - x0, y1 - y0);
  card.lens = rows.length >= LENS.least * ROW && span < side * (card.lens ? LENS.until : LENS.within);
  if (!card.lens) return null;
  const x = (x0 + x1) / 2, y = (y0 + y1) / 2, size = LENS.share * side, far = size + LENS.air + span;
  const ends = {left: left + LENS.air, right: map.w - right - LENS.air - size, top: top + LENS.air, bottom: map.h - bottom - LENS.air - size};
  const free = (a, b) => Math.abs(x - ends[a] - size / 2) > far / 2 || Math.abs(y - ends[b] - size / 2) > far / 2;
  const corners = [["right", "top"], ["left", "top"], ["left", "bottom"], ["right", "bottom"]].slice(0, lecture ? 3 : 4);
  const [a, b] = corners.find(([a, b]) => free(a, b)) ?? corners[0];
  return {left: ends[a], top: ends[b], size, x, y};
}

// draw(ctx, map) draws the particles by another map.
function drawLens(ctx, card, map, rows, {theme, family, lecture}, draw) {
  const lens = lensOf(card, map, rows, lecture);
  if (!lens) return;
  const {left, top, size, x, y} = lens, n = LENS.times, dx = left + size / 2 - n * x, dy = top + size / 2 - n * y;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top, size, size);
  ctx.clip();
  ctx.fillStyle = theme.paper;
  ctx.fillRect(left, top, size, size);
  ctx.globalAlpha = 1 / 3;
  ctx.drawImage(card.background.bitmap, dx, dy, n * map.w, n * map.h);
  ctx.globalAlpha = 1;
  draw(ctx, {...map, lens: true, w: n * map.w, h: n * map.h, kx: n * map.kx, ky: n * map.ky,
    x: v => dx + n * map.x(v), y: v => dy + n * map.y(v)});
  ctx.restore();
  ctx.beginPath();
  ctx.rect(left, top, size, size);
  ctx.strokeStyle = theme.muted;
  ctx.lineWidth = 1.5 * unit;
  ctx.stroke();
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "left";
  ctx.font = textOf(13, family);
  ctx.fillText(`× ${n}`, left + 6, top + size - 7);
}

// Whether most dots touch another: their rims would hide them.
function isCrowded(map, rows, radius) {
  const count = rows.length / ROW, near = (1.6 * radius) ** 2;
  if (count > CROWD) return true;
  let touching = 0;
  for (let i = 0; i < rows.length; i += ROW) {
    const x = map.x(rows[i]), y = map.y(rows[i + 1]);
    for (let j = 0; j < rows.length; j += ROW) {
      if (i !== j && (map.x(rows[j]) - x) ** 2 + (map.y(rows[j + 1]) - y) ** 2 < near) {
        touching++;
        break;
      }
    }
  }
  return touching > 0.5 * count;
}
