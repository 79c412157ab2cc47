"""Diagrams of traces: what is drawn is what happened, in text, SVG and PNG."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from support.broken_managers import NoCopyOnWrite
from support.list_store import ListStore
from support.pages import TORN, store_frames, torn_frames
from tokenlaw import diagram, diagram_panel
from tokenlaw.cli import main
from tokenlaw.diagram import FORMS, Picture, rendered, taken
from tokenlaw.diagram_panel import said
from tokenlaw.diagram_shapes import COPIED, WRONG, Arrow, Box, Label, colour_of
from tokenlaw.diagram_sheet import ACCEPTANCE, EXACT
from tokenlaw.diagram_words import ROWS
from tokenlaw.impl.faults import STORE_FAULTS
from tokenlaw.impl.paged import PagedBlockManager
from tokenlaw.impl.paged.store import PagedKVStore
from tokenlaw.properties.block_manager_suite import BlockManagerSuite
from tokenlaw.properties.kv_store_suite import KVStoreSuite
from tokenlaw.properties.trace import Free, New, Trace, save
from tokenlaw.report import Report, Target
from tokenlaw.spec.contracts import BLOCK_MANAGER, KV_STORE, CacheConfig, Implementation

EXAMPLE = Path(__file__).parents[1] / "examples" / "shared_prefix.json"
STORED = Trace((New((0, 0, 0)), New((0,))), CacheConfig(4, 2, num_layers=1), KV_STORE)
TARGETS: dict[str, dict[str, Any]] = {
    "reference": {BLOCK_MANAGER: PagedBlockManager, KV_STORE: PagedKVStore},
    "torn": {BLOCK_MANAGER: NoCopyOnWrite},
    "by-position": {KV_STORE: STORE_FAULTS["keyed_by_position"].make},
}
PATTERN = "min(1, p(x) / q(x))"


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No child process: they take seconds, and other tests are about them."""

    def replay(data: dict[str, Any], target: str, **_: object) -> Report:
        tried = Implementation(target, "0.1.0", TARGETS[target])
        suite = KVStoreSuite() if data.get("contract") == KV_STORE else BlockManagerSuite()
        return Report(Target(target, "0.1.0"), tuple(suite.replay(tried, data)), "dev", 0, {}, "")

    monkeypatch.setattr(diagram, "replay", replay)


@pytest.fixture
def picture() -> Picture:
    return taken(EXAMPLE)


def test_the_textbook_picture_in_words(picture: Picture) -> None:
    told = rendered(picture, ".txt").decode()
    steps = re.split(r"\n\n(?=\d+\. )", told)
    assert steps[0] == "shared_prefix on reference 0.1.0"
    assert len(steps) == 7
    assert "seq 0  [11 12 13 14][15 16 17 18][20]  in blocks 0 1 2" in steps[3]
    assert "seq 1  [11 12 13 14][15 16 17 18][20 30]  in blocks 0 1 3" in steps[3]
    assert re.search(r"block 0 +refs 2 .*held by 0 1, cached", steps[3])
    assert re.search(r"block 3 +refs 1 +20\* +30\* +31~ +\. +held by 1, copied from block 2", steps[3])
    assert re.search(r"block 0 +refs 0 .*cached, held by none", steps[6])
    assert told.count("copied: ") == 1
    assert EXACT in told
    assert PATTERN in ACCEPTANCE
    assert ACCEPTANCE in told


def test_the_picture_says_the_same(picture: Picture) -> None:
    svg = rendered(picture, ".svg").decode()
    root = ElementTree.fromstring(svg)
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("copy") == 1
    assert words.count("refs 2") == 3 + 2 + 2
    assert words.count("cached, not held") == 2
    assert "copied: block 2 \u2192 block 3" in words
    assert PATTERN in " ".join(filter(None, words))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|<script|<image|href", svg)


def test_the_picture_in_the_docs_is_this_one(picture: Picture) -> None:
    """Else: ``tokenlaw diagram examples/shared_prefix.json -o docs/shared-prefix.svg``."""
    assert (EXAMPLE.parents[1] / "docs" / "shared-prefix.svg").read_bytes() == rendered(picture, ".svg")


def test_one_panel_has_arrows_from_tables_to_blocks(picture: Picture) -> None:
    _, diverged = picture.frames[2]
    shapes = diagram_panel.draw_panel(diverged, 3).shapes
    arrows = [shape for shape in shapes if isinstance(shape, Arrow)]
    for sequence in diverged.sequences:
        own = [arrow for arrow in arrows if arrow.colour == colour_of(sequence.number)]
        assert len(own) == len(sequence.table)
    assert [arrow.colour for arrow in arrows].count(COPIED) == 1
    assert colour_of(0) != colour_of(1)


def test_what_reads_back_wrong_is_marked_beside_its_colour() -> None:
    shapes = diagram_panel.draw_panel(torn_frames()[-1], 4).shapes
    marked = [shape for shape in shapes if isinstance(shape, Box) and shape.edge == WRONG]
    assert len(marked) == 3  # the slot, the token that should be there, the sequence
    wrong = [shape.text for shape in shapes if isinstance(shape, Label) and shape.colour == WRONG]
    assert any(text.startswith("kv/content: expected token 5") for text in wrong)
    bold = [shape.text for shape in shapes if isinstance(shape, Label) and shape.bold]
    assert "5" in bold
    assert "6" in bold


def test_a_count_that_is_wrong_is_shown_with_the_number_of_holders() -> None:
    frame = torn_frames()[1]
    lying = msgspec.structs.replace(frame.blocks[0], references=1)
    shapes = diagram_panel.draw_panel(msgspec.structs.replace(frame, blocks=(lying,)), 2).shapes
    assert "refs 1 \u2260 2" in [shape.text for shape in shapes if isinstance(shape, Label)]


