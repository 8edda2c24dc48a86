// The model of a stage without Panel: properties that tell when they are set, and messages.
class StageModel {
  constructor(values, onMessage) {
    this.handlers = {};
    this.send_msg = onMessage;
    const usual = {scene: {}, marks: {}, show: {}, lit: "", lecture: false, slot: "", starting: 0, status: "", alarm: "",
      embedded: false, dark: false, channel: ""};
    for (const [name, first] of Object.entries({...usual, ...values})) {
      let value = first;
      Object.defineProperty(this, name, {
        get: () => value,
        set: next => { value = next; this.tell(name); },
      });
    }
  }
  on(names, handler) { for (const name of [names].flat()) (this.handlers[name] ??= []).push(handler); }
  tell(name, what) { for (const handler of this.handlers[name] ?? []) handler(what); }
}
