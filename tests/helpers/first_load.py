"""Measures what a browser that was never here fetches for the console, and how long it takes until its rows are painted."""

from dataclasses import dataclass

from playwright.sync_api import Browser

from tests.helpers.browser import new_context

MAX_BYTES = 400_000
"""Most bytes of the first load, as they come over the wire."""

_WATCH = """
window.loaded = new Promise((resolve) => {
  const look = () => {
    const isThere = document.querySelector('nav[aria-label=Pages]') && document.querySelector('main a[data-row], main h3');
    if (isThere) requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    else requestAnimationFrame(look);
  };
  look();
});
"""
_READ = """
async () => {
  const milliseconds = await window.loaded;
  const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const shell = files.filter((file) => !new URL(file.name).pathname.startsWith("/api/"));
  const sum = (list, member) => list.reduce((total, file) => total + file[member], 0);
  return [milliseconds, shell.length, sum(shell, "encodedBodySize"), sum(shell, "decodedBodySize")];
}
"""


@dataclass(frozen=True)
class FirstLoad:
    """The first load: how long, how many files beside the API's answers, and their bytes over the wire and unpacked."""

    milliseconds: float
    files: int
    wire_bytes: int
    raw_bytes: int


def load_first(browser: Browser, link: str, slow_down: int = 1) -> FirstLoad:
    """Open a link in a fresh profile and return what it took, with a processor that is so many times slower."""
    context = new_context(browser)
    context.add_init_script(_WATCH)
    page = context.new_page()
    context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slow_down})
    page.goto(link)
    milliseconds, files, wire_bytes, raw_bytes = page.evaluate(_READ)
    context.close()
    return FirstLoad(float(milliseconds), int(files), int(wire_bytes), int(raw_bytes))