def test_the_command_line_writes_what_the_name_asks_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diagram", str(EXAMPLE), "-o", str(tmp_path / "one.svg"), "--step", "2"]) == 0
    svg = (tmp_path / "one.svg").read_text()
    assert "2. fork sequence 0 -&gt; sequence 1" in svg
    assert "1. new sequence" not in svg
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["one.svg"]


def test_without_a_file_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagram", str(EXAMPLE), "--step", "3"]) == 0
    assert capsys.readouterr().out == rendered(taken(EXAMPLE, step=3), ".txt").decode()


def test_another_target_draws_what_it_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(TORN, tmp_path / "torn.json")
    assert main(["diagram", str(tmp_path / "torn.json"), "--target", "torn"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("torn on torn 0.1.0\n")
    assert "kv/write-shared: expected" in told
    assert "copied" not in told


def test_a_store_s_slots_say_which_row_is_wrong_and_why(tmp_path: Path) -> None:
    """Block size 2: sequence 1 has block 2, and is written to block 0, where sequence 0 reads it."""
    save(STORED, tmp_path / "store.json")
    told = rendered(taken(tmp_path / "store.json", "by-position"), ".txt").decode()
    _, first, second, *legend = re.split(r"\n\n", told)
    assert "seq 0  [0:0 0:1][0:2]  in blocks 0 1\n" in first
    assert re.search(r"block 0 +0:0\* +0:1\* +held by 0", first)
    assert "refuted here" not in first
    assert second.startswith(
        "2. new sequence 1: token 0\n  \u2717 refuted here: store/bystanders\n\u2717 seq 0"
    )
    assert re.search(r"block 0 +1:0!other +0:1 +held by 0", second)
    assert (
        "seq 0, position 0: reads another sequence's row, 1:0 of operation 2; not 0:0 of operation 1"
        in second
    )
    assert ROWS in legend
    right = rendered(taken(tmp_path / "store.json"), ".txt").decode()
    assert "!" not in right.partition("* written")[0]


def test_the_picture_of_a_store_says_the_same(tmp_path: Path) -> None:
    save(STORED, tmp_path / "store.json")
    picture = taken(tmp_path / "store.json", "by-position", step=2)
    root = ElementTree.fromstring(rendered(picture, ".svg"))
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("other") == 1
    assert words[words.index("other") - 1] == "1:0"  # the slot; the sequence shows what it should read
    assert "0:0" in words
    assert "\u2717 refuted here: store/bystanders" in words
    assert "block 0" in words


def test_a_store_without_tables_has_no_blocks_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TARGETS, "lists", {KV_STORE: ListStore})
    save(STORED, tmp_path / "store.json")
    picture = taken(tmp_path / "store.json", "lists")
    told = rendered(picture, ".txt").decode()
    assert "seq 1: 0 to 1" in told
    assert "block 0" not in told
    svg = rendered(picture, ".svg").decode()
    assert "no block table is shown" in svg
    assert ">reads<" in svg
    assert ">block 0<" not in svg


def test_a_store_without_tables_has_no_pool_when_it_is_empty() -> None:
    last = store_frames(ListStore, New((0,)), Free(0))[-1]
    assert last.blocks == ()
    assert next(said(last))[0].startswith("layer 0; no block table is shown")


def test_png(picture: Picture) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib (pip install tokenlaw[plots])")
    content = rendered(Picture(picture.frames[2:3], "$x_1$", ()), ".png")
    assert content.startswith(b"\x89PNG")
    assert ".png" in FORMS


def test_a_stranger_s_namespace_stays_text(tmp_path: Path) -> None:
    save(Trace((New((1,), "<script>alert(1)</script>\x1b[1m"),)), tmp_path / "odd.json")
    svg = rendered(taken(tmp_path / "odd.json"), ".svg").decode()
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
    assert "\x1b" not in svg


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-o", "out.gif"], "--output out.gif: name a file that ends in .svg, .png, .txt"),
        (["--step", "7"], f"--step 7: {EXAMPLE} has 6 steps"),
        (["-o", "missing/out.svg"], "--output missing/out.svg: can't be written: No such file or directory"),
    ],
)
def test_bad_use(options: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagram", str(EXAMPLE), *options]) == 3
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"schema": "tokenlaw.trace/1", "contract": "kv-store", "oper', "damaged, not JSON"),
        ('{"schema": "tokenlaw.trace/1", "contract": ["kv-store"]}', "only traces of a block-manager or a"),
    ],
)
def test_a_damaged_file_is_one_line(
    content: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "damaged.json").write_text(content)
    assert main(["diagram", str(tmp_path / "damaged.json"), "-o", str(tmp_path / "a.svg")]) == 3
    printed = capsys.readouterr()
    assert told in printed.err
    assert (printed.err + printed.out).count("\n") == 1
    assert not (tmp_path / "a.svg").exists()


def test_what_has_no_blocks_to_draw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = tmp_path / "session.json"
    session.write_text('{"schema": "tokenlaw.session/1", "contract": "decoder\\u001b[1m"}')
    assert main(["diagram", str(session)]) == 3
    told = "only traces of a block-manager or a kv-store are drawn; this is one of a decoder\\x1b[1m"
    assert told in capsys.readouterr().err
    save(Trace((New((1,)),), CacheConfig(num_blocks=50_000)), tmp_path / "large.json")
    assert main(["diagram", str(tmp_path / "large.json")]) == 3
    assert "can't be drawn: it has too many operations, or blocks" in capsys.readouterr().err
