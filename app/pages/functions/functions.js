// The stage of the page "Function space": panels of every method, and points that can be dragged.
const AIR = 8, REACH = 12, FINGER = 24, TOUCHED_EVERY = 50, NUDGE = 0.1, LARGE = 5, MOST_HANDLES = 48;
const KEYS = {" ": "space", ArrowRight: "right", r: "r", R: "r", p: "p", P: "p"};
const BELOW = 196;  // pixels of a lecture under the panels: the transport and the legend
const BARE = {left: 1, right: 1, top: 52, bottom: 18};
const TYPING = "input, textarea, select, button, [role=slider], [role=combobox], [role=menu], [role=tab], [contenteditable]";

export function render({model, el}) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, {tabIndex: 0, role: "application",
    ariaLabel: "Functions of every method. Comma and full stop choose a repulsion point, the arrow keys move it, Delete takes it away."});
  canvas.style.cssText = "display: block; width: 100%; touch-action: pan-y";
  el.append(canvas);
  const hook = window.steinfunctions = {pictures: 0, seen, at, touched: 0, answered: 0};
  let ctx = null, places = [], family = "", width = 0, height = 0, tallest = 0, raf = 0;
  let picture = null, waiting = null, points = [], handles = [], reach = [80, 12];
  let selected = -1, hover = null, drag = null, dragged = false, told = 0;

  const theme = () => THEMES[model.dark ? "dark" : "light"];
  const repaint = () => { raf ||= requestAnimationFrame(paint); };
  const marked = kind => drag ? (drag.kind === kind ? drag.index : -1) : hover?.kind === kind ? hover.index : kind === "handle" ? selected : -1;

  // Where every panel stands.
  function layout() {
    const {ring, panels} = model.scene;
    if (!panels || !el.clientWidth) return;
    width = el.clientWidth;
    tallest = innerHeight;
    family = getComputedStyle(el).fontFamily;
    unit = model.lecture ? 2 : 1;
    const wanted = ring ? panels.flatMap(p => ["entropy", "disagreement", "histogram"].map(kind => ({...p, kind})))
      : [...panels.map(p => ({...p, kind: "line"})), {kind: "pairs", name: "pairs"}];
    const least = ring ? 250 : wanted.length > 4 ? 300 : 270;
    const most = Math.max(1, Math.min(ring ? 3 : wanted.length, Math.floor(width / least)));
    const columns = ring ? most : Math.ceil(wanted.length / Math.ceil(wanted.length / most));
    const w = Math.floor((width - AIR * (columns - 1)) / columns), rows = Math.ceil(wanted.length / columns);
    const tall = ring ? Math.min(w + 20, rows > 1 ? 340 : 420) : rows > 1 ? 280 : Math.max(260, Math.min(420, innerHeight - 430));
    const bare = Math.floor(Math.max(160, (innerHeight - el.getBoundingClientRect().top - BELOW) / rows));
    const shownTall = model.lecture ? bare : tall;
    places = wanted.map((panel, i) => ({...panel, left: i % columns * (w + AIR), top: Math.floor(i / columns) * shownTall,
      w, h: shownTall, map: mapOf(panel.kind, w, shownTall)}));
    height = rows * shownTall;
    canvas.style.height = `${height}px`;
    ctx = sizedCanvas(canvas, width, height, devicePixelRatio);
    draw(ctx);
  }

  function mapOf(kind, w, h) {
    const {reach: far, most} = model.scene, edges = model.lecture ? BARE : undefined;
    if (kind === "line") return mapping([0, 7, -22, 22], w, h, false, edges);
    if (kind === "pairs") return mapping([0, ...[reach[0]], 0, reach[1]], w, h, false, edges);
    if (kind === "histogram") return mapping([0, most, 0, 1], w, h, false, edges);
    return mapping([-far, far, -far, far], w, h, true, edges);
  }

  const labelsOf = {line: ["x", "f(x)"], pairs: ["distance of weights", "distance of functions"],
    histogram: ["entropy, nats", "share of points"], entropy: ["x₁", "x₂"], disagreement: ["x₁", "x₂"]};
  const notes = {line: "", entropy: ", entropy", disagreement: ", disagreement", histogram: ", entropies: test, far"};

  function draw(ctx) {
    const look = theme();
    ctx.fillStyle = look.paper;
    ctx.fillRect(0, 0, width, height);
    for (const place of places) {
      const {map, kind, index, label, colours, left, top} = place;
      const mine = picture && !!picture.ring === !!model.scene.ring ? picture : null, shown = mine?.panels[index];
      const color = colours?.[model.dark ? 1 : 0] ?? look.ink;
      ctx.save();
      ctx.translate(left, top);
      ctx.textAlign = "left";
      ctx.font = textOf(14, family, 600);
      const start = model.lecture ? 1 : LEFT;
      if (kind !== "pairs") {
        ctx.fillStyle = color;
        ctx.fillRect(start, 11 * unit, 10 * unit, 10 * unit);
      }
      ctx.fillStyle = look.ink;
      ctx.fillText(place.title = kind === "pairs" ? "Pairs of members" : label + notes[kind] + note(shown, mine), kind === "pairs" ? start : start + 16 * unit, 21 * unit);
      ctx.save();
      clipPlot(ctx, map);
      drawInside(ctx, place, {scene: model.scene, mine, nuts: model.nuts, color, look, dark: model.dark, points, marked});
      ctx.restore();
      drawAxes(ctx, map, {labels: labelsOf[kind]}, look, family);
      if (holdsHandles(kind)) drawHandles(ctx, handles.map(p => onScreen(place, p)), marked("handle"), look);
      ctx.restore();
    }
  }

  const holdsHandles = kind => kind === "line" || kind === "entropy" || kind === "disagreement";
  const onScreen = ({map, kind}, [x, y]) => [map.x(x), kind === "line" ? map.h - map.edges.bottom : map.y(y)];

  function note(seen, mine) {
    if (!seen) return " …";
    return seen.diverged ? ", diverged" : seen.step === mine.step ? "" : `, step ${seen.step.toLocaleString("en")}`;
  }

  // The axes of the pairs widen at once and narrow only when less than half is in use.
  function fitPairs() {
    const top = values => Math.max(1e-9, ...values.map(v => Math.max(0, ...v))), all = Object.values(picture.panels);
    const now = [top(all.map(p => p.weights)), top(all.map(p => p.functions))];
    const next = reach.map((old, i) => now[i] > old || now[i] < 0.45 * old ? 1.15 * now[i] : old);
    if (next.every((v, i) => v === reach[i])) return;
    reach = next;
    for (const place of places) if (place.kind === "pairs") place.map = mapOf("pairs", place.w, place.h);
  }

  function paint() {
    raf = 0;
    let ack = null;
    if (waiting) {
      picture = unpack(waiting, model.scene);
      if (!picture.ring) fitPairs();
      ack = waiting[0];
      waiting = null;
    }
    if (ctx) draw(ctx);
    if (ack === null) return;
    hook.pictures++;
    model.send_msg({ack});
  }

  // ---- points

  function touched(kind, now) {
    if (!now && performance.now() - told < TOUCHED_EVERY) return;
    told = performance.now();
    const list = kind === "handle" ? handles : points;
    model.send_msg({[kind === "handle" ? "handles" : "points"]: list.map(p => p.map(v => +v.toFixed(4)))});
  }

  function remove({kind, index}) {
    const list = kind === "handle" ? handles : points;
    if (index < 0 || list.length < 2) return;
    list.splice(index, 1);
    selected = -1;
    hover = null;
    touched(kind, true);
    repaint();
  }

  const inside = e => places.find(({left, top, w, h, kind}) => holdsHandles(kind) && e.offsetX >= left && e.offsetX <= left + w
    && e.offsetY >= top && e.offsetY <= top + h);

  function nearest(e) {
    const place = inside(e);
    let found = null, best = e.pointerType === "touch" ? FINGER : REACH;
    if (!place) return {place, found};
    const look = (kind, x, y, index) => {
      const away = Math.hypot(place.left + x - e.offsetX, place.top + y - e.offsetY);
      if (away < best) [found, best] = [{kind, index}, away];
    };
    if (place.kind === "line") points.forEach(([x, y], i) => look("point", place.map.x(x), place.map.y(y), i));
    handles.forEach((p, i) => look("handle", ...onScreen(place, p), i));
    return {place, found};
  }

  function held({kind}, place, e) {
    const {map, left, top} = place, [x0, x1, y0, y1] = map.extent, [x, y] = map.data(e.offsetX - left, e.offsetY - top);
    return [Math.min(x1, Math.max(x0, x)), kind === "handle" && place.kind === "line" ? 0 : Math.min(y1, Math.max(y0, y))];
  }

  function down(e) {
    if (e.button || drag) return;
    dragged = false;
    const {place, found} = nearest(e);
    if (!found) return;
    if (model.erasing) return remove(found);
    selected = found.kind === "handle" ? found.index : -1;
    drag = {...found, place};
    canvas.setPointerCapture(e.pointerId);
    repaint();
  }

  function move(e) {
    if (drag) {
      (drag.kind === "handle" ? handles : points)[drag.index] = held(drag, drag.place, e);
      dragged = true;
      touched(drag.kind, false);
      return repaint();
    }
    const {place, found} = nearest(e);
    canvas.style.cursor = found ? model.erasing ? "not-allowed" : "grab" : place ? "crosshair" : "default";
    if (found?.index !== hover?.index || found?.kind !== hover?.kind) repaint();
    hover = found;
  }

  function up() {
    if (drag && dragged) touched(drag.kind, true);
    drag = null;
  }

  function add(e) {
    const {place, found} = nearest(e);
    if (!place || found || model.erasing || handles.length >= MOST_HANDLES) return;
    handles.push(held({kind: "handle"}, place, e));
    selected = handles.length - 1;
    touched("handle", true);
    repaint();
  }

  // A finger on a point drags it; elsewhere it scrolls the page, and a double tap adds.
  function touchstart(e) {
    const box = canvas.getBoundingClientRect(), {clientX, clientY} = e.touches[0];
    if (nearest({offsetX: clientX - box.left, offsetY: clientY - box.top, pointerType: "touch"}).found) e.preventDefault();
  }

  // ---- keys

  function onKey(e) {
    const target = e.composedPath()[0];
    if (!el.clientWidth || e.ctrlKey || e.metaKey || e.altKey || target.closest?.(TYPING)) return;
    const chosen = hover ?? {kind: "handle", index: selected};
    if (target === canvas && (e.key === "," || e.key === ".")) choose(e.key === "." ? 1 : -1);
    else if (target === canvas && selected >= 0 && e.key.startsWith("Arrow")) nudge(e.key, e.shiftKey);
    else if ((e.key === "Delete" || e.key === "Backspace") && chosen.index >= 0) remove(chosen);
    else if (e.key === "Escape" && selected >= 0) selected = -1;
    else if (model.lecture && LECTURE_KEYS[e.key]) model.send_msg({key: LECTURE_KEYS[e.key]});
    else if (KEYS[e.key]) model.send_msg({key: KEYS[e.key]});
    else return;
    e.preventDefault();
    repaint();
  }

  function choose(by) {
    const order = handles.map((_, i) => i).sort((a, b) => handles[a][0] - handles[b][0] || handles[a][1] - handles[b][1]);
    const at = order.indexOf(selected) + (selected < 0 && by < 0 ? 0 : by);
    selected = order[(at + order.length) % order.length];
    hover = null;
  }

  function nudge(key, far) {
    const by = (model.scene.ring ? 5 : 1) * NUDGE * (far ? LARGE : 1), [x, y] = handles[selected], ring = model.scene.ring;
    const [low, high] = ring ? [-model.scene.reach, model.scene.reach] : [0, 7], clip = v => Math.min(high, Math.max(low, v));
    const dx = {ArrowLeft: -by, ArrowRight: by}[key] ?? 0, dy = ring ? {ArrowDown: -by, ArrowUp: by}[key] ?? 0 : 0;
    handles[selected] = [clip(x + dx), ring ? clip(y + dy) : 0];
    touched("handle", true);
  }

  // ---- from Python

  function onMessage(message) {
    if (message.export) return exportPicture(message.export, width, height, draw);
    // Bokeh's array type has a constructor of its own, which subarray() cannot use.
    waiting = new Float32Array(message.buffer, message.byteOffset, message.length);
    if (!!waiting[1] !== !!model.scene.ring) {  // a frame of the other tab
      model.send_msg({ack: waiting[0]});
      waiting = null;
    }
    repaint();
  }

  function takePoints() {
    if (drag) return;  // what is on its way is older than what the user does
    points = model.points.xy.map(p => [...p]);
    handles = model.points.handles.map(p => [...p]);
    selected = -1;
    hover = null;
    repaint();
  }

  // ---- for the tests: what a panel shows, and where a place is on the screen

  function seen(name) {
    const panel = model.scene.panels.find(p => p.name === name), shown = picture?.panels[panel?.index];
    if (!shown) return null;
    return {step: shown.step, mean: [...shown.mean ?? []], sd: [...shown.sd ?? []], exact: [...picture.exact?.sd ?? []], nuts: [...model.nuts.sd ?? []], curves: shown.curves?.length,
      entropy: [...shown.entropy ?? []], handles: handles.map(p => [...p]), points: points.length, selected};
  }

  function at(x, y, name, kind) {
    const place = places.find(p => p.name === name && (!kind || p.kind === kind)), box = canvas.getBoundingClientRect();
    const [px, py] = y === null ? onScreen(place, [x, 0]) : [place.map.x(x), place.map.y(y)];
    return [box.left + place.left + px, box.top + place.top + py];
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
  canvas.addEventListener("pointerleave", () => { hover = null; repaint(); });
  canvas.addEventListener("dblclick", add);
  canvas.addEventListener("touchstart", touchstart, {passive: false});
  document.addEventListener("keydown", onKey);
  model.on("msg:custom", onMessage);
  model.on("scene", () => { if (!!picture?.ring !== !!model.scene.ring) picture = null; layout(); });
  model.on("points", takePoints);
  model.on("dark", repaint);
  model.on("nuts", repaint);
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
