// The stage: one card per panel (a canvas and its metric read-outs), the frame protocol with
// Python, and what the user does with mouse and keys.
const HISTORY = 300, PICK = 14, GAP = 16, LEGEND = 26;
const KEYS = {" ": "space", ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down", r: "r", R: "r"};
const TYPING = "input, textarea, select, [contenteditable], [role=slider], [role=combobox], [role=option]";

// Inverse of pack() in views.py.
function unpack(frame) {
  const panels = [];
  for (let p = 0, o = 2; p < frame[1]; p++) {
    const [count, step, hasScale, k] = frame.subarray(o, o + 4), rowsAt = o + 4 + k;
    o = rowsAt + ROW * count;
    panels.push({count, step, hasScale, metrics: frame.subarray(rowsAt - k, rowsAt), rows: frame.subarray(rowsAt, o)});
  }
  return panels;
}

function element(tag, className, parent, text = "") {
  const node = document.createElement(tag);
  node.className = className;
  node.textContent = text;
  parent.append(node);
  return node;
}

export function render({model, el}) {
  const root = element("div", "stage", el);
  const legend = element("canvas", "legend", root);
  const deck = element("div", "deck", root);
  const badge = element("div", "badge", root);
  const banner = element("div", "banner", root);
  legend.ariaHidden = "true";
  badge.role = "status";
  banner.role = "alert";
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  let cards = [], panels = [], key = "", family = "", map = null, background = null, legendCtx = null;
  let queue = [], drawn = null, raf = 0, slowTimer = 0, clickTimer = 0;
  let tabbed = false, scale = 0, hover = -1, lastFrame = 0;
  const hook = window.steinlab = {frames: 0, seq: null, step: [], count: [], metrics: [], lagFrames: 0,
    particles: p => Array.from({length: panels[p].count}, (_, i) => [...panels[p].rows.subarray(i * ROW, (i + 1) * ROW)])};

  const repaint = () => { raf ||= requestAnimationFrame(paint); };
  const theme = () => THEMES[model.dark ? "dark" : "light"];
  const look = () => ({theme: theme(), family, scale, hover,
    show: {...model.show, trails: model.show.trails && !calm.matches}});

  function buildCards() {
    const {titles, metrics} = model.scene;
    deck.replaceChildren();
    cards = titles.map(title => {
      const node = element("section", "card", deck), canvas = element("canvas", "plot", node);
      Object.assign(canvas, {role: "img", ariaLabel: title});
      const grid = element("div", "metrics", node);
      const readouts = metrics.map(metric => {
        const cell = element("div", "metric", grid);
        cell.title = metric.help;
        element("span", "label", cell, metric.label);
        return {value: element("span", "value", cell, "–"), spark: element("canvas", "spark", cell), history: []};
      });
      return {title, canvas, readouts, trail: [], step: 0};
    });
    cards.forEach(listen);
    panels = [];
  }

  function rebuild() {
    const {scene} = model;
    if (!scene.titles) return;
    const newKey = JSON.stringify([scene.titles, scene.metrics, scene.extent, scene.labels]);
    if (newKey !== key) buildCards();
    key = newKey;
    layout();
  }

  // Sizes every canvas and paints what stands still once, off screen.
  function layout() {
    if (!cards.length || !root.clientWidth) return;
    const columns = root.clientWidth < 220 * cards.length ? 1 : cards.length;
    deck.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
    const ratio = devicePixelRatio, w = cards[0].canvas.clientWidth;
    const h = Math.round(Math.min(w * 1.15, Math.max(260, innerHeight * 0.5)));
    const {scene} = model;
    family = getComputedStyle(root).fontFamily;
    map = mapping(scene.extent, w, h, scene.equal);
    legendCtx = sizedCanvas(legend, root.clientWidth, LEGEND, ratio);
    const shade = scene.image && shadeImage(scene.image, theme().shade);
    background = ctx => drawBackground(ctx, map, scene, shade, theme(), family);
    background.bitmap = document.createElement("canvas");
    background(sizedCanvas(background.bitmap, w, h, ratio));
    cards.forEach((card, i) => {
      card.canvas.style.height = `${h}px`;
      card.ctx = sizedCanvas(card.canvas, w, h, ratio);
      card.accent = theme().accents[i];
      for (const readout of card.readouts) {
        readout.w = readout.spark.clientWidth;
        readout.h = readout.spark.clientHeight;
        readout.ctx = sizedCanvas(readout.spark, readout.w, readout.h, ratio);
        drawSpark(readout, card);
      }
    });
    paint();
  }

  const drawSpark = (readout, card) => drawSparkline(readout.ctx, readout.w, readout.h, readout.history,
    model.scene.metrics[card.readouts.indexOf(readout)].log, card.accent);

  // One scale for both forces and all panels: the 95th percentile arrow is a tenth of a panel
  // long. It follows slowly, or the arrows would flicker.
  function updateScale() {
    const lengths = [];
    for (const {rows} of panels) {
      for (let i = 0; i < rows.length; i += ROW) {
        lengths.push(Math.hypot(rows[i + 4] * map.kx, rows[i + 5] * map.ky), Math.hypot(rows[i + 6] * map.kx, rows[i + 7] * map.ky));
      }
    }
    const some = Float32Array.from(lengths.filter(v => v > 0 && v < Infinity)).sort();
    if (!some.length) return;
    const target = 0.1 * Math.min(map.w, map.h) / some[Math.floor(0.95 * (some.length - 1))];
    const jump = !(scale > 0) || Math.abs(Math.log(target / scale)) > 3;
    scale = jump ? target : scale * (target / scale) ** 0.08;
  }

  function takeFrame(frame) {
    panels = unpack(frame).slice(0, cards.length);
    updateScale();
    panels.forEach((panel, p) => {
      const card = cards[p], here = new Float32Array(panel.count * 2).map((_, i) => panel.rows[(i >> 1) * ROW + i % 2]);
      const before = card.trail.at(-1);
      if (panel.step < card.step) card.readouts.forEach(readout => { readout.history = []; });
      if (panel.step < card.step || before && here.length < before.length) {
        card.trail = [];
        hover = -1;
      } else if (panel.step === card.step) {
        card.trail.pop();
      }
      card.trail = [...card.trail, here].slice(-TRAIL);
      card.fresh = true;
      card.step = panel.step;
    });
    Object.assign(hook, {frames: hook.frames + 1, seq: frame[0], step: panels.map(p => p.step),
      count: panels.map(p => p.count), metrics: panels.map(p => [...p.metrics])});
  }

  function paint() {
    raf = 0;
    if (!map) return;  // a frame that came before its scene waits for it
    const frame = queue.shift();
    if (frame) takeFrame(frame);
    const now = look();
    cards.forEach((card, p) => {
      card.ctx.clearRect(0, 0, map.w, map.h);
      card.ctx.drawImage(background.bitmap, 0, 0, map.w, map.h);
      drawPanel(card.ctx, map, card.title, panels[p], card.trail, card.accent, now);
    });
    slowTimer ||= setTimeout(paintSlow, 100);
    if (queue.length) repaint();
    if (!frame) return;
    drawn = frame;
    hook.lagFrames = queue.length;
    model.send_msg({ack: frame[0]});
    window.__onframe?.(frame[0], performance.now());
  }

  // Text and sparklines: at most ten times a second, more could not be read.
  function paintSlow() {
    slowTimer = 0;
    legendCtx.clearRect(0, 0, root.clientWidth, LEGEND);
    drawLegend(legendCtx, map, look(), panels.some(p => p.hasScale));
    cards.forEach((card, p) => {
      if (!card.fresh) return;
      card.readouts.forEach((readout, k) => {
        const value = panels[p].metrics[k];
        readout.value.textContent = number(value);
        if (card.recorded === card.step) readout.history.pop();  // the same step, edited
        readout.history = [...readout.history, value].slice(-HISTORY);
        drawSpark(readout, card);
      });
      card.recorded = card.step;
      card.fresh = false;
    });
  }

  // Once a second: the text for screen readers, and an acknowledgement again if frames stopped,
  // since the last one may have been lost with a broken connection.
  function tick() {
    panels.forEach((panel, p) => {
      const text = `${cards[p].title}: step ${panel.step}, ${panel.count} particles`;
      if (cards[p].canvas.ariaLabel !== text) cards[p].canvas.ariaLabel = text;
    });
    if (drawn && !document.hidden && performance.now() - lastFrame > 1000) {
      model.send_msg({ack: drawn[0], idle: true});
    }
  }

  function nearest(p, px, py) {
    let best = -1, bestDistance = PICK;
    const rows = panels[p]?.count > 1 ? panels[p].rows : [];  // a single particle cannot be removed
    for (let i = 0; i < rows.length; i += ROW) {
      const distance = Math.hypot(map.x(rows[i]) - px, map.y(rows[i + 1]) - py);
      if (distance < bestDistance) [best, bestDistance] = [i / ROW, distance];
    }
    return best;
  }

  function setHover(index) {
    if (index !== hover) repaint();
    hover = index;
  }

  function remove(index) {
    if (index >= 0) model.send_msg({remove: index});
    setHover(-1);
  }

  function listen({canvas}, p) {
    const at = e => nearest(p, e.offsetX, e.offsetY);
    canvas.addEventListener("pointermove", e => setHover(at(e)));
    canvas.addEventListener("pointerleave", () => setHover(-1));
    canvas.addEventListener("click", e => {
      clearTimeout(clickTimer);
      if (e.detail > 1 || at(e) >= 0 || !map.holds(e.offsetX, e.offsetY)) return;
      const add = map.data(e.offsetX, e.offsetY);
      clickTimer = setTimeout(() => model.send_msg({add}), 220);  // it may become a double click
    });
    canvas.addEventListener("dblclick", e => remove(at(e)));
  }

  function onKey(e) {
    const target = e.composedPath()[0];
    if (!root.clientWidth || e.ctrlKey || e.metaKey || e.altKey || target.closest?.(TYPING)) return;
    // Space presses a button that was reached with Tab; after a mouse click it means play or pause again.
    if (e.key === "Tab") tabbed = true;
    if (e.key === " " && tabbed && target.closest?.("button, [role=button]")) return;
    if (KEYS[e.key]) model.send_msg({key: KEYS[e.key]});
    else if ((e.key === "Delete" || e.key === "Backspace") && hover >= 0) remove(hover);
    else return;
    e.preventDefault();
  }

  const onPointer = () => { tabbed = false; };

  function exportStage(kind) {
    const {w, h} = map, width = cards.length * (w + GAP) + GAP, height = h + LEGEND + 2 * GAP, now = look();
    exportPicture(kind, width, height, ctx => {
      ctx.fillStyle = theme().page;
      ctx.fillRect(0, 0, width, height);
      ctx.translate(GAP, GAP);
      drawLegend(ctx, map, now, panels.some(p => p.hasScale));
      ctx.translate(0, LEGEND);
      cards.forEach((card, p) => {
        background(ctx);
        drawPanel(ctx, map, card.title, panels[p], card.trail, card.accent, now);
        ctx.translate(w + GAP, 0);
      });
    });
  }

  function onMessage(message) {
    if (message.export) return exportStage(message.export);
    if (message.copy) return copyText(message.copy);
    if (message.copy_link) return copyText(location.origin + location.pathname + message.copy_link);
    if (message.url !== undefined) return history.replaceState(history.state, "", location.pathname + message.url);
    // Bokeh's array type has a constructor of its own, which subarray() cannot use.
    const frame = new Float32Array(message.buffer, message.byteOffset, message.length);
    // Two frames in flight often arrive between two paints. Painting both, one after the other,
    // keeps the pipeline full: 60 instead of 40 a second.
    queue = [...queue, frame].slice(-2);
    lastFrame = performance.now();
    repaint();
  }

  function showTexts() {
    badge.textContent = model.status;
    banner.textContent = model.alarm;
    root.classList.toggle("dark", model.dark);
  }

  const resizer = new ResizeObserver(layout), ticker = setInterval(tick, 1000);
  resizer.observe(root);
  addEventListener("resize", layout);  // height and zoom, which the observer does not see
  document.addEventListener("keydown", onKey);
  document.addEventListener("pointerdown", onPointer);
  model.on("msg:custom", onMessage);
  model.on("scene", rebuild);
  model.on("show", repaint);
  model.on(["status", "alarm"], showTexts);
  model.on("dark", () => { showTexts(); layout(); });
  model.on("remove", () => {
    resizer.disconnect();
    removeEventListener("resize", layout);
    clearInterval(ticker);
    clearTimeout(clickTimer);
    cancelAnimationFrame(raf);
    clearTimeout(slowTimer);
    document.removeEventListener("keydown", onKey);
    document.removeEventListener("pointerdown", onPointer);
  });
  showTexts();
  rebuild();
  document.fonts.ready.then(layout);
  model.send_msg({ready: true});
}
