// The answers of a class: how many gave which number or choice, or what everybody's own run came to.
const TALL = 300, ROW_OF_CHOICE = 46, SEEN = ["#1B1F23", "#E9ECEF"], LAW = ["#0072B2", "#56B4E9"];  // on a light page, on a dark one
const brevity = value => String(Number(value.toPrecision(3))).replace("-", "\u2212");

// question: as `Question.shown` gives it. told: as `gathered` in questions.py does. w: in pixels.
function drawGathered(host, question, told, w, dark) {
  host.replaceChildren();
  const count = document.createElement("p");
  count.className = "count-of-answers";
  count.textContent = `${told.count} answer${told.count === 1 ? "" : "s"}`;
  const picture = document.createElementNS(SVG, "svg");
  host.append(count, picture);
  if (told.points && question.choices.length) return runsOfChoices(picture, question, told.points, w, dark);
  if (told.points) return runs(picture, question, told.points, w, dark);
  if (told.counts) return choices(picture, question, told.counts, w, dark);
  return histogram(picture, question, told.bins, w, dark);
}

function sized(picture, w, h, label) {
  for (const [key, value] of Object.entries({width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: "img", class: "chart"})) picture.setAttribute(key, value);
  picture.ariaLabel = label;
}

function histogram(picture, question, bins, w, dark) {
  const h = TALL, left = 30, right = 14, top = 26, bottom = 48, most = Math.max(1, ...bins.map(bin => bin[2]));
  const by = question.log ? Math.log : v => v, ink = SEEN[Number(dark)];
  const x = v => left + (by(v) - by(question.low)) / (by(question.high) - by(question.low)) * (w - left - right);
  const y = n => h - bottom - n / most * (h - top - bottom);
  sized(picture, w, h, `${question.ask} A histogram of the answers.`);
  for (const [a, b, n] of bins) {
    if (n) svgNode(picture, "rect", {x: x(a) + 1, width: Math.max(1, x(b) - x(a) - 2), y: y(n), height: h - bottom - y(n), fill: ink, "fill-opacity": 0.55});
    if (n && x(b) - x(a) > 18) svgNode(picture, "text", {x: (x(a) + x(b)) / 2, y: y(n) - 5, "text-anchor": "middle"}, String(n));
  }
  svgNode(picture, "line", {x1: left, x2: w - right, y1: h - bottom, y2: h - bottom, stroke: ink});
  const places = roundPlaces([question.low, question.high], question.log), each = Math.ceil(places.length / (w / 60));
  places.filter((_, k) => k % each === 0).forEach(v => svgNode(picture, "text", {x: x(v), y: h - bottom + 20, "text-anchor": "middle"}, brevity(v)));
  if (question.unit) svgNode(picture, "text", {x: (left + w - right) / 2, y: h - 6, "text-anchor": "middle"}, question.unit);
  if (question.outcome !== null) {
    const at = Math.min(w - right, Math.max(left, x(question.outcome))), side = at > w / 2 ? "end" : "start";
    svgNode(picture, "line", {x1: at, x2: at, y1: 8, y2: h - bottom + 6, stroke: LAW[Number(dark)], "stroke-width": 3});
    svgNode(picture, "text", {x: at + (side === "end" ? -8 : 8), y: 18, "text-anchor": side, class: "name"}, `it is ${brevity(question.outcome)}`);
  }
}

// What a choice says, in as many lines as it needs. Returns its height.
function spoken(picture, text, x, y, w) {
  const lines = linesOf(text, w);
  lines.forEach((line, k) => svgNode(picture, "text", {x, y: y + 18 * k}, line));
  return 18 * lines.length;
}

function choices(picture, question, counts, w, dark) {
  const most = Math.max(1, ...counts), ink = SEEN[Number(dark)];
  let y = 18;
  question.choices.forEach((text, k) => {
    const right = question.outcome === k;
    y += spoken(picture, right ? `\u2713 ${text}` : text, 0, y, w - 20);
    svgNode(picture, "rect", {x: 0, y: y - 10, width: Math.max(2, counts[k] / most * (w - 60)), height: 18, rx: 3, fill: right ? LAW[Number(dark)] : ink, "fill-opacity": right ? 1 : 0.55});
    svgNode(picture, "text", {x: Math.max(2, counts[k] / most * (w - 60)) + 8, y: y + 4, class: "name"}, String(counts[k]));
    y += 34;
  });
  sized(picture, w, y, `${question.ask} ${question.choices.map((text, k) => `${text}: ${counts[k]}`).join("; ")}.`);
}

function runs(picture, question, points, w, dark) {
  const seen = points.map(point => point[1]).concat(question.law.map(point => point[1])).filter(v => v > 0);
  const ends = seen.length ? [Math.min(...seen) / 1.3, Math.max(1.1, ...seen) * 1.1] : [0.01, 1.2];
  const lines = question.law.length ? [{at: question.law, colour: LAW, name: "law"}] : [];
  drawChart(picture, {x: [question.low, question.high], y: ends, labels: [question.label], title: question.ylabel, label: `${question.ask} A point for everybody's run.`},
    {lines, points: points.filter(point => point[1] > 0).map(([x, y]) => ({at: [x, y], colour: SEEN, r: 5}))}, w, TALL + 30, dark);
}

function runsOfChoices(picture, question, points, w, dark) {
  const most = Math.max(1, ...points.map(point => point[1])), ink = SEEN[Number(dark)];
  let y = 18;
  question.choices.forEach((text, k) => {
    y += spoken(picture, text, 0, y, w - 20);
    svgNode(picture, "line", {x1: 6, x2: w - 20, y1: y, y2: y, class: "grid"});
    for (const [choice, result] of points) {
      if (choice === k) svgNode(picture, "circle", {cx: 6 + result / most * (w - 26), cy: y, r: 6, fill: ink, "fill-opacity": 0.5});
    }
    y += ROW_OF_CHOICE;
  });
  for (const share of [0, 0.5, 1]) svgNode(picture, "text", {x: 6 + share * (w - 26), y: y - 8, "text-anchor": share ? "end" : "start"}, brevity(share * most));
  svgNode(picture, "text", {x: w / 4, y: y + 12, "text-anchor": "middle"}, question.ylabel);
  sized(picture, w, y + 20, `${question.ask} A point for everybody's run.`);
}
