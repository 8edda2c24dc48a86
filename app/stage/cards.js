// What stands around the panels, in HTML: heads, read-outs and the legend.
const HISTORY = 300;

// A small picture of a mark, in a box of 28 x 16.
function glyph(name, theme, color = theme.ink) {
  const arrow = (paint, open) => `<path d="M1 8H${open ? 25 : 18}" stroke="${paint}" stroke-width="2"/>` + (open ?
    `<path d="M18 3L25 8L18 13" fill="none" stroke="${paint}" stroke-width="2"/>` : `<path d="M17 3L26 8L17 13Z" fill="${paint}"/>`);
  const dots = places => places.map(([x, y]) => `<circle cx="${x}" cy="${y}" r="3.6" fill="${color}"/>`).join("");
  const drawn = {
    attract: arrow(theme.attract, false),
    repulse: arrow(theme.repulse, true),
    sum: arrow(theme.ink, false),
    guides: `<ellipse cx="14" cy="8" rx="11" ry="6.5" fill="${color}" fill-opacity="0.15" stroke="${color}" stroke-width="2"/>`,
    trails: `<path d="M2 13C8 4 14 13 26 5" fill="none" stroke="${color}" stroke-opacity="0.5" stroke-width="2"/>`,
    curve: `<path d="M4 12Q10 0 14 8T24 4" fill="none" stroke="${color}" stroke-width="2"/>`,
    fixed: `<path d="M14 1V15M7 8H21" stroke="${color}" stroke-width="1.5"/><circle cx="14" cy="8" r="5" fill="none" stroke="${color}" stroke-width="1.5"/>`,
    draws: [[4, 10], [10, 5], [15, 11], [21, 6], [25, 11]].map(([x, y]) => `<circle cx="${x}" cy="${y}" r="1.8" fill="${theme.muted}"/>`).join(""),
    point: dots([[6, 5], [15, 11], [22, 4]]),
    guide: `<ellipse cx="14" cy="8" rx="11" ry="6" transform="rotate(-20 14 8)" fill="none" stroke="${color}" stroke-width="2.2"/>` + dots([[14, 8]]),
  };
  return `<svg viewBox="0 0 28 16" width="28" height="16" aria-hidden="true">${drawn[name] ?? ""}</svg>`;
}

// The legend is the switch: a click shows or hides a mark, pointing at a force lights its arrows.
class Legend {
  constructor(parent, {toggle, light}) {
    this.node = element("div", "legend", parent);
    Object.assign(this, {toggle, light, shown: ""});
  }

  build(marks, theme) {
    this.node.replaceChildren();
    this.buttons = Object.entries(marks).map(([name, text]) => {
      const button = element("button", "mark", this.node);
      button.type = "button";
      button.innerHTML = glyph(name, theme);
      element("span", "", button, text);
      button.addEventListener("click", () => this.toggle(name));
      if (name in theme) {
        for (const kind of ["pointerenter", "focus"]) button.addEventListener(kind, () => this.light(name));
        for (const kind of ["pointerleave", "blur"]) button.addEventListener(kind, () => this.light(""));
      }
      return [name, button];
    });
    this.scale = element("span", "scale", this.node);
    this.bar = element("i", "", this.scale);
    this.force = element("span", "", this.scale);
    this.mean = element("span", "", this.node, "arrows: mean of recent frames");
    this.crowd = element("span", "", this.node, "");
    this.shown = "";
  }

  update({map, scale}, {show, bars}, panels) {
    const there = {guides: panels.some(p => p.hasScale), fixed: panels.some(p => p.fixed.length), curve: panels.some(p => p.fixed.length)};
    const arrows = show.attract || show.repulse, noisy = panels.some(p => p.noisy) && (arrows || show.sum);
    const force = !bars && arrows && scale > 0 && map ? niceBelow(50 / scale / map.kx) : 0;
    const now = JSON.stringify([show, there, noisy, force, force && scale * map.kx, panels.length, crowdText(panels)]);
    if (now === this.shown) return;
    this.shown = now;
    for (const [name, button] of this.buttons) {
      button.hidden = panels.length > 0 && there[name] === false;
      button.ariaPressed = String(!!show[name]);
    }
    this.scale.hidden = !force;
    this.bar.style.width = force && `${force * scale * map.kx}px`;
    this.force.textContent = `force ${+force.toPrecision(1)}`;
    this.mean.hidden = !noisy;
    this.crowd.textContent = crowdText(panels);
    this.crowd.hidden = !this.crowd.textContent;
  }
}

