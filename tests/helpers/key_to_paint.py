"""Measures in the browser how long it takes from a key to the paint of what it asked for."""

from playwright.sync_api import Page

_WATCH = """
() => {
  const isShown = () => (CONDITION);
  window.painted = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`never painted: ${isShown}`)), 20_000);
    addEventListener("keydown", (event) => {
      const look = () => {
        if (isShown()) requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - event.timeStamp)));
        else requestAnimationFrame(look);
      };
      look();
    }, { capture: true, once: true });
  });
}
"""


def key_to_paint(page: Page, key: str, condition: str) -> float:
    """Press a key and return the milliseconds until a frame was painted in which an expression of JavaScript is true."""
    page.evaluate(_WATCH.replace("CONDITION", condition))
    page.keyboard.press(key)
    return float(page.evaluate("window.painted"))


def p95(times: list[float]) -> float:
    """Return the 95th percentile, rounded up to a time that was measured."""
    return sorted(times)[min(len(times) - 1, int(len(times) * 0.95))]
