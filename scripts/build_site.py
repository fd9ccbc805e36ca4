"""Builds the documentation site into build/site: pages, plots, links that lead somewhere, nothing loaded from elsewhere.

The pages of docs/ and of the top folder are copied into build/docs, with their links turned into those of the site; a link
to a file of the source becomes its name. Zensical builds them, and any warning of it is an error. What it wrote is
looked through once more: every link and anchor inside the site leads somewhere, and no page or style loads
anything from another host.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))

from scripts.draw_plots import Chart, folder_chart, freshness_chart, quality_chart, svg  # noqa: E402

RESULTS = TOP / "benchmarks" / "results"
CHARTS: dict[str, Callable[[dict[str, Any]], Chart]] = {
    "folders.json": folder_chart,
    "search.json": quality_chart,
    "search_freshness.json": freshness_chart,
}
TOP_PAGES = ("README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "GUARANTEES", "SECURITY")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Build the site; exits with what is wrong."""
    site = build_site(TOP / "build")
    files = [path for path in site.rglob("*") if path.is_file()]
    print(f"{site.relative_to(TOP)}: {len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")


def build_site(folder: Path) -> Path:
    """Return the folder with the built site, below the one that is given; exits with what is wrong."""
    stage(folder / "docs")
    shutil.copytree(TOP / "docs" / "site", folder, dirs_exist_ok=True)
    run_zensical(folder)
    faults = list(site_problems(folder / "site"))
    if faults:
        sys.exit("\n".join(["The site was built, and this is wrong with it:", *faults]))
    return folder / "site"


def stage(folder: Path) -> None:
    """Write every page of the site, and the plots, into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = site_pages()
    for source, page in pages.items():
        target = folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(with_site_links(source.read_text(), source, pages))
    shutil.copytree(TOP / "docs" / "pictures", folder / "pictures")
    (folder / "plots.md").write_text(plots_page(folder / "plots"))


def site_pages() -> dict[Path, str]:
    """Return every page by its source, with its place in the site."""
    pages = {TOP / f"{name}.md": f"{name.lower()}.md" for name in TOP_PAGES}
    pages[TOP / "README.md"] = "index.md"
    docs = TOP / "docs"
    pages.update({path: path.relative_to(docs).as_posix() for path in sorted(docs.rglob("*.md"))})
    pages[docs / "README.md"] = "contents.md"
    return pages


def with_site_links(text: str, source: Path, pages: dict[Path, str]) -> str:
    """Return a page with each link to another page as it is in the site, and links to other files as their text."""

    def replaced(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        name, _, anchor = target.partition("#")
        if not name or urlsplit(target).scheme:
            return match[0]
        file = Path(os.path.normpath(source.parent / name))
        if not file.exists():
            sys.exit(f"{source.relative_to(TOP)}: {target} leads nowhere")
        page = pages.get(file)
        if page is None and file.is_relative_to(TOP / "docs" / "pictures"):
            page = file.relative_to(TOP / "docs").as_posix()
        if page is None:
            return words
        here = os.path.dirname(pages[source])
        return f"{mark}[{words}]({os.path.relpath(page, here or '.')}{'#' + anchor if anchor else ''})"

    return "".join(part if part.startswith("```") else _LINK.sub(replaced, part) for part in _FENCED.split(text))


def plots_page(folder: Path) -> str:
    """Draw the results of the benchmarks into a folder; return the page that shows them."""
    folder.mkdir(parents=True)
    parts = [
        "# Plots",
        "Drawn from the results in `benchmarks/results`; [Benchmarks](benchmarks.md) says what was measured and how.",
    ]
    for file, chart_of in CHARTS.items():
        chart = chart_of(json.loads((RESULTS / file).read_text()))
        (folder / f"{chart.name}.svg").write_text(svg(chart))
        parts += [f"## {chart.title}", f"![{chart.title}](plots/{chart.name}.svg)", chart.note]
    return "\n\n".join(parts) + "\n"


def run_zensical(folder: Path) -> None:
    """Build; exits with what Zensical said when it warned or failed."""
    shutil.rmtree(folder / "site", ignore_errors=True)
    program = Path(sys.executable).parent / "zensical"
    command = [str(program), "build", "--clean", "--strict", "--config-file", str(folder / "zensical.toml")]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode or "arning" in ran.stdout + ran.stderr:
        sys.exit(f"{ran.stdout}{ran.stderr}")


class Page(HTMLParser):
    """What one page links to, what it loads, and the anchors that it has."""

    _LOADED = frozenset({"script", "img", "iframe", "source", "video", "audio"})
    _LOADING = frozenset({"stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "icon"})

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element refers to."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and self._LOADING & set(values.get("rel", "").split()):
            self.loads.append(values.get("href", ""))
        if tag in self._LOADED and "src" in values:
            self.loads.append(values["src"])


def site_problems(site: Path) -> Iterator[str]:
    """Return every link of the site that leads nowhere, and everything that is loaded from another host."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name} loads {target}" for target in page.loads if urlsplit(target).netloc)
        if name.name == "404.html":  # its links are from the top of the site, wherever that is
            continue
        for target in {*page.links, *page.loads}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                yield f"{name}: {target} leads nowhere"
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
                yield f"{name}: {target} has no such heading"
    for path in sorted(site.rglob("*.css")):
        for target in re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", path.read_text()):
            yield f"{path.relative_to(site)} loads {target}"


if __name__ == "__main__":
    main()
