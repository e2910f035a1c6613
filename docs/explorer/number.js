"use strict";

// The view of one number: its bits, its code in one format and why, and in all of them.
Explorer.number = (() => {
  const { catalogue, exact, formats, numerals, explain, dom, code: decoding } = Explorer;
  const { el, byId, fill, outdated, rule, formula, code, codeOf, table, bitButtons } = dom;
  const { isFinite } = exact;
  const EXAMPLES = ["0.3", "0x2A", "1/3", "2^-9", "448", "464", "1e-40", "70000", "inf", "nan"];
  const ANSWERS = ["source-bits", "number-facts", "answer", "every-format", "every-convention"];
  const F32 = formats.formats.f32;

  // The record of special cases that is meant, null where a preset says nothing of the format.
  function specialFor(state, fmt) {
    if (state.preset) return catalogue.presets[state.preset][fmt.name] ?? null;
    return { ...catalogue.ours, overflow: state.overflow, nan: state.nan };
  }

  // Digits too few for a binary32 are a code of the chosen format; a wide format has binary32 patterns.
  const isCode = (text, fmt) => fmt.bits <= 16 && /^0x[0-9a-f]{1,4}$/i.test(text.trim());

  // The number that is typed, which may be a code.
  const numberOf = (state, fmt) =>
    (isCode(state.x, fmt) ? formats.value(fmt, decoding.parseCode(state.x, fmt)) : numerals.parseNumber(state.x));

  // The random bits for sr (ENC-005).
  function randomOf(state) {
    const [count, word] = [Number(state.bits), Number(state.word)];
    const isWhole = Number.isInteger(count) && Number.isInteger(word) && state.word.trim() !== "";
    if (!isWhole || count < 1 || count > 32 || word < 0 || word >= 2 ** count) {
      throw new Error("Random bits are n from 1 to 32, and a whole r with 0 ≤ r < 2^n.");
    }
    return { count, word };
  }

  // The code of x under a rounding, null where the format or the preset does not have it.
  function encoded(x, fmt, rounding, special, random) {
    if (!special || !formats.admits(fmt, rounding) || (rounding === "sr" && !random)) return null;
    return formats.encode(x, fmt, formats.roundingFor(fmt, rounding, special), special, random);
  }

  const absent = (why) => ({ content: "–", class: "absent", title: why });
  const shownError = (x) => (x ? numerals.approximate(x) : "–");
  const fact = (name, value, id) =>
    el("div", {}, el("dt", {}, name, " ", id ? rule(id) : null), el("dd", {}, value));

  function renderSource(x, change) {
    const bits = numerals.binary32Bits(x);
    fill(byId("source-bits"),
      el("p", { class: "label" }, "binary32 ", code(numerals.hex(bits, 32)),
        numerals.isBinary32(x) ? null : el("span", { class: "note" }, "the nearest; x is not in binary32")),
      bitButtons("source", "Bits of the binary32 pattern", bits, F32,
        (changed) => change({ x: numerals.typed(formats.numberOf(changed, "f32")) })));
    const all = isFinite(x) ? numerals.exactDecimal(x) : numerals.shown(x);
    fill(byId("number-facts"),
      fact("exactly", el("span", { class: "digits" }, all.length > 80 ? `${all.slice(0, 76)}…` : all)),
      fact("binary64", code(numerals.hex(numerals.binary64Bits(x), 64))));
  }

  // The line between the neighbours, with the midpoint and x on it.
  function numberLine(found) {
    const { near, far, midpoint, isExact, fraction, fmt } = found;
    const tick = (place, name, value, taken) => el("div", { class: `tick ${place} ${taken ? "taken" : ""}` },
      el("span", { class: "tickname" }, name), el("span", { class: "tickvalue" }, numerals.shown(value)));
    const label = (neighbour) => (neighbour.code === null ? "beyond the largest" : codeOf(neighbour.code, fmt));
    const share = isExact ? 0.5 : Math.min(0.99, Math.max(0.01, Number(numerals.approximate(fraction))));
    const isTaken = (neighbour) => neighbour.code !== null && neighbour.code === found.code;
    return el("div", { class: "line", role: "img", "aria-label": "x between its neighbours" },
      tick("start", label(near), near.value, isTaken(near)),
      isExact ? tick("middle", codeOf(found.code, fmt), found.value, true) : tick("middle", "midpoint", midpoint, false),
      tick("end", label(far), far.value, isTaken(far)),
      el("div", { class: "marker", style: `--at: ${share}` }, el("span", {}, "x")));
  }

  // The quantities of ENC-002 to ENC-004, and the errors.
  function factsOf(found) {
    const { place, fmt } = found;
    const places = !place ? [] : [
      fact("p", numerals.printed(place.exponent), "ENC-002"),
      fact("u, one ulp", formula(`2^${place.unit}`), "ENC-002"),
      fact("k", String(place.below), "ENC-002"),
      fact("f", numerals.approximate(found.fraction, 10), "ENC-002"),
    ];
    return el("dl", { class: "facts" },
      fact("value", numerals.shown(found.value), "DEC-001"),
      fact("layout", fmt.layout, "FMT-009"),
      places,
      found.errorInUlp ? fact("error in ulp", numerals.approximate(found.errorInUlp)) : [],
      found.relativeError ? fact("relative error", numerals.approximate(found.relativeError)) : []);
  }

  function renderAnswer(x, state, fmt, rounding, special, random, change) {
    const holder = byId("answer");
    if (encoded(x, fmt, rounding, special, random) === null) {
      fill(holder, el("p", { class: "note" }, whyNot(fmt, rounding, special), " ", rule(special ? "ENC-013" : "ENC-016")));
      return fill(byId("number-summary"));
    }
    const found = explain.explain(x, fmt, rounding, special, random);
    const clicked = clickedCode(state, fmt);
    const isAnother = clicked !== null && clicked !== found.code;
    const shown = isAnother ? { code: clicked, value: formats.value(fmt, clicked), fmt } : found;
    fill(holder,
      el("p", { class: "result" }, el("strong", {}, codeOf(shown.code, fmt)),
        el("span", {}, "= ", numerals.shown(shown.value))),
      bitButtons("code", `Bits of the ${fmt.name} code`, shown.code, fmt,
        (changed) => change({ x: numberOfCode(changed, fmt), code: numerals.hex(changed, fmt.bits) })),
      isAnother ? el("p", { class: "note", id: "code-note" }, whatBecomesOf(clicked, found)) : null,
      shown.place ? numberLine(shown) : null,
      el("p", { class: "because" }, `${found.outcome} `, rule(found.rule)),
      factsOf(shown));
    const becomes = `${numerals.shown(x)} in ${fmt.name} under ${rounding} is ${numerals.hex(found.code, fmt.bits)}, `
      + `${numerals.shown(found.value)}`;
    return fill(byId("number-summary"), `${isAnother ? whatBecomesOf(clicked, found) : `${becomes}:`} ${found.outcome}.`);
  }

  const numberOfCode = (code, fmt) => numerals.typed(formats.value(fmt, code));

  // The code whose bits were clicked, while x is its number; x alone may be the number of several.
  function clickedCode(state, fmt) {
    if (isCode(state.x, fmt)) return decoding.parseCode(state.x, fmt);
    const clicked = /^0x[0-9A-F]+$/.test(state.code) ? Number(state.code) : fmt.codeCount;
    return clicked < fmt.codeCount && numberOfCode(clicked, fmt) === state.x ? clicked : null;
  }

  // What to say of a clicked code that its own number does not become.
  function whatBecomesOf(clicked, { fmt, code: other }) {
    const [hex, hexOfOther] = [clicked, other].map((each) => numerals.hex(each, fmt.bits));
    return `${hex} is ${numerals.shown(formats.value(fmt, clicked))}, which is encoded as ${hexOfOther}.`;
  }

  function whyNot(fmt, rounding, special) {
    if (!special) return `This profile says nothing of ${fmt.name}.`;
    if (rounding === "sr" && formats.admits(fmt, rounding)) return "Give random bits.";
    return `${fmt.name} holds powers of two and admits ${catalogue.powerOfTwoRoundings.join(", ")} and rne only.`;
  }

  // Every format under every rounding, the chosen one with its value and error.
  function renderFormats(x, state, random, change) {
    const isOfAnother = (fmt) => fmt.name !== state.format && isCode(state.x, formats.formats[state.format]);
    const rows = Object.values(formats.formats).map((fmt) => {
      const special = specialFor(state, fmt);
      const chosen = special && formats.roundingFor(fmt, state.rounding, special);
      const codes = catalogue.roundings.map((rounding) => {
        const found = encoded(x, fmt, rounding, special, random);
        if (found === null) return absent(whyNot(fmt, rounding, special));
        return { content: codeOf(found, fmt), class: rounding === chosen ? "chosen" : null };
      });
      const isKnown = encoded(x, fmt, chosen, special, random) !== null;
      const found = isKnown ? explain.explain(x, fmt, chosen, special, random) : null;
      const pick = el("button", {
        type: "button", class: "pick", id: `pick-${fmt.name}`, "aria-pressed": String(fmt.name === state.format),
        // The number of the row, also if it was typed as a code of another format.
        onclick: () => change({ format: fmt.name, ...(isOfAnother(fmt) ? { x: numerals.typed(x) } : {}) }),
      }, fmt.name);
      return { class: fmt.name === state.format ? "current" : null, cells: [
        { content: pick }, { content: fmt.layout, class: "layout" }, ...codes,
        found ? numerals.shown(found.value) : "–",
        found ? shownError(found.errorInUlp) : "–",
        found ? shownError(found.relativeError) : "–",
      ] };
    });
    const heads = ["format", { content: "layout", class: "layout" }, ...catalogue.roundings, "value", "ulp", "relative"];
    fill(byId("every-format"), table("Codes in every format", heads, rows),
      el("p", { class: "rules" }, "Value and errors are of the marked rounding. ",
        ["FMT-009", "ENC-003", "ENC-005", "ENC-013", "DEC-001"].map((id) => [rule(id), " "])));
    dom.oneStop([...document.querySelectorAll("#every-format .pick")]);
  }

  // The chosen format under every rounding, and every overflow and NaN rule or preset.
  function renderConventions(x, fmt, random) {
    const own = catalogue.overflows.flatMap((overflow) => catalogue.nans.map((nan) =>
      [`${overflow}, ${nan}`, { ...catalogue.ours, overflow, nan }]));
    const presets = Object.entries(catalogue.presets)
      .map(([name, rows]) => [name, rows[fmt.name] ?? null]);
    const rows = [...own, ...presets].map(([name, special]) => [
      { content: name, class: "name" },
      ...catalogue.roundings.map((rounding) => {
        const found = encoded(x, fmt, rounding, special, random);
        if (found === null) return absent(whyNot(fmt, rounding, special));
        const isDefault = rounding === formats.roundingFor(fmt, "", special);
        return { content: codeOf(found, fmt), class: isDefault ? "chosen" : null };
      })]);
    byId("conventions-title").textContent = `${fmt.name} under every convention`;
    const rules = ["ENC-003", "ENC-006", "ENC-007", "ENC-009", "ENC-010", "ENC-016"]
      .map((id) => [rule(id), " "]);
    fill(byId("every-convention"),
      table(`Codes in ${fmt.name} under every convention`, ["convention", ...catalogue.roundings], rows),
      el("p", { class: "rules" }, "The default rounding is marked. ", rules));
  }

  function render(state, change) {
    const errors = { x: "", random: "" };
    const tried = (name, compute) => {
      try { return compute(); } catch (error) { errors[name] = error.message; return null; }
    };
    const fmt = formats.formats[state.format];
    const x = tried("x", () => numberOf(state, fmt));
    const random = tried("random", () => randomOf(state));
    byId("x-error").textContent = errors.x;
    byId("random-error").textContent = errors.random;
    byId("x").setAttribute("aria-invalid", String(errors.x !== ""));
    for (const id of ["overflow", "nan"]) byId(id).disabled = state.preset !== "";
    outdated(ANSWERS, x === null);
    if (x === null) {
      fill(byId("number-summary"));
      return;
    }
    const special = specialFor(state, fmt);
    const rounding = special ? formats.roundingFor(fmt, state.rounding, special) : state.rounding;
    renderSource(x, change);
    renderAnswer(x, state, fmt, rounding, special, random, change);
    renderFormats(x, state, random, change);
    renderConventions(x, fmt, random);
  }

  return { EXAMPLES, render };
})();
