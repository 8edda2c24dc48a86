// The stage of the page "Function space": panels of every method, and points that can be dragged.
const NUDGE = 0.1, LARGE = 5;
const BARE = {left: 1, right: 1, top: 52, bottom: 18};
const LABELS = {line: ["x", "f(x)"], pairs: ["distance of weights", "distance of functions"],
  histogram: ["entropy, nats", "share of points"], entropy: ["x₁", "x₂"], disagreement: ["x₁", "x₂"]};
const NOTES = {line: "", entropy: ", entropy", disagreement: ", disagreement", histogram: ", entropies: test, far"};

const holdsHandles = kind => kind === "line" || kind === "entropy" || kind === "disagreement";
const onScreen = ({map, kind}, [x, y]) => [map.x(x), kind === "line" ? map.h - map.edges.bottom : map.y(y)];

export function render({model, el, still}) {
  const hook = window.steinfunctions = {pictures: 0, seen, at, touched: 0, answered: 0};
  let picture = null, waiting = null, reach = [80, 12];
  const mine = () => picture && !!picture.ring === !!model.scene.ring ? picture : null;

  const stage = panelStage({model, el, still}, {
    label: "Functions of every method. Comma and full stop choose a repulsion point, the arrow keys move it, Delete takes it away.",
    main: "handle", adds: "dblclick", names: {handle: "handles", point: "points"}, digits: 4, every: 50, reach: [12, 24],
    least: 1, most: 48,
    layout, take,
    title: ({kind, label, index}) => kind === "pairs" ? "Pairs of members" : label + NOTES[kind] + noteOf(mine()?.panels[index], mine()),
    inside: (ctx, place, color, look) => drawInside(ctx, place, {scene: model.scene, mine: mine(), nuts: model.nuts, color, look,
      dark: model.dark, points: stage.lists.point, marked: stage.marked}),
    axes: ({kind}) => ({labels: LABELS[kind]}),
    over: (ctx, place, look) => {
      if (holdsHandles(place.kind)) drawHandles(ctx, stage.lists.handle.map(p => onScreen(place, p)), stage.marked(), look);
    },
    contains: ({kind, w, h}, x, y) => holdsHandles(kind) && x >= 0 && x <= w && y >= 0 && y <= h,
    candidates: place => [
      ...(place.kind === "line" ? stage.lists.point.map(([x, y], i) => ["point", i, place.map.x(x), place.map.y(y)]) : []),
      ...stage.lists.handle.map((p, i) => ["handle", i, ...onScreen(place, p)]),
    ],
    held: (kind, place, px, py) => {
      const [x0, x1, y0, y1] = place.map.extent, [x, y] = place.map.data(px, py);
      return [Math.min(x1, Math.max(x0, x)), kind === "handle" && place.kind === "line" ? 0 : Math.min(y1, Math.max(y0, y))];
    },
    key,
    frame: array => {
      if (!!array[1] === !!model.scene.ring) waiting = array;
      else model.send_msg({ack: array[0]});  // a frame of the other tab
    },
    runs: frame => unpack(frame, model.scene).runs,
    scene: () => {
      if (picture && !mine()) stage.forget();
      if (!mine()) picture = null;
    },
    points: () => { stage.lists = {point: model.points.xy.map(p => [...p]), handle: model.points.handles.map(p => [...p])}; },
  });

  function layout() {
    const {ring, panels} = model.scene, {width} = stage;
    if (!panels) return null;
    const wanted = ring ? panels.flatMap(p => ["entropy", "disagreement", "histogram"].map(kind => ({...p, kind})))
      : [...panels.map(p => ({...p, kind: "line"})), {kind: "pairs", name: "pairs"}];
    const columns = ring ? Math.max(1, Math.min(3, Math.floor(width / 250))) : columnsOf(wanted.length, width, wanted.length > 4 ? 300 : 270);
    const w = Math.floor((width - AIR * (columns - 1)) / columns), rows = Math.ceil(wanted.length / columns);
    const tall = ring ? Math.min(w + 20, rows > 1 ? 340 : 420) : rows > 1 ? 280 : Math.max(260, Math.min(420, innerHeight - stage.around));
    const h = model.lecture ? Math.floor(stage.room(rows)) : tall;
    return {height: rows * h, places: wanted.map((panel, i) => ({...panel, left: i % columns * (w + AIR),
      top: Math.floor(i / columns) * h, w, h, map: mapOf(panel.kind, w, h)}))};
  }

  function mapOf(kind, w, h) {
    const {reach: far, most} = model.scene, edges = model.lecture ? BARE : undefined;
    if (kind === "line") return mapping([0, 7, -8, 8], w, h, false, edges);
    if (kind === "pairs") return mapping([0, reach[0], 0, reach[1]], w, h, false, edges);
    if (kind === "histogram") return mapping([0, most, 0, 1], w, h, false, edges);
    return mapping([-far, far, -far, far], w, h, true, edges);
  }

  // The axes of the pairs widen at once and narrow only when less than half is in use.
  function fitPairs() {
    const top = values => Math.max(1e-9, ...values.map(v => Math.max(0, ...v))), all = Object.values(picture.panels);
    const now = [top(all.map(p => p.weights)), top(all.map(p => p.functions))];
    const next = reach.map((old, i) => now[i] > old || now[i] < 0.45 * old ? 1.15 * now[i] : old);
    if (next.every((v, i) => v === reach[i])) return;
    reach = next;
    for (const place of stage.places) if (place.kind === "pairs") place.map = mapOf("pairs", place.w, place.h);
  }

  function take() {
    if (!waiting) return [];
    const ack = waiting[0];
    picture = unpack(waiting, model.scene);
    waiting = null;
    if (!picture.ring) fitPairs();
    hook.pictures++;
    return [{ack}];
  }

  // ---- keys

  function key(e) {
    if (e.key === "," || e.key === ".") stage.choose(e.key === "." ? 1 : -1);
    else if (stage.selected >= 0 && e.key.startsWith("Arrow")) nudge(e.key, e.shiftKey);
    else return false;
    return true;
  }

  function nudge(key, far) {
    const {ring, reach: edge} = model.scene, by = (ring ? 5 : 1) * NUDGE * (far ? LARGE : 1), handles = stage.lists.handle;
    const [low, high] = ring ? [-edge, edge] : [0, 7], clip = v => Math.min(high, Math.max(low, v)), [x, y] = handles[stage.selected];
    const dx = {ArrowLeft: -by, ArrowRight: by}[key] ?? 0, dy = ring ? {ArrowDown: -by, ArrowUp: by}[key] ?? 0 : 0;
    handles[stage.selected] = [clip(x + dx), ring ? clip(y + dy) : 0];
    stage.touched("handle", true);
  }

  // ---- for the tests: what a panel shows, and where a place is on the screen

  function seen(name) {
    const panel = model.scene.panels.find(p => p.name === name), shown = picture?.panels[panel?.index];
    if (!shown) return null;
    const {point, handle} = stage.lists;
    return {step: shown.step, mean: [...shown.mean ?? []], sd: [...shown.sd ?? []], exact: [...picture.exact?.sd ?? []], nuts: [...model.nuts.sd ?? []], curves: shown.curves?.length,
      entropy: [...shown.entropy ?? []], handles: handle.map(p => [...p]), points: point.length, selected: stage.selected};
  }

  function at(x, y, name, kind) {
    const place = stage.places.find(p => p.name === name && (!kind || p.kind === kind));
    return stage.at(place, ...(y === null ? onScreen(place, [x, 0]) : [place.map.x(x), place.map.y(y)]));
  }

  stage.start();
}
