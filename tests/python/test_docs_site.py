"""The site of docs/: it builds without a warning, needs no network and no server, and leaves nothing out."""

from __future__ import annotations

import html
import importlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import click
import pytest
from wormcast import routing
from wormcast.cli.main import main
from wormcast.p4rt.artifacts import find_artifacts
from wormcast.routing import schemas

ROOT = Path(__file__).resolve().parent.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
CODE_COLUMNS = 96
"""Characters of a line of code that a page of full width shows."""
BUILD_SECONDS_MAX = 600


class Page(HTMLParser):
    """What one page loads, links to and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if (target := found.get(LOADS.get(tag, ""))) and not (
            tag == "link" and found.get("rel") in ("canonical", "next", "prev")
        ):
            self.loads.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site, built strictly: a dead link is an error."""
    subprocess.run([ROOT / "setup" / "docs"], check=True, timeout=BUILD_SECONDS_MAX)
    directory = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "site" / "build.py", directory],
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Gives a file of the program that builds the site, by its name."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "site")
    return importlib.import_module


Part = Callable[[str], ModuleType]


def text_of(site: Path, page: str) -> str:
    """The words of a page, without markup."""
    return html.unescape(re.sub(r"<[^>]*>", "", (site / page).read_text()))


# Offline


def test_no_page_loads_anything_from_the_network(site: Path, pages: dict[Path, Page]) -> None:
    outside = {
        load for page in pages.values() for load in page.loads if urlsplit(load).scheme not in ("", "data")
    }
    outside |= {load for page in pages.values() for load in page.loads if load.startswith("//")}
    for sheet in site.rglob("*.css"):
        outside |= set(re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", sheet.read_text()))
    assert not outside


def test_links_lead_to_pages_and_anchors(site: Path, pages: dict[Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert not dead


def test_pages_outside_the_tree_of_sources_are_in_the_search(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {entry["location"].split("#")[0] for entry in index["docs"]}
    assert {"tutorial.html", "papers/worm.html", "controller/index.html", "reference/rest.html"} <= places
    assert not any(place.startswith("source/") for place in places)
    assert (site / "search" / "search_index.js").read_text().startswith("var __index = ")


def test_code_is_not_cut_at_the_edge(site: Path) -> None:
    """Long lines wrap, so comments at their ends are seen; pictures of text, which must not wrap, are narrow enough."""
    sheet = (site / "assets" / "site.css").read_text()
    assert re.search(r"^\.md-typeset pre > code \{[^}]*white-space: pre-wrap", sheet, flags=re.MULTILINE)
    wide = []
    for path in site.rglob("*.html"):
        for block in re.findall(r"<pre[^>]*>(.*?)</pre>", path.read_text(), flags=re.DOTALL):
            lines = html.unescape(re.sub(r"<[^>]*>", "", block)).splitlines()
            drawn = any(sign in line for line in lines for sign in "┌└│─═║")
            wide += [f"{path.name}: {line}" for line in lines if drawn and len(line) > CODE_COLUMNS]
    assert not wide


def browse(site: Path, page: str, profile: Path) -> str:
    """A page as a browser without a network shows it, from its file."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: search and animation are not tried in a browser")
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    # A renderer that starts late must not lose the search: virtual time stands still while it works.
    command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", "--dump-dom"]
    done = subprocess.run(
        [*command, f"file://{site}/{page}"], capture_output=True, text=True, timeout=BUILD_SECONDS_MAX
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_search_works_from_files(site: Path, tmp_path: Path) -> None:
    shown = browse(site, "index.html?q=hamiltonian", tmp_path)
    found = re.findall(r'href="([^"?]+)[^"]*" class="md-search-result__link"', shown)
    assert any("papers" in link or "routing" in link for link in found), found


def test_the_animation_shows_packets_on_links(site: Path, tmp_path: Path) -> None:
    shown = browse(site, "worms.html#travel=switch@2.5", tmp_path)
    assert 'id="travel" hidden' not in shown
    busy = re.findall(r'<line class="busy"', shown)
    packets = re.findall(r'<circle class="packet"', shown)
    assert len(busy) == len(packets) >= 4
    assert re.search(r"Time 2 of \d+\. \d of 7 members have the whole message", shown)


# Nothing is left out


def test_every_page_is_in_the_menu(part: Part) -> None:
    builder = part("build")
    menu = set(re.findall(r"([\w/.-]+\.md)$", builder.CONFIG.read_text(), re.MULTILINE))
    own = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert own <= menu


def test_the_rest_reference_has_every_path_and_body(site: Path, part: Part) -> None:
    reference = part("references")
    app = reference.create_app(
        reference.Controller(reference.Database(None), reference.find_artifacts())
    ).openapi()
    shown = text_of(site, "reference/rest.html")
    for status in ("403", "408", "422", "507"):
        assert re.search(rf"^{status}$", shown.split("Errors¶", 1)[1].split("¶", 1)[0], re.MULTILINE), status
    for path, methods in app["paths"].items():
        section = shown.split(f"{path}¶", 1)[1]
        for method in methods:
            assert method.upper() in section.split("¶", 1)[0], f"{method} {path}"
    for name, model in app["components"]["schemas"].items():
        if name in reference.FILES:
            assert reference.FILES[name] in text_of(site, "reference/files.html")
            continue
        assert f"{name}¶" in shown
        for field in model.get("properties", ()):
            assert field in shown


def test_the_command_line_reference_has_every_option(site: Path, part: Part) -> None:
    reference = part("references")
    shown = text_of(site, "reference/cli.html")
    count = 0
    for names, command in reference.commands():
        assert names == ("wormcast",) or f"{' '.join(names)}¶" in shown, names
        for parameter in command.get_params(click.Context(command)):
            if isinstance(parameter, click.Option) and not parameter.hidden:
                count += 1
                assert max(parameter.opts, key=len) in shown, (names, parameter.opts)
    assert count > 100
    assert {name for (_, name, *_), _ in list(reference.commands())[1:]} == set(
        main.list_commands(click.Context(main))
    )


def test_the_p4runtime_reference_has_every_table_key_and_action(site: Path) -> None:
    shown = text_of(site, "reference/p4runtime.html")
    schema = find_artifacts().schema
    for table in schema.tables:
        section = shown.split(f"{table.name}¶", 1)[1]
        assert f"{table.size} entries" in section
        for key in table.match_fields:
            assert key.name in section
        for action in table.actions:
            assert action.name in section
    assert len(list(schema.tables)) >= 6
    for name in ("drops", "ingress_ports", "packet_in", "packet_out"):
        assert name in shown


def test_the_file_reference_has_every_schema(site: Path) -> None:
    shown = text_of(site, "reference/files.html")
    for kind in schemas.kinds():
        assert f"{kind}¶" in shown
        for field in schemas.load(kind).get("properties", ()):
            assert field in shown


# The animation


def test_packets_travel_as_planned(part: Part) -> None:
    travel = part("travel")
    topology, schemes = travel.all_schemes()
    links = {frozenset((f"s{link['a']}", f"s{link['b']}")) for link in topology["links"]}
    links |= {frozenset((f"h{host['id']}", f"s{host['switch']}")) for host in topology["hosts"]}
    others = {f"h{host['id']}" for host in topology["hosts"]} - {f"h{travel.SOURCE}"}
    for scheme, (plan, hops) in schemes.items():
        assert {frozenset(hop.link) for hop in hops} <= links
        # No two packets on a link at once, in one direction.
        assert max(Counter((hop.link, hop.start) for hop in hops).values()) == 1
        arrivals = Counter((hop.packet, hop.link[1]) for hop in hops if hop.link[1] in others)
        assert arrivals == Counter((packet, host) for packet in range(travel.PACKETS) for host in others), (
            scheme
        )
        # Nobody sends on what has not arrived.
        first = {}
        for hop in hops:
            first.setdefault((hop.packet, hop.link[1]), hop.start + 1)
            if hop.link[0] != f"h{travel.SOURCE}":
                assert first[hop.packet, hop.link[0]] <= hop.start, (scheme, hop)
        if scheme == "switch":
            assert len(hops) == plan["link_crossings"] * travel.PACKETS
            assert max(Counter(hop.link for hop in hops).values()) == travel.PACKETS
        else:
            lengths = [
                len(routing.route(topology, edge["from"], edge["to"])["ports"]) + 1 for edge in plan["edges"]
            ]
            assert len(hops) == sum(lengths) * travel.PACKETS
    ends = {scheme: hops[-1].start for scheme, (_, hops) in schemes.items()}
    assert min(ends, key=ends.__getitem__) == "switch"
    assert max(ends, key=ends.__getitem__) == "repeat"
