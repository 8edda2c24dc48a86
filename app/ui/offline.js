// Cover the page with a grey sheet while there is no connection to the server, because clicks and keys would be lost.
// The messages about the connection stay above the sheet and can be clicked. Bokeh 3.9.2 has no such sheet.
const {ClientConnection: Connection} = globalThis.Bokeh?.require?.("client/connection") ?? {};
if (Connection && !Connection.prototype.sheeted) {
  const {connect, _schedule_reconnect: lost} = Connection.prototype;
  const sheet = document.createElement("div");
  sheet.id = "offline";
  sheet.tabIndex = -1;
  sheet.setAttribute("aria-label", "no connection to the server");
  sheet.style.cssText = `position: fixed; inset: 0; z-index: 1350; cursor: not-allowed; outline: none;
    background: #80808060; backdrop-filter: grayscale(1)`;
  const isMessage = node => /notyf|Snackbar/.test(node.className?.toString() ?? "");
  for (const kind of ["keydown", "keyup", "keypress"]) {
    addEventListener(kind, event => {
      if (!sheet.isConnected || event.composedPath().some(isMessage)) return;
      event.stopImmediatePropagation();
      event.preventDefault();
    }, {capture: true});
  }
  Object.assign(Connection.prototype, {
    sheeted: true,
    async connect() {
      const session = await connect.call(this);
      sheet.remove();
      return session;
    },
    _schedule_reconnect(milliseconds) {
      if (this.session && !sheet.isConnected) {
        document.activeElement?.blur();
        document.body.append(sheet);
      }
      return lost.call(this, milliseconds);
    },
  });
}
