// The order of the results of the search: pages whose titles have the words come first, lists of
// everything come last. A term of the glossary is shown by its own words, and a page by its heading
// that has several words, to which the result leads.
const headingOf = (page, words) => Object.entries(Search._index.alltitles)
  .filter(([heading]) => words.every((word) => heading.toLowerCase().includes(word)))
  .flatMap(([heading, places]) => places.map(([doc, anchor]) => ({ heading, doc, anchor })))
  .filter(({ doc, anchor }) => anchor && Search._index.docnames[doc] === page)
  .sort((one, other) => one.heading.length - other.heading.length)[0];
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,

  score: (result) => {
    const [page, title, anchor, , score] = result;
    const asked = new URLSearchParams(window.location.search).get("q") ?? "";
    const words = asked.toLowerCase().match(/\w{3,}/g) ?? [];
    const inTitle = words.filter((word) => title.toLowerCase().includes(word)).length;
    if (anchor.startsWith("#term-")) {
      result[1] = `${title}: ${anchor.slice("#term-".length).replaceAll("-", " ")}`;
    }
    const isList = /^(reference\/(api|trace|cli|suites)|spec\/(rules|deviations)|gpu-)/.test(page);
    const isSearched = words.length > 1 && anchor === "" && inTitle < words.length && !isList;
    const found = isSearched && headingOf(page, words);
    if (found) {
      result[1] = `${title} > ${found.heading}`;
      result[2] = `#${found.anchor}`;
    }
    return score + 10 * (found ? words.length : inTitle) - (isList ? 12 : 0);
  },
};
