// Plays 24 kHz mono samples as they arrive. Knows nothing of sockets.
//
// In:  {type: "samples", samples: Float32Array} | {type: "end"} | {type: "flush"} | {type: "lead", seconds}
// Out: {buffered, underruns, played, isPlaying} about ten times a second
class StreamPlayer extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = [];
    this.at = 0; // position in the first piece
    this.buffered = 0; // samples
    this.played = 0; // samples
    this.underruns = 0;
    this.lead = 0.12; // seconds to gather before the first sound
    this.isPlaying = false;
    this.isEnded = true; // nothing more is on its way
    this.untilReport = 0;
    this.port.onmessage = (event) => this.take(event.data);
  }

  take(message) {
    if (message.type === "samples") {
      this.queue.push(message.samples);
      this.buffered += message.samples.length;
      this.isEnded = false;
    } else if (message.type === "end") {
      this.isEnded = true;
    } else if (message.type === "lead") {
      this.lead = message.seconds;
    } else if (message.type === "flush") {
      this.queue = [];
      this.at = 0;
      this.buffered = 0;
      this.isPlaying = false;
      this.isEnded = true;
    }
  }

  process(_inputs, outputs) {
    const out = outputs[0][0];
    if (!this.isPlaying && this.buffered > 0 && (this.isEnded || this.buffered >= this.lead * sampleRate)) {
      this.isPlaying = true;
    }
    let filled = 0;
    while (this.isPlaying && filled < out.length && this.queue.length) {
      const piece = this.queue[0];
      const count = Math.min(out.length - filled, piece.length - this.at);
      out.set(piece.subarray(this.at, this.at + count), filled);
      filled += count;
      this.at += count;
      if (this.at === piece.length) {
        this.queue.shift();
        this.at = 0;
      }
    }
    this.buffered -= filled;
    this.played += filled;
    if (this.isPlaying && filled < out.length) {
      this.isPlaying = false;
      if (!this.isEnded) {
        this.underruns += 1;
        this.lead = Math.min(1, this.lead * 2); // a slow line gets a longer lead
      }
    }
    this.report(out.length);
    return true;
  }

  report(count) {
    this.untilReport -= count;
    if (this.untilReport > 0) return;
    this.untilReport = sampleRate / 10;
    this.port.postMessage({
      buffered: this.buffered / sampleRate,
      underruns: this.underruns,
      played: this.played / sampleRate,
      isPlaying: this.isPlaying,
    });
  }
}

registerProcessor("stream-player", StreamPlayer);
