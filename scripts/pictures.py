"""Take the pictures of the documentation from a real run: a server, an agent that works, and Debian's Chromium.

`PYTHONPATH=. .venv/bin/python scripts/pictures.py` writes docs/pictures: one PNG for each picture, and the tour as a GIF.
`--only NAME` takes the pictures whose names begin so.
"""

import argparse
import io
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

from tests.helpers.agent import MODERN, Agent, Reply
from tests.helpers.browser import DARK, LIGHT, PHONE, WIDE, new_context, open_browser, open_tab
from tests.helpers.console import link_of
from tests.helpers.doors import House, until
from tests.helpers.reviewer import Reviewer

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
MAX_TOUR_BYTES = 3_000_000
TOUR_SIZE = (1000, 600)

SERVICE = '''"""Charge a customer's card, once."""

import logging
import time

log = logging.getLogger(__name__)
RETRIES = 3


class PaymentFailed(Exception):
    """The bank said no."""


def charge(client, order):
    """Charge the card of an order and return the receipt."""
    for attempt in range(RETRIES):
        try:
            return client.charge(order.card, order.total)
        except TimeoutError:
            time.sleep(1)
    raise PaymentFailed(order.id)


def describe(receipt):
    """Return a receipt as one line for a customer."""
    parts = [
        f"{receipt.total:.2f} {receipt.currency}",
        f"on {receipt.date:%d %B %Y}",
        f"with the card that ends in {receipt.card[-4:]}",
    ]
    return ", ".join(parts)


def refund(client, receipt):
    """Give the money of a receipt back."""
    log.info("refund %s", receipt.id)
    return client.refund(receipt.id, receipt.total)
'''
SERVICE_EDITS = [
    {
        "old_string": "            return client.charge(order.card, order.total)\n",
        "new_string": "            return client.charge(order.card, order.total, key=order.id)\n",
    },
    {"old_string": "            time.sleep(1)\n", "new_string": "            time.sleep(2**attempt)\n"},
    {
        "old_string": '    log.info("refund %s", receipt.id)\n',
        "new_string": '    log.info("refund %s of order %s", receipt.id, receipt.order_id)\n',
    },
]
ORDER_EDITS = [{"old_string": "a total and an id", "new_string": "a total, an id and an idempotency key"}]
SERVICE_NOTE = "A retry could charge twice: the order's id is now the idempotency key, and the waits grow."
FILES = {
    "payments.py": SERVICE,
    "README.md": "# Shop\n\nA small shop.\n\n## Run it\n\n    make run\n",
    "settings.yml": "currency: EUR\nretries: 3\nport: 8080\n",
    "docs/orders.md": "# Orders\n\nAn order has a card, a total and an id.\n",
    "docs/refunds.md": "# Refunds\n\nA refund names its receipt.\n",
    "tests/test_payments.py": "def test_a_timeout_is_tried_again():\n    ...\n",
}


class Studio:
    """A folder with an agent in it, the person's browser, and what was proposed."""

    def __init__(self, house: House, agent: Agent, browser: Browser) -> None:
        self.house = house
        self.agent = agent
        self.reviewer = Reviewer(agent, house.root, house.state)
        self.browser = browser

    @contextmanager
    def page(self, path: str, size: tuple[int, int] = WIDE, scheme: str = LIGHT) -> Iterator[Page]:
        """Give a signed-in page of a size, in light or dark."""
        context = new_context(self.browser, device_scale_factor=1.5 if size == PHONE else 1)
        page = open_tab(context, link_of(self.house)).page
        page.get_by_role("navigation", name="Pages").wait_for()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme="dark" if scheme == DARK else "light")
        if path != "/":
            page.goto(self.house.url + path)
        yield page
        context.close()

    def propose(self, name: str, note: str = "", **arguments: object) -> "Future[Reply]":
        """Let the agent propose a change and wait until it is there."""
        future = self.reviewer.start(path=name, note=note, **arguments)
        until(f"{name} waits", lambda: Path(name).name in {Path(str(each["path"])).name for each in self.pending()})
        return future

    def pending(self) -> list[dict[str, object]]:
        """Return what waits for the person."""
        reviews: list[dict[str, object]] = self.reviewer.person("pending_reviews")["reviews"]
        return reviews

    def review_path(self, name: str) -> str:
        """Return the page of the open review of a file."""
        review = next(each for each in self.pending() if Path(str(each["path"])).name == name)
        return f"/reviews/{review['review_id']}"


@contextmanager
def open_studio(browser: Browser) -> Iterator[Studio]:
    """Serve a small project, with an agent in it that already did something, until the block ends."""
    folder = Path(tempfile.gettempdir()) / "holdfast-pictures"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    house = House(folder)
    (house.root / "a.txt").unlink()
    for name, text in FILES.items():
        (house.root / name).parent.mkdir(parents=True, exist_ok=True)
        (house.root / name).write_text(text)
    try:
        with Agent([house.root], house.state, mode=MODERN, name="claude-code", version="2.1") as agent:
            agent.call("list_allowed_directories").ok()
            yield Studio(house, agent, browser)
    finally:
        house.end()
        shutil.rmtree(folder)


