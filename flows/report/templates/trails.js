"use strict";
(() => {
  const data = JSON.parse(document.getElementById("items").textContent);
  const plain = (text) => text.normalize("NFKC").toLowerCase();
  const rows = data.rows.map((row) => [row, plain(row[3])]);
  // a number is looked for whole (11 is not in 110 or 11.5), an id by its beginning, other words anywhere
  const finder = (word) => {
    if (!/^\d+(\.\d+)?$/.test(word)) return (id, text) => text.includes(word) || id.startsWith(word);
    const whole = new RegExp("(?<![\\d.])" + word.replace(".", "\\.") + "(?![\\d]|\\.\\d)");
    return (id, text) => whole.test(text) || (word.length > 5 && id.startsWith(word));
  };
  const field = document.getElementById("search");
  const kind = document.getElementById("kind");
  const list = document.getElementById("found");
  const shown = document.getElementById("shown");
  const [back, on] = [document.getElementById("back"), document.getElementById("on")];
  const size = 50;
  const anchors = { f: "f-", q: "q-", c: "c-" };
  let hits = [];
  let at = 0;
  const draw = () => {
    list.textContent = "";
    hits.slice(at, at + size).forEach(([[sort, id, file, said]]) => {
      const item = document.createElement("li");
      const tag = document.createElement("span");
      tag.className = "tag";
      tag.textContent = kind.querySelector(`option[value="${sort}"]`).textContent;
      const link = document.createElement("a");
      const folder = sort === "s" ? `../${list.dataset.substances}/` : "";
      link.href = folder + data.files[file] + (anchors[sort] ? "#" + anchors[sort] + encodeURIComponent(id) : "");
      link.textContent = said.length > 160 ? said.slice(0, 160) + "…" : said || id;
      const code = document.createElement("code");
      code.textContent = " " + id;
      item.append(tag, link, code);
      list.append(item);
    });
    const some = field.value.trim() || kind.value;
    shown.textContent = some ? `${hits.length ? at + 1 : 0}–${Math.min(at + size, hits.length)} / ${hits.length}` : "";
    back.disabled = at === 0;
    on.disabled = at + size >= hits.length;
    back.hidden = on.hidden = hits.length <= size;
  };
  const apply = () => {
    const wanted = plain(field.value).split(/\s+/).filter(Boolean).map(finder);
    const some = wanted.length || kind.value;
    hits = some ? rows.filter(([row, text]) => (!kind.value || row[0] === kind.value) && wanted.every((fits) => fits(row[1], text))) : [];
    at = 0;
    draw();
  };
  field.addEventListener("input", apply);
  kind.addEventListener("input", apply);
  back.addEventListener("click", () => { at -= size; draw(); });
  on.addEventListener("click", () => { at += size; draw(); });
  apply();
})();
