// React widgets may write a stale value back to the server, as if the user had chosen it: a knob turns back, a rewind stops
// a run. Drop a write if the server has set a newer value since and the user has not touched anything. (This would also drop
// the write of a script that sets a property which the server sets too. There is no such script.)
// No upstream issue known; Panel 1.9.4.
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
      const table = typeof value === "object" && value !== null && !Array.isArray(value);  // not worth keeping in memory
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
