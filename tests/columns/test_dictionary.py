"""Symbols keep their ids, whichever way they come and go."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.columns.storage import dictionary
from evermat.columns.storage.dictionary import Dictionary

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


def test_what_was_decoded_stays_as_it_was_while_the_dictionary_grows() -> None:
    dictionary, decoded = Dictionary(), []
    for i in range(200):
        ids = dictionary.encode([f"s{i}", "s0", "long" * i])
        decoded.append((i, dictionary._whole(), dictionary.decode_arrow(ids), dictionary.decode_compactly(ids)))
    for i, whole, arrow, compact in decoded:
        assert whole.to_pylist() == list(dict.fromkeys(s for j in range(i + 1) for s in (f"s{j}", "s0", "long" * j)))
        assert arrow.to_pylist() == compact.to_pylist() == [f"s{i}", "s0", "long" * i]


@given(st.lists(st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")), max_size=300), st.integers(0, 3))
def test_all_lengths_and_bytes(symbols: list[str], offset: int) -> None:
    dictionary, model = Dictionary(), dict[str, int]()
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        for symbol in symbols[offset:]:
            model.setdefault(symbol, len(model))
        ids = dictionary.encode_arrow(pa.array(symbols, kind)[offset:])
        assert ids.tolist() == [model[symbol] for symbol in symbols[offset:]]
    assert [dictionary.lookup(symbol) for symbol in model] == list(model.values())


@pytest.mark.slow
def test_symbols_whose_hashes_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    # Tags have 32 bits: among so many symbols some share one, and then their bytes are compared.
    symbols = [str(i) for i in range(300_000)]
    dictionary = Dictionary()
    assert dictionary.encode_arrow(pa.array(symbols)).tolist() == list(range(300_000))
    tags = dictionary._slots[dictionary._slots > 0] >> np.uint64(32)
    assert len(np.unique(tags)) < 300_000
    assert dictionary.encode_arrow(pa.array(symbols[::-1])).tolist() == list(range(300_000))[::-1]


def test_large_arrow_dictionaries_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evermat.columns.storage.dictionary._LARGE", 3)
    dictionary = Dictionary(["z"])
    values = pa.array(["a", "b", "c", "d"])

    def encode(*codes: int) -> list[str]:
        # Each time another Arrow array with the same values, as different files have them.
        array = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values.to_pylist()))
        return dictionary.decode(dictionary.encode_arrow(array))

    assert encode(2, 2) == ["c", "c"]
    assert len(dictionary) == 2
    dictionary.encode(["d", "other"])
    assert encode(3, 2, 0) == ["d", "c", "a"]
    assert dictionary.encode_arrow(pa.array(["q", "r", "q", "s"]).dictionary_encode()).tolist() == [5, 6, 5, 7]
    assert encode(1, 0) == ["b", "a"]
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None, "c", "d"]))
    assert dictionary.encode_arrow(with_null[:1]).tolist() == [4]
    with pytest.raises(ValueError, match="nulls"):
        dictionary.encode_arrow(with_null)
    dictionary.forget_arrow()
    assert encode(3, 1) == ["d", "b"]


@given(st.lists(SYMBOLS, max_size=4), st.lists(st.integers(0, 40), max_size=30), st.integers(0, 20))
def test_decoding_compactly(batches: list[list[str]], picked: list[int], large: int) -> None:
    dictionary = Dictionary()
    for symbols in batches:
        dictionary.encode(symbols)
        dictionary.decode_arrow(np.arange(len(dictionary), dtype=np.int32))
    ids = np.array([number for number in picked if number < len(dictionary)], np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evermat.columns.storage.dictionary._LARGE", large)
        found = dictionary.decode_compactly(ids)
    assert found.to_pylist() == dictionary.decode(ids)
    distinct = len(set(ids.tolist()))
    assert len(found.dictionary) in {distinct, len(dictionary)}
    if 2 * distinct <= len(dictionary):
        assert len(found.dictionary) == distinct


@given(SYMBOLS.map(lambda some: [*dict.fromkeys(some)]), st.randoms())
def test_some_symbols_can_be_taken_over(symbols: list[str], rng: Random) -> None:
    old = Dictionary(symbols)
    chosen = np.array([rng.random() < 0.5 for _ in symbols], np.bool_)
    kept = [symbol for symbol, one in zip(symbols, chosen, strict=True) if one]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dictionary, "_TAKEN", rng.randint(1, 5))
        new = Dictionary()
        new.take_over(old, chosen)
    assert new.decode(np.arange(len(new), dtype=np.int32)) == kept
    assert [new.lookup(symbol) for symbol in symbols] == [kept.index(s) if s in kept else -1 for s in symbols]
    assert new.nbytes == old.bytes_of(chosen)
