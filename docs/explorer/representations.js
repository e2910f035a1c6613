"use strict";

// The views of a row as integers, in shared exponents, as levels and as a mixture of formats.
Explorer.representations = (() => {
  const { catalogue, exact, affine, shared, levels, mixed, numerals, dom, steps, panels } = Explorer;
  const { el, code, number32, table } = dom;
  const { panel, cards, withBits, column, numberColumn, formatColumns, elementTable, elementPanel } = panels;

  // An integer of a grid, with its bits in two's complement.
  const integerColumn = (grid) => column("code", "AFF-008", (element) =>
    withBits(numerals.printed(element.code), element.code & (2 ** grid.bits - 1), grid.bits));

  const LIMITS = {
    "one": "delta, or 1 if L and H are 0", "range of one": "delta, or 1 / (high \u2212 low) if L and H are 0",
    "limit": "max(delta, least)",
  };

  function integerSteps({ profile, grid, symmetric }, block) {
    const halved = profile.divisor === "highest" ? "high" : "((high \u2212 low) / 2)";
    const how = profile.storesAmax ? "amax" : symmetric ? `max(L, H) / ${halved}` : "(H + L) / (high \u2212 low)";
    return steps.steps([
      ["minimum", "smallest number, NaN if one is", number32(block.minimum), "AFF-003"],
      ["maximum", "largest number", number32(block.maximum), "AFF-003"],
      ["delta", how, number32(block.delta), "AFF-004"],
      ["scale", LIMITS[profile.zeroScale], number32(block.scale), "AFF-004"],
      ["inverse_scale", profile.inverseFactor > 1 ? "127 · (1 / scale)" : "1 / scale", number32(block.inverse), "AFF-007"],
      !symmetric && ["zero_float", profile.earlyZero ? "L / delta" : "L / scale", number32(block.zeroFloat), "AFF-005"],
      ["zero_point", symmetric ? `the code of 0 in ${grid.name}` : "low + rint(zero_float), in the grid",
        numerals.printed(block.zeroPoint), "AFF-005"],
    ]);
  }

  function integers(numbers, state) {
    const isSymmetric = state.zeros === "symmetric";
    const problem = affine.refusal(catalogue.integerProfiles[state.integers], state.grid, isSymmetric);
    if (problem) throw new Error(problem);
    const made = affine.quantizeRow(numbers, state.grid, state.integers, isSymmetric, Number(state.length));
    const scales = made.blocks.map((block) => numerals.shown(block.scale)).join(", ");
    const zeros = made.blocks.map((block) => numerals.printed(block.zeroPoint)).join(", ");
    return {
      summary: `Scale ${scales} and zero point ${zeros} in ${made.grid.name} under ${state.integers}.`,
      results: [
        cards("Scales and zero points", made.blocks, (block) => integerSteps(made, block)),
        elementPanel(numbers, made, [numberColumn("xs", "AFF-007"), integerColumn(made.grid), numberColumn("y", "AFF-009")])],
    };
  }

  const sharedSteps = (kind, block) => steps.steps([
    ["E", block.exponent === 255 ? "a number is NaN or infinite" : "the largest exponent field",
      withBits(String(block.exponent), block.exponent, 8), "SHX-002", kind.carries ? "SHX-004" : null].filter(Boolean),
    kind.shifts && ["tau", "of each pair", code(block.tau.join(" ")), "SHX-003"]]);

  function inShared(numbers, state) {
    const made = shared.quantizeRow(numbers, state.sharedkind, state.sharedprofile);
    const { kind } = made;
    const columns = [
      column("magnitude", "SHX-005", (element) => [element.sign ? "\u2212" : "", String(element.magnitude)]),
      column("code", "SHX-007", (element) => withBits(String(element.code), element.code, kind.codeBits)),
      numberColumn("y", "SHX-006")];
    return {
      summary: `Exponent ${made.blocks.map((block) => block.exponent).join(", ")} in ${kind.name}.`,
      results: [cards("Exponents", made.blocks, (block) => sharedSteps(kind, block)), elementPanel(numbers, made, columns)],
    };
  }

  function inLevels(numbers, state) {
    const given = state.alpha.trim() === "" ? undefined : exact.rn32(numerals.parseNumber(state.alpha));
    const made = levels.quantizeRow(numbers, state.levelkind, state.arithmetic, given);
    const { kind } = made;
    const of = { integers: "LVL-004", signs: "LVL-006" }[kind.grid] ?? "LVL-005";
    const how = given ? "given" : kind.divisor ? `max |w| / ${kind.divisor}` : "mean |w|";
    const columns = [
      numberColumn("ratio", of),
      column("code", "LVL-008", (element) => withBits(numerals.shown(element.level), element.code, kind.bits || 2)),
      numberColumn("y", of), numberColumn("alpha_term", "LVL-007", "term"),
      column("inside", "LVL-007", (element) => String(element.inside))];
    return {
      summary: `alpha ${numerals.shown(made.alpha)} in ${kind.name}, in ${state.arithmetic} arithmetic.`,
      results: [
        panel("alpha", steps.steps([
          ["first", how, number32(made.first), "LVL-002"],
          ["alpha", "at least 10^-5", number32(made.alpha), "LVL-003"]])),
        elementPanel(numbers, made, columns)],
    };
  }

  // The squared error of each candidate of a unit, and which it takes.
  function squares({ candidates }, unit) {
    const rows = candidates.map((name, k) => ({ class: k === unit.choice ? "current" : null, cells: [
      { content: name }, number32(unit.tried[k].scale.value), String(unit.squares[k]), k === unit.choice ? "taken" : ""] }));
    const isZero = exact.isZero(unit.amax);
    return [
      steps.steps([
        ["amax", "largest finite |x|", number32(unit.amax), "SCL-001"],
        ["u", isZero ? "0, as amax is 0" : `rint(d · 2^(20 \u2212 e)) with e = ${numerals.printed(exact.exponentOf(unit.amax))}`,
          "", "MFQ-002"],
        ["choice", "the first with the least sum of u^2", unit.name, "MFQ-003", "MFQ-004"]]),
      table("Squared errors", ["candidate", "scale", "sum of u²", ""], rows)];
  }

  const IDS = { xs: "QNT-001", code: "QNT-001", y: "QNT-002" };

  function mixtures(numbers, state) {
    const made = mixed.quantizeRow(numbers, state.mixture, Number(state.length));
    const tried = made.candidates.map((name, k) => el("details", { id: `details-mixed-${name}` },
      el("summary", {}, `${name}, element by element`),
      elementTable(`The row in ${name}`, numbers, made.made[k], formatColumns(IDS, () => mixed.formatOf(name)))));
    return {
      summary: `The row takes ${made.blocks.map((block) => block.name).join(", ")}.`,
      results: [
        cards("Squared errors", made.blocks, (block) => squares(made, block)),
        elementPanel(numbers, made, formatColumns(IDS, (element) => element.fmt)),
        panel("Candidates", tried)],
    };
  }

  return {
    NAMES: { integers: "Integers", shared: "Shared exponents", levels: "Levels", mixed: "Mixtures" },
    VIEWS: { integers, shared: inShared, levels: inLevels, mixed: mixtures },
    FIELD_OF_ERRORS: { integers: "grid", levels: "alpha" },
  };
})();
