"""Symbols keep their ids, whichever way they come and go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.columns.dictionary import Dictionary

pa = pytest.importorskip("pyarrow")

SYMBOLS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=12)


@given(st.lists(st.tuples(SYMBOLS, st.sampled_from(["list", "string", "large", "dictionary", "chunked"])), max_size=6))
def test_ids_are_dense_and_stable(batches: list[tuple[list[str], str]]) -> None:
    dictionary, model = Dictionary(), dict[str, int]()
    for symbols, how in batches:
        if how == "list":
            ids = dictionary.encode(symbols)
        elif how == "chunked":
            ids = dictionary.encode_arrow(pa.chunked_array([symbols[:3], symbols[3:]], pa.string()))
        else:
            array = pa.array(symbols, pa.large_string() if how == "large" else pa.string())
            ids = dictionary.encode_arrow(array.dictionary_encode() if how == "dictionary" else array)
        for symbol in symbols:
            model.setdefault(symbol, len(model))
        assert ids.dtype == np.int32 and ids.tolist() == [model[symbol] for symbol in symbols]
        assert len(dictionary) == len(model)
        assert dictionary.decode(ids) == symbols
        assert dictionary.decode_arrow(ids).to_pylist() == symbols
        in_order = sorted(model, key=lambda symbol: symbol.encode())
        assert [dictionary.rank()[model[symbol]] for symbol in in_order] == list(range(len(model)))
        assert all(dictionary.lookup(s) == i and dictionary.symbol(i) == s for s, i in model.items())
    assert dictionary.lookup("not there") == -1


def test_only_used_values_of_an_arrow_dictionary_get_ids() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2]), ["a", "b", "c"])
    dictionary = Dictionary()
    assert dictionary.encode_arrow(array).tolist() == [1, 0, 1]
    assert len(dictionary) == 2 and dictionary.lookup("b") == -1
    assert dictionary.encode_arrow(array[:0]).tolist() == []


def test_slices_and_repetition() -> None:
    array = pa.array(["x", "y"] * 5000)
    dictionary = Dictionary(["y"])
    assert dictionary.encode_arrow(array[1:4]).tolist() == [0, 1, 0]
    assert dictionary.encode_arrow(array).tolist() == [1, 0] * 5000


def test_nulls_are_refused() -> None:
    dictionary = Dictionary()
    with pytest.raises(ValueError, match="nulls"):
        dictionary.encode_arrow(pa.array(["a", None]))
    with pytest.raises(ValueError, match="nulls"):
        dictionary.encode_arrow(pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])))
    assert len(dictionary) == 0


def test_unknown_ids_are_refused() -> None:
    with pytest.raises(IndexError):
        Dictionary(["a"]).symbol(-1)
    with pytest.raises(IndexError):
        Dictionary(["a"]).symbol(1)


def test_arrow_chunks_stay_few() -> None:
    dictionary = Dictionary()
    for i in range(200):
        ids = dictionary.encode([f"s{i}", "s0"])
        assert dictionary.decode_arrow(ids).to_pylist() == [f"s{i}", "s0"]
    assert len(dictionary._chunks) <= 8
