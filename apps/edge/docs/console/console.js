"use strict";

// The library keeps what the reader enters, including the key, in localStorage. Unless the reader asks to keep it, the
// library gets sessionStorage instead, which ends with the tab. If a browser blocks one of them, the page's memory is
// used in its place.
(() => {
  const choice = "crier-console-keep";
  const entered = "TryIt_"; // prefix of the library's names
  const lasting = storage("localStorage");
  const disk = lasting ?? memory();
  const tab = storage("sessionStorage") ?? memory();
  const keep = disk.getItem(choice) === "yes";

  // The library's icons would insert a style element, which the page's policy refuses; console.css has the style.
  window.FontAwesomeConfig = { autoAddCss: false };
  Object.defineProperty(window, "localStorage", { configurable: true, get: () => (keep ? disk : tab) });
  if (!keep) forget(disk); // what another tab has written since the reader asked not to keep it

  // The library's editor renders two style elements, which the policy refuses too. They become elements without effect,
  // and applyStyles applies their rules through the object model, which no policy restricts.
  const styleName = "crier-style";
  const styles = new CSSStyleSheet();
  document.adoptedStyleSheets.push(styles);
  document.createElement = (name, options) =>
    Document.prototype.createElement.call(document, String(name).toLowerCase() === "style" ? styleName : name, options);

  function applyStyles() {
    const text = [...document.querySelectorAll(styleName)].map((e) => e.textContent).join("\n");
    if (text === applyStyles.last) return;
    applyStyles.last = text;
    styles.replaceSync(text);
  }

  // storage returns a storage of the browser, or null if it is blocked.
  function storage(name) {
    try {
      const found = window[name];
      found.getItem(choice);
      return found;
    } catch {
      return null;
    }
  }

  function memory() {
    const values = new Map();
    return {
      getItem: (name) => values.get(name) ?? null,
      setItem: (name, value) => void values.set(name, String(value)),
      removeItem: (name) => void values.delete(name),
      clear: () => values.clear(),
      key: (i) => [...values.keys()][i] ?? null,
      get length() {
        return values.size;
      },
    };
  }

  function enteredIn(from) {
    return Array.from({ length: from.length }, (_, i) => from.key(i)).filter((name) => name.startsWith(entered));
  }

  function forget(from) {
    for (const name of enteredIn(from)) from.removeItem(name);
  }

  function move(from, to) {
    for (const name of enteredIn(from)) to.setItem(name, from.getItem(name));
    forget(from);
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

  // A browser that goes back to the page restores its forms and may show the earlier choice.
  window.addEventListener("pageshow", () => {
    document.getElementById("keep").checked = keep;
  });

  // Another tab has asked to keep the key, or not to keep it.
  window.addEventListener("storage", (event) => {
    if (event.storageArea === disk && (disk.getItem(choice) === "yes") !== keep) window.location.reload();
  });

  async function show() {
    const box = document.getElementById("keep");
    box.disabled = !lasting;
    box.addEventListener("change", choose);
    const page = document.querySelector("elements-api");
    try {
      const answer = await ask(page.dataset.document);
      if (!answer.ok) throw new Error(`the server responded with ${answer.status}`);
      const description = await answer.json();
      description.servers = [{ url: window.location.origin + page.dataset.root }];
      page.apiDescriptionDocument = description;
      searchIn(description);
    } catch (error) {
      const line = document.getElementById("failed");
      line.textContent = `The description of the API could not be loaded: ${error.message}. Reload the page to try again.`;
      line.hidden = false;
    }
  }

  // The library does not announce responses to screen readers, and it disables the button that has the focus.
  const ask = window.fetch.bind(window);
  window.fetch = async (...call) => {
    announce("");
    try {
      const answer = await ask(...call);
      announce(`The response is ${answer.status} ${answer.statusText}`);
      return answer;
    } catch (error) {
      announce(`There is no response: ${error.message}`);
      throw error;
    }
  };

  // unfocused is true if the send button has lost the focus.
  let unfocused = false;

  function announce(text) {
    document.getElementById("answered").textContent = text;
    unfocused = text !== "";
    if (unfocused) setTimeout(returnFocus, 100); // rendering may change only the button, which is not observed
  }

  function returnFocus() {
    if (!unfocused) return;
    const button = [...document.querySelectorAll("elements-api button")].find((e) => /^send/i.test(e.textContent.trim()));
    if (!button || button.disabled) return;
    unfocused = false;
    if (document.activeElement === document.body) button.focus();
  }

  // searchIn lists the operations whose method, path or texts have all words of the search. Those that have them in the
  // method, the path and the heading come first.
  function searchIn(description) {
    const field = document.getElementById("search");
    const found = document.getElementById("found");
    const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, o]) => {
        const name = `${method.toUpperCase()} ${path}: ${o.summary}`;
        const parameters = (o.parameters ?? []).map((p) => `${p.name} ${p.description}`).join(" ");
        const text = `${name} ${o.description} ${o.tags} ${parameters}`;
        return { id: o.operationId, heading: o.summary, name, texts: [name.toLowerCase(), text.toLowerCase()] };
      }),
    );
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      const matched = (o) => o.texts.findIndex((text) => words.every((w) => text.includes(w)));
      const matching = words.length ? [0, 1].flatMap((i) => operations.filter((o) => matched(o) === i)) : [];
      found.replaceChildren(...matching.map(resultOf));
      found.hidden = matching.length === 0;
      document.getElementById("count").textContent = words.length ? `${matching.length} found` : "";
    });
  }

  // wanted is the heading that gets the focus once the library has rendered it, or null.
  let wanted = null;

  function focusWanted() {
    const headings = [...document.querySelectorAll("elements-api :is(h1, h2)")];
    const heading = wanted && headings.find((e) => e.textContent.trim() === wanted);
    if (!heading) return;
    wanted = null;
    heading.setAttribute("tabindex", "-1");
    heading.focus();
  }

  function resultOf(operation) {
    const link = document.createElement("a");
    link.href = `#/operations/${operation.id}`;
    link.textContent = operation.name;
    link.addEventListener("click", () => {
      document.getElementById("found").hidden = true;
      wanted = operation.heading;
      setTimeout(focusWanted); // the operation may already be shown; then nothing is rendered
    });
    const item = document.createElement("li");
    item.append(link);
    return item;
  }

  // Names, roles and keys that the library leaves out, for people who cannot see the page or use no mouse. Each row is
  // a selector and what its elements need.
  const repairs = [
    ["[role=heading]:not([aria-level])", (e) => e.setAttribute("aria-level", "3")],
    ["h4:not([aria-level])", (e) => e.setAttribute("aria-level", "2")],
    ["[aria-controls]", dropMissingTarget],
    ["div[aria-haspopup]:not([role])", makeButton],
    ["label[role=button]", (e) => e.removeAttribute("role")],
    ["[role=button]:not([aria-label])", (e) => nameUnlessText(e, "Show or hide the members")],
    ["button:not([aria-label])", (e) => nameUnlessText(e, iconName(e))],
    ["button[aria-label]", nameByText],
    ["input[aria-label=Authorization]:not([type=password])", hideKey],
    ["textarea:not([aria-label])", (e) => e.setAttribute("aria-label", "Request body")],
    ["[aria-hidden=true] :is(select, input, button):not([tabindex='-1'])", (e) => e.setAttribute("tabindex", "-1")],
    [".sl-panel__content-wrapper[role=region]", (e) => e.removeAttribute("role")],
    [".sl-code-viewer__scroller:not([tabindex])", (e) => e.setAttribute("tabindex", "0")],
  ];

  function makeButton(element) {
    element.setAttribute("role", "button");
    element.setAttribute("tabindex", "0");
    nameByText(element);
  }

  function hideKey(field) {
    field.type = "password";
    field.autocomplete = "off";
    field.spellcheck = false;
  }

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

  // nameByText adds the text of a button to its name, so that people can refer to it by what it shows.
  function nameByText(button) {
    const text = button.textContent.trim();
    const name = button.getAttribute("aria-label");
    if (!text || name.includes(text)) return;
    button.setAttribute("aria-label", `${name}: ${text}`);
    button.removeAttribute("aria-labelledby");
  }

  function repair() {
    for (const [selector, mend] of repairs) document.querySelectorAll(`elements-api ${selector}`).forEach(mend);
    applyStyles();
    focusWanted();
    returnFocus();
  }

  document.addEventListener("DOMContentLoaded", () => {
    // repair itself changes only attributes, which are not observed.
    new MutationObserver(repair).observe(document.body, { childList: true, subtree: true, characterData: true });
    show();
  });
})();
