// What both training stages share: a canvas of panels with points that can be dragged; pointer, keys, resize, lecture.
const AIR = 8;  // pixels between panels
const BELOW = 196;  // pixels of a lecture under the panels: the transport and the legend
const COMMANDS = {" ": "space", ArrowRight: "right", r: "r", R: "r"};
const REPLAYED = {...COMMANDS, ArrowLeft: "left"};
const TYPING = "input, textarea, select, button, [role=slider], [role=combobox], [role=menu], [role=tab], [contenteditable]";

// ", step 20" of a method that is elsewhere than the picture.
function noteOf(seen, picture) {
  if (!seen) return " …";
  return seen.diverged ? ", diverged" : seen.step === picture.step ? "" : `, step ${seen.step.toLocaleString("en")}`;
}

// How many panels stand side by side, the same number in each line.
function columnsOf(count, width, least, most = count) {
  const fit = Math.max(1, Math.min(most, Math.floor(width / least)));
  return Math.ceil(count / Math.ceil(count / fit));
}

// Reads a frame part by part. runs: [numbers, every, unit] of each, as in `parts.py`.
function reader(frame) {
  const runs = [];
  let o = 0;
  return {runs, take: (n, every = 1, unit = 1) => { runs.push([n, every, unit]); return frame.subarray(o, o += n); }};
}

/* stage says what is in the panels:
   label: of the canvas; main: kind of the points that keys choose and a click adds; adds: the event that adds one;
   names: kind -> its name in messages; digits, every: of these messages, and ms between two; reach: pixels to a point,
   of a mouse and of a finger; least, most: number of points; layout(): {places, height}, or nothing yet;
   title(place), inside(ctx, place, color, look), axes(place): of a panel; heads, over: drawn around panels;
   take(): what to tell Python once all that waits is drawn; candidates(place): [kind, index, x, y] of its points;
   contains(place, x, y); held(kind, place, x, y): where a point goes; key(event): whether it was used;
   frame(array), scene(), points(): news from Python; runs(array): the parts of a frame.
   still: nothing can be moved, since the panels show what was kept. */
