"use strict";

// The state of the page, which lives in the address, and its controls, which change it.
Explorer.page = (() => {
  const { catalogue, formats, dom, number, recipes, code: decoding } = Explorer;
  const { el, byId, rule } = dom;
  const VIEWS = { number: number.render, code: decoding.render, row: recipes.render };
  const all = Object.values(formats.formats);
  const scaledNames = all.filter((fmt) => fmt.isScaled).map((fmt) => fmt.name);
  const mxNames = all.filter((fmt) => fmt.isMxElement).map((fmt) => fmt.name);
  const policyRule = "gam"; // of the policies (MOR-005)

  // The choices of each select: a value, or a value and its label.
  const CHOICES = {
    format: Object.keys(formats.formats),
    rounding: [["", "default"], ...catalogue.roundings],
    preset: [["", "none"], ...Object.keys(catalogue.presets)],
    overflow: catalogue.overflows,
    nan: catalogue.nans,
    element: scaledNames,
    scaling: catalogue.scalings,
    length: [["32", "the row"], "16", "8", "4"],
    profile: Object.keys(catalogue.profiles),
    mxelement: mxNames,
    rule: catalogue.scaleRules,
    policyscaling: catalogue.scalings,
    grid: Object.keys(catalogue.integerGrids),
    integers: Object.keys(catalogue.integerProfiles),
    zeros: ["symmetric", "asymmetric"],
    sharedkind: Object.keys(catalogue.sharedKinds),
    sharedprofile: Object.keys(catalogue.sharedProfiles),
    levelkind: Object.keys(catalogue.levelKinds),
    arithmetic: catalogue.arithmetics,
    mixture: Object.keys(catalogue.mixtures),
    recipe: Object.keys(recipes.NAMES),
    view: Object.keys(VIEWS),
  };
  const DEFAULTS = {
    view: "number", x: "0.3", format: "e4m3", rounding: "", preset: "", overflow: "satfinite",
    nan: "canonical", bits: "8", word: "128", code: "", pattern: "0x2A", row: recipes.EXAMPLES["a decrement"], recipe: "scaled",
    element: "e4m3", scaling: policyRule, length: "8", group: "", profile: "te", amax: "", mxelement: "e4m3",
    rule: "floor", policyscaling: policyRule, threshold: "", grid: "int8", integers: "torch_fake_tensor",
    zeros: "symmetric", sharedkind: "mx9", sharedprofile: "quark_torch", levelkind: "lsq4", arithmetic: "f32", alpha: "",
    mixture: "int8_or_e4m3",
  };
  // Who asks for another conversion sees its code, and no longer one that was clicked.
  const QUESTION = ["x", "format", "rounding", "preset", "overflow", "nan", "bits", "word"];
  let state = { ...DEFAULTS };

  const valueOf = (choice) => (Array.isArray(choice) ? choice[0] : choice);
  const isKnown = (name, value) =>
    Object.hasOwn(DEFAULTS, name) && (!CHOICES[name] || CHOICES[name].map(valueOf).includes(value));

  // The state that the address has, the default for the rest; what nobody knows is said.
  function fromAddress(hash = location.hash) {
    const given = [...new URLSearchParams(hash.slice(1))];
    const unknown = given.filter(([name, value]) => !isKnown(name, value))
      .map(([name, value]) => (Object.hasOwn(DEFAULTS, name) ? `${name}=${value}` : name));
    byId("address-error").textContent = unknown.length === 0 ? ""
      : `The link has ${unknown.join(", ")}, which this page does not know; it shows the defaults instead.`;
    return { ...DEFAULTS, ...Object.fromEntries(given.filter(([name, value]) => isKnown(name, value))) };
  }

  function addressOf() {
    const changed = Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]);
    return `#${new URLSearchParams(changed)}`;
  }

  // Browsers refuse an address that changes with every key. Back goes back to the entry before a new one;
  // all that is typed into a field at a time is one entry.
  let pending = 0;
  let isNewEntry = false;
  let typedInto = null;
  function toAddress(isNew) {
    isNewEntry ||= isNew;
    clearTimeout(pending);
    pending = setTimeout(writeAddress, 150);
  }

  function writeAddress() {
    clearTimeout(pending);
    const address = addressOf();
    if (address !== (location.hash || "#")) {
      if (isNewEntry) history.pushState(null, "", address);
      else history.replaceState(null, "", address);
    }
    isNewEntry = false;
  }

  function change(changes, field = null) {
    const isNew = field === null || field !== typedInto;
    if (isNew && isNewEntry) writeAddress();  // two clicks in quick succession are two entries
    const code = QUESTION.some((name) => Object.hasOwn(changes, name)) ? "" : state.code;
    state = { ...state, code, ...changes };
    byId("address-error").textContent = "";
    toAddress(isNew);
    typedInto = field;
    show();
  }

  // The address of the results, for others.
  async function copyLink() {
    writeAddress();
    const isCopied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    byId("copy-status").textContent = isCopied ? "Copied." : "The browser does not allow it; the address bar has the link.";
  }

  // Every control says what the state says, and the view of the state is there.
  function show() {
    for (const control of document.querySelectorAll("[data-state]")) {
      const value = state[control.dataset.state];
      if (control.value !== value) control.value = value;
    }
    for (const input of document.querySelectorAll("#recipes input")) input.checked = input.value === state.recipe;
    for (const options of document.querySelectorAll("[data-recipe]")) {
      options.hidden = options.dataset.recipe !== state.recipe;
    }
    for (const name of Object.keys(VIEWS)) {
      const isChosen = name === state.view;
      byId(`view-${name}`).hidden = !isChosen;
      byId(`tab-${name}`).setAttribute("aria-selected", String(isChosen));
      byId(`tab-${name}`).tabIndex = isChosen ? 0 : -1;
    }
    VIEWS[state.view](state, change);
  }

  function addChoices() {
    for (const select of document.querySelectorAll("select[data-state]")) {
      select.append(...CHOICES[select.dataset.state].map((choice) => {
        const [value, name] = Array.isArray(choice) ? choice : [choice, choice];
        return el("option", { value }, name);
      }));
    }
    byId("recipes").append(...Object.entries(recipes.NAMES).map(([value, name]) => el("label", {},
      el("input", { type: "radio", name: "recipe", value, onchange: () => change({ recipe: value }) }),
      el("span", {}, name))));
    const chip = (name, changes) =>
      el("button", { type: "button", class: "chip", onclick: () => change(changes) }, name);
    const chips = {
      number: number.EXAMPLES.map((x) => chip(x, { x })),
      code: decoding.EXAMPLES.map((pattern) => chip(pattern, { pattern })),
      row: Object.entries(recipes.EXAMPLES).map(([name, row]) => chip(name, { row })),
    };
    for (const [view, each] of Object.entries(chips)) byId(`${view}-examples`).append(...dom.oneStop(each));
    for (const holder of document.querySelectorAll("[data-rule]")) {
      // No stop of the Tab key on the way to the next field: the results have the rules once more.
      const link = rule(holder.dataset.rule);
      link.tabIndex = -1;
      holder.append(link);
    }
  }

  function listen() {
    for (const control of document.querySelectorAll("[data-state]")) {
      const { state: name } = control.dataset;
      const field = control.tagName === "SELECT" ? null : name;
      control.addEventListener("input", () => change({ [name]: control.value }, field));
    }
    for (const tab of document.querySelectorAll("[role=tab]")) {
      tab.addEventListener("click", () => change({ view: tab.dataset.view }));
      tab.addEventListener("keydown", (event) => {
        if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
        event.preventDefault();
        const views = Object.keys(VIEWS);
        const step = event.key === "ArrowRight" ? 1 : views.length - 1;
        const other = views[(views.indexOf(tab.dataset.view) + step) % views.length];
        change({ view: other });
        byId(`tab-${other}`).focus();
      });
    }
    byId("copy-link").addEventListener("click", copyLink);
    addEventListener("hashchange", (event) => {
      clearTimeout(pending);
      isNewEntry = false;
      typedInto = null;
      // An address that was pending may have replaced the one that this event is about.
      state = fromAddress(new URL(event.newURL).hash);
      if (location.href !== event.newURL) toAddress(false);
      show();
    });
  }

  // The site keeps its readers' choice of light or dark under this name.
  function followTheme() {
    try {
      document.documentElement.dataset.theme = localStorage.getItem("theme") ?? "auto";
    } catch {
      document.documentElement.dataset.theme = "auto";
    }
  }

  followTheme();
  addChoices();
  listen();
  state = fromAddress();
  show();
  return { DEFAULTS };
})();
