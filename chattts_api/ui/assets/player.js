// Plays the PCM of a sound while it is still being made, draws it, and can play it again.
// Runs once for each player on the page: `element`, `watch`, `props` and `trigger` are Gradio's.
const RATE = 24000;
const words = window.chattts.words;
const pick = (name) => element.querySelector(`[data-part="${name}"]`);
const canvas = pick("wave");
const playButton = pick("play");
const seek = pick("seek");
const clock = pick("clock");
const links = pick("links");

let context = null;
let load = null; // aborts the running fetch
let pieces = []; // Float32Array
let received = 0; // samples
let isWhole = false;
let startedAt = 0; // context time at which sample `offset` plays
let offset = 0;
let scheduled = 0; // samples handed to the context
let sources = [];
let isPlaying = false;
let underruns = 0;
let shownId = "";

playButton.setAttribute("aria-label", words.play);
seek.setAttribute("aria-label", words.position);

function ensureContext() {
  context ??= new AudioContext({ sampleRate: RATE });
  if (context.state === "suspended") context.resume();
}

function position() {
  if (!isPlaying) return offset;
  return Math.max(offset, Math.min(received, offset + Math.round((context.currentTime - startedAt) * RATE)));
}

function schedule() {
  if (!isPlaying) return;
  let index = 0;
  for (const piece of pieces) {
    const end = index + piece.length;
    if (end > scheduled) {
      const part = piece.subarray(Math.max(0, scheduled - index));
      let at = startedAt + (scheduled - offset) / RATE;
      if (at < context.currentTime) {
        // The stream fell behind: go on from now, and remember it.
        if (scheduled > offset) underruns += 1;
        startedAt += context.currentTime + 0.05 - at;
        at = context.currentTime + 0.05;
      }
      const buffer = context.createBuffer(1, part.length, RATE);
      buffer.copyToChannel(part, 0);
      const source = context.createBufferSource();
      source.buffer = buffer;
      source.connect(context.destination);
      source.start(at);
      sources.push(source);
      scheduled = end;
    }
    index = end;
  }
}

function silence() {
  for (const source of sources) {
    try { source.stop(); } catch { /* it has not begun */ }
    source.disconnect();
  }
  sources = [];
}

function playFrom(sample) {
  ensureContext();
  silence();
  offset = sample;
  scheduled = sample;
  startedAt = context.currentTime + 0.06;
  isPlaying = true;
  schedule();
  show();
}

function pause() {
  const at = position();
  silence();
  isPlaying = false;
  offset = at;
  show();
}

async function follow(value) {
  load?.abort();
  if (isPlaying) pause();
  load = new AbortController();
  const signal = load.signal;
  pieces = []; received = 0; offset = 0; scheduled = 0; isWhole = false; underruns = 0;
  links.replaceChildren();
  if (value.autoplay) playFrom(0);
  try {
    const answer = await fetch(`${value.url}.pcm`, { signal });
    if (!answer.ok) throw new Error(String(answer.status));
    const reader = answer.body.getReader();
    let odd = new Uint8Array(0);
    for (;;) {
      const { done, value: bytes } = await reader.read();
      if (done || signal.aborted) break;
      const joined = new Uint8Array(odd.length + bytes.length);
      joined.set(odd); joined.set(bytes, odd.length);
      const whole = joined.length - (joined.length % 2);
      odd = joined.slice(whole);
      const pcm = new Int16Array(joined.buffer.slice(0, whole));
      pieces.push(Float32Array.from(pcm, (v) => v / 32767));
      received += pcm.length;
      schedule();
      show();
    }
    if (signal.aborted) return;
    isWhole = true;
    offerDownloads(value);
  } catch (error) {
    if (error.name !== "AbortError") clock.textContent = words.lost;
    return;
  }
  show();
}

function offerDownloads(value) {
  for (const format of ["mp3", "wav", "opus", "aac", "flac", "pcm"]) {
    const link = document.createElement("a");
    link.href = `${value.url}.${format}?download=1`;
    link.setAttribute("download", "");
    link.textContent = format.toUpperCase();
    link.setAttribute("aria-label", `${words.download} ${format.toUpperCase()}`);
    links.append(link);
  }
}

const time = (samples) => {
  const s = samples / RATE;
  return `${Math.floor(s / 60)}:${(s % 60).toFixed(1).padStart(4, "0")}`;
};

function show() {
  const at = position();
  const hasSound = received > 0;
  playButton.disabled = !hasSound;
  seek.disabled = !hasSound;
  seek.max = String(Math.max(1, received));
  if (document.activeElement !== seek || isPlaying) seek.value = String(at);
  seek.setAttribute("aria-valuetext", time(at));
  playButton.dataset.state = isPlaying ? "playing" : "paused";
  playButton.setAttribute("aria-label", isPlaying ? words.pause : words.play);
  clock.textContent = `${time(at)} / ${time(received)}`;
  element.dataset.seconds = (received / RATE).toFixed(2);
  element.dataset.position = (at / RATE).toFixed(2);
  element.dataset.underruns = String(underruns);
  element.dataset.state = isWhole ? "whole" : "loading";
  draw(at);
}

function draw(at) {
  const scale = window.devicePixelRatio || 1;
  const width = canvas.clientWidth * scale;
  const height = canvas.clientHeight * scale;
  if (!width) return;
  canvas.width = width; canvas.height = height;
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(element);
  const played = style.getPropertyValue("--color-accent");
  const ahead = style.getPropertyValue("--body-text-color-subdued");
  const bar = 3 * scale;
  const count = Math.floor(width / bar);
  // Until the end is known, ten seconds fill the width.
  const span = Math.max(received, isWhole ? 1 : RATE * 10);
  const peaks = new Float32Array(count);
  let index = 0;
  for (const piece of pieces) {
    for (let i = 0; i < piece.length; i += 8) {
      const slot = Math.floor(((index + i) / span) * count);
      const level = Math.abs(piece[i]);
      if (slot < count && level > peaks[slot]) peaks[slot] = level;
    }
    index += piece.length;
  }
  for (let i = 0; i < count; i += 1) {
    const isHeard = (i / count) * span < at;
    const tall = Math.max(scale, peaks[i] * height * 0.94);
    pen.fillStyle = isHeard ? played : ahead;
    pen.fillRect(i * bar, (height - tall) / 2, bar - scale, tall);
  }
}

playButton.addEventListener("click", () => {
  if (isPlaying) pause();
  else playFrom(offset >= received ? 0 : offset);
});
seek.addEventListener("input", () => {
  const to = Number(seek.value);
  if (isPlaying) playFrom(to);
  else { offset = to; show(); }
});
canvas.addEventListener("click", (event) => {
  const span = Math.max(received, isWhole ? 1 : RATE * 10);
  const to = Math.min(received, Math.round((event.offsetX / canvas.clientWidth) * span));
  if (isPlaying) playFrom(to);
  else { offset = to; show(); }
});
element.addEventListener("chattts-stop", () => { if (isPlaying) pause(); });

setInterval(() => {
  if (!isPlaying) return;
  if (isWhole && position() >= received) { isPlaying = false; offset = received; silence(); }
  show();
}, 50);

function onValue() {
  const value = props.value;
  if (!value || value.id === shownId) return;
  shownId = value.id;
  follow(value);
}
watch("value", onValue);
new ResizeObserver(() => draw(position())).observe(canvas);
show();
onValue();
