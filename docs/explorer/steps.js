"use strict";

// How the scales of a row and the choices of policies come about, as lists of steps with their rules.
Explorer.steps = (() => {
  const { exact, formats, mor, numerals, dom } = Explorer;
  const { el, rule, formula, code, number32, table } = dom;

  // A quantity: what it is called, what it comes from, its value, and the rules that say so.
  function steps(rows) {
    return el("dl", { class: "steps" }, rows.filter(Boolean).map(([name, how, value, ...rules]) =>
      el("div", {}, el("dt", {}, el("var", {}, formula(name))), el("dd", { class: "how" }, formula(how)),
        el("dd", { class: "what" }, value), el("dd", { class: "why" }, rules.map(rule)))));
  }

  const e8m0 = (exponentCode) => el("span", { class: "number" }, el("span", {}, formula(`2^${exponentCode - 127}`)),
    el("small", {}, numerals.hex(exponentCode, 8)));
  const e4m3 = (scaleCode) => el("span", { class: "number" },
    numerals.shown(formats.value(formats.formats.e4m3, scaleCode)), el("small", {}, numerals.hex(scaleCode, 8)));
  const mantissa = (m) => el("span", { class: "number" }, String(m), el("small", {}, numerals.hex(m, 23)));

  const ideal = (fmt, found) => (found
    ? [["m_block", `of ${fmt.name}'s largest / amax`, mantissa(found.mantissa), "SCL-002"],
      ["e_block", "its exponent", numerals.printed(found.exponent), "SCL-002", "THM-004"]]
    : [["e_block", "amax is 0", "0", "SCL-002"]]);

  function gamSteps({ amax, scale }, groupAmax, fmt) {
    const { ideal: own, mantissa: shared, isDecremented } = scale;
    return [
      ["amax_group", "largest |x| of the group", number32(groupAmax), "SCL-001"],
      ["m", "mantissa of the group's ideal scale", mantissa(shared), "GAM-001"],
      ["amax", "largest |x| of the block", number32(amax), "SCL-001"],
      ...ideal(fmt, own),
      own && ["m > m_block", isDecremented ? "so e is one less" : "so e stays",
        isDecremented ? "yes, e \u2212 1" : "no", "GAM-003"],
      ["e", own ? "at most 127" : "amax is 0", numerals.printed(scale.exponent), own ? "GAM-004" : "GAM-002"],
      ["stored", "e + 127", numerals.hex(scale.exponentCode, 8), "GAM-004"],
      ["scale", "(1 + m / 2^23) · 2^e", number32(scale.value), "GAM-005"],
    ];
  }

  function scaleSteps(kind, block, groupAmax, fmt) {
    if (kind === "gam") return steps(gamSteps(block, groupAmax, fmt));
    const { amax, scale } = block;
    const start = [["amax", "largest |x| of the block", number32(amax), "SCL-001"], ...ideal(fmt, scale.ideal)];
    if (kind === "e8m0") {
      return steps([...start, ["stored", "min(e, 127) + 127", e8m0(scale.exponentCode), "SCL-005"],
        ["scale", "2^e", number32(scale.value), "SCL-005"]]);
    }
    const how = scale.ideal ? "(1 + m / 2^23) · 2^e, at most the largest f32" : "1 for amax 0";
    return steps([...start, ["scale", how, number32(scale.value), "SCL-004"]]);
  }

  // The names of the two global scales, and their sources.
  const GLOBAL = {
    S_enc: [["S_enc", "min(Q / amax, largest f32); 1 if amax or that is 0"], ["S_dec", "1 / S_enc"]],
    g: [["1 / g", "the global scale of numbers"], ["g", "amax / Q, that of codes"]],
    G: [["G", "(1 / max(amax, 2^-126)) · Q; 1 if not finite"], ["1 / G", "that of codes"]],
  };

  function globalSteps({ profile, amax, global }) {
    const [encode, decode] = GLOBAL[profile.globalScale];
    const id = profile.globalScale === "S_enc" ? "NVF-003" : profile.id;
    return steps([
      ["amax", "largest |x| of the tensor, infinities too", number32(amax), "NVF-002"],
      ["Q", "of the profile", String(profile.range), "NVF-002"],
      [...encode, number32(global.encode), id],
      [...decode, number32(global.decode), id],
    ]);
  }

  function tileSteps(profile, tile) {
    const { scale } = tile;
    const { formula: how, id } = profile;
    const candidates = Object.entries(scale.candidates ?? {}).flatMap(([name, one]) => [
      [name === "six" ? "base" : "1.5 · base", name === "six" ? "(block_amax / 6) · S_enc" : "", number32(one.s), "NVF-006"],
      [name === "six" ? "s6" : "s4", "its code in e4m3", e4m3(one.code), "NVF-006"],
      [name === "six" ? "codes of s6" : "codes of s4", "elements", code(one.codes.map((each) => each.toString(16).toUpperCase()).join(" ")), "NVF-010"],
      [name === "six" ? "error of s6" : "error of s4", "left to right", number32(one.error), "NVF-006"]]);
    return steps([
      ["block_amax", "largest |x| of the tile, infinities too", number32(tile.blockAmax), "NVF-002"],
      ...candidates,
      ["before s", how, number32(scale.s), id],
      ["s", "its code in e4m3", e4m3(scale.code), "NVF-002"],
      scale.encode && ["encode", "x is multiplied by it", number32(scale.encode), id],
      ["decode", scale.encode ? "codes are multiplied by it" : "x is divided by it, and codes multiplied",
        number32(scale.decode), id],
    ]);
  }

  function mxSteps(name, { blockAmax, scale }) {
    const of = scale.p === undefined ? [] : [
      ["p", `exponent of block_amax under ${name}`, numerals.printed(scale.p), scale.rule],
      ["P", "exponent of the element's largest", String(scale.largestExponent), "MXS-002"]];
    const ratio = scale.ratio && ["ratio", "block_amax / largest", number32(scale.ratio), "MXS-006"];
    const how = scale.code === 255 ? "an element is NaN"
      : scale.ratio ? "e8m0 of the ratio, rounded up" : scale.p === undefined ? "block_amax is 0" : "p \u2212 P + 127 in [0, 254]";
    const value = scale.code === 255 ? "NaN, 0xFF" : e8m0(scale.code);
    return steps([["block_amax", "largest |x|, infinities too", number32(blockAmax), "MXS-002"], ...of, ratio,
      ["c", how, value, scale.ratio ? "MXS-006" : "MXS-002"]]);
  }

  const side = (number) => (typeof number === "bigint" ? String(number) : numerals.shown(number));

  // What a metric asks for, and the same in numbers.
  function comparison(rung, { errors, amax, amin }) {
    const found = mor.compared(rung, { own: rung.own, errors, amax, amin });
    const { limit, means, left, right, signs } = found;
    const shown = means.map(meanOf).join(" and ");
    const mean = means.length ? `mean${means.length > 1 ? "s" : ""} ${shown}` : "";
    return [found.asks,
      found.isOfNothing ? "nonzero = 0" : `${side(left)} ${signs[found.isWithin ? 0 : 1]} ${side(right)}`,
      limit === undefined ? mean : `T = ${limit}, ${mean}`, found.rule];
  }

  // What became of a rung, those below the chosen one not being asked.
  function verdict(rung, isAsked) {
    if (isAsked) return rung.isAccepted ? "accepts" : "refuses";
    return rung.isAccepted ? "would accept" : "would refuse";
  }

  // The ladder of a policy, and the rung that a row takes.
  function ladder(policy, found) {
    const rows = found.rungs.map((rung, i) => {
      const [metric, numbers, more, id] = comparison(rung, found);
      return { class: i === found.choice ? "current" : null, cells: [
        { content: rung.representation },
        [formula(metric), " ", rule(id)],
        el("span", { class: "number" }, numbers, el("small", {}, more)),
        [el("span", { class: rung.own.nonfinite > 0n ? "lost" : null }, String(rung.own.nonfinite)), " ", rule("MOR-001")],
        verdict(rung, i <= found.choice)] };
    });
    const isLeft = found.name === "bf16";
    const last = { class: isLeft ? "current" : null,
      cells: [{ content: "bf16" }, "what is left", "", "", isLeft ? "taken" : ""] };
    return el("div", { class: "ladder" }, table(
      `The ladder of ${policy.name}`, ["rung", "metric", "in numbers", "lost", "so it"], [...rows, last]));
  }

  const meanOf = (error) => (error.nonzero === 0n ? "0" : numerals.approximate(exact.exactQuotient(
    exact.finite(false, error.sum, -23), exact.finite(false, error.nonzero)), 4));

  const sums = (error) => steps([
    ["sum", "of u", String(error.sum), "ERR-002"],
    ["nonzero", "finite and not zero", String(error.nonzero), "ERR-002"],
    ["nonfinite", "lost", String(error.nonfinite), "ERR-003"],
    ["mean", "sum / 2^23 / nonzero", meanOf(error)],
  ]);

  return { steps, scaleSteps, globalSteps, tileSteps, mxSteps, ladder, sums, meanOf };
})();
