"use strict";

// The view of a row: its scales, codes and errors under each recipe, and the decisions of policies.
Explorer.recipes = (() => {
  const { catalogue, exact, formats, scaling, nvfp4, mx, mor, numerals, dom, steps, panels, representations } = Explorer;
  const { el, byId, fill, outdated, rule, number32, table } = dom;
  const { panel, cards, formatColumns, elementTable, elementPanel } = panels;
  const LIMIT = 32;
  const NAMES = { scaled: "Scaling", nvfp4: "NVFP4", mx: "MX", mor: "MoR", ...representations.NAMES };
  const EXAMPLES = {
    "a bell curve": "0.30 -1.04 0.75 0.94 -1.95 -1.30 0.13 -0.32 -0.02 -0.85 0.88 0.78 0.07 1.13 0.47 -0.86 "
      + "0.37 -0.96 0.88 -0.05 -0.18 -0.68 1.22 -0.15 -0.43 -0.35 0.53 0.37 0.41 0.43 2.14 -0.41",
    "a decrement": "1.5 -1 0.75 0.5 0.25 -0.125 0.0625 1.25 1.8 0.9 -0.45 0.3 0.2 -0.1 0.05 1.7",
    "an outlier": "0.01 -0.02 0.015 0.03 -0.011 0.008 0.02 -0.017 300 0.012 -0.009 0.021 0.014 -0.03 0.01 0.005",
    "a wide range": "10000 0.00002 7 -0.25 0.003 -55 0.0006 0.00017",
    "special ones": "0 -0 1 nan inf -2.5 1e-40 448",
  };

  // What programs print around numbers: brackets, the names of arrays, and their types.
  const AROUND = [
    /\b(?:dtype|device|requires_grad)\s*=\s*[\w.'":]+/g,
    /\b(?:(?:np|numpy|torch|jnp)\.)?(?:array|tensor|Array|(?:b?float|half)\d*)\s*(?=[([{])/g, /[[\](){}]/g];

  // The words of a row; the signs of a product and of a fraction are inside of a word.
  function wordsOf(text) {
    const bare = AROUND.reduce((rest, each) => rest.replace(each, " "), text);
    return bare.replace(/\s*([*·/])\s*/g, "$1").split(/[\s,;]+/).filter(Boolean);
  }

  // The numbers of the row, rounded to binary32 (QNT-004).
  function parseRow(text) {
    const words = wordsOf(text);
    if (words.length === 0) throw new Error("Give at least one number.");
    if (words.length > LIMIT) throw new Error(`These are ${words.length} numbers; give ${LIMIT} at most.`);
    return words.map((word) => exact.rn32(numerals.parseNumber(word)));
  }

  // How many numbers were read, with a warning if a comma may be meant as a decimal point.
  function countOf(text, numbers) {
    const isDoubtful = /^\s*[+-]?\d+,\d+(?:[\s;]+[+-]?\d+,\d+)*\s*$/.test(text);
    const shown = numbers.length === 1 ? "1 number" : `${numbers.length} numbers`;
    const few = numbers.slice(0, 6).map(numerals.shown).join("; ");
    return `${shown} read: ${few}${numbers.length > 6 ? "; …" : "."}`
      + (isDoubtful ? " A comma separates numbers; for a decimal point write 0.5." : "");
  }

  // A magnitude that may be given in the place of the row's own, for a row that is part of a tensor.
  function givenLargest(name, text, own) {
    if (text.trim() === "") return undefined;
    const given = exact.rn32(numerals.parseNumber(text));
    if (!exact.isFinite(given) || given.negative) throw new Error(`${name} is finite and not negative.`);
    if (exact.isSmaller(given, own)) throw new Error(`${name} is at least the row's, ${numerals.shown(own)}.`);
    return given;
  }

  const SCALED_IDS = { xs: "QNT-001", code: "QNT-001", y: "QNT-002" };
  const NVFP4_IDS = { xs: "NVF-010", code: "NVF-010", y: "NVF-010" };
  const MX_IDS = { xs: "MXS-007", code: "MXS-007", y: "MXS-008" };

  function scaled(numbers, state) {
    const fmt = formats.formats[state.element];
    const group = givenLargest("amax", state.group, scaling.amaxOf(numbers));
    const made = scaling.quantizeRow(numbers, fmt, state.scaling, Number(state.length), group);
    const scales = made.blocks.map((block) => numerals.shown(block.scale.value));
    return {
      summary: `Scale ${scales.join(", ")} under ${state.scaling} in ${fmt.name}.`,
      results: [
        cards("Scales", made.blocks, (block) => steps.scaleSteps(state.scaling, block, made.groupAmax, fmt)),
        elementPanel(numbers, made, formatColumns(SCALED_IDS, () => fmt))],
    };
  }

  function inNvfp4(numbers, state) {
    const made = nvfp4.quantizeRow(numbers, state.profile, givenLargest("amax", state.amax, nvfp4.largestOf(numbers)));
    const codes = made.blocks.map((tile) => numerals.hex(tile.scale.code, 8));
    return {
      summary: `Scale codes ${codes.join(", ")} under ${state.profile}, global scale ${numerals.shown(made.global.encode)}.`,
      results: [
        panel("Global scale", steps.globalSteps(made)),
        cards("Scales of tiles", made.blocks, (tile) => steps.tileSteps(made.profile, tile)),
        elementPanel(numbers, made, formatColumns(NVFP4_IDS, () => formats.formats.e2m1))],
    };
  }

  function inMx(numbers, state) {
    const fmt = formats.formats[state.mxelement];
    const made = mx.quantizeRow(numbers, fmt, state.rule);
    const all = Object.values(formats.formats).filter((each) => each.isMxElement).map((each) => ({
      class: each === fmt ? "current" : null,
      cells: [{ content: each.name }, ...catalogue.scaleRules.map((name) => ({
        content: el("code", {}, numerals.hex(mx.blockScale(numbers, each, name).code, 8)),
        class: name === state.rule ? "chosen" : null }))] }));
    return {
      summary: `Scale code ${numerals.hex(made.blocks[0].scale.code, 8)} under ${state.rule} in ${fmt.name}.`,
      results: [
        cards("Scale", made.blocks, (block) => steps.mxSteps(state.rule, block)),
        elementPanel(numbers, made, formatColumns(MX_IDS, () => fmt)),
        panel("Scale codes of every element and rule", table("Scale codes", ["element", ...catalogue.scaleRules], all))],
    };
  }

  function ofRepresentation(numbers, name, found, scalingName) {
    const made = found.made[name];
    const isNvfp4 = name === "nvfp4";
    const fmt = formats.formats[isNvfp4 ? "e2m1" : name];
    const [block] = made.blocks;
    return el("details", { id: `details-${name}` }, el("summary", {}, `${name}, element by element`),
      isNvfp4 ? [steps.globalSteps(made), made.blocks.map((tile) => steps.tileSteps(made.profile, tile))]
        : steps.scaleSteps(scalingName, block, made.groupAmax, fmt),
      elementTable(`The row in ${name}`, numbers, made, formatColumns(isNvfp4 ? NVFP4_IDS : SCALED_IDS, () => fmt)),
      steps.sums(found.errors[name]));
  }

  function decisionPanel(policy, found) {
    const output = found.output.map((each) => [el("code", {}, numerals.hex(each, 16)), " "]);
    return panel(`Policy ${policy.name}`,
      el("p", { class: "result" }, "takes ", el("strong", {}, found.name), " ", rule("MOR-005")),
      steps.ladder(policy, found),
      el("details", { id: `output-${policy.name}` }, el("summary", {}, "Output in bf16"),
        el("p", { class: "codes" }, output, rule("MOR-006"))));
  }

  function decided(numbers, state) {
    const limit = state.threshold.trim() === "" ? null : mor.limitOf(state.threshold);
    const all = Object.values(mor.policies).map((policy) =>
      [policy, mor.decide(numbers, policy, state.policyscaling, limit)]);
    const [, first] = all[0];
    const made = Object.assign({}, ...all.map(([, found]) => found.made));
    const errors = Object.assign({}, ...all.map(([, found]) => found.errors));
    const representations = Object.keys(made).map((name) =>
      ofRepresentation(numbers, name, { made, errors }, state.policyscaling));
    return {
      summary: `${all.map(([policy, found]) => `${policy.name} takes ${found.name}`).join("; ")}.`,
      results: [
        panel("The unit", steps.steps([
          ["amax", "largest finite |x|", number32(first.amax), "SCL-001"],
          ["amin", "smallest finite |x| but 0", number32(first.amin), "MOR-004"]])),
        el("div", { class: "pairs" }, all.map(([policy, found]) => decisionPanel(policy, found))),
        panel("Representations", representations)],
    };
  }

  const VIEWS = { scaled, nvfp4: inNvfp4, mx: inMx, mor: decided, ...representations.VIEWS };
  const FIELD_OF_ERRORS = { scaled: "group", nvfp4: "amax", mor: "threshold", ...representations.FIELD_OF_ERRORS };

  function render(state) {
    const errors = { row: "", group: "", amax: "", threshold: "", grid: "", alpha: "" };
    let field = "row";
    try {
      const numbers = parseRow(state.row);
      field = FIELD_OF_ERRORS[state.recipe] ?? "row";
      fill(byId("row-count"), countOf(state.row, numbers));
      const { summary, results } = VIEWS[state.recipe](numbers, state);
      const open = [...document.querySelectorAll("#row-results details[open]")].map((each) => each.id);
      fill(byId("row-summary"), summary);
      fill(byId("row-results"), results);
      for (const id of open) byId(id)?.setAttribute("open", "");
    } catch (error) {
      errors[field] = error.message;
      if (field === "row") fill(byId("row-count"));
      fill(byId("row-summary"));
    }
    outdated(["row-results"], errors[field] !== "");
    for (const [name, text] of Object.entries(errors)) {
      byId(`${name}-error`).textContent = text;
      byId(name).setAttribute("aria-invalid", String(text !== ""));
    }
  }

  return { NAMES, EXAMPLES, render };
})();
