"""RDF/XML whose elements are nested very deeply takes no more than linear time: beyond a limit it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import evermat
from evermat.io.rdf.read import read_triples

RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'


def read(path: Path, text: str) -> int:
    path.write_text(text)
    return read_triples(path).encoded.num_rows


def nested(levels: int) -> str:
    return "<x:C><x:p>" * levels + "</x:p></x:C>" * levels


def test_deep_elements_are_read(tmp_path: Path) -> None:
    assert read(tmp_path / "d.rdf", f"{RDF}{nested(1000)}</rdf:RDF>") == 1000 + 999 + 1


@pytest.mark.parametrize("before", ["", "\n<!-- a comment -->", "\n<x:D><x:q><![CDATA[</></>]]></x:q></x:D>"])
def test_deeper_ones_are_refused(tmp_path: Path, before: str) -> None:
    with pytest.raises(evermat.DataError) as error:
        read(tmp_path / "d.rdf", f"{RDF}{before}\n{nested(50_000)}</rdf:RDF>")
    first, place = str(error.value).splitlines()[:2]
    assert first == "error[E370]: this is not XML: this is nested more than 10,000 levels deep"
    assert place.endswith(f"d.rdf:{2 + before.count(chr(10))}:49996")


def test_what_looks_deep_is_read(tmp_path: Path) -> None:
    """Texts with `<` in them, in a comment or CDATA."""
    many = "<x:D><x:q><![CDATA[" + "<a>" * 12_000 + "]]></x:q></x:D><!--" + "<" * 12_000 + "-->"
    assert read(tmp_path / "d.rdf", f"{RDF}{many}{nested(3)}</rdf:RDF>") == 2 + 6
