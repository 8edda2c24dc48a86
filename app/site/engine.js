// A run in the browser: the methods of a setup, their states, and what was changed on the way. It knows no mathematics;
// programs come from `stein_core.web.programs`.
const ROOM = 2000;  // moments that are kept for the way back

// Calls f(place) for each place of row `index` of an array, whose particles lie along an axis.
function placesOf(shape, axis, index, f) {
  const stride = shape.slice(axis + 1).reduce((a, b) => a * b, 1), size = shape[axis] * stride;
  const count = shape.slice(0, axis).reduce((a, b) => a * b, 1);
  for (let k = 0; k < count; k++) for (let s = 0; s < stride; s++) f(k * size + index * stride + s);
}

// Steps of the methods that have not stopped, and what is seen after the last one. It runs in a worker, too, so it needs
// what it is given alone. next: what the last look has found of the first step, or null.
function computed(programs, { states, next, knobs, stopped, steps }) {
  for (let k = 0; k < steps; k++) {
    const made = {};
    for (const [name, program] of Object.entries(programs)) {
      made[name] = states[name];
      if (stopped.includes(name)) continue;
      const found = k === 0 && next?.[name];
      const [after, finite] = found ? [found.after, found.finite] : program.step(states[name], knobs[name]);
      if (finite) made[name] = after;
      else stopped = [...stopped, name];
    }
    states = made;
  }
  const seen = {};
  for (const [name, program] of Object.entries(programs)) seen[name] = program.look(states[name], knobs[name]);
  return { states, seen, stopped };
}

class Run {
  // programs: {method: program}; cards: {method: card of the scene}; values: {knob: number}; seed: a whole number.
  constructor(programs, cards, values, seed) {
    Object.assign(this, { programs, cards, values: { ...values }, seed, clock: 0, history: [], place: -1, stopped: [], turned: 0 });
    this.states = this.each((program) => program.reset(seed, this.knobs(program)));
    this.look();
    this.keep();
  }

  each(f) { return Object.fromEntries(Object.entries(this.programs).map(([name, program]) => [name, f(program, name)])); }

  knobs(program) { return program.meta.knobs.map(({ name, value }) => this.values[name] ?? value); }

  look() {
    this.seen = this.each((program, name) => program.look(this.states[name], this.knobs(program)));
    this.fresh = this.turned;
  }

  keep() {
    this.history.splice(this.place + 1, Infinity, { clock: this.clock, states: this.states, seen: this.seen });
    if (this.history.length > ROOM) this.history = this.history.filter((_, k) => k % 2 === 0);
    this.place = this.history.length - 1;
  }

  // What `computed` needs; and what it has found. What was seen before a knob was turned says nothing of the next step.
  job(steps) {
    const knobs = this.each((program) => this.knobs(program)), { states, stopped, turned } = this;
    const next = this.fresh === turned && this.each((_, name) => ({ after: this.seen[name].after, finite: this.seen[name].finite }));
    return { states, next: next || null, knobs, stopped, steps, turned };
  }
  take({ states, seen, stopped }, { steps, turned }) {
    Object.assign(this, { states, seen, stopped, fresh: turned, clock: this.clock + steps });
    if (steps) this.keep();
  }

  advance(steps) {
    const job = this.job(steps);
    this.take(computed(this.programs, job), job);
  }

  go(place) {
    const moment = this.history[place];
    Object.assign(this, { place, clock: moment.clock, states: moment.states, seen: moment.seen, stopped: [] });
    this.fresh = NaN;  // the knobs may have been others
  }

  // look: whether to compute at once what is seen then.
  set(name, value, look = true) {
    this.values[name] = value;
    this.turned++;
    if (look) this.look();
  }

  get count() { return this.values["method.particles"]; }

