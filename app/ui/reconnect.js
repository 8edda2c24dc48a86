// Two mends of Bokeh's client for connections that are cut. One cut between two parts of a message leaves its receiver
// waiting for the rest, and it then refuses the next connection's first message for ever: every connection starts with
// a fresh receiver. And what is said while there is no open socket is lost quietly instead of thrown.
const {ClientConnection} = globalThis.Bokeh?.require?.("client/connection") ?? {};
if (ClientConnection && !ClientConnection.prototype.mended) {
  const {connect, send} = ClientConnection.prototype;
  Object.assign(ClientConnection.prototype, {
    mended: true,
    connect() {
      this._receiver = new this._receiver.constructor();
      return connect.call(this);
    },
    send(message) {
      if (this.socket?.readyState === WebSocket.OPEN) send.call(this, message);
    },
  });
}
