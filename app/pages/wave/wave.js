// The stage of the page "1-D wave": a panel a method, a row a network, and the data points, which can be touched.
const AIR = 8, HEAD = 26, REACH = 10, FINGER = 22, TOUCHED_EVERY = 120;
const KEYS = {" ": "space", ArrowRight: "right", r: "r", R: "r", p: "p", P: "p"};
const BELOW = 196;  // pixels of a lecture under the panels: the transport and the legend
const BARE = {left: 1, right: 1, top: 52, bottom: 1};
const TYPING = "input, textarea, select, button, [role=slider], [role=combobox], [role=menu], [contenteditable]";

// Inverse of pack() in stage.py.
function unpack(frame, k) {
  const [, row, step, count] = frame, panels = {};
  let o = 4;
  const take = length => frame.subarray(o, o += length);
  for (let p = 0; p < count; p++) {
    const [index, at, diverged, m] = take(4), [mean, low, high, low50, high50] = Array.from({length: 5}, () => take(k));
    panels[index] = {step: at, diverged, mean, low, high, low50, high50, curves: Array.from({length: m}, () => take(k))};
  }
  return {row, step, panels};
}

export function render({model, el}) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, {tabIndex: 0, role: "application",
    ariaLabel: "Bands of every method. Left and right choose a data point, Delete takes it away."});
  canvas.style.cssText = "display: block; width: 100%; touch-action: pan-y";
  el.append(canvas);
  const hook = window.steinwave = {pictures: 0, below: 0, panel, at, erasing: () => model.erasing};
  let ctx = null, places = [], heads = [], family = "", width = 0, height = 0, tallest = 0, raf = 0;
  let titles = model.scene.rows?.map(({title}) => title) ?? [], pictures = [], waiting = {}, points = [], extent = [-2, 2, -9, 11];
  let selected = -1, hover = -1, drag = null, dragged = false, told = 0;

  const theme = () => THEMES[model.dark ? "dark" : "light"];
  const repaint = () => { raf ||= requestAnimationFrame(paint); };
  const marked = () => drag ? drag.index : hover >= 0 ? hover : selected;

  // One line of panels takes what the window has beside the transport and the first rows of numbers.
  const room = lines => Math.max(160, (innerHeight - el.getBoundingClientRect().top - BELOW) / lines);
  const heightOf = (w, oneLine, two) => two ? 232 : oneLine ? Math.max(240, Math.min(420, 1.1 * w, innerHeight - 430)) : 260;

  // Where every panel stands: as many side by side as are wide enough, the same number in each line.
  function layout() {
    const {rows} = model.scene;
    if (!rows || !el.clientWidth) return;
    width = el.clientWidth;
    tallest = innerHeight;
    family = getComputedStyle(el).fontFamily;
    const two = rows.length > 1;
    unit = model.lecture ? 2 : 1;
    const edges = model.lecture ? BARE : undefined, head = HEAD * unit;
    places = [];
    heads = [];
    let y = 0;
    rows.forEach(({panels}, row) => {
      if (two) heads.push(y += head);
      const least = two ? 210 : panels.length === 4 ? 400 : 280;
      const most = Math.max(1, Math.min(panels.length, Math.floor(width / least)));
      const columns = Math.ceil(panels.length / Math.ceil(panels.length / most)), w = Math.floor((width - AIR * (columns - 1)) / columns);
      const lines = Math.ceil(panels.length / columns);
      const tall = model.lecture ? Math.floor(room(rows.length * lines) - two * head) : heightOf(w, columns === panels.length, two);
      panels.forEach((panel, i) => {
        places.push({...panel, row, left: i % columns * (w + AIR), top: y + Math.floor(i / columns) * tall,
          map: mapping(extent, w, tall, false, edges)});
      });
      y += lines * tall;
    });
    height = y;
    canvas.style.height = `${height}px`;
    ctx = sizedCanvas(canvas, width, height, devicePixelRatio);
    draw(ctx);
  }

  function draw(ctx) {
    const look = theme(), {grid, clusters, labels, rows} = model.scene;
    ctx.fillStyle = look.paper;
    ctx.fillRect(0, 0, width, height);
    heads.forEach((y, row) => {
      ctx.fillStyle = look.ink;
      ctx.textAlign = "left";
      ctx.font = textOf(14, family, 600);
      const {step} = pictures[row] ?? {};
      ctx.fillText(rows[row].title + (step === undefined ? "" : ` · step ${step.toLocaleString("en")}`), model.lecture ? 1 : LEFT, y - 6 * unit);
    });
    for (const place of places) {
      const {map, row, index, label, colours, left, top} = place, picture = pictures[row], seen = picture?.panels[index];
      ctx.save();
      ctx.translate(left, top);
      const color = colours[model.dark ? 1 : 0];
      ctx.fillStyle = color;
      const start = model.lecture ? 1 : LEFT;
      ctx.fillRect(start, 11 * unit, 10 * unit, 10 * unit);
      ctx.fillStyle = look.ink;
      ctx.textAlign = "left";
      ctx.font = textOf(14, family, 600);
      ctx.fillText(place.title = label + note(seen, picture), start + 16 * unit, 21 * unit);
      ctx.save();
      clipPlot(ctx, map);
      ctx.fillStyle = look.muted;
      ctx.globalAlpha = 0.14;
      for (const [a, b] of clusters) ctx.fillRect(map.x(a), map.edges.top, map.x(b) - map.x(a), map.h - map.edges.top - map.edges.bottom);
      ctx.globalAlpha = 1;
      if (seen) drawBands(ctx, map, grid, seen, color);
      if (model.nuts[row]) drawNuts(ctx, map, grid, model.nuts[row], look.muted);
      drawPoints(ctx, map, points, marked(), look);
      ctx.restore();
      drawAxes(ctx, map, {labels}, look, family);
      ctx.restore();
    }
  }

  function note(seen, picture) {
    if (!seen) return " …";
    return seen.diverged ? ", diverged" : seen.step === picture.step ? "" : `, step ${seen.step.toLocaleString("en")}`;
  }

  function paint() {
    raf = 0;
    for (const frame of Object.values(waiting)) {
      const picture = unpack(frame, model.scene.grid.length);
      pictures[picture.row] = picture;
    }
    const drawn = Object.values(waiting);
    waiting = {};
    if (ctx) draw(ctx);
    for (const [ack, row] of drawn) {
      hook[row ? "below" : "pictures"]++;
      model.send_msg({ack, row});
    }
  }

  // What was drawn of a row goes where it is another network's now.
  function takeScene() {
    const now = model.scene.rows.map(({title}) => title);
    now.forEach((title, row) => { if (title !== titles[row]) delete pictures[row]; });
    titles = now;
    layout();
  }

  // ---- data points

  // All points fit, up to a sensible height.
  function fit() {
    const ys = points.map(([, y]) => y), low = Math.max(-60, Math.min(-9, ...ys.map(y => y - 1)));
    const high = Math.min(60, Math.max(11, ...ys.map(y => y + 1)));
    if (low === extent[2] && high === extent[3]) return repaint();
    extent = [-2, 2, low, high];
    layout();
  }

  function touched(now) {
    const due = performance.now() - told > TOUCHED_EVERY;
    if (!now && !due) return;
    told = performance.now();
    model.send_msg({points: points.map(p => p.map(v => +v.toFixed(6)))});
  }

  function remove(index) {
    if (index < 0) return;
    points.splice(index, 1);
    selected = hover = -1;
    touched(true);
    repaint();
  }

  const inside = e => places.find(({left, top, map}) => map.holds(e.offsetX - left, e.offsetY - top));

  function nearest(e) {
    const place = inside(e), reach = e.pointerType === "touch" ? FINGER : REACH;
    let index = -1, best = reach;
    if (place) points.forEach(([x, y], i) => {
      const away = Math.hypot(place.left + place.map.x(x) - e.offsetX, place.top + place.map.y(y) - e.offsetY);
      if (away < best) [index, best] = [i, away];
    });
    return {place, index};
  }

  function down(e) {
    if (e.button || drag) return;
    dragged = false;
    const {place, index} = nearest(e);
    if (index < 0) return;
    if (model.erasing) return remove(index);
    selected = index;
    drag = {index, place};
    canvas.setPointerCapture(e.pointerId);
    repaint();
  }

  function move(e) {
    if (drag) {
      const {left, top, map} = drag.place, [x, y] = map.data(e.offsetX - left, e.offsetY - top), [x0, x1, y0, y1] = map.extent;
      points[drag.index] = [Math.min(x1, Math.max(x0, x)), Math.min(y1, Math.max(y0, y))];
      dragged = true;
      touched(false);
      return repaint();
    }
    const {place, index} = nearest(e);
    canvas.style.cursor = index >= 0 ? model.erasing ? "not-allowed" : "grab" : place && !model.erasing ? "crosshair" : "default";
    if (index !== hover) repaint();
    hover = index;
  }

  function up() {
    if (drag && dragged) touched(true);
    drag = null;
  }

  function click(e) {
    const {place, index} = nearest(e);
    if (!place || index >= 0 || model.erasing || dragged) return;  // a drag ends with a click, too
    points.push(place.map.data(e.offsetX - place.left, e.offsetY - place.top));
    selected = points.length - 1;
    touched(true);
    repaint();
  }

  // A finger on a point drags it; elsewhere it scrolls the page, and a tap adds.
  function touchstart(e) {
    const box = canvas.getBoundingClientRect(), {clientX, clientY} = e.touches[0];
    const {index} = nearest({offsetX: clientX - box.left, offsetY: clientY - box.top, pointerType: "touch"});
    if (index >= 0) e.preventDefault();
  }

  // ---- keys

  function onKey(e) {
    const target = e.composedPath()[0];
    if (!el.clientWidth || e.ctrlKey || e.metaKey || e.altKey || target.closest?.(TYPING)) return;
    if (target === canvas && (e.key === "ArrowLeft" || e.key === "ArrowRight")) choose(e.key === "ArrowRight" ? 1 : -1);
    else if ((e.key === "Delete" || e.key === "Backspace") && marked() >= 0) remove(marked());
    else if (e.key === "Escape" && selected >= 0) selected = -1;
    else if (model.lecture && LECTURE_KEYS[e.key]) model.send_msg({key: LECTURE_KEYS[e.key]});
    else if (KEYS[e.key]) model.send_msg({key: KEYS[e.key]});
    else return;
    e.preventDefault();
    repaint();
  }

  function choose(by) {
    const order = points.map((_, i) => i).sort((a, b) => points[a][0] - points[b][0]);
    const at = order.indexOf(selected) + by;
    selected = order[(at + order.length) % order.length];
    hover = -1;
  }

  // ---- from Python

  function onMessage(message) {
    if (message.export) return exportPicture(message.export, width, height, draw);
    // Bokeh's array type has a constructor of its own, which subarray() cannot use.
    const frame = new Float32Array(message.buffer, message.byteOffset, message.length);
    waiting[frame[1]] = frame;
    repaint();
  }

  function takePoints() {
    if (drag) return;  // what is on its way is older than what the user does
    points = model.points.xy.map(p => [...p]);
    selected = hover = -1;
    fit();
  }

  // ---- for the tests: what a panel shows, and where a data point is on the screen

  function panel(name, row = 0) {
    const place = places.find(p => p.name === name && p.row === row), seen = pictures[row]?.panels[place?.index];
    if (!place) return null;
    const {mean = [], low = [], high = [], curves = []} = seen ?? {};
    return {title: place.title, mean: [...mean], low: [...low], high: [...high], curves: curves.length, step: pictures[row]?.step,
      nuts: [...model.nuts[row]?.low ?? []], x: points.map(p => p[0]), y: points.map(p => p[1]), selected};
  }

  function at(x, y, name, row = 0) {
    const {left, top, map} = places.find(p => p.name === name && p.row === row), box = canvas.getBoundingClientRect();
    return [box.left + left + map.x(x), box.top + top + map.y(y)];
  }

  const resizer = new ResizeObserver(() => { if (el.clientWidth !== width) layout(); });
  resizer.observe(el);
  const onWindow = () => { if (innerHeight !== tallest) layout(); };
  addEventListener("resize", onWindow);
  canvas.addEventListener("mousedown", e => e.preventDefault());  // a click is not to take the keys from the page
  canvas.addEventListener("pointerdown", down);
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => { hover = -1; repaint(); });
  canvas.addEventListener("click", click);
  canvas.addEventListener("touchstart", touchstart, {passive: false});
  document.addEventListener("keydown", onKey);
  model.on("msg:custom", onMessage);
  model.on("scene", takeScene);
  model.on("points", takePoints);
  model.on(["nuts", "dark"], repaint);
  model.on("lecture", () => { layout(); setTimeout(layout, 400); });  // once the bar of the page is gone
  model.on("remove", () => {
    resizer.disconnect();
    removeEventListener("resize", onWindow);
    cancelAnimationFrame(raf);
    document.removeEventListener("keydown", onKey);
  });
  takePoints();
  layout();
  model.send_msg({ready: true});
}
