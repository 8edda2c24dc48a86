// What every page needs of the browser: the address bar, the Back button and the clipboard. Shows nothing.

// Works on plain-http hosts too, where navigator.clipboard does not exist. Whether it did.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// The class that this tab leads. A new tab does not lead it.
const LEADS = "steinlab.leads";
function keptClass() {
  try { return sessionStorage.getItem(LEADS) ?? ""; } catch { return ""; }
}
function keepClass(text) {
  try { sessionStorage.setItem(LEADS, text); } catch { /* for this visit only */ }
}

// What another page takes to show this address within it.
const frameOf = address => `<iframe src="${address.replaceAll("&", "&amp;")}" title="Stein particle inference, live" ` +
  `style="width: 100%; height: 560px; border: 0"></iframe>`;

// P turns the lecture on and off everywhere; in it the arrows and the keys of a presenter's remote go back and forth.
const TYPING = "input, textarea, select, [role=slider], [role=combobox], [role=option], [role=menu], [role=tab], [contenteditable]";
const LECTURE_KEYS = {Escape: "p", ArrowLeft: "left", ArrowRight: "right"}, REMOTE = {PageUp: "left", PageDown: "right"};

function keyOf(e, lecture) {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey) return;
  if (lecture && REMOTE[e.key]) return REMOTE[e.key];
  if (e.composedPath().some(node => node.matches?.(TYPING))) return;
  return e.key.toLowerCase() === "p" ? "p" : lecture ? LECTURE_KEYS[e.key] : undefined;
}

export function render({model}) {
  const onKey = e => {
    const key = keyOf(e, model.lecture);
    if (!key) return;
    e.preventDefault();
    model.send_msg({key});
  };
  // The window of a lecture and that of the speaker's notes talk to each other.
  const channel = new BroadcastChannel("steinlab-lecture");
  let last = null;
  channel.onmessage = ({data}) => {
    if (data.hello && last && model.lecture) channel.postMessage(last);
    if (["left", "right"].includes(data.move) && model.lecture) model.send_msg({key: data.move});
  };
  const onResize = () => model.send_msg({height: innerHeight});
  const onBack = () => model.send_msg({back: location.search});
  const copy = async text => model.send_msg({copied: await copyText(text)});
  const onMessage = message => {
    if (message.copy) copy(message.copy);
    if (message.copy_link) copy(location.origin + location.pathname + message.copy_link);
    if (message.copy_embed) copy(frameOf(location.origin + location.pathname + message.copy_embed));
    if ("keep_class" in message) keepClass(message.keep_class);
    if (message.cast) channel.postMessage(last = message.cast);
    if (message.link) history[message.push ? "pushState" : "replaceState"](history.state, "", location.pathname + message.link);
  };
  // The page that this one is part of says its theme: {steinlab: {theme: "dark"}}.
  const onParent = ({data, source}) => {
    const theme = data?.steinlab?.theme;
    if (source === parent && parent !== window && ["light", "dark"].includes(theme)) model.send_msg({theme});
  };
  addEventListener("message", onParent);
  addEventListener("popstate", onBack);
  addEventListener("keydown", onKey);  // after those of the page, which listen to the document
  addEventListener("resize", onResize);
  model.on("msg:custom", onMessage);
  model.on("remove", () => {
    removeEventListener("message", onParent);
    removeEventListener("popstate", onBack);
    channel.close();
    removeEventListener("keydown", onKey);
    removeEventListener("resize", onResize);
  });
  model.send_msg({ready: true, narrow: innerWidth < 600, height: innerHeight, base: location.origin + location.pathname, class: keptClass()});
}
