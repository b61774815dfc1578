// The page around the client: fields, figures, words in two languages.
import { Speaker, TtsClient } from "./player.js";

const WORDS = {
  en: {
    title: "Streaming player", key: "Key (where the server asks for one)", connect: "Connect", forget: "Forget the key",
    text: "Text", voice: "Voice", speak: "Speak", stop: "Stop", typing: "Speak each sentence as I type it",
    buffered: "Buffered", underruns: "Under-runs", played: "Played", first: "First sound after", save: "Save the last as WAV",
    connecting: "Connecting.", open: "Connected.", closed: "Not connected; trying again in {wait} s.",
    lost: "The connection broke in the middle of a sentence.", done: "{seconds} s spoken by {engine}.", cancelled: "Stopped.",
    hint: "Ctrl + Enter speaks.", studio: "Back to the studio",
  },
  zh: {
    title: "流式播放器", key: "密钥（服务器需要时填写）", connect: "连接", forget: "忘记密钥",
    text: "文本", voice: "音色", speak: "朗读", stop: "停止", typing: "边打字边朗读每一句",
    buffered: "缓冲", underruns: "断流", played: "已播放", first: "首个声音", save: "将最后一段存为 WAV",
    connecting: "正在连接。", open: "已连接。", closed: "未连接，{wait} 秒后重试。",
    lost: "连接在一句话中间断开了。", done: "{engine} 朗读了 {seconds} 秒。", cancelled: "已停止。",
    hint: "按 Ctrl + Enter 朗读。", studio: "返回录音棚",
  },
};
const cookie = /(?:^|; )chattts_lang=(zh|en)/.exec(document.cookie);
const language = cookie?.[1] ?? (navigator.language.startsWith("zh") ? "zh" : "en");
const words = WORDS[language];
const $ = (id) => document.getElementById(id);

document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
document.title = `ChatTTS · ${words.title}`;
for (const node of document.querySelectorAll("[data-word]")) node.textContent = words[node.dataset.word];

const say = (text, isBad = false) => {
  $("status").textContent = text;
  $("status").classList.toggle("bad", isBad);
};
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

let frames = []; // of the last request, for saving
let askedAt = 0;

const speaker = new Speaker((report) => {
  $("buffered").textContent = `${report.buffered.toFixed(2)} s`;
  $("played").textContent = `${report.played.toFixed(1)} s`;
  $("underruns").textContent = String(report.underruns);
  $("meter").value = Math.min(5, report.buffered);
});

const client = new TtsClient(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/tts`, {
  state(state, detail) {
    document.body.dataset.state = state;
    const wait = detail ? detail.wait / 1000 : 0;
    say(fill(words[state], { wait }), state === "closed");
  },
  start(message) {
    frames = [];
    document.body.dataset.engine = message.engine;
    $("first").textContent = `${Math.round(performance.now() - askedAt)} ms`;
  },
  frame(pcm) {
    frames.push(pcm);
    speaker.play(pcm);
  },
  end(message, waiting) {
    if (waiting === 0) speaker.end();
    if (message.type === "error") say(message.error.message, true);
    else if (message.type === "cancelled") say(words.cancelled);
    else say(fill(words.done, { seconds: message.seconds.toFixed(1), engine: document.body.dataset.engine }));
    document.body.dataset.ended = message.req_id ?? "";
    $("save").disabled = frames.length === 0;
  },
  lost() {
    speaker.end();
    say(words.lost, true);
  },
});

async function speak(text) {
  if (!text.trim()) return;
  await speaker.open();
  askedAt = performance.now();
  client.speak(text, { voice: $("voice").value || undefined });
}

/** The PCM of the last request, as it came. */
export function lastPcm() {
  const total = frames.reduce((sum, frame) => sum + frame.length, 0);
  const joined = new Int16Array(total);
  let at = 0;
  for (const frame of frames) {
    joined.set(frame, at);
    at += frame.length;
  }
  return joined;
}

function wav(pcm) {
  const head = new DataView(new ArrayBuffer(44));
  const put = (at, text) => [...text].forEach((c, i) => head.setUint8(at + i, c.charCodeAt(0)));
  put(0, "RIFF"); put(8, "WAVEfmt "); put(36, "data");
  head.setUint32(4, 36 + pcm.byteLength, true);
  head.setUint32(16, 16, true);
  head.setUint16(20, 1, true);
  head.setUint16(22, 1, true);
  head.setUint32(24, 24000, true);
  head.setUint32(28, 48000, true);
  head.setUint16(32, 2, true);
  head.setUint16(34, 16, true);
  head.setUint32(40, pcm.byteLength, true);
  return new Blob([head, pcm], { type: "audio/wav" });
}

let spokenUpTo = 0;
$("text").addEventListener("input", () => {
  const text = $("text").value;
  if (text.length < spokenUpTo) spokenUpTo = text.length;
  if (!$("typing").checked) return;
  const match = /^[\s\S]*[。！？!?\n]|^[\s\S]*\.(?=\s)/.exec(text.slice(spokenUpTo));
  if (!match) return;
  spokenUpTo += match[0].length;
  speak(match[0]);
});
$("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) speak($("text").value);
});
$("speak").addEventListener("click", () => speak($("text").value));
$("stop").addEventListener("click", () => { client.cancelAll(); speaker.flush(); });
$("save").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(wav(lastPcm()));
  link.download = "speech.wav";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
$("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("chattts_key", $("key").value);
  client.retries = 0;
  client.connect($("key").value);
});
$("forget").addEventListener("click", () => {
  sessionStorage.removeItem("chattts_key");
  $("key").value = "";
  client.connect("");
});

$("key").value = sessionStorage.getItem("chattts_key") ?? "";
client.connect($("key").value);
window.chatttsPlayer = { lastPcm, client };
