"use strict";
document.querySelectorAll(".filters").forEach((bar) => {
  const host = document.getElementById(bar.dataset.for);
  const rows = [...host.querySelectorAll("tbody tr, .row")];
  const shown = bar.querySelector(".shown");
  const apply = () => {
    const wanted = [...bar.querySelectorAll("[data-key]")].map((field) => [field.dataset.key, field.value.trim().toLowerCase()]);
    let count = 0;
    rows.forEach((row) => {
      const fits = wanted.every(([key, value]) =>
        !value || (key === "text" ? row.textContent.toLowerCase().includes(value) : (row.dataset[key] || "").toLowerCase() === value));
      row.hidden = !fits;
      count += fits ? 1 : 0;
    });
    shown.textContent = bar.dataset.shown.replace("{n}", count).replace("{all}", rows.length);
  };
  bar.addEventListener("input", apply);
  apply();
});
document.querySelectorAll(".view").forEach((view) => {
  view.querySelectorAll(".tabs button").forEach((button) => {
    button.addEventListener("click", () => {
      view.querySelectorAll(".tabs button").forEach((other) => other.setAttribute("aria-selected", String(other === button)));
      view.querySelectorAll(".tab").forEach((tab) => { tab.hidden = !tab.classList.contains(button.dataset.tab); });
    });
  });
});
