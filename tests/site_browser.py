"""The built site in Chromium, as a reader uses it: clicks on links, and the search."""

from functools import partial
from urllib.parse import unquote, urlsplit

ADDRESS = "http://docs.test/"  # answered from files: the search needs addresses other than of files
WIDTH, HEIGHT = 1440, 900
RESULTS, SCREENS = 8, 3  # what a reader looks at: results of a search, and screens of a page
FINISHED = "/finished|did not match/.test(document.querySelector('#search-results').textContent)"
# Where the innermost elements with a text begin, in screens below the place of the address.
PLACES = """text => {
    const has = each => (each.innerText ?? "").replace(/\\s+/g, " ").includes(text);
    const top = each => each.getBoundingClientRect().top;
    const id = decodeURIComponent(location.hash.slice(1));
    const start = id ? top(document.getElementById(id)) : -window.scrollY;
    return [...document.querySelectorAll("article *")]
        .filter(each => each.checkVisibility() && has(each) && ![...each.children].some(has))
        .map(each => (top(each) - start) / innerHeight);
}"""


def answered(site, route):
    """Answer a request for a page of the site from its file."""
    path = site / unquote(urlsplit(route.request.url).path).lstrip("/")
    if path.is_file():
        route.fulfill(path=path)
    else:
        route.fulfill(status=404, body="")


def front_page(context, site):
    """Return the front page of a site in a new tab."""
    page = context.new_page()
    page.route("**/*", partial(answered, site))
    page.goto(f"{ADDRESS}index.html")
    return page


def click(page, name):
    """Follow the first visible link with a text."""
    page.get_by_role("link", name=name, exact=True).locator("visible=true").first.click()
    page.wait_for_load_state()


def search(page, words):
    """Type words into the search, and return the texts of the first results."""
    page.locator(".sidebar-search").fill(words)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html*")
    page.wait_for_function(FINISHED)
    return page.locator("#search-results li a").all_inner_texts()[:RESULTS]


def shows(page, answer):
    """Return whether a text is on the screens that follow the place to which a click led."""
    return any(0 <= place <= SCREENS for place in page.evaluate(PLACES, answer))
