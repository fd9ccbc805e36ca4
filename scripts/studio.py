"""A small shop with two agents that work in it, and the browser of the person: what the pictures of the documentation show."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.helpers.agent import MODERN, Agent, Reply
from tests.helpers.browser import DARK, LIGHT, PHONE, WIDE, new_context, open_tab
from tests.helpers.console import link_of
from tests.helpers.doors import House, until
from tests.helpers.panels import host_page
from tests.helpers.reviewer import Reviewer

LATER_SECONDS = 365
"""The clock of the pictures stands so long after the last change: everything was about six minutes ago, in every run."""

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
RETRY_EDITS = [{"old_string": "retries: 5", "new_string": "retries: 4"}]

INVOICE = "Invoice number {0}. Amount due {0}00 EUR with VAT, payable by bank transfer within 30 days. {1}, billing.\n"
RECIPE = (
    "Recipe {0}: mix flour, sugar, butter and {0} eggs, knead the dough and bake it in the oven for 30 minutes. {1}\n"
)
LEASE = "Lease agreement {0}. The tenant rents the flat from the landlord; notice, deposit and rent as agreed. {1}\n"
SHOPS = ("Acme GmbH", "Brill and Sons", "Nordwind", "Paper House", "Volt Energy", "Aquarius Water", "Kite Telecom")
CAKES = ("apple pie", "bread", "carrot cake", "dumplings", "focaccia", "gingerbread")
DOWNLOADS = {
    **{f"Invoices/{2020 + at} {shop}.txt": INVOICE.format(at + 3, shop) for at, shop in enumerate(SHOPS[:5])},
    **{f"Recipes/{cake}.txt": RECIPE.format(at + 2, cake) for at, cake in enumerate(CAKES[:4])},
    **{f"Flat/lease {2019 + at}.txt": LEASE.format(at + 1, "signed") for at in range(3)},
    **{f"bill {shop}.txt": INVOICE.format(at + 30, shop) for at, shop in enumerate(SHOPS)},
    **{f"scan{number:04}.txt": INVOICE.format(number, "Acme GmbH") for number in (12, 17, 23)},
    **{f"{cake} (1).txt": RECIPE.format(at + 9, cake) for at, cake in enumerate(CAKES)},
    **{f"lease copy {at}.txt": LEASE.format(at + 7, "draft") for at in range(2)},
    **{f"IMG_{2231 + at}.jpg": f"picture {at}" for at in range(9)},
    **{f"screen {at:02}.mp4": f"film {at}" for at in range(4)},
    "notes": "milk, bread\n",
    "untitled": "qwx\n",
}


class Studio:
    """A folder with two agents in it, the person's browser, and what was proposed."""

    def __init__(self, house: House, agent: Agent, other: Agent, browser: Browser) -> None:
        self.house = house
        self.agent = agent
        self.other = other
        self.home = house.root.parent
        self.reviewer = Reviewer(agent, house.root, house.state)
        self.browser = browser
        self.plan_id = ""
        self.now = datetime.now(UTC)

    @contextmanager
    def page(
        self, path: str, size: tuple[int, int] = WIDE, scheme: str = LIGHT, *, is_frozen: bool = True
    ) -> Iterator[Page]:
        """Give a signed-in page of a size, in light or dark, whose clock stands."""
        context = new_context(self.browser, device_scale_factor=1.5 if size == PHONE else 1)
        page = open_tab(context, link_of(self.house)).page
        page.get_by_role("navigation", name="Pages").wait_for()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme="dark" if scheme == DARK else "light")
        if is_frozen:
            page.clock.set_fixed_time(self.now.timestamp() + LATER_SECONDS)
        page.goto(self.house.url + path)
        page.get_by_role("navigation", name="Pages").wait_for()
        yield page
        context.close()

    def propose(self, name: str, note: str = "", agent: Agent | None = None, **arguments: object) -> "Future[Reply]":
        """Let an agent propose a change and wait until it is there."""
        proposal = {"path": name, "note": note, **arguments}
        future = (agent or self.agent).start("propose_and_review", proposal)
        until(f"{name} waits", lambda: Path(name).name in {Path(str(each["path"])).name for each in self.pending()})
        self.now = datetime.now(UTC)
        return future

    def pending(self) -> list[dict[str, object]]:
        """Return what waits for the person."""
        reviews: list[dict[str, object]] = self.reviewer.person("pending_reviews")["reviews"]
        return reviews

    def review_path(self, name: str) -> str:
        """Return the page of the open review of a file."""
        review = next(each for each in self.pending() if Path(str(each["path"])).name == name)
        return f"/reviews/{review['review_id']}"

    def scan(self) -> str:
        """Make a plan of the downloads once, and return its page."""
        if not self.plan_id:
            scan = self.reviewer.person("start_scan", directory=str(self.home / "Downloads"))
            until("the plan is made", lambda: self.reviewer.person("running_scans")["scans"] == [], 60)
            self.plan_id = str(scan["plan_id"])
            self.now = datetime.now(UTC)
        return f"/organise/{self.plan_id}"