function panelStage({model, el, still = false}, stage) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, {tabIndex: 0, role: still ? "img" : "application", ariaLabel: still ? stage.label.split(".")[0] : stage.label});
  canvas.style.cssText = "display: block; width: 100%; touch-action: pan-y";
  el.append(canvas);
  const s = {places: [], lists: {}, width: 0, height: 0, family: "", selected: -1, hover: null, drag: null,
    repaint, layout, marked, touched, room, choose, around: still ? 200 : 430};  // around: pixels that a page has beside panels
  const recorder = new Recorder();
  let ctx = null, tallest = 0, raf = 0, dragged = false, told = 0;

  function repaint() { raf ||= requestAnimationFrame(paint); }
  function marked(kind = stage.main) {
    if (s.drag) return s.drag.kind === kind ? s.drag.index : -1;
    return s.hover?.kind === kind ? s.hover.index : kind === stage.main ? s.selected : -1;
  }

  // ---- panels

  // In a lecture panels take what the window has beside the transport and the legend.
  function room(lines) { return Math.max(160, (innerHeight - el.getBoundingClientRect().top - BELOW) / lines); }

  function layout() {
    if (!el.clientWidth) return;
    s.width = el.clientWidth;
    s.family = getComputedStyle(el).fontFamily;
    unit = model.lecture ? 2 : 1;
    const found = stage.layout();
    if (!found) return;
    Object.assign(s, found);
    tallest = innerHeight;
    canvas.style.height = `${s.height}px`;
    ctx = sizedCanvas(canvas, s.width, s.height, devicePixelRatio);
    draw(ctx);
  }

  function draw(ctx) {
    const look = THEMES[model.dark ? "dark" : "light"], start = model.lecture ? 1 : LEFT;
    ctx.fillStyle = look.paper;
    ctx.fillRect(0, 0, s.width, s.height);
    stage.heads?.(ctx, look);
    for (const place of s.places) {
      const color = place.colours?.[model.dark ? 1 : 0];
      ctx.save();
      ctx.translate(place.left, place.top);
      ctx.textAlign = "left";
      ctx.font = textOf(14, s.family, 600);
      if (color) {
        ctx.fillStyle = color;
        ctx.fillRect(start, 11 * unit, 10 * unit, 10 * unit);
      }
      ctx.fillStyle = look.ink;
      ctx.fillText(place.title = stage.title(place), color ? start + 16 * unit : start, 21 * unit);
      ctx.save();
      clipPlot(ctx, place.map);
      stage.inside(ctx, place, color ?? look.ink, look);
      ctx.restore();
      drawAxes(ctx, place.map, stage.axes(place), look, s.family);
      stage.over?.(ctx, place, look);
      ctx.restore();
    }
  }

  function paint() {
    raf = 0;
    const news = stage.take();
    if (ctx) draw(ctx);
    for (const message of news) model.send_msg(message);
  }

  // ---- points

  function touched(kind, now) {
    if (!now && performance.now() - told < stage.every) return;
    told = performance.now();
    model.send_msg({[stage.names[kind]]: s.lists[kind].map(p => p.map(v => +v.toFixed(stage.digits)))});
  }

  function remove({kind, index}) {
    if (index < 0 || s.lists[kind].length <= stage.least) return;
    s.lists[kind].splice(index, 1);
    Object.assign(s, {selected: -1, hover: null});
    touched(kind, true);
    repaint();
  }

  function nearest(e) {
    const place = s.places.find(p => stage.contains(p, e.offsetX - p.left, e.offsetY - p.top));
    let found = null, best = stage.reach[e.pointerType === "touch" ? 1 : 0];
    if (place) for (const [kind, index, x, y] of stage.candidates(place)) {
      const away = Math.hypot(place.left + x - e.offsetX, place.top + y - e.offsetY);
      if (away < best) [found, best] = [{kind, index}, away];
    }
    return {place, found};
  }

  const held = (kind, place, e) => stage.held(kind, place, e.offsetX - place.left, e.offsetY - place.top);

  function down(e) {
    if (e.button || s.drag) return;
    dragged = false;
    const {place, found} = nearest(e);
    if (!found) return;
    if (model.erasing) return remove(found);
    s.selected = found.kind === stage.main ? found.index : -1;
    s.drag = {...found, place};
    canvas.setPointerCapture(e.pointerId);
    repaint();
  }

  function move(e) {
    if (s.drag) {
      const {kind, index, place} = s.drag;
      s.lists[kind][index] = held(kind, place, e);
      dragged = true;
      touched(kind, false);
      return repaint();
    }
    const {place, found} = nearest(e);
    canvas.style.cursor = found ? model.erasing ? "not-allowed" : "grab" : place && !model.erasing ? "crosshair" : "default";
    if (found?.index !== s.hover?.index || found?.kind !== s.hover?.kind) repaint();
    s.hover = found;
  }

  function up() {
    if (s.drag && dragged) touched(s.drag.kind, true);
    s.drag = null;
  }

  function add(e) {
    const {place, found} = nearest(e), list = s.lists[stage.main];
    if (!place || found || model.erasing || dragged || list.length >= stage.most) return;  // a drag ends with a click, too
    list.push(held(stage.main, place, e));
    s.selected = list.length - 1;
    touched(stage.main, true);
    repaint();
  }

  // A finger on a point drags it; elsewhere it scrolls the page, and a tap adds.
  function touchstart(e) {
    const box = canvas.getBoundingClientRect(), {clientX, clientY} = e.touches[0];
    if (nearest({offsetX: clientX - box.left, offsetY: clientY - box.top, pointerType: "touch"}).found) e.preventDefault();
  }

  // ---- keys

  function onKey(e) {
    const target = e.composedPath()[0];
    if (!el.clientWidth || e.ctrlKey || e.metaKey || e.altKey || target.closest?.(TYPING)) return;
    const chosen = s.hover ?? {kind: stage.main, index: s.selected};
    if (still) {
      if (!REPLAYED[e.key]) return;
      model.send_msg({key: REPLAYED[e.key]});
    } else if (target === canvas && stage.key(e)) { /* done */ }
    else if ((e.key === "Delete" || e.key === "Backspace") && chosen.index >= 0) remove(chosen);
    else if (e.key === "Escape" && s.selected >= 0) s.selected = -1;
    else if (model.lecture && e.key === "ArrowRight") return;  // to the next stop
    else if (COMMANDS[e.key]) model.send_msg({key: COMMANDS[e.key]});
    else return;
    e.preventDefault();
    repaint();
  }

  function choose(by) {
    const list = s.lists[stage.main], order = list.map((_, i) => i).sort((a, b) => list[a][0] - list[b][0] || list[a][1] - list[b][1]);
    const at = order.indexOf(s.selected) + (s.selected < 0 && by < 0 ? 0 : by);
    s.selected = order[(at + order.length) % order.length];
    s.hover = null;
  }

  // ---- from Python

  function onMessage(message) {
    if (message.export) return exportStage(message);
    // Bokeh's array type has a constructor of its own, which subarray() cannot use.
    const frame = new Float32Array(message.buffer, message.byteOffset, message.length);
    if (!still) recorder.take(frame);
    stage.frame(frame);
    repaint();
  }

  function exportStage({export: kind, page, legend}) {
    if (kind === "png" || kind === "svg") return exportPicture(kind, s.width, s.height, draw);
    const {frames} = recorder;
    if (frames.length) return offerRun(kind, el, frames.length, () => replayOf(page, model, legend, frames, stage.runs), size => shoot(frames, size, filmOf, legend));
  }

  // Films frames, with the legend below. make: `filmOf` or `picturesOf`.
  async function shoot(frames, size, make = filmOf, legend = model.legend) {
    const items = itemsOf(legend), font = textOf(14, s.family);
    const show = frame => {
      for (const message of stage.take()) model.send_msg(message);  // of what waits to be painted
      stage.frame(frame);
      stage.take();
    };
    try {
      return await make(frames, ...size, (frame, ctx) => {
        show(frame);
        const look = THEMES[model.dark ? "dark" : "light"];
        ctx.font = font;
        const {places, height} = placedItems(ctx, items, s.width - LEFT);
        paintWithin(ctx, size, look.paper, [s.width, s.height + height, ctx => {
          draw(ctx);
          ctx.font = font;
          drawItems(ctx, items, places, LEFT, s.height, look.ink);
        }]);
      }, () => {});
    } finally {
      shownAt(frames, frames.length - 1).forEach(show);
      repaint();
    }
  }

  function takePoints() {
    if (s.drag) return;  // what is on its way is older than what the user does
    stage.points();
    Object.assign(s, {selected: -1, hover: null});
    repaint();
  }

  s.at = (place, x, y) => {  // for the tests: where a place in a panel is on the screen
    const box = canvas.getBoundingClientRect();
    return [box.left + place.left + x, box.top + place.top + y];
  };
  s.start = () => {
    const resizer = new ResizeObserver(() => { if (el.clientWidth !== s.width) layout(); });
    resizer.observe(el);
    const onWindow = () => { if (innerHeight !== tallest) layout(); };
    addEventListener("resize", onWindow);
    model.on("dark", shade);
    shade();
    document.addEventListener("keydown", onKey);
    window.steinpanels = {shoot};
    if (!still) listen();
    model.on("msg:custom", onMessage);
    model.on("scene", () => { stage.scene(); layout(); });
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
  };

  const shade = () => el.classList.toggle("dark", model.dark);  // for the questions
  s.forget = () => recorder.clear();

  function listen() {
    canvas.addEventListener("mousedown", e => e.preventDefault());  // a click is not to take the keys from the page
    canvas.addEventListener("pointerdown", down);
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => { s.hover = null; repaint(); });
    canvas.addEventListener(stage.adds, add);
    canvas.addEventListener("touchstart", touchstart, {passive: false});
  }
  return s;
}