// The parts of a card: a head, a canvas, three large read-outs, and the others folded.
function makeCard(deck, {title, kind, particle, metrics, accent, edit, note}, onFold) {
  const node = element("section", "card", deck), head = element("h3", "head", node);
  const icon = element("span", "icon", head), name = element("span", "name", head, title), count = element("span", "count", head);
  const many = element("span", "many", count), at = element("span", "", count);
  const canvas = element("canvas", "plot", node);
  Object.assign(canvas, {role: "img", ariaLabel: title});
  const outs = element("div", "outs", deck), big = element("div", "big", outs), more = metrics.filter(metric => !metric.big);
  big.style.setProperty("--outs", Math.max(2, metrics.length - more.length));
  const fold = more.length ? element("details", "more", outs) : null;
  if (fold) {
    element("summary", "", fold, more.length === 1 ? "One more number" : `${WORDS[more.length] ?? more.length} more numbers`);
    fold.addEventListener("toggle", () => onFold(fold.open));
  }
  const grid = fold && element("div", "metrics", fold);
  const readouts = metrics.map(metric => {
    const cell = element("div", metric.big ? "read-out" : "metric", metric.big ? big : grid);
    cell.title = metric.help;
    element("span", "label", cell, metric.label);
    const out = {...metric, value: element("span", "value", cell, "–"), history: []};
    if (metric.truth > 0) {
      out.gauge = element("span", "gauge", cell);
      out.fill = element("i", "", out.gauge);
      element("b", "", out.gauge);
      out.kept = element("span", "kept", cell);
    } else {
      out.spark = element("canvas", "spark", cell);
    }
    return out;
  });
  return {title, kind, particle, accent, edit, note, node, outs, fold, icon, name, many, at, canvas, readouts, trail: [], recent: [], step: 0, raw: null, arrows: []};
}

const WORDS = ["", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten"];
const FULL = 1.5;  // a gauge ends at so many times the truth

// The colour and the glyph of a card's head.
function paintHead(card, theme) {
  const icon = glyph(card.kind, theme, card.color);
  if (card.painted === icon) return;
  card.painted = icon;
  card.icon.innerHTML = icon;
  card.name.style.color = card.color;
}

function blankCard(card) {
  card.ctx?.clearRect(0, 0, card.canvas.width, card.canvas.height);
  card.painted = null;
  card.canvas.ariaLabel = "";
  for (const node of [card.icon, card.name, card.many, card.at]) node.textContent = "";
}

function showHead(card, panel) {
  const texts = {
    many: card.note ? "" : `${panel.count.toLocaleString("en")} ${card.particle}${panel.count === 1 ? "" : "s"} · `,
    at: card.note ? "" : `step ${panel.step.toLocaleString("en")}`,
  };
  for (const [part, text] of Object.entries(texts)) if (card[part].textContent !== text) card[part].textContent = text;
}

function showReadout(out, value, card) {
  out.value.textContent = out.big && Math.abs(value) >= 1e-3 && Math.abs(value) < 1e4 ? brief(value) : number(value);
  if (out.gauge) {
    const share = value / out.truth;
    out.fill.style.width = `${100 * Math.min(Math.max(share / FULL, 0), 1) || 0}%`;
    out.fill.style.background = card.color;
    const percent = Number.isFinite(share) ? share < 9.995 ? `${Math.round(100 * share)} % of exact ${+out.truth.toPrecision(3)}` : `exact ${+out.truth.toPrecision(3)}` : "";
    if (out.kept.textContent !== percent) out.kept.textContent = percent;
  } else {
    drawSpark(out, card);
  }
}

const brief = v => String(+v.toPrecision(3)).replace("-", "−");

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

function drawSpark(out, card) {
  if (out.ctx) drawSparkline(out.ctx, out.w, out.h, out.history.map(past => past.value), out.log, card.color);
}

function clearReadout(out, card) {
  out.history = [];
  out.value.textContent = "–";
  if (out.gauge) {
    out.fill.style.width = "0";
    out.kept.textContent = `exact ${+out.truth.toPrecision(3)}`;
  } else {
    drawSpark(out, card);
  }
}
