"use strict";
(() => {
  const plain = (text) => text.normalize("NFKC").toLowerCase();
  const field = document.getElementById("search");
  const only = document.getElementById("conflicts-only");
  const shown = document.getElementById("shown");
  const rows = [...document.querySelectorAll("#substances tbody tr")].map((row) => [row, plain(row.textContent)]);
  const apply = () => {
    const wanted = plain(field.value).split(/\s+/).filter(Boolean);
    let count = 0;
    rows.forEach(([row, text]) => {
      const fits = wanted.every((word) => text.includes(word)) && (!only.checked || row.dataset.conflicts !== "0");
      row.hidden = !fits;
      count += fits ? 1 : 0;
    });
    shown.textContent = `${count} / ${rows.length}`;
  };
  field.addEventListener("input", apply);
  only.addEventListener("input", apply);
  apply();
})();
