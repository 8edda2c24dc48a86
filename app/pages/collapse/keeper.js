// Offers the replay of a sweep, or its film, which a hidden replay paints.
async function filmed(page, size) {
  const frame = document.createElement("iframe");
  Object.assign(frame.style, {position: "fixed", left: "-3000px", top: "0", width: "1280px", height: "1030px", border: "0"});
  frame.srcdoc = page;
  document.body.append(frame);
  try {
    while (!frame.contentWindow.replay?.frames.length) await new Promise(requestAnimationFrame);
    const [url] = await frame.contentWindow.replay.film(size);
    return await (await fetch(url)).blob();
  } finally {
    frame.remove();
  }
}

export function render({model, el}) {
  const box = element("div", "stage", el);
  model.on("msg:custom", ({kind, page, count, dark}) => {
    box.classList.toggle("dark", dark);
    offerRun(kind, box, count, () => new Blob([page], {type: "text/html"}), size => filmed(page, size));
  });
}
