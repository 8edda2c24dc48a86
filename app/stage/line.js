// A stage's own websocket beside Panel's: frames come through it, and what the stage says about them goes back. While it is
// closed, and if there is none, Panel's carries both. A frame may overtake the news of its run; it waits for that.
const AGAIN = [500, 10000], GONE = 4404;  // milliseconds until another try: at first, at most

function openLine(model, take) {
  let socket = null, timer = 0, pause = AGAIN[0], early = null, ended = false;
  const address = () => `${location.origin.replace(/^http/, "ws")}${location.pathname.replace(/\/$/, "")}/frames/${model.channel}`;
  const isOpen = () => socket?.readyState === WebSocket.OPEN;
  const say = message => isOpen() ? socket.send(JSON.stringify(message)) : model.send_msg(message);
  function receive(frame) {
    if (frame[2] > model.starting) early = frame;
    else take(frame);
  }
  function connect() {
    socket = new WebSocket(address());
    socket.binaryType = "arraybuffer";
    socket.onopen = () => { pause = AGAIN[0]; say({ready: true}); };
    socket.onmessage = ({data}) => receive(new Float32Array(data));
    socket.onclose = ({code}) => {
      if (ended || code === GONE) return;
      timer = setTimeout(connect, pause);
      pause = Math.min(2 * pause, AGAIN[1]);
    };
  }
  model.on("starting", () => {
    const frame = early;
    early = null;
    if (frame) receive(frame);
  });
  if (model.channel) connect();
  return {say, close: () => { ended = true; clearTimeout(timer); socket?.close(); }};
}
