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

export function render({model}) {
  const onBack = () => model.send_msg({back: location.search});
  const copy = async text => model.send_msg({copied: await copyText(text)});
  const onMessage = message => {
    if (message.copy) copy(message.copy);
    if (message.copy_link) copy(location.origin + location.pathname + message.copy_link);
    if (message.link) history[message.push ? "pushState" : "replaceState"](history.state, "", location.pathname + message.link);
  };
  addEventListener("popstate", onBack);
  model.on("msg:custom", onMessage);
  model.on("remove", () => removeEventListener("popstate", onBack));
  model.send_msg({ready: true, narrow: innerWidth < 600});
}
