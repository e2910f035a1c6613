"use strict";

// The view of one code: its bits, the number that it stands for and why, and the same bits in every format.
Explorer.code = (() => {
  const { exact, formats, numerals, dom } = Explorer;
  const { el, byId, fill, outdated, rule, formula, codeOf, table, bitButtons } = dom;
  const EXAMPLES = ["0x2A", "0b0_1111_110", "0x01", "8'h80", "0xFF", "42"];
  const WRITTEN = [
    [/^0x([0-9a-f][0-9a-f_ ]*)$/i, 16], [/^0b([01][01_ ]*)$/i, 2], [/^(\d[\d_ ]*)$/, 10],
    [/^\d*'s?h([0-9a-f_]+)$/i, 16], [/^\d*'s?b([01_]+)$/i, 2], [/^\d*'s?d([\d_]+)$/i, 10]];
  const KIND_RULES = { ieee: "FMT-003", fn: "FMT-004", fnuz: "FMT-005" };

  // A code from hexadecimal, binary or decimal digits, also as Verilog writes them.
  function parseCode(text, fmt) {
    for (const [pattern, base] of WRITTEN) {
      const digits = pattern.exec(text.trim())?.[1].replace(/[_ ]/g, "");
      if (!digits) continue;
      const code = parseInt(digits, base);
      if (code < fmt.codeCount) return code;
      throw new Error(`${text.trim()} is not a code of ${fmt.name}, whose codes are `
        + `${numerals.hex(0, fmt.bits)} to ${numerals.hex(fmt.codeCount - 1, fmt.bits)}.`);
    }
    throw new Error(`${text.trim() ? `"${text.trim()}"` : "Nothing"} is not a code; `
      + "give one such as 0x2A, 0b00101010, 8'h2A or 42.");
  }

  // The exponent and mantissa fields of a code, and its sign.
  function fieldsOf(code, fmt) {
    const negative = formats.isNegativeCode(fmt, code);
    const bits = negative ? code - fmt.signBit : code;
    return { negative, e: Math.floor(bits / 2 ** fmt.mantissaBits), m: bits % 2 ** fmt.mantissaBits };
  }

  // The kind of a code's number, the formula with its fields, and the rule.
  function reading(code, fmt) {
    const x = formats.value(fmt, code);
    const { negative, e, m } = fieldsOf(code, fmt);
    const sign = negative ? "\u2212" : "";
    if (exact.isNan(x)) return ["NaN", "a special code", KIND_RULES[fmt.specials]];
    if (exact.isInfinite(x)) return ["infinity", "a special code", KIND_RULES[fmt.specials]];
    if (fmt.sign === "twos-complement") {
      const whole = negative ? code - fmt.codeCount : code;
      return ["integer", `${numerals.printed(whole)} · 2^${fmt.smallestExponent - fmt.mantissaBits}`, "FMT-008"];
    }
    if (fmt.isPowerOfTwo) return ["power of two", `2^${code - fmt.bias} from ${code} \u2212 ${fmt.bias}`, "FMT-007"];
    const share = `${m} / 2^${fmt.mantissaBits}`;
    if (e > 0) return ["normal", `${sign}(1 + ${share}) · 2^${e - fmt.bias} from ${e} \u2212 ${fmt.bias}`, "FMT-001"];
    return [m ? "subnormal" : "zero", `${sign}(${share}) · 2^${1 - fmt.bias} from 1 \u2212 ${fmt.bias}`, "FMT-002"];
  }

  const fact = (name, value, ...ids) =>
    el("div", {}, el("dt", {}, name, ids.map((id) => [" ", rule(id)])), el("dd", {}, value));

  function factsOf(code, fmt) {
    const x = formats.value(fmt, code);
    const [kind, how, id] = reading(code, fmt);
    const { negative, e, m } = fieldsOf(code, fmt);
    const isPlain = fmt.sign !== "twos-complement";
    return el("dl", { class: "facts" },
      fact("kind", kind, id), fact("its number", formula(how)),
      isPlain ? [fact("sign", negative ? "1" : "0"), fact("e", String(e)), fact("m", String(m))] : [],
      exact.isFinite(x) ? fact("exactly", el("span", { class: "digits" }, numerals.exactDecimal(x))) : [],
      fact("binary32", el("code", {}, numerals.hex(formats.decode(code, fmt), 32)), "DEC-001", "DEC-002"));
  }

  // The codes next to it, as buttons.
  function steps(code, fmt, change) {
    const button = (id, name, other) => el("button", { type: "button", class: "chip", id, disabled: other < 0 || other >= fmt.codeCount,
      onclick: () => change({ pattern: numerals.hex(other, fmt.bits) }) }, name);
    const x = formats.value(fmt, code);
    return el("div", { class: "chips" }, button("code-before", "Code − 1", code - 1), button("code-after", "Code + 1", code + 1),
      el("button", { type: "button", class: "chip", id: "encode-it",
        onclick: () => change({ view: "number", x: numerals.typed(x), code: numerals.hex(code, fmt.bits) }) }, "Encode this number"));
  }

  function renderFormats(code, chosen, change) {
    const rows = Object.values(formats.formats).map((fmt) => {
      const pick = el("button", { type: "button", class: "pick", id: `decode-${fmt.name}`,
        "aria-pressed": String(fmt === chosen), onclick: () => change({ format: fmt.name }) }, fmt.name);
      const cells = [{ content: pick }, { content: fmt.layout, class: "layout" }];
      if (code >= fmt.codeCount) return { cells: [...cells, { content: "–", class: "absent", title: "too many bits" }, "–", "–"] };
      const [kind] = reading(code, fmt);
      return { class: fmt === chosen ? "current" : null,
        cells: [...cells, codeOf(code, fmt), numerals.shown(formats.value(fmt, code)), kind] };
    });
    const heads = ["format", { content: "layout", class: "layout" }, "code", "number", "kind"];
    fill(byId("code-formats"), table("The code in every format", heads, rows));
    dom.oneStop([...document.querySelectorAll("#code-formats .pick")]);
  }

  function render(state, change) {
    const fmt = formats.formats[state.format];
    let code = null;
    try { code = parseCode(state.pattern, fmt); byId("pattern-error").textContent = ""; } catch (error) {
      byId("pattern-error").textContent = error.message;
    }
    byId("pattern").setAttribute("aria-invalid", String(code === null));
    outdated(["code-answer", "code-formats"], code === null);
    if (code === null) { fill(byId("code-summary")); return; }
    const x = formats.value(fmt, code);
    fill(byId("code-answer"),
      el("p", { class: "result" }, el("strong", {}, codeOf(code, fmt)), el("span", {}, "= ", numerals.shown(x))),
      bitButtons("pattern-bits", `Bits of the ${fmt.name} code`, code, fmt,
        (changed) => change({ pattern: numerals.hex(changed, fmt.bits) })),
      factsOf(code, fmt), steps(code, fmt, change));
    fill(byId("code-summary"), `${numerals.hex(code, fmt.bits)} of ${fmt.name} is ${numerals.shown(x)}.`);
    renderFormats(code, fmt, change);
  }

  return { EXAMPLES, parseCode, render };
})();
