// A prediction: a reader enters it, it is frozen, and what comes out is drawn beside it. Each is an element with
// `data-predict`, JSON as `steinlab.lesson.predictions` writes it. The browser keeps what was said, and nobody else does.
const STORE = "steinlab.predictions", WATCH = 3000;  // milliseconds before the outcome of something that runs

const predicted = {
  all() {
    try {
      return JSON.parse(localStorage.getItem(STORE) ?? "{}") ?? {};
    } catch {
      return this.here;  // the browser keeps nothing, or something else
    }
  },
  here: {},
  set(key, said) {
    const all = this.all();
    if (said === undefined) delete all[key];
    else all[key] = said;
    this.here = all;
    try { localStorage.setItem(STORE, JSON.stringify(all)); } catch { /* for this visit only */ }
    dispatchEvent(new Event("steinlab-predicted"));
  },
};

const part = (name, facts = {}, ...inside) => {
  const node = Object.assign(document.createElement(name), facts);
  node.append(...inside);
  return node;
};
const plain = value => String(Number(value.toPrecision(3))).replace("-", "\u2212");

// Where a value is on its axis, from 0 to 1, and back.
function axisOf({low, high, log}) {
  const by = log ? Math.log : x => x, back = log ? Math.exp : x => x, span = by(high) - by(low);
  return {to: value => (by(value) - by(low)) / span, from: at => back(by(low) + at * span)};
}

function ticksOf({low, high, log}) {
  if (!log) return Array.from({length: 5}, (_, k) => low + (k / 4) * (high - low));
  const found = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
    for (const one of [1, 2, 5]) if (one * 10 ** k >= low * 0.999 && one * 10 ** k <= high * 1.001) found.push(one * 10 ** k);
  return found.length > 7 ? found.filter(value => value.toExponential().startsWith("1")) : found;
}

// The axis of a number. A click, a drag or the arrow keys set it; nothing is set at first, so that nothing is suggested.
function numberField(facts, taken) {
  const axis = axisOf(facts), unit = facts.unit ? ` ${facts.unit}` : "";
  const line = part("div", {className: "line", role: "slider", tabIndex: 0, ariaLabel: facts.ask, ariaValueMin: facts.low,
    ariaValueMax: facts.high, ariaValueNow: facts.low, ariaValueText: "nothing yet"});
  const field = part("input", {type: "text", inputMode: "decimal", size: 6, ariaLabel: `${facts.ask} A number`});
  let value = null;
  for (const tick of ticksOf(facts)) {
    const mark = part("span", {className: "tick", textContent: plain(tick)});
    mark.style.left = `${100 * axis.to(tick)}%`;
    line.append(mark);
  }
  const place = (kind, at, text) => {
    const pin = part("b", {className: `pin ${kind}`}, part("i", {textContent: text}));
    const share = Math.min(1, Math.max(0, axis.to(at)));
    pin.style.left = `${100 * share}%`;
    pin.dataset.side = share > 0.8 ? "right" : share < 0.2 ? "left" : "middle";
    line.querySelector(`.${kind}`)?.remove();
    line.append(pin);
  };
  const say = (next, typed = false) => {
    value = facts.whole ? Math.round(next) : typed ? next : Number(next.toPrecision(2));
    if (!typed) field.value = plain(value).replace("\u2212", "-");
    line.ariaValueNow = String(value);
    line.ariaValueText = plain(value) + unit;
    place("you", value, "you");
    taken(true);
  };
  const at = e => {
    const box = line.getBoundingClientRect();
    say(axis.from(Math.min(1, Math.max(0, (e.clientX - box.left) / box.width))));
  };
  let drags = false;
  line.addEventListener("pointerdown", e => {
    if (line.ariaDisabled) return;
    drags = true;
    line.setPointerCapture(e.pointerId);
    at(e);
  });
  line.addEventListener("pointermove", e => drags && at(e));
  for (const kind of ["pointerup", "pointercancel"]) line.addEventListener(kind, () => { drags = false; });
  line.addEventListener("keydown", e => {
    const by = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5}[e.key];
    if (!by || line.ariaDisabled) return;
    e.preventDefault();
    e.stopPropagation();
    const now = value === null ? 0.5 : axis.to(value);
    let next = axis.from(Math.min(1, Math.max(0, now + by / 50)));
    if (facts.whole && Math.round(next) === value) next = Math.min(facts.high, Math.max(facts.low, value + Math.sign(by)));
    say(value === null ? axis.from(0.5) : next);
  });
  field.addEventListener("input", () => {
    const typed = Number(field.value.trim().replace(",", ".").replace("\u2212", "-"));
    const fits = field.value.trim() !== "" && typed >= facts.low && typed <= facts.high;
    if (fits) say(typed, true);
    else {
      value = null;
      line.querySelector(".you")?.remove();
      taken(false, field.value.trim() ? `Allowed: ${plain(facts.low)} to ${plain(facts.high)}.` : "");
    }
  });
  return {
    nodes: [line],
    beside: [part("label", {className: "typed"}, "or type ", field, unit)],
    value: () => value,
    show: said => say(said, false),
    freeze: () => { line.ariaDisabled = "true"; field.parentNode.hidden = true; },
    outcome: () => place("came", facts.answer, "outcome"),
    text: said => `You said ${plain(said)}${unit}. It is ${plain(facts.answer)}${unit}.`,
  };
}

