"""A real browser for tests of the console: Debian's Chromium, which notes every error of a page and judges its accessibility."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Frame, Page, expect, sync_playwright

WIDE = (1280, 800)
PHONE = (360, 780)
LIGHT, DARK = "light", "dark"
_AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
_FLAGS = (
    "--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync "
    "--disable-smooth-scrolling"
).split()
_STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_WATCH_POLICY = """
window.policyViolations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.policyViolations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""
_EXPECTED = ("status of 4", "status of 5", "ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING")
"""What a browser says of an answer that is no success; pages show it in their own words."""

expect.set_options(timeout=20_000)


@dataclass
class Tab:
    """One page with everything that went wrong in it."""

    page: Page
    errors: list[str] = field(default_factory=list)

    def note(self, message: ConsoleMessage) -> None:
        """Keep a message of the console that is an error or a warning."""
        if message.type in ("error", "warning") and not any(part in message.text for part in _EXPECTED):
            self.errors.append(f"{message.type}: {message.text}")

    def check(self) -> None:
        """Fail when the page wrote an error into the console, threw one, or was refused something by its policy."""
        violations = self.page.evaluate("window.policyViolations")
        wrong = [*self.errors, *violations]
        assert wrong == [], "\n".join(wrong)

    def check_accessibility(self, frame: Frame | None = None) -> None:
        """Fail on any violation of WCAG A or AA that axe finds in the page, or in a frame of it."""
        document = frame or self.page
        document.evaluate(_AXE.read_text())
        options = {"runOnly": {"type": "tag", "values": _STANDARDS}, "resultTypes": ["violations"]}
        report: dict[str, Any] = document.evaluate("(options) => axe.run(document, options)", options)
        violations = [
            f"{violation['id']}: {node['html'][:200]} ({'; '.join(part['message'] for part in [*node['any'], *node['all']])[:300]})"
            for violation in report["violations"]
            for node in violation["nodes"]
        ]
        assert violations == [], "\n".join(violations)

    def check_everywhere(self, shots: Path, name: str) -> None:
        """Look at the page as it is in light and dark, wide and on a phone: accessible, nothing cut off, one picture each."""
        page = self.page
        for size in (WIDE, PHONE):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            for scheme in (LIGHT, DARK):
                page.emulate_media(color_scheme="dark" if scheme == DARK else "light")
                page.wait_for_timeout(150)
                overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert overflow <= 0, f"{name} is {overflow} px too wide at {size[0]}"
                page.screenshot(path=shots / f"{name}-{size[0]}-{scheme}.png")
                self.check_accessibility()
        page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        page.emulate_media(color_scheme="light")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Run the browser until the block ends."""
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert program is not None, "Chromium is missing: on Debian, apt-get install chromium-headless-shell"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, headless=True, chromium_sandbox=False, args=list(_FLAGS)
        )
        try:
            yield browser
        finally:
            browser.close()


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Return a fresh profile: no cookie, no storage."""
    context = browser.new_context(
        viewport={"width": WIDE[0], "height": WIDE[1]},
        locale="en-GB",
        timezone_id="UTC",
        reduced_motion="reduce",
        **options,
    )
    context.add_init_script(_WATCH_POLICY)
    return context


def wait_until(page: Page, expression: str, seconds: float = 10.0) -> None:
    """Wait until an expression is true in a page; the page's own policy refuses what Playwright would wait with."""
    for _ in range(int(seconds * 10)):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not within {seconds} s: {expression}")


def open_tab(context: BrowserContext, url: str) -> Tab:
    """Open an address in a new tab that notes its errors."""
    tab = Tab(context.new_page())
    tab.page.on("console", tab.note)
    tab.page.on("pageerror", lambda error: tab.errors.append(f"thrown: {error}"))
    tab.page.goto(url)
    return tab
