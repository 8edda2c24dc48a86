// Two corrections of Bokeh's client. If a connection is cut within a message, the receiver waits for the rest and refuses
// the first message of every later connection, so each connection gets a new receiver. Sending without an open socket
// throws, so such a message is dropped. No upstream issue known; Bokeh 3.9.2.
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
