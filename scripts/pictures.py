"""Take the pictures of the documentation from a real run: a server, agents that work, and Debian's Chromium.

`PYTHONPATH=. .venv/bin/python scripts/pictures.py` writes docs/pictures: one PNG for each picture, and the tour as a GIF.
`--only NAME` takes the pictures whose names begin so. The clock of the pages stands, so a run changes what has changed alone.
"""

import argparse
import io
import re
from collections.abc import Callable
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, Page

from scripts.studio import SERVICE_EDITS, SERVICE_NOTE, Studio, open_chat, open_studio, propose_all, work
from tests.helpers.browser import DARK, LIGHT, PHONE, WIDE, open_browser

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
MAX_TOUR_BYTES = 3_000_000
MAX_PICTURE_BYTES = 250_000
TOUR_SIZE = (1000, 680)
CAPTION_HEIGHT = 40


def take_inbox(studio: Studio, size: tuple[int, int] = WIDE, scheme: str = LIGHT) -> bytes:
    """Show: what waits, and what just happened."""
    with studio.page("/", size, scheme) as page:
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
        line = page.get_by_role("textbox", name="Your text").get_by_text("time.sleep(2**attempt)")
        line.click()
        page.keyboard.press("End")
        page.keyboard.type("  # 1, 2 and 4 seconds")
        return shoot(page)


def take_plan(studio: Studio, size: tuple[int, int] = WIDE, scheme: str = LIGHT) -> bytes:
    """Show: a plan of a messy folder, with one target open."""
    with studio.page(studio.scan(), size, scheme) as page:
        page.get_by_role("tree", name="Files by target").wait_for()
        page.get_by_role("treeitem").filter(has_text="Invoices/").dblclick()
        page.get_by_text("bill Acme GmbH.txt").wait_for()
        return shoot(page)


def take_plan_undone(studio: Studio) -> bytes:
    """Show: the plan after it was carried out and one file of it, then all, was brought back."""
    with studio.page(studio.scan()) as page:
        page.get_by_role("button", name=re.compile("^Approve and carry out")).click()
        page.get_by_role("button", name=re.compile("^Undo all")).click()
        page.get_by_text(re.compile("^undone: ")).first.wait_for()
        page.get_by_role("treeitem").filter(has_text="Invoices/").dblclick()
        page.get_by_text("bill Acme GmbH.txt").wait_for()
        return shoot(page)


def take_history(studio: Studio) -> bytes:
    """Show: how a file came to what it holds."""
    with studio.page("/files") as page:
        page.get_by_role("treeitem").filter(has_text="shop").dblclick()
        page.get_by_role("treeitem").filter(has_text="settings.yml").click()
        page.get_by_role("button", name="History").click()
        page.get_by_text("cursor").first.wait_for()
        page.get_by_role("button", name="Diff").first.click()
        return shoot(page)


def take_declarations(studio: Studio) -> bytes:
    """Show: a tool with its form, and its declaration for a model's API."""
    with studio.page("/tools/edit_file") as page:
        page.get_by_text("Declaration for a model's API").click()
        page.get_by_text("OpenAI", exact=True).click()
        return shoot(page)


def take_activity(studio: Studio) -> bytes:
    """Show: what one program did, with the undo of all of it."""
    with studio.page("/activity") as page:
        page.get_by_role("button", name=re.compile("claude-code")).first.click()
        page.get_by_role("heading", name=re.compile("claude-code: ")).wait_for()
        return shoot(page)


def take_panel(browser: Browser) -> bytes:
    """Show: the review in a chat."""
    with open_chat(browser) as page:
        page.set_viewport_size({"width": 800, "height": 800})
        page.wait_for_timeout(400)
        return page.locator("iframe").screenshot()


def shoot(page: Page) -> bytes:
    """Return the page as a PNG once it has come to rest."""
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    return page.screenshot()


TAKES: dict[str, Callable[[Studio], bytes]] = {
    "inbox": take_inbox,
    "inbox-phone": lambda studio: take_inbox(studio, PHONE, DARK),
    "review-dark": take_review,
    "review-phone": take_review_phone,
    "edit": take_edit,
    "history": take_history,
    "declarations": take_declarations,
    "activity": take_activity,
    "plan": take_plan,
    "plan-phone": lambda studio: take_plan(studio, PHONE),
    "plan-undone": take_plan_undone,
}


