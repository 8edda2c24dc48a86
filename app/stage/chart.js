// A chart of curves and of runs, as SVG: variance against dimension, in a text and in the replay of a sweep.
const SVG = "http://www.w3.org/2000/svg";
const AROUND = {left: 58, bottom: 46, right: 14, top: 14, head: 24};

function svgNode(parent, name, facts, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(facts)) node.setAttribute(key, value);
  node.textContent = text;
  return parent.appendChild(node);
}

// Places of the ticks: 1, 2, 5, 10 ... on a logarithmic axis, round numbers on another.
function roundPlaces([low, high], log) {
  if (log) return Array.from({length: 20}, (_, k) => k - 12).flatMap(k => [1, 2, 5].map(m => +`${m}e${k}`)).filter(v => v >= low * 0.999 && v <= high * 1.001);
  const power = 10 ** Math.floor(Math.log10((high - low) / 4)), by = [1, 2, 5, 10].find(m => m * power >= (high - low) / 8) * power;
  return Array.from({length: 20}, (_, k) => +((Math.ceil(low / by) + k) * by).toPrecision(6)).filter(v => v <= high);
}

// The words of a title, as many on a line as fit.
function linesOf(title, w) {
  const lines = [];
  for (const word of title.split(" ")) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && 9 * longer.length < w) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/* picture: an <svg class="chart">, which is w x h pixels.
   facts: x, y: their ranges; labels; linear: whether the y axis is so; truth: where it has a strong line; title, names: [{name, colour}]: what stands over it.
   lines: [{at: [[x, y] ...], colour, name, dash, width}]; areas: [[[x, y] ...] ...], grey.
   points: [{at: [x, y], ends: [low, high], colour, r, fill, cross}]. A colour is [on a light page, on a dark one]. */
function drawChart(picture, {x, y, labels, label, title, linear, truth = 1, names = []}, {lines = [], areas = [], points = []}, w, h, dark) {
  const {left, bottom, right, head} = AROUND, theme = Number(dark);
  picture.replaceChildren();
  for (const [key, value] of Object.entries({width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: "img", class: "chart"})) picture.setAttribute(key, value);
  picture.ariaLabel = label;
  let across = left, top = AROUND.top;
  for (const line of title ? linesOf(title, w - left - right) : []) {
    svgNode(picture, "text", {x: left, y: top + 6, class: "name"}, line);
    top += head;
  }
  for (const {name, colour} of names) {
    const wide = 40 + 8.2 * name.length;
    if (across > left && across + wide > w) [across, top] = [left, top + head];
    svgNode(picture, "circle", {cx: across + 6, cy: top + 4, r: 6, fill: colour[theme]});
    svgNode(picture, "text", {x: across + 18, y: top + 9}, name);
    across += wide;
  }
  if (names.length) top += head;
  const scale = ([low, high], from, to, f) => v => from + (f(v) - f(low)) / (f(high) - f(low)) * (to - from);
  const px = scale(x, left, w - right, Math.log), py = scale(y, h - bottom, top, linear ? v => v : Math.log);
  const within = v => Math.min(h - bottom + 40, Math.max(-40, py(v)));
  for (const v of roundPlaces(x, true)) {
    svgNode(picture, "line", {x1: px(v), x2: px(v), y1: top, y2: h - bottom, class: "grid"});
    svgNode(picture, "text", {x: px(v), y: h - bottom + 18, "text-anchor": "middle"}, String(v));
  }
  for (const v of roundPlaces(y, !linear)) {
    svgNode(picture, "line", {x1: left, x2: w - right, y1: py(v), y2: py(v), class: v === truth ? "truth" : "grid"});
    svgNode(picture, "text", {x: left - 8, y: py(v) + 4, "text-anchor": "end"}, String(+v.toPrecision(2)));
  }
  svgNode(picture, "text", {x: (left + w - right) / 2, y: h - 6, "text-anchor": "middle"}, labels[0]);
  const path = at => at.map(([a, b], k) => `${k ? "L" : "M"}${px(a).toFixed(1)} ${within(b).toFixed(1)}`).join("");
  for (const area of areas) svgNode(picture, "path", {d: `${path(area)}Z`, fill: "#888888", "fill-opacity": 0.18});
  for (const {at, colour, name, dash = "none", width = 2.5} of lines) {
    svgNode(picture, "path", {d: path(at), fill: "none", stroke: colour[theme], "stroke-width": width, "stroke-dasharray": dash});
    const [a, b] = at.at(-1);
    if (name) svgNode(picture, "text", {x: Math.min(px(a), w - right), y: py(b) - 8, "text-anchor": "end", class: "name", fill: colour[theme]}, name);
  }
  for (const {at: [a, b], ends, colour, r = 5, fill = 1, cross} of points) {
    const [cx, cy, ink] = [px(a), within(b), colour[theme]];
    if (ends) svgNode(picture, "path", {d: `M${cx} ${within(ends[0])}V${within(ends[1])}`, stroke: ink, "stroke-width": 2});
    if (cross) svgNode(picture, "path", {d: `M${cx - r} ${cy - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`, stroke: ink, "stroke-width": 1.8});
    else if (ends) svgNode(picture, "circle", {cx, cy, r, fill: ink, "fill-opacity": fill, stroke: ink, "stroke-width": 1.8});
    else svgNode(picture, "circle", {cx, cy, r, fill: ink, class: "run"});
  }
}