def work(studio: Studio) -> None:
    """Let the agent look around, change some files, and fail twice."""
    agent = studio.agent
    agent.call("directory_tree", path=".").ok()
    for name in FILES:
        agent.call("read_text_file", path=name).ok()
    agent.call("grep_content", pattern="charge", search_path=".").ok()
    agent.call("edit_file", path="settings.yml", edits=[{"oldText": "retries: 3", "newText": "retries: 5"}]).ok()
    agent.call("write_file", path="docs/keys.md", content="# Keys\n\nAn order's id is its idempotency key.\n").ok()
    agent.call("append_text", path="README.md", content="\n## Test it\n\n    make test\n").ok()
    agent.call("move_file", source="docs/refunds.md", destination="docs/money-back.md").ok()
    agent.call("read_text_file", path="docs/refund.md")
    agent.call("edit_file", path="README.md", edits=[{"oldText": "## Tests", "newText": "## Checks"}])


def propose_all(studio: Studio) -> None:
    """Let the agent propose a change of each size."""
    studio.propose("payments.py", SERVICE_NOTE, edits=SERVICE_EDITS)
    studio.propose("docs/orders.md", "The page names the key that an order has now.", edits=ORDER_EDITS)


def take_inbox(studio: Studio) -> bytes:
    """Show: what waits, and what just happened."""
    with studio.page("/") as page:
        page.get_by_role("link").filter(has_text="payments.py").first.wait_for()
        return shoot(page)


def take_review(studio: Studio) -> bytes:
    """Show: one proposal, side by side."""
    with studio.page(studio.review_path("payments.py"), scheme=DARK) as page:
        page.get_by_role("heading", name="payments.py").wait_for()
        return shoot(page)


def take_review_phone(studio: Studio) -> bytes:
    """Show: the same on a phone."""
    with studio.page(studio.review_path("payments.py"), PHONE) as page:
        page.get_by_role("heading", name="payments.py").wait_for()
        return shoot(page)


def take_edit(studio: Studio) -> bytes:
    """Show: the same with the person's own text beside it."""
    with studio.page(studio.review_path("payments.py")) as page:
        page.get_by_role("heading", name="payments.py").wait_for()
        page.keyboard.press("e")
        page.get_by_role("textbox", name="Your text").wait_for()
        return shoot(page)


def take_activity(studio: Studio) -> bytes:
    """Show: what one program did, with the undo of all of it."""
    with studio.page("/activity") as page:
        page.get_by_role("button", name=re.compile("claude-code")).first.click()
        page.get_by_role("heading", name=re.compile("claude-code: ")).wait_for()
        return shoot(page)


def shoot(page: Page) -> bytes:
    """Return the page as a PNG once it has come to rest."""
    page.wait_for_timeout(400)
    return page.screenshot()


TAKES: dict[str, Callable[[Studio], bytes]] = {
    "inbox": take_inbox,
    "review-dark": take_review,
    "review-phone": take_review_phone,
    "edit": take_edit,
    "activity": take_activity,
}


def take_tour(studio: Studio) -> bytes:
    """Return the tour: an agent proposes, the person reviews, approves, and takes it back."""
    frames: list[tuple[bytes, int]] = []
    with studio.page("/", TOUR_SIZE) as page:
        page.get_by_role("heading", name="Waits for you", exact=True).wait_for()

        def keep(seconds: float) -> None:
            frames.append((shoot(page), round(seconds * 1000)))

        keep(1.5)
        future = studio.propose("payments.py", SERVICE_NOTE, edits=SERVICE_EDITS)
        page.get_by_role("link").filter(has_text="payments.py").first.wait_for()
        keep(2.0)
        page.get_by_role("link").filter(has_text="payments.py").first.click()
        page.get_by_role("heading", name="payments.py").wait_for()
        keep(2.5)
        page.get_by_role("checkbox", name="Hunk 2").uncheck()
        keep(1.5)
        page.keyboard.press("a")
        keep(1.5)
        page.keyboard.press("Enter")
        answer = future.result(30).data
        page.get_by_text("Approved.").first.wait_for()
        keep(1.5)
        studio.reviewer.commit(answer["session_path"], "payments.py").ok()
        page.get_by_text("Written.").wait_for()
        keep(2.0)
        page.keyboard.press("z")
        page.get_by_text("Undone.").first.wait_for()
        keep(2.5)
    return animate(frames)


def animate(frames: list[tuple[bytes, int]]) -> bytes:
    """Return frames, each with its milliseconds, as one GIF."""
    images = [Image.open(io.BytesIO(png)).convert("RGB").quantize(128, dither=Image.Dither.NONE) for png, _ in frames]
    buffer = io.BytesIO()
    durations = [milliseconds for _, milliseconds in frames]
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=True)
    return buffer.getvalue()


def compress(png: bytes) -> bytes:
    """Return a picture with 256 colours, which is a third of its bytes."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        buffer, "PNG", optimize=True
    )
    return buffer.getvalue()


def main() -> None:
    """Take the pictures that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="take only pictures whose names begin so; the tour is called tour")
    only = parser.parse_args().only
    PICTURES.mkdir(exist_ok=True)
    with open_browser() as browser:
        if "tour".startswith(only):
            with open_studio(browser) as studio:
                save("tour.gif", take_tour(studio))
        takes = {name: take for name, take in TAKES.items() if name.startswith(only)}
        if takes:
            with open_studio(browser) as studio:
                work(studio)
                propose_all(studio)
                for name, take in takes.items():
                    save(f"{name}.png", compress(take(studio)))


def save(name: str, data: bytes) -> None:
    """Write one picture, and say how large it is."""
    if len(data) > MAX_TOUR_BYTES:
        raise SystemExit(f"{name} has {len(data):,} bytes, more than {MAX_TOUR_BYTES:,}.")
    (PICTURES / name).write_bytes(data)
    print(f"{name}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
