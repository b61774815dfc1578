// A client of WS /ws/tts that a web page can copy: connect, speak, play each 20 ms frame as it comes.
//
// With framing "raw", the binary frames between a request's start and its end belong to it.
const RATE = 24000;
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

/** The key as the subprotocol that stands for it: a browser cannot set a header on a socket. */
export function bearerProtocols(key) {
  if (!key) return [];
  const bytes = new TextEncoder().encode(key);
  const base64 = btoa(String.fromCharCode(...bytes));
  const name = base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return ["chattts", `bearer.${name}`];
}

/** Sound out: an AudioWorklet at the stream's own rate, so that nothing is resampled twice. */
export class Speaker {
  constructor(onReport) {
    this.onReport = onReport;
    this.ready = null;
  }

  /** Must first be called from a click or a key press: browsers keep pages silent until then. */
  open() {
    this.ready ??= this.start();
    return this.ready;
  }

  async start() {
    this.context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
    await this.context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
    this.node = new AudioWorkletNode(this.context, "stream-player", { outputChannelCount: [1] });
    this.node.port.onmessage = (event) => this.onReport(event.data);
    this.node.connect(this.context.destination);
    await this.context.resume();
  }

  play(pcm) {
    const samples = Float32Array.from(pcm, (value) => value / 32768);
    this.node?.port.postMessage({ type: "samples", samples }, [samples.buffer]);
  }

  end() {
    this.node?.port.postMessage({ type: "end" });
  }

  flush() {
    this.node?.port.postMessage({ type: "flush" });
  }
}

/** The socket: reconnects by itself; what had not begun is asked for again. */
export class TtsClient {
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.key = "";
    this.socket = null;
    this.retries = 0;
    this.timer = 0;
    this.waiting = new Map(); // req_id -> message, until its start
    this.current = null; // the request whose frames are coming
    this.number = 0;
  }

  connect(key = this.key) {
    this.key = key;
    clearTimeout(this.timer);
    if (this.socket) this.socket.onclose = null;
    this.socket?.close();
    this.on.state("connecting");
    const socket = new WebSocket(this.url, bearerProtocols(key));
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.opened();
    socket.onmessage = (event) => this.received(event.data);
    socket.onclose = (event) => this.closed(event);
    this.socket = socket;
  }

  speak(text, fields = {}) {
    this.number += 1;
    const id = `p${this.number}`;
    const message = { type: "speak", req_id: id, text, ...fields };
    this.waiting.set(id, message);
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
    return id;
  }

  cancelAll() {
    const ids = [...this.waiting.keys(), ...(this.current ? [this.current.req_id] : [])];
    this.waiting.clear();
    if (this.socket?.readyState !== WebSocket.OPEN) return;
    for (const id of ids) this.socket.send(JSON.stringify({ type: "cancel", req_id: id }));
  }

  opened() {
    this.retries = 0;
    this.on.state("open");
    for (const message of this.waiting.values()) this.socket.send(JSON.stringify(message));
  }

  closed(event) {
    if (this.current) {
      this.on.lost(this.current);
      this.current = null;
    }
    // A server that refuses before it accepts shows itself as a socket that never opened.
    const wait = RETRY_MS[Math.min(this.retries, RETRY_MS.length - 1)];
    this.retries += 1;
    this.on.state("closed", { code: event.code, wait });
    this.timer = setTimeout(() => this.connect(), wait);
  }

  received(data) {
    if (typeof data !== "string") {
      if (this.current) this.on.frame(new Int16Array(data), this.current);
      return;
    }
    const message = JSON.parse(data);
    if (message.type === "start") {
      this.waiting.delete(message.req_id);
      this.current = message;
      this.on.start(message);
    } else {
      this.waiting.delete(message.req_id);
      if (this.current?.req_id === message.req_id) this.current = null;
      this.on.end(message, this.waiting.size);
    }
  }
}
