"use strict";

// What the page is built from: elements, tables, bits that can be clicked, and links to rules.
Explorer.dom = (() => {
  const { catalogue, formats, numerals } = Explorer;

  // An element; a property that starts with "on" is a listener, one that is null or false is left out.
  function el(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return element;
  }

  const byId = (id) => document.getElementById(id);

  // New content, the focus kept where it was.
  function fill(container, ...children) {
    const focused = document.activeElement?.id;
    const held = container.contains(document.activeElement);
    container.replaceChildren(...children.flat(Infinity).filter(Boolean));
    if (held && focused) byId(focused)?.focus({ preventScroll: true });
  }

  // While the typed text has no answer, the answer from before is dimmed and out of reach.
  function outdated(ids, isOld) {
    for (const id of ids) byId(id).inert = isOld;
  }

  // The id of a rule, as a link to its text.
  function rule(id) {
    const { chapter, title } = catalogue.rules[id];
    return el("a", { class: "rule", href: `../spec/${chapter}.html#${id}`, title }, id);
  }

  // Text with powers and indices: 2^23, m_block.
  const formula = (text) => text.split(/([\^_][\w-]+)/).map((part) => {
    const tag = { "^": "sup", _: "sub" }[part[0]];
    return tag ? el(tag, {}, part.slice(1).replace("-", "\u2212")) : part;
  });

  const code = (text) => el("code", {}, text);
  const codeOf = (value, fmt) => code(numerals.hex(value, fmt.bits));

  // A binary32 number, its bits below it.
  const number32 = (x) => el("span", { class: "number" }, numerals.shown(x),
    el("small", {}, numerals.hex(formats.bitsOf(x), 32)));

  // A table in a frame that scrolls by itself. A row may be { class, cells }; a cell { class, content }.
  function table(caption, heads, rows, kind = null) {
    const cell = (tag, given, attributes = {}) => {
      const { content = given, ...others } = given?.content === undefined ? {} : given;
      return el(tag, { ...attributes, ...others }, content);
    };
    const body = rows.map((row) => {
      const { cells = row, ...others } = Array.isArray(row) ? {} : row;
      return el("tr", others, cells.map((each, i) =>
        (i === 0 ? cell("th", each, { scope: "row" }) : cell("td", each))));
    });
    return el("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": caption },
      el("table", { class: kind },
        el("caption", { class: "unseen" }, caption),
        el("thead", {}, el("tr", {}, heads.map((head) => cell("th", head, { scope: "col" })))),
        el("tbody", {}, body)));
  }

  // The names of the bits of a code, from the top.
  function fieldsOf(fmt) {
    if (fmt.sign === "twos-complement") return [["integer", fmt.bits]];
    const sign = fmt.sign === "none" ? [] : [["sign", 1]];
    return [...sign, ["exponent", fmt.exponentBits], ["mantissa", fmt.mantissaBits]]
      .filter(([, width]) => width > 0);
  }

  // A field in runs of eight bits at most, the short one first.
  function runsOf(top, width) {
    const runs = [];
    for (let end = 0; end < width; end += 8) {
      const size = Math.min(8, width - end);
      runs.unshift(Array.from({ length: size }, (_, i) => top - width + end + size - i));
    }
    return runs;
  }

  const current = new Map(); // the bit of each group that the Tab key comes to

  // A code as buttons, one for each bit: one stop of the Tab key, then the arrow keys.
  function bitButtons(id, label, value, fmt, toggle) {
    const isSet = (bit) => Math.floor(value / 2 ** bit) % 2 === 1;
    const stop = Math.min(current.get(id) ?? fmt.bits - 1, fmt.bits - 1);
    const button = (bit, field) => el("button", {
      type: "button", id: `${id}-${bit}`, class: `bit ${field}`, "aria-pressed": String(isSet(bit)),
      "aria-label": `${field} bit ${bit}`, tabindex: bit === stop ? "0" : "-1", "data-bit": bit,
      onclick: () => { current.set(id, bit); toggle(isSet(bit) ? value - 2 ** bit : value + 2 ** bit); },
    }, isSet(bit) ? "1" : "0");
    let top = fmt.bits - 1;
    const groups = fieldsOf(fmt).map(([field, width]) => {
      const runs = runsOf(top, width).map((bits) =>
        el("span", { class: "run" }, bits.map((bit) => button(bit, field))));
      top -= width;
      return el("span", { class: "bitfield" }, el("span", { class: "runs" }, runs),
        el("span", { class: "fieldname", "aria-hidden": "true" }, field));
    });
    return el("div", { class: "bits", id, role: "group", "aria-label": label,
      onkeydown: (event) => moveAmongBits(event, id, fmt.bits) }, groups);
  }

  function moveAmongBits(event, id, bits) {
    const bit = Number(event.target.dataset.bit);
    const next = { ArrowLeft: bit + 1, ArrowRight: bit - 1, Home: bits - 1, End: 0 }[event.key];
    if (next === undefined || next < 0 || next >= bits) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    const target = byId(`${id}-${next}`);
    target.tabIndex = 0;
    current.set(id, next);
    target.focus();
  }

  // Buttons as one stop of the Tab key, at the pressed one or else the first; the arrow keys move among them.
  function oneStop(buttons) {
    const pressed = buttons.findIndex((button) => button.getAttribute("aria-pressed") === "true");
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    buttons.forEach((button, i) => {
      button.tabIndex = i === Math.max(pressed, 0) ? 0 : -1;
      button.addEventListener("keydown", (event) => {
        const other = { Home: buttons[0], End: buttons.at(-1) }[event.key] ?? buttons[i + steps[event.key]];
        if (!other) return;
        event.preventDefault();
        button.tabIndex = -1;
        other.tabIndex = 0;
        other.focus();
      });
    });
    return buttons;
  }

  return { el, byId, fill, oneStop, outdated, rule, formula, code, codeOf, number32, table, bitButtons };
})();
