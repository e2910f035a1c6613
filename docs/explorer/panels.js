"use strict";

// What the views of a row are made of: panels, the steps of blocks side by side, and tables of elements.
Explorer.panels = (() => {
  const { formats, mor, numerals, dom, steps } = Explorer;
  const { el, rule, code: codeText, codeOf, number32, table } = dom;

  const panel = (title, ...content) =>
    el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), content);
  const placesOf = (block) => `${block.start} to ${block.start + block.members.length - 1}`;

  // The steps of each block side by side.
  const cards = (title, blocks, stepsOf) => panel(title, el("div", { class: "cards" }, blocks.map((block) =>
    el("div", { class: "card" }, el("h3", {}, blocks.length > 1 ? `Elements ${placesOf(block)}` : "All elements"),
      stepsOf(block)))));

  const head = (name, ...ids) => ({ content: el("span", {}, el("var", {}, name), ids.map((id) => [" ", rule(id)])) });
  const withBits = (text, bits, width) =>
    el("span", { class: "number" }, text, el("small", {}, codeText(numerals.hex(bits, width))));

  // A column: its head, and the cell of an element.
  const column = (name, id, cell) => ({ head: head(name, id), cell });
  const numberColumn = (name, id, of = name) => column(name, id, (element) => number32(element[of]));
  const codeColumn = (id, fmtOf) => column("code", id, (element) => {
    const fmt = fmtOf(element);
    return el("span", { class: "number" }, numerals.shown(formats.value(fmt, element.code)),
      el("small", {}, codeOf(element.code, fmt)));
  });
  const formatColumns = (ids, fmtOf) =>
    [numberColumn("xs", ids.xs), codeColumn(ids.code, fmtOf), numberColumn("y", ids.y)];

  // The elements of a row with all that lies between x and its error.
  function elementTable(caption, numbers, made, columns) {
    const { terms } = mor.errorSum(numbers, made.elements);
    const rows = numbers.map((x, i) => {
      const term = terms[i];
      const isFirst = made.blocks.length > 1 && made.blocks.some((block) => block.start === i && i > 0);
      return { class: isFirst ? "first" : null, cells: [
        { content: String(i) }, number32(x), ...columns.map(({ cell }) => cell(made.elements[i])),
        ...(term ? [number32(term.d), number32(term.r), String(term.u)] : ["–", "–", "–"])] };
    });
    const heads = ["#", head("x"), ...columns.map((each) => each.head),
      head("d", "ERR-001"), head("r", "ERR-001"), head("u", "ERR-001")];
    return table(caption, heads, rows, "elements");
  }

  const elementPanel = (numbers, made, columns) => panel("Elements",
    elementTable("The elements of the row", numbers, made, columns),
    steps.sums(mor.errorSum(numbers, made.elements)));

  return { panel, cards, withBits, column, numberColumn, formatColumns, elementTable, elementPanel };
})();
