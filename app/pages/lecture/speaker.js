// The window of the speaker: the note of the stop on the screen, what comes next, and the time. It hears of the stop from
// the window of the lecture, and can move it.
export function render({model, el}) {
  const root = document.createElement("div"), channel = new BroadcastChannel("steinlab-lecture");
  root.className = "speaker";
  root.innerHTML = `<p class="where" role="status"></p><h1></h1><p class="note"></p><p class="next"></p>
    <div class="row"><button type="button">‹ Back</button><button type="button">Next ›</button>
    <time aria-label="time since the lecture began"></time></div>`;
  el.append(root);
  const [where, title, note, next] = [".where", "h1", ".note", ".next"].map(name => root.querySelector(name));
  const clock = root.querySelector("time"), [back, on] = root.querySelectorAll("button");
  let at = 0, began = 0;

  function show() {
    const {stops} = model, stop = stops[at - 1];
    where.textContent = stop ? `Stop ${at} of ${stops.length}` : "Start the lecture in another window of this browser.";
    title.textContent = stop ? stop.title : "";
    note.textContent = stop ? stop.note : "";
    next.textContent = stop && stops[at] ? `Next: ${stops[at].title}` : stop ? "This is the last stop." : "";
    const seconds = began ? Math.floor((performance.now() - began) / 1000) : 0;
    clock.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  }

  channel.onmessage = ({data}) => {
    if (!data.at || JSON.stringify(data.play) !== JSON.stringify(model.stops.map(stop => stop.name))) return;
    at = data.at;
    began ||= performance.now();
    show();
  };
  back.addEventListener("click", () => channel.postMessage({move: "left"}));
  on.addEventListener("click", () => channel.postMessage({move: "right"}));
  const ticker = setInterval(show, 1000);
  model.on("stops", show);
  model.on("remove", () => { clearInterval(ticker); channel.close(); });
  channel.postMessage({hello: true});
  show();
}
