// The stage: a legend, one card per panel (a canvas and its read-outs), and the frame protocol with Python.
const GAP = 20, PAUSE = [60, 600], BETWEEN = 33, PLOT = {left: 38, right: 1, top: 1, bottom: 26}, BARE = {left: 1, right: 1, top: 1, bottom: 1};

export function render({model, el}) {
  const root = element("div", "stage", el);
  const legend = new Legend(root, {
    toggle: name => { model.show = {...model.show, [name]: !model.show[name]}; },
    light: name => { pointed = name; repaint(); },
  });
  const deck = element("div", "deck", root);
  const badge = element("div", "badge", root);
  const banner = element("div", "banner", root);
  const slot = () => globalThis.steinlabSlots?.[model.slot];
  badge.role = "status";
  banner.role = "alert";
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  let cards = [], backgrounds = [], panels = [], key = "", family = "", pointed = "", above = null, pace = 0, arrived = 0;
  let queue = [], drawn = null, raf = 0, slowTimer = 0, betweenTimer = 0;
  let hover = -1, lastFrame = 0, seen = true, run = -1, filming = false;
  const recorder = new Recorder();
  const hook = {crowd: p => panels[p]?.crowd, frames: 0, seq: null, step: [], count: [], metrics: [], shoot,
    extent: p => cards[p].background.map.extent,
    value: (p, name) => panels[p].metrics[cards[p].readouts.findIndex(out => out.name === name)],
    particles: p => panels[p] ? table(panels[p].rows) : null, arrows: p => table(cards[p].arrows),
    at: (p, x, y) => {  // for the tests: where a place of a panel is on the screen
      const {map} = cards[p].background, box = cards[p].canvas.getBoundingClientRect();
      return [box.left + map.x(x), box.top + map.y(y)];
    }};

  const waiting = on => {
    [root, slot()].forEach(node => node?.classList.toggle("waiting", on));
    showTexts();
  };
  const input = new Input(model, root, {
    at: p => ({map: cards[p].background.map, panel: panels[p], edit: cards[p].edit}),
    hovered: () => hover,
    hover: index => { if (index !== hover) repaint(); hover = index; },
    place: (index, to) => {
      cards.forEach(({edit, arrows, background: {scene}}, p) => {
        if (!edit || !(panels[p]?.drawn > index)) return;
        for (const rows of [panels[p].rows, arrows]) rows.set(scene.curve ? to.slice(0, 1) : to, ROW * index);
      });
      repaint();
    },
  });
  const repaint = () => { if (seen) raf ||= requestAnimationFrame(paint); };
  const dark = () => model.dark || document.body.dataset.jpThemeLight === "false";  // the second is JupyterLab's
  const theme = () => THEMES[dark() ? "dark" : "light"];
  const edges = () => model.lecture ? BARE : PLOT;
  const look = () => ({theme: theme(), family, hover, lit: pointed || model.lit, lecture: model.lecture, bars: backgrounds.length > 1,
    show: {...model.show, trails: model.show.trails && !calm.matches}});

  function buildCards() {
    cards.forEach(({outs}) => outs.remove());
    deck.replaceChildren();
    cards = model.scene.cards.map(card => makeCard(deck, card, open => cards.forEach(({fold}) => { if (fold) fold.open = open; })));
    cards.forEach(input.listen);
    panels = [];
  }

  function rebuild() {
    const {scene} = model;
    if (!scene.cards) return blank(), reserve();
    deck.style.minHeight = "";
    const newKey = JSON.stringify([scene.cards, scene.backgrounds.map(b => [b.extent, b.labels])]);
    [root, slot()].forEach(node => node?.classList.remove("blank"));
    if (newKey !== key) {
      const shown = panels.length > 0;
      buildCards();
      if (shown) line.say({ready: true});  // a frame of this scene may have overtaken it, and a paused run sends no other
    }
    key = newKey;
    backgrounds = scene.backgrounds.map(b => new Background(b));
    waiting(false);
    cards.forEach((card, i) => { card.background = backgrounds[panels[i]?.background ?? scene.cards[i].background]; });
    layout();
  }

  // Another target or other methods come: what stood still is not true any more.
  function blank() {
    [root, slot()].forEach(node => node?.classList.add("blank"));
    backgrounds = [];
    key = "";
    cards.forEach(blankCard);
  }

  // Before the first scene, the place of the panels: nothing below them moves when they come.
  function reserve() {
    deck.style.minHeight = cards.length || model.embedded ? "" : `${heightOf(innerHeight, 1) + 80}px`;
  }

  // How high a panel is: all of the page is in view, if the window allows.
  function heightOf(w, columns) {
    if (model.embedded && !model.lecture) {  // its numbers are above the foot, or beside it
      return Math.min(w * 1.1, Math.max(220, innerHeight * (root.classList.contains("single") ? 0.38 : 0.26)));
    }
    if (columns < cards.length) return Math.min(w, innerHeight * 0.55);
    if (model.lecture) return Math.max(220, innerHeight - root.getBoundingClientRect().top - (model.embedded ? 110 : 172));
    above ??= root.getBoundingClientRect().top;
    const around = above + legend.node.offsetHeight + 292;
    return Math.max(220, Math.min(w * 1.1, innerHeight - around));
  }

  // Sizes every canvas and paints what stands still once, off screen.
  function layout() {
    if (!backgrounds.length || !root.clientWidth) return;
    unit = model.lecture ? 2 : 1;
    const columns = root.clientWidth < 260 * cards.length ? 1 : cards.length;
    const width = Math.floor((root.clientWidth - GAP * (columns - 1)) / columns);  // whole pixels: a card between two is blurred
    const single = cards.length === 1 && model.embedded && !model.lecture && width > 560;  // its numbers stand beside it
    deck.style.gridTemplateColumns = single ? `${Math.round(0.7 * width)}px 1fr` : `repeat(${columns}, ${width}px)`;
    root.classList.toggle("single", single);
    root.classList.toggle("narrow", columns < cards.length);
    const home = columns === cards.length && !model.lecture && slot() || deck;
    home.style.gridTemplateColumns = deck.style.gridTemplateColumns;
    cards.forEach(({node, outs}, i) => {
      node.style.gridArea = columns < cards.length ? `${2 * i + 1} / 1` : `1 / ${i + 1}`;
      outs.style.gridArea = single ? "1 / 2" : columns < cards.length ? `${2 * i + 2} / 1` : `${home === deck && !model.lecture ? 2 : 1} / ${i + 1}`;
      if (outs.parentNode !== home) home.append(outs);
    });
    slot()?.classList.toggle("lecture", model.lecture);
    const ratio = devicePixelRatio, w = cards[0].canvas.clientWidth, h = Math.round(heightOf(w, columns));
    family = getComputedStyle(root).fontFamily;
    backgrounds.forEach(background => background.layout(w, h, ratio, theme(), family, edges()));
    cards.forEach((card, p) => {
      card.canvas.style.height = `${h}px`;
      card.ctx = sizedCanvas(card.canvas, w, h, ratio);
      card.color = card.accent[dark() ? 1 : 0];
      paintHead(card, theme());
      for (const readout of card.readouts) {
        if (!readout.spark) continue;
        readout.w = readout.spark.clientWidth || 60;
        readout.h = readout.spark.clientHeight || 22;
        readout.ctx = sizedCanvas(readout.spark, readout.w, readout.h, ratio);
        drawSpark(readout, card);
      }
    });
    paint();
  }

  function takeFrame(frame) {
    const drawn = cards.map((card, p) => card.drawn && panels[p] ? card.drawn : null);
    panels = unpack(frame).slice(0, cards.length);
    const fresh = run !== frame[2], now = performance.now();
    run = frame[2];
    pace = now - arrived;
    arrived = now;
    waiting(false);
    if (fresh) backgrounds.forEach(background => background.fit());
    panels.forEach((panel, p) => {
      if (takePanel(cards[p], panel, backgrounds[panel.background], fresh)) {
        hover = -1;
        input.drag.release();
      }
      const {restarted, moved} = cards[p], smooth = pace >= PAUSE[0] && pace <= PAUSE[1] && !calm.matches;
      cards[p].before = smooth && moved && !restarted ? drawn[p] : null;
    });
    input.drag.pin();
    backgrounds.forEach((background, b) => {
      const over = panels.filter(panel => panel.background === b), forces = over.map(panel => cards[panels.indexOf(panel)].arrows);
      if (background.followPositions(over)) {
        background.layout(background.map.w, background.map.h, devicePixelRatio, theme(), family, edges());
      }
      background.followForces(forces, over[0]?.step ?? 0, b ? 5 * backgrounds[0].scale * backgrounds[0].map.kx : Infinity);
    });
    window.steinlab = hook;  // that of the stage which painted last
    Object.assign(hook, {frames: hook.frames + 1, seq: frame[0], step: panels.map(p => p.step),
      count: panels.map(p => p.count), scale: scales(),
      fixed: panels.map(p => [...p.fixed]), metrics: panels.map(p => [...p.metrics])});
  }

  function paint() {
    raf = 0;
    if (!backgrounds[0]?.map) return;  // a frame that came before its scene waits for it
    const frame = queue.shift();
    if (frame) {
      takeFrame(frame);
      recorder.take(frame);
    }
    unit = model.lecture ? 2 : 1;
    const now = look(), share = (performance.now() - arrived) / pace;
    let moving = false;
    cards.forEach((card, p) => {
      const {bitmap, map} = card.background, panel = panels[p];
      card.ctx.clearRect(0, 0, map.w, map.h);
      card.ctx.drawImage(bitmap, 0, 0, map.w, map.h);
      card.drawn = panel && between(card.before, panel.rows, share);
      moving ||= panel && card.drawn !== panel.rows;
      drawPanel(card.ctx, card, panel, {rows: card.drawn, forces: panel && between(card.before, card.arrows, share)}, now);
    });
    slowTimer ||= setTimeout(paintSlow, 100);
    if (queue.length) repaint();
    else if (moving) betweenTimer ||= setTimeout(() => { betweenTimer = 0; repaint(); }, BETWEEN);
    if (!frame) return;
    drawn = frame;
    line.say({ack: frame[0]});
    window.__onframe?.();
  }

  // Text and sparklines: at most ten times a second, more could not be read.
  function paintSlow() {
    slowTimer = 0;
    if (backgrounds[0]) legend.update(backgrounds[0], look(), panels);
    cards.forEach((card, p) => {
      if (!card.fresh) return;
      paintHead(card, theme());
      showHead(card, panels[p]);
      card.readouts.forEach((readout, k) => {
        const value = panels[p].metrics[k];
        if (readout.history.at(-1)?.step === card.step) readout.history.pop();  // the same step, edited
        if (readout.history.length || Number.isFinite(value)) readout.history = [...readout.history, {step: card.step, value}].slice(-HISTORY);
        showReadout(readout, value, card);
      });
      card.fresh = false;
    });
  }

  // Once a second: the text for screen readers, and again what may have been lost with a broken connection: that it is
  // ready, or the last acknowledgement.
  function tick() {
    panels.forEach((panel, p) => {
      const text = `${cards[p].title}: step ${panel.step}, ${panel.count} particles`;
      if (cards[p].canvas.ariaLabel !== text) cards[p].canvas.ariaLabel = text;
    });
    if (model.embedded && !drawn && !model.scene.cards && !model.status && !model.alarm) {
      model.send_msg({ready: true});  // Jupyter loses what is said while its kernel is busy
    }
    if (drawn && seen && root.clientWidth && !document.hidden && performance.now() - lastFrame > 1000) {
      line.say({ack: drawn[0]});
    }
  }

  // The size of a picture of all cards, and how it is drawn.
  function picture() {
    const {w, h} = backgrounds[0].map, width = cards.length * (w + GAP) + GAP, height = h + TITLE + LEGEND + 2 * GAP, now = look();
    unit = model.lecture ? 2 : 1;
    return [width, height, ctx => {
      ctx.fillStyle = theme().paper;
      ctx.fillRect(0, 0, width, height);
      ctx.translate(GAP, GAP);
      drawLegend(ctx, model.marks, backgrounds[0], now, panels);
      ctx.translate(0, LEGEND);
      cards.forEach((card, p) => {
        drawHead(ctx, card, panels[p], card.background.map, now);
        ctx.translate(0, TITLE);
        card.background.draw(ctx);
        drawPanel(ctx, card, panels[p], {rows: panels[p]?.rows, forces: card.arrows}, now);
        ctx.translate(w + GAP, -TITLE);
      });
    }];
  }

  async function exportStage(kind, page) {
    if (!backgrounds.length) return;
    if (kind === "png" || kind === "svg") return exportPicture(kind, ...picture());
    const frames = recorder.frames, {scene, marks, show} = model;
    if (frames.length) return offerRun(kind, root, frames.length, () => replayOf(page, {scene, marks, show, dark: dark()}, frames), size => shoot(frames, size));
  }

  // Films frames, while nothing new is shown. make: `filmOf` or `picturesOf`.
  async function shoot(frames, size, make = filmOf) {
    filming = true;
    const last = frames.at(-1);
    queue.splice(0).forEach(passOver);
    try {
      return await make(frames, ...size, (frame, ctx) => { takeFrame(frame); paintWithin(ctx, size, theme().paper, picture()); },
        share => { badge.textContent = `filming … ${Math.round(100 * share)} %`; });
    } finally {
      filming = false;
      takeFrame(last);
      showTexts();
      repaint();
    }
  }

  const scales = () => panels.map(panel => backgrounds[panel.background].scale);

  function fit() {
    if (!panels.length) return;
    backgrounds.forEach((background, b) => {
      const over = cards.filter((card, p) => panels[p]?.background === b);
      background.fit(0);
      background.followForces(over.map(card => card.arrows), over[0]?.step ?? 0, Infinity);
    });
    hook.scale = scales();
    repaint();
    slowTimer ||= setTimeout(paintSlow, 100);
  }

  function onMessage(message) {
    if (message.fit) return fit();
    if (message.export) return exportStage(message.export, message.page);
    // Bokeh's array type has a constructor of its own, which subarray() cannot use.
    onFrame(new Float32Array(message.buffer, message.byteOffset, message.length));
  }

  function onFrame(frame) {
    // Two frames in flight often arrive between two paints. Painting both, one after the other,
    // keeps the pipeline full: 60 instead of 40 a second.
    if (frame[2] < model.starting || filming) return passOver(frame);  // of a run before
    queue = [...queue, frame].slice(-2);
    lastFrame = performance.now();
    repaint();
  }

  // Another run begins: what stood still is pale until the new one's has come, and nothing of the old one moves on it.
  function clear() {
    if (run >= model.starting) return;
    waiting(true);
    input.drag.release();
    panels = [];
    for (const card of cards) {
      Object.assign(card, {trail: [], recent: [], step: 0, raw: null, arrows: [], fresh: false, before: null, drawn: null});
      card.readouts.forEach(readout => clearReadout(readout, card));
    }
    queue.splice(0).forEach(passOver);
    repaint();
  }

  function passOver(frame) {
    drawn = frame;
    line.say({ack: frame[0]});
  }

  function showMarks() {
    legend.build(model.marks, theme());
    slowTimer ||= setTimeout(paintSlow, 100);
  }

  function showTexts() {
    const quiet = cards.length && !root.classList.contains("waiting");
    badge.textContent = model.status || (quiet || model.alarm ? "" : "getting ready …");
    banner.textContent = model.alarm;
    root.classList.toggle("dark", dark());
    root.classList.toggle("lecture", model.lecture);
  }

  // Out of sight it draws nothing, so acknowledges nothing, so the server computes nothing.
  const eye = new IntersectionObserver(entries => { seen = entries.at(-1).isIntersecting; repaint(); });
  const resizer = new ResizeObserver(layout), ticker = setInterval(tick, 1000);
  resizer.observe(root);
  if (model.embedded) eye.observe(root);
  addEventListener("steinlab-slot", layout);
  addEventListener("resize", layout);  // height and zoom, which the observer does not see
  model.on("msg:custom", onMessage);
  model.on("scene", rebuild);
  model.on(["show", "lit"], () => { repaint(); slowTimer ||= setTimeout(paintSlow, 100); });
  model.on("marks", showMarks);
  model.on(["status", "alarm"], showTexts);
  model.on("starting", clear);
  const line = openLine(model, onFrame);
  const darken = () => { showTexts(); showMarks(); layout(); };
  const jupyter = new MutationObserver(darken);
  if (model.embedded) jupyter.observe(document.body, {attributes: true, attributeFilter: ["data-jp-theme-light"]});
  model.on("dark", darken);
  model.on("lecture", () => { darken(); setTimeout(layout, 400); });  // once the bar of the page is gone
  model.on("remove", () => {
    line.close();
    resizer.disconnect();
    eye.disconnect();
    jupyter.disconnect();
    removeEventListener("steinlab-slot", layout);
    removeEventListener("resize", layout);
    clearInterval(ticker);
    cancelAnimationFrame(raf);
    clearTimeout(slowTimer);
    clearTimeout(betweenTimer);
    input.remove();
  });
  showTexts();
  showMarks();
  rebuild();
  document.fonts.ready.then(layout);
  model.send_msg({ready: true});
}
