// Small things that need no server: counting, inserting at the cursor, language and theme.
Object.assign(window.chattts, {
  count(text) {
    const words = window.chattts.words;
    const han = (text.match(/[\u3400-\u9fff]/g) || []).length;
    const latin = (text.match(/[A-Za-z]+/g) || []).length;
    const digits = (text.match(/\d/g) || []).length;
    const pauses = (text.match(/[，。！？；：,.!?;:]/g) || []).length;
    const seconds = han * 0.22 + latin * 0.34 + digits * 0.3 + pauses * 0.2;
    const count = [...text].length;
    const line = words.count.replace("{count}", String(count)).replace("{seconds}", seconds.toFixed(0));
    const span = document.createElement("span");
    span.className = "count";
    span.textContent = line;
    return span.outerHTML;
  },
  insert(marker) {
    const area = document.querySelector("#text textarea");
    const from = area.selectionStart ?? area.value.length;
    const to = area.selectionEnd ?? from;
    const text = area.value.slice(0, from) + marker + area.value.slice(to);
    setTimeout(() => { area.focus(); area.setSelectionRange(from + marker.length, from + marker.length); }, 60);
    return text;
  },
  language(code) {
    document.cookie = `chattts_lang=${code}; path=/; max-age=31536000; samesite=lax`;
    location.reload();
  },
  theme() {
    const isDark = document.body.classList.toggle("dark");
    localStorage.setItem("chattts_theme", isDark ? "dark" : "light");
  },
});
(() => {
  const theme = localStorage.getItem("chattts_theme");
  const query = new URLSearchParams(location.search);
  if (theme && !query.has("__theme")) {
    query.set("__theme", theme);
    history.replaceState(null, "", `${location.pathname}?${query}`);
  }
})();
