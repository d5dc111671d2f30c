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
    searchIn(description);
  }

  // searchIn lists the operations that have all words of the search in their method, path or texts.
  function searchIn(description) {
    const field = document.getElementById("search");
    const found = document.getElementById("found");
    const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, o]) => {
        const name = `${method.toUpperCase()} ${path}: ${o.summary}`;
        const parameters = (o.parameters ?? []).map((p) => `${p.name} ${p.description}`).join(" ");
        return { id: o.operationId, name, text: `${name} ${o.description} ${o.tags} ${parameters}`.toLowerCase() };
      }),
    );
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const matching = words.length ? operations.filter((o) => words.every((w) => o.text.includes(w))) : [];
      found.replaceChildren(...matching.map(resultOf));
      found.hidden = matching.length === 0;
      document.getElementById("count").textContent = words.length ? `${matching.length} found` : "";
    });
    found.addEventListener("click", () => {
      found.hidden = true;
    });
  }

  function resultOf(operation) {
    const link = document.createElement("a");
    link.href = `#/operations/${operation.id}`;
    link.textContent = operation.name;
    const item = document.createElement("li");
    item.append(link);
    return item;
  }

  // Names, roles and keys that the library leaves out, for people who do not see the page or use no mouse: each row is
  // a selector and what its elements need.
  const repairs = [
    ["[role=heading]:not([aria-level])", (e) => e.setAttribute("aria-level", "3")],
    ["h4:not([aria-level])", (e) => e.setAttribute("aria-level", "2")],
    ["[aria-controls]", dropMissingTarget],
    ["[role=button]:not([aria-label])", (e) => nameUnlessText(e, "Show or hide the members")],
    ["button:not([aria-label])", (e) => nameUnlessText(e, iconName(e))],
    ["button[aria-label]", nameByText],
    ["textarea:not([aria-label])", (e) => e.setAttribute("aria-label", "Body of the request")],
    ["[aria-hidden=true] :is(select, input, button):not([tabindex='-1'])", (e) => e.setAttribute("tabindex", "-1")],
    [".sl-panel__content-wrapper[role=region]", (e) => e.removeAttribute("role")],
    [".sl-code-viewer__scroller:not([tabindex])", (e) => e.setAttribute("tabindex", "0")],
  ];

  function iconName(button) {
    const icon = button.querySelector("svg")?.dataset.icon ?? "";
    return { bars: "Show the contents", copy: "Copy", clone: "Copy" }[icon] ?? (icon || "Choose");
  }

  function nameUnlessText(element, name) {
    if (!element.textContent.trim()) element.setAttribute("aria-label", name);
  }

  function dropMissingTarget(element) {
    const target = element.getAttribute("aria-controls");
    if (!document.getElementById(target)) element.removeAttribute("aria-controls");
  }

  // nameByText adds the text of a button to its name, so that it can be named by what it shows.
  function nameByText(button) {
    const text = button.textContent.trim();
    const name = button.getAttribute("aria-label");
    if (!text || name.includes(text)) return;
    button.setAttribute("aria-label", `${name}: ${text}`);
    button.removeAttribute("aria-labelledby");
  }

  function repair() {
    for (const [selector, mend] of repairs) document.querySelectorAll(`elements-api ${selector}`).forEach(mend);
  }

  document.addEventListener("DOMContentLoaded", () => {
    // Its own changes are of attributes alone, which are not observed.
    new MutationObserver(repair).observe(document.body, { childList: true, subtree: true, characterData: true });
    show();
  });
})();
