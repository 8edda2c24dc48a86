// The stage of the page "1-D wave": a panel a method, a row a network, and the data points, which can be touched.
const HEAD = 26;
const BARE = {left: 1, right: 1, top: 52, bottom: 1};

// Inverse of parts() in stage.py.
function unpack(frame, k) {
  const {runs, take} = reader(frame), [, row, step, count] = take(4), panels = {}, line = () => take(k, 4, 0.02);
  for (let p = 0; p < count; p++) {
    const [index, at, diverged, m] = take(4), [mean, low, high, low50, high50] = Array.from({length: 5}, line);
    panels[index] = {step: at, diverged, mean, low, high, low50, high50, curves: Array.from({length: m}, line)};
  }
  return {row, step, panels, runs};
}

export function render({model, el, still}) {
  const hook = window.steinwave = {pictures: 0, below: 0, panel, at, erasing: () => model.erasing};
  let heads = [], titles = model.scene.rows?.map(({title}) => title) ?? [], pictures = [], waiting = {}, extent = [-2, 2, -9, 11];
  const seenIn = ({row, index}) => pictures[row]?.panels[index];

  const stage = panelStage({model, el, still}, {
    label: "Bands of every method. Left and right choose a data point, Delete takes it away.",
    main: "point", adds: "click", names: {point: "points"}, digits: 6, every: 120, reach: [10, 22], least: 0, most: Infinity,
    layout, heads: drawHeads, inside, take,
    title: place => place.label + noteOf(seenIn(place), pictures[place.row]),
    axes: () => ({labels: model.scene.labels}),
    contains: ({map}, x, y) => map.holds(x, y),
    candidates: ({map}) => stage.lists.point.map(([x, y], i) => ["point", i, map.x(x), map.y(y)]),
    held: (kind, {map}, px, py) => {
      const [x, y] = map.data(px, py), [x0, x1, y0, y1] = map.extent;
      return [Math.min(x1, Math.max(x0, x)), Math.min(y1, Math.max(y0, y))];
    },
    key: e => (e.key === "ArrowLeft" || e.key === "ArrowRight") && (stage.choose(e.key === "ArrowRight" ? 1 : -1), true),
    frame: array => { waiting[array[1]] = array; },
    runs: frame => unpack(frame, model.scene.grid.length).runs,
    scene: forget,
    points: () => { stage.lists.point = model.points.xy.map(p => [...p]); fit(); },
  });

  const heightOf = (w, oneLine, two) => two ? 232 : oneLine ? Math.max(240, Math.min(420, 1.1 * w, innerHeight - stage.around)) : 260;

  function layout() {
    const {rows} = model.scene, {width} = stage;
    if (!rows) return null;
    const two = rows.length > 1, edges = model.lecture ? BARE : undefined, head = HEAD * unit, places = [];
    heads = [];
    let y = 0;
    rows.forEach(({panels}, row) => {
      if (two) heads.push(y += head);
      const columns = columnsOf(panels.length, width, two ? 210 : panels.length === 4 ? 400 : 280);
      const w = Math.floor((width - AIR * (columns - 1)) / columns), lines = Math.ceil(panels.length / columns);
      const tall = model.lecture ? Math.floor(stage.room(rows.length * lines) - two * head) : heightOf(w, columns === panels.length, two);
      panels.forEach((panel, i) => {
        places.push({...panel, row, left: i % columns * (w + AIR), top: y + Math.floor(i / columns) * tall,
          map: mapping(extent, w, tall, false, edges)});
      });
      y += lines * tall;
    });
    return {places, height: y};
  }

  function drawHeads(ctx, look) {
    heads.forEach((y, row) => {
      ctx.fillStyle = look.ink;
      ctx.textAlign = "left";
      ctx.font = textOf(14, stage.family, 600);
      const {step} = pictures[row] ?? {}, text = step === undefined ? "" : ` · step ${step.toLocaleString("en")}`;
      ctx.fillText(model.scene.rows[row].title + text, model.lecture ? 1 : LEFT, y - 6 * unit);
    });
  }

  function inside(ctx, place, color, look) {
    const {map, row} = place, {grid, clusters} = model.scene, seen = seenIn(place);
    ctx.fillStyle = look.muted;
    ctx.globalAlpha = 0.14;
    for (const [a, b] of clusters) ctx.fillRect(map.x(a), map.edges.top, map.x(b) - map.x(a), map.h - map.edges.top - map.edges.bottom);
    ctx.globalAlpha = 1;
    if (seen) drawBands(ctx, map, grid, seen, color);
    if (model.nuts[row]) drawNuts(ctx, map, grid, model.nuts[row], look.muted);
    drawPoints(ctx, map, stage.lists.point, stage.marked(), look);
  }

  function take() {
    const drawn = Object.values(waiting);
    waiting = {};
    return drawn.map(frame => {
      const picture = unpack(frame, model.scene.grid.length), {row} = picture;
      pictures[row] = picture;
      hook[row ? "below" : "pictures"]++;
      return {ack: frame[0], row};
    });
  }

  // What was drawn of a row goes if it is another network's now.
  function forget() {
    const now = model.scene.rows.map(({title}) => title);
    now.forEach((title, row) => { if (title !== titles[row]) delete pictures[row]; });
    if (now.join() !== titles.join()) stage.forget();
    titles = now;
  }

  // All points fit, up to a sensible height.
  function fit() {
    const ys = stage.lists.point.map(([, y]) => y), low = Math.max(-60, Math.min(-9, ...ys.map(y => y - 1)));
    const high = Math.min(60, Math.max(11, ...ys.map(y => y + 1)));
    if (low === extent[2] && high === extent[3]) return;
    extent = [-2, 2, low, high];
    stage.layout();
  }

  // ---- for the tests: what a panel shows, and where a data point is on the screen

  const placed = (name, row) => stage.places.find(p => p.name === name && p.row === row);

  function panel(name, row = 0) {
    const place = placed(name, row);
    if (!place) return null;
    const {mean = [], low = [], high = [], curves = []} = seenIn(place) ?? {}, points = stage.lists.point;
    return {title: place.title, mean: [...mean], low: [...low], high: [...high], curves: curves.length, step: pictures[row]?.step,
      nuts: [...model.nuts[row]?.low ?? []], x: points.map(p => p[0]), y: points.map(p => p[1]), selected: stage.selected};
  }

  function at(x, y, name, row = 0) {
    const place = placed(name, row);
    return stage.at(place, place.map.x(x), place.map.y(y));
  }

  stage.start();
}
