// Many particles: how densely they lie, below a sample of them. See `crowd.py`.
const CROWDED = {opacity: 0.85, arrows: 60, trails: 60, dot: 1.2};  // arrows, trails: of how many of the sample; dot: its radius

// Inverse of density() in crowd.py; `block` is what it returns.
function unpackCrowd(block) {
  const [, total, peak, columns, lines, x0, y0, dx, dy] = block, levels = new Uint8Array(columns * lines);
  for (let i = 0; i < levels.length; i++) levels[i] = block[9 + Math.floor(i / 3)] >> 8 * (i % 3);
  return {total, peak, columns, lines, x0, y0, dx, dy, levels};
}

// How many particles a cell has, to the rounding of its level.
const countOf = ({peak, levels}, i) => peak * (levels[i] / 255) ** 2;

// The cells as a picture of one colour, the denser the fuller.
function crowdImage(crowd, color) {
  if (crowd.image?.color === color) return crowd.image.canvas;
  const {columns, lines, levels} = crowd, canvas = document.createElement("canvas"), [r, g, b] = rgb(color);
  const ctx = sizedCanvas(canvas, columns, lines, 1), image = ctx.createImageData(columns, lines);
  levels.forEach((level, i) => {
    image.data.set([r, g, b, level * CROWDED.opacity], 4 * ((lines - 1 - Math.floor(i / columns)) * columns + i % columns));
  });
  ctx.putImageData(image, 0, 0);
  crowd.image = {color, canvas};
  return canvas;
}

function drawCrowd(ctx, map, crowd, color, {curve, area}) {
  if (curve) return drawSteps(ctx, map, crowd, area, color);
  const {columns, lines, x0, y0, dx, dy} = crowd;
  ctx.drawImage(crowdImage(crowd, color), map.x(x0), map.y(y0 + lines * dy), columns * dx * map.kx, lines * dy * map.ky);
}

// On a line: their histogram, with the area of the target's curve.
function drawSteps(ctx, map, crowd, area, color) {
  const {columns, total, x0, dx} = crowd;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = 2 * unit;
  ctx.beginPath();
  ctx.moveTo(map.x(x0), map.y(0));
  for (let i = 0; i < columns; i++) {
    const height = countOf(crowd, i) / total / dx * area;
    ctx.lineTo(map.x(x0 + i * dx), map.y(height));
    ctx.lineTo(map.x(x0 + (i + 1) * dx), map.y(height));
  }
  ctx.lineTo(map.x(x0 + columns * dx), map.y(0));
  ctx.stroke();
  ctx.globalAlpha = 0.25;
  ctx.fill();
  ctx.globalAlpha = 1;
}

// What the legend says of panels with a density; "" for none.
function crowdText(panels) {
  const panel = panels.find(p => p.crowd);
  return panel ? `density of ${panel.count.toLocaleString("en")} points, ${panel.drawn.toLocaleString("en")} drawn` : "";
}
