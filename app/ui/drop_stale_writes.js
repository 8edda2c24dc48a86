// Panel's React widgets keep a copy of every property and write it to the model once React comes round to it. Where the
// server has set the property again meanwhile, the older value goes back to it as if the user had chosen it: a run's
// knob turns back, a rewind stops it. Such a write is dropped: the server has replaced its value, and since the older
// value came the user has touched nothing. (A script of the page that sets what the server sets too would be dropped as
// well: there is none.)
const {HasProps} = globalThis.Bokeh?.require?.("core/has_props") ?? {};
if (HasProps && !HasProps.prototype.echoless) {
  const {setv} = HasProps.prototype, told = new WeakMap(), KEPT = 10;
  let touched = 0;
  for (const kind of ["pointerdown", "pointermove", "pointerup", "click", "keydown", "input"]) {
    addEventListener(kind, e => { if (kind !== "pointermove" || e.buttons) touched = performance.now(); }, {capture: true, passive: true});
  }

  function remember(model, changes) {
    const known = told.get(model) ?? {};
    told.set(model, known);
    for (const [name, value] of Object.entries(changes)) {
      const table = typeof value === "object" && value !== null && !Array.isArray(value);  // not worth keeping alive
      if (!table) known[name] = [...known[name] ?? [], {value, at: performance.now()}].slice(-KEPT);
    }
  }

  function stale(model, changes) {
    const [name, another] = Object.keys(changes), known = told.get(model)?.[name];
    if (another || !known) return false;
    const newest = known.at(-1).value;
    return changes[name] !== newest && model.properties[name].get_value() === newest &&
      known.some(old => old.value === changes[name] && old.at > touched);
  }

  Object.assign(HasProps.prototype, {
    echoless: true,
    setv(changes, options = {}) {
      if (options.sync === false) remember(this, changes);
      else if (stale(this, changes)) return;
      return setv.call(this, changes, options);
    },
  });
}