@contextmanager
def open_studio(browser: Browser) -> Iterator[Studio]:
    """Serve a small shop, with agents in it and a folder of downloads beside it, until the block ends."""
    home = Path(tempfile.gettempdir()) / "holdfast-pictures"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    house = House(home, HOME=str(home))
    house.root.rename(home / "shop")
    house.root = home / "shop"
    (house.root / "a.txt").unlink()
    _write(house.root, FILES)
    _write(home / "Downloads", DOWNLOADS)
    environment = {"HOME": str(home)}
    roots = [house.root]
    try:
        with (
            Agent(roots, house.state, mode=MODERN, env=environment, name="claude-code", version="2.1") as agent,
            Agent(roots, house.state, mode=MODERN, env=environment, name="cursor", version="3.0") as other,
        ):
            agent.call("list_allowed_directories").ok()
            yield Studio(house, agent, other, browser)
    finally:
        house.end()
        shutil.rmtree(home)


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def work(studio: Studio) -> None:
    """Let the agents look around, change some files, and fail twice."""
    agent, other = studio.agent, studio.other
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
    other.call("edit_file", path="settings.yml", edits=[{"oldText": "port: 8080", "newText": "port: 8443"}]).ok()
    other.call(
        "edit_file", path="docs/orders.md", edits=[{"oldText": "# Orders", "newText": "# Orders of the shop"}]
    ).ok()


def propose_all(studio: Studio) -> None:
    """Let the agents propose a change of each size."""
    studio.scan()
    studio.propose("docs/orders.md", "The page names the key that an order has now.", edits=ORDER_EDITS)
    studio.propose("payments.py", SERVICE_NOTE, edits=SERVICE_EDITS)
    studio.propose("settings.yml", "Five tries take too long.", studio.other, edits=RETRY_EDITS)


@contextmanager
def open_chat(browser: Browser) -> Iterator[Page]:
    """Give the page of a host that shows panels, whose model has proposed the change of the payments."""
    with tempfile.TemporaryDirectory(prefix="holdfast-pictures-") as folder, host_page() as address:
        house = House(Path(folder))
        _write(house.root, FILES)
        channels = {"panel": True, "panel_over_http": True}
        served = {"server": {"allowed_origins": [address]}, "auth": {"mode": "open"}, "review": {"channels": channels}}
        house.settings(json.dumps({"settings": served}))
        with house.serve(str(house.root)):
            page = open_tab(new_context(browser), address).page
            page.wait_for_function("window.isReady === true")
            connect = "(options) => window.connect(options)"
            page.evaluate(connect, {"url": f"{house.url}/mcp", "token": house.token, "era": MODERN})
            proposal = {"path": str(house.root / "payments.py"), "edits": SERVICE_EDITS, "note": SERVICE_NOTE}
            page.evaluate("(args) => window.callAsModel('propose_and_review', args, {})", proposal)
            page.frame_locator("iframe").get_by_role("button", name="Approve", exact=True).wait_for()
            time.sleep(0.5)
            yield page
            page.context.close()
        house.end()
