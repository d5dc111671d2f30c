"use strict";

// The library keeps what the reader enters, the key too, in localStorage. Unless the reader asks to keep it, it gets
// sessionStorage in its place, which ends with the tab.
(() => {
  const choice = "crier-console-keep";
  const entered = "TryIt_"; // the names of the library begin with it
  const disk = window.localStorage;
  const tab = window.sessionStorage;
  const keep = disk.getItem(choice) === "yes";

  // Its icons would insert a style element, which the policy of the page refuses; console.css has the style.
  window.FontAwesomeConfig = { autoAddCss: false };
  if (!keep) Object.defineProperty(window, "localStorage", { configurable: true, get: () => tab });

  function move(from, to) {
    for (const name of Object.keys(from)) {
      if (!name.startsWith(entered)) continue;
      to.setItem(name, from.getItem(name));
      from.removeItem(name);
    }
  }

  function choose(event) {
    if (event.target.checked) {
      disk.setItem(choice, "yes");
      move(tab, disk);
    } else {
      disk.removeItem(choice);
      move(disk, tab);
    }
    window.location.reload();
  }

  async function show() {
    const box = document.getElementById("keep");
    box.checked = keep;
    box.addEventListener("change", choose);
    const page = document.querySelector("elements-api");
    const answer = await fetch(page.dataset.document);
    const description = await answer.json();
    description.servers = [{ url: window.location.origin + page.dataset.root }];
    page.apiDescriptionDocument = description;
  }

  document.addEventListener("DOMContentLoaded", show);
})();
