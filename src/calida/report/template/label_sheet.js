"use strict";
const samples = [...document.querySelectorAll("[data-number]")];
const key = "calida " + document.body.dataset.key;
const choice = (sample) => sample.querySelector("select");

// A browser may refuse to keep anything for a file; answers then last as long as the page.
const kept = () => { try { return JSON.parse(localStorage.getItem(key)) || {}; } catch { return {}; } };
const keep = (answers) => { try { localStorage.setItem(key, JSON.stringify(answers)); } catch { /* as said */ } };

function update() {
  const answers = {};
  for (const sample of samples) {
    if (choice(sample).value) answers[sample.dataset.number] = choice(sample).value;
    sample.classList.toggle("done", Boolean(choice(sample).value));
  }
  const done = Object.keys(answers).length;
  document.getElementById("progress").value = done;
  document.getElementById("count").textContent = `${done} of ${samples.length}`;
  return answers;
}

// Quoted throughout; what a spreadsheet would take for a formula gets an apostrophe before it.
const cell = (text) => `"${text.replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`;

function save() {
  const answers = update();
  const lines = [["number", document.body.dataset.namedBy, "label"]];
  for (const { dataset } of samples) lines.push([dataset.number, dataset.name, answers[dataset.number] || ""]);
  const text = lines.map((line) => line.map(cell).join(",") + "\n").join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = "labels.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

for (const [number, answer] of Object.entries(kept())) {
  const sample = samples.find((one) => one.dataset.number === number);
  if (sample) choice(sample).value = answer;
}
update();
document.addEventListener("change", () => keep(update()));
document.getElementById("save").addEventListener("click", save);