  // Adds a particle at a point, removes one by its index, or moves one `to` a point: the edits of `stein_core.runs.edits`.
  edit({ add, remove, move, to }) {
    const count = this.count, room = Math.min(...Object.values(this.programs).map(({ meta }) => meta.capacity));
    if (add ? count >= room : remove === undefined ? move >= count : count <= 1) return;
    this.states = this.each((program, name) => {
      const { rows, shapes, single, center, particles } = program.meta, place = add ? count : move;
      if (single && move !== 0) return this.states[name];
      const state = this.states[name].map((leaf) => (leaf.length === undefined ? leaf : leaf.slice()));
      for (const [k, axis] of rows) {
        if (remove === undefined) {
          if (k !== particles) placesOf(shapes[k], axis, place, (i) => { state[k][i] = 0; });
        } else {
          const mine = [], last = [];
          placesOf(shapes[k], axis, remove, (i) => mine.push(i));
          placesOf(shapes[k], axis, count - 1, (i) => last.push(i));
          mine.forEach((i, j) => { [state[k][i], state[k][last[j]]] = [state[k][last[j]], state[k][i]]; });
        }
      }
      if (remove === undefined) {  // of a particle that moves the location alone, which comes first
        const whole = add && Float32Array.from([...add, ...center.slice(2)].slice(0, center.length));
        const row = add ? program.particle(whole, this.knobs(program)) : to.slice(0, center.length);
        state[particles].set(row, place * shapes[particles][1]);
      }
      return state;
    });
    this.values["method.particles"] = count + (add ? 1 : remove === undefined ? 0 : -1);
    this.look();
    this.history[this.place] = { clock: this.clock, states: this.states, seen: this.seen };
  }

  // A drag begins; or it is given up, and what came since never happened.
  grab() { this.grabbed = this.history[this.place]; }
  letGo() {
    if (!this.grabbed) return;
    const place = this.history.findIndex(({ clock }) => clock >= this.grabbed.clock);
    this.history.splice(place, Infinity, this.grabbed);
    this.go(place);
  }

  // Goes on with programs that have more room: their further particles are those of a new run.
  widen(programs) {
    const before = this.programs;
    this.programs = programs;
    this.states = this.each((program, name) => {
      const fresh = program.reset(this.seed, this.knobs(program)), axes = new Map(program.meta.rows);
      return this.states[name].map((leaf, k) => {
        if (!axes.has(k)) return leaf;
        const was = before[name].meta.shapes[k], from = [], to = [];
        for (let i = 0; i < was[axes.get(k)]; i++) {
          placesOf(was, axes.get(k), i, (place) => from.push(place));
          placesOf(program.meta.shapes[k], axes.get(k), i, (place) => to.push(place));
        }
        from.forEach((place, j) => { fresh[k][to[j]] = leaf[place]; });
        return fresh[k];
      });
    });
    Object.assign(this, { history: [], place: -1, grabbed: null });
    this.look();
    this.keep();
  }

  // One frame, as `steinlab.stage.wire.pack` makes it.
  pack(number) {
    const parts = [0, Object.keys(this.programs).length, number];
    for (const [name, { meta }] of Object.entries(this.programs)) {
      const seen = this.seen[name], m = seen.m, d = meta.dim, p = seen.particles.length / meta.capacity;
      const metrics = this.cards[name].metrics.map((one) => seen.metrics[meta.metrics.indexOf(one.name)]);
      parts.push(m, this.clock, meta.guide ? 3 : 0, 0, metrics.length, 0, ...metrics); // the forces on guides are noisy
      const at = (array, width, i, k) => (k < d ? array[width * i + k] : 0);
      for (let i = 0; i < m; i++) {
        for (const [array, width] of [[seen.locations, d], [seen.scales, d], [seen.attract, p], [seen.repulse, p]]) {
          for (const k of [0, 1]) { const v = at(array, width, i, k); parts.push(Number.isFinite(v) ? v : 0); }
        }
        parts.push(seen.correlation[i]);
      }
    }
    return Float32Array.from(parts);
  }
}