// A choice of several sentences.
function choiceField(facts, taken, key) {
  const boxes = facts.choices.map((text, k) => part("input", {type: "radio", name: `predict-${key}`, value: String(k)}));
  const rows = boxes.map((box, k) => part("label", {className: "option"}, box, part("span", {textContent: facts.choices[k]})));
  const value = () => { const at = boxes.findIndex(box => box.checked); return at < 0 ? null : at; };
  for (const box of boxes) box.addEventListener("change", () => taken(true));
  return {
    nodes: rows,
    beside: [],
    value,
    show: said => { if (boxes[said]) boxes[said].checked = true; taken(Boolean(boxes[said])); },
    freeze: () => boxes.forEach(box => { box.disabled = true; }),
    outcome: () => rows[facts.answer].classList.add("came"),
    text: said => (said === facts.answer ? "You were right." : "It came out differently."),
  };
}

const isRight = (facts, said) =>
  facts.choices ? said === facts.answer : said >= facts.right[0] && said <= facts.right[1];

// Builds one prediction. run(key): starts what the reader has predicted, if something runs. open: whether it is unfolded.
function build(root, run, open) {
  const facts = JSON.parse(root.dataset.predict), key = root.dataset.key, runs = root.dataset.runs !== undefined;
  const act = part("button", {type: "button", className: "lock", disabled: true, textContent: runs ? "Lock in and run" : "Lock in"});
  const again = part("button", {type: "button", className: "again", textContent: "Predict again", hidden: true});
  const problem = part("p", {className: "problem", role: "alert"});
  const name = part("b", {textContent: "Enter your prediction"}), said = part("span", {role: "status"});
  const head = part("summary", {}, name, said);
  const taken = (ready, text = "") => { act.disabled = !ready; problem.textContent = text; };
  const field = (facts.choices ? choiceField : numberField)(facts, taken, key);
  const fold = part("details", {open}, head, part("div", {role: "group", ariaLabel: facts.ask},
    part("p", {className: "ask", textContent: facts.ask}), ...field.nodes, part("div", {className: "acts"}, ...field.beside, act, again), problem));
  const tell = text => { said.textContent = text; };
  const frozen = (value, wait) => {
    field.freeze();
    act.hidden = true;
    name.textContent = "Your prediction";
    const reveal = () => {
      if (!fold.isConnected) return;
      field.outcome();
      tell(`${isRight(facts, value) && !facts.choices ? "Right. " : ""}${field.text(value)} ${facts.because}`);
      again.hidden = false;
    };
    if (!wait) return reveal();
    fold.open = open;  // so that the figure is on screen
    tell("It runs. Watch.");
    setTimeout(reveal, WATCH);
  };
  act.addEventListener("click", () => {
    const value = field.value();
    predicted.set(key, {said: value, right: isRight(facts, value)});
    frozen(value, runs);
    if (runs) run(key);
  });
  again.addEventListener("click", () => {
    predicted.set(key, undefined);
    build(root, run, true);
  });
  root.replaceChildren(fold);
  const before = predicted.all()[key];
  if (before && typeof before.said === "number") {
    field.show(before.said);
    if (field.value() !== null) frozen(field.value(), false);
  }
}

// The score card: how many of these predictions were right, as far as they were made.
function scoresOf(root) {
  const keys = JSON.parse(root.dataset.scores), all = predicted.all();
  const made = keys.filter(key => all[key]), right = made.filter(key => all[key].right).length;
  root.hidden = !made.length;
  const marks = keys.map(key => (!all[key] ? "\u25cb" : all[key].right ? "\u25cf" : "\u25d0"));
  root.textContent = `${marks.length <= 4 ? `${marks.join(" ")}  ` : ""}${root.dataset.words ?? "Your predictions"}: ` +
    `${right} right of ${made.length} made, ${keys.length} in all.`;
}

// Makes the predictions and score cards under an element work. Returns a call that ends what it began.
function predictions(root, run = () => {}, open = false) {
  for (const each of root.querySelectorAll("[data-predict]")) build(each, run, open);
  const cards = [...root.querySelectorAll("[data-scores]")], tell = () => cards.forEach(scoresOf);
  if (!cards.length) return () => {};
  tell();
  addEventListener("steinlab-predicted", tell);
  return () => removeEventListener("steinlab-predicted", tell);
}