def take_tour(studio: Studio) -> bytes:
    """Return the tour: an agent proposes, the person reviews, approves, and takes it back."""
    frames: list[tuple[bytes, str, int]] = []
    with studio.page("/", TOUR_SIZE, is_frozen=False) as page:
        page.get_by_role("heading", name="Waits for you", exact=True).wait_for()

        def keep(caption: str, seconds: float) -> None:
            frames.append((shoot(page), caption, round(seconds * 1000)))

        keep("The console: nothing waits for you.", 2.0)
        future = studio.propose("payments.py", SERVICE_NOTE, edits=SERVICE_EDITS)
        row = page.get_by_role("link").filter(has_text="payments.py").first
        row.wait_for()
        keep("An agent proposes a change, and says why. Nothing is written.", 2.8)
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="payments.py").wait_for()
        page.get_by_text("1/2 seen").or_(page.get_by_text("2/2 seen")).wait_for()
        keep("You see exactly what would change.", 4.0)
        page.keyboard.press("n")
        page.get_by_text("2/2 seen").wait_for()
        page.keyboard.press("x")
        keep("Leave out a part of it: n goes to it, x leaves it out …", 2.8)
        page.keyboard.press("a")
        page.get_by_text("Press Enter to approve").wait_for()
        keep("… and approve the rest: a, then Enter.", 2.8)
        page.keyboard.press("Enter")
        answer = future.result(30).data
        page.get_by_text("Approved.").first.wait_for()
        page.get_by_role("button", name="Close").first.click()
        keep("The agent is told at once, and writes what you approved.", 2.4)
        studio.reviewer.commit(answer["session_path"], "payments.py").ok()
        page.get_by_text("Written.").wait_for()
        keep("Written, with the way back on the screen.", 2.8)
        page.keyboard.press("z")
        page.get_by_text("Undone.").first.wait_for()
        keep("z takes it back: the file is as it was, byte for byte.", 3.5)
        page.keyboard.press("g")
        page.keyboard.press("i")
        page.get_by_role("heading", name="Just happened").wait_for()
        keep("Everything stands in the journal, with its own undo.", 3.5)
    return animate(frames)


def animate(frames: list[tuple[bytes, str, int]]) -> bytes:
    """Return frames, each with its caption and milliseconds, as one GIF of one palette."""
    images = [caption_of(Image.open(io.BytesIO(png)).convert("RGB"), caption) for png, caption, _ in frames]
    strip = Image.new("RGB", (images[0].width, images[0].height * len(images)))
    for at, image in enumerate(images):
        strip.paste(image, (0, at * image.height))
    palette = strip.quantize(128, dither=Image.Dither.NONE)
    quantized = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    buffer = io.BytesIO()
    durations = [milliseconds for _, _, milliseconds in frames]
    quantized[0].save(
        buffer, "GIF", save_all=True, append_images=quantized[1:], duration=durations, loop=0, optimize=True
    )
    return buffer.getvalue()


def caption_of(image: Image.Image, caption: str) -> Image.Image:
    """Return a frame with its caption in a bar beneath it."""
    framed = Image.new("RGB", (image.width, image.height + CAPTION_HEIGHT), "#1b1f24")
    framed.paste(image, (0, 0))
    draw = ImageDraw.Draw(framed)
    middle = (image.width // 2, image.height + CAPTION_HEIGHT // 2)
    draw.text(middle, caption, fill="#ffffff", font=ImageFont.truetype("DejaVuSans.ttf", 18), anchor="mm")
    return framed


def compress(png: bytes) -> bytes:
    """Return a picture without its alpha, in as few bytes as PNG needs for every colour of it."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").save(buffer, "PNG", optimize=True)
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
                save("tour.gif", take_tour(studio), MAX_TOUR_BYTES)
        takes = {name: take for name, take in TAKES.items() if name.startswith(only)}
        if takes:
            with open_studio(browser) as studio:
                work(studio)
                propose_all(studio)
                for name, take in takes.items():
                    save(f"{name}.png", compress(take(studio)), MAX_PICTURE_BYTES)
        if "panel".startswith(only):
            save("panel.png", compress(take_panel(browser)), MAX_PICTURE_BYTES)


def save(name: str, data: bytes, max_bytes: int) -> None:
    """Write one picture, and say how large it is."""
    if len(data) > max_bytes:
        raise SystemExit(f"{name} has {len(data):,} bytes, more than {max_bytes:,}.")
    (PICTURES / name).write_bytes(data)
    print(f"{name}: {len(data):,} bytes", flush=True)


if __name__ == "__main__":
    main()
