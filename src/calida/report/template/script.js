"use strict";
(() => {
  const tip = document.getElementById("tip");
  const filter = document.getElementById("class-filter");
  const theme = document.getElementById("theme");
  const root = document.documentElement;

  // Words about the mark under the pointer; set as text, so that nothing in them can become markup.
  const show = (event) => {
    const mark = event.target.closest("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const above = event.clientY + 18 + box.height > window.innerHeight;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above ? event.clientY - box.height - 12 : event.clientY + 18}px`;
  };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // One class in front, the others faded; sample groups of other classes go away.
  const chips = document.querySelectorAll(".chip");
  const choose = (wanted) => {
    filter.value = wanted;
    for (const chip of chips) chip.setAttribute("aria-pressed", String(chip.dataset.class === wanted));
    for (const mark of document.querySelectorAll("details svg [data-class], details .bar-row[data-class]")) {
      mark.classList.toggle("faded", wanted !== "" && mark.dataset.class !== wanted);
    }
    for (const group of document.querySelectorAll("#samples .group")) {
      group.hidden = wanted !== "" && group.dataset.class !== wanted;
    }
  };
  filter.addEventListener("change", () => choose(filter.value));
  for (const chip of chips) {
    chip.addEventListener("click", () => choose(filter.value === chip.dataset.class ? "" : chip.dataset.class));
  }

  // A link into the details unfolds them, and paper has nothing to unfold.
  const unfold = (one) => { if (one && one.tagName === "DETAILS") one.open = true; };
  for (const link of document.querySelectorAll('a[href^="#"]')) {
    link.addEventListener("click", () => unfold(document.getElementById(link.hash.slice(1))));
  }
  unfold(document.getElementById(location.hash.slice(1)));
  window.addEventListener("beforeprint", () => document.querySelectorAll("details.card").forEach(unfold));

  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  const label = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-pressed", String(dark())); };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
  label();
})();
