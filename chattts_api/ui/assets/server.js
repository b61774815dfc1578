// The engine's figures every two seconds while the tab is seen, with a line for the last minutes.
const words = window.chattts.words;
const box = element.querySelector('[data-part="server"]');
const history = {};
let last = null;
const CARDS = ["rtf", "batch", "queue", "running", "memory", "spoken"];
const SIZE = { width: 220, height: 56, points: 90 };

function make(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

box.replaceChildren(make("p", "server-facts", words.server_waiting), make("div", "cards"));
const facts = box.firstChild;
const cards = {};
for (const name of CARDS) {
  const card = make("section", "card");
  const title = make("h4", "", words[`server_${name}`]);
  const value = make("p", "card-value", "–");
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("viewBox", `0 0 ${SIZE.width} ${SIZE.height}`);
  picture.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  picture.append(line);
  card.append(title, value, picture);
  box.lastChild.append(card);
  cards[name] = { value, line };
  history[name] = [];
}

function put(name, number, text) {
  const points = history[name];
  points.push(number);
  if (points.length > SIZE.points) points.shift();
  const top = Math.max(...points, 1e-9);
  cards[name].value.textContent = text;
  cards[name].line.setAttribute(
    "points",
    points
      .map((v, i) => `${((i / (SIZE.points - 1)) * SIZE.width).toFixed(1)},${(SIZE.height - 3 - (v / top) * (SIZE.height - 6)).toFixed(1)}`)
      .join(" "),
  );
}

function draw(now) {
  const state = now.is_ready ? words.server_ready : words.server_loading;
  const progress = now.progress === null ? "" : ` ${Math.round(now.progress * 100)} %`;
  facts.textContent = [now.engine, now.device, now.dtype, state + progress, now.notice].filter(Boolean).join(" · ");
  const seconds = last ? (now.at - last.at) / 1000 : 0;
  const audio = last ? now.audio_s - last.audio_s : 0;
  const steps = last ? now.steps - last.steps : 0;
  const rows = last ? now.rows - last.rows : 0;
  put("rtf", audio > 0 ? seconds / audio : 0, audio > 0 ? (seconds / audio).toFixed(2) : "–");
  put("batch", steps > 0 ? rows / steps : 0, steps > 0 ? (rows / steps).toFixed(1) : "–");
  put("queue", now.waiting, `${now.waiting} (${now.queued_s.toFixed(0)} s)`);
  put("running", now.running, now.slots ? `${now.running} / ${now.slots}` : String(now.running));
  put("memory", now.memory_mb, `${now.memory_mb.toFixed(0)} MB`);
  put("spoken", now.audio_s, `${now.audio_s.toFixed(0)} s`);
  last = now;
}

async function poll() {
  if (element.offsetParent === null) return;
  try {
    const answer = await fetch("server.json");
    if (answer.ok) draw({ ...(await answer.json()), at: performance.now() });
  } catch {
    facts.textContent = words.server_gone;
  }
}
setInterval(poll, 2000);
new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) poll(); }).observe(element);
