"""Facts as users have them: rows, Arrow, pandas, polars; and what is said about those that do not fit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from evermat import DataError, Program
from tests.io.relations import not_utf8

PROGRAM = Program.parse("""
    .decl edge(x:number, y:symbol)
    .decl small(x:unsigned)
    .decl weight(x:float)
    .decl name(x:symbol)
    .decl flag()
    .decl known(n:number)
    known(n) :- n = count : { edge(_, _) }.
""")
ROWS = [(1, "a"), (2, "é"), (-3, "")]
COLUMNS = {"x": [1, 2, -3], "y": ["a", "é", ""]}


def facts(name: str, given: Any) -> set[tuple]:
    return set(PROGRAM.materialise({name: given})[name])


class Stream:
    """Something unknown that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table(COLUMNS).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "given",
    [
        ROWS,
        [list(row) for row in ROWS],
        tuple(ROWS),
        set(ROWS),
        dict.fromkeys(ROWS).keys(),
        ROWS * 3,
        [(np.int64(x), np.str_(y)) for x, y in ROWS],
        [(np.int8(x), y) for x, y in ROWS],
        pa.table(COLUMNS),
        pa.table({"y": COLUMNS["y"], "x": COLUMNS["x"]}),
        pa.table({"first": COLUMNS["x"], "second": COLUMNS["y"]}),
        pa.table({"x": pa.array(COLUMNS["x"], pa.int8()), "y": pa.array(COLUMNS["y"]).dictionary_encode()}),
        pa.table({"x": pa.array(COLUMNS["x"], pa.int32()), "y": pa.array(COLUMNS["y"], pa.large_string())}),
        pa.concat_tables([pa.table(COLUMNS), pa.table(COLUMNS)]),
        pa.record_batch(COLUMNS),
        Stream(),
        pd.DataFrame(COLUMNS),
        pd.DataFrame({"x": [0, *COLUMNS["x"]], "y": ["z", *COLUMNS["y"]]}).query("x != 0"),  # its index begins with 1
        pd.DataFrame(COLUMNS, index=["i", "j", "k"]),
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).with_columns(pl.col("x").cast(pl.Int16)),
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_form(given: Any) -> None:
    assert facts("edge", given) == set(ROWS)


def test_what_can_be_read_once() -> None:
    assert facts("edge", (row for row in ROWS)) == set(ROWS)
    assert facts("edge", iter(ROWS)) == set(ROWS)
    assert facts("edge", zip(COLUMNS["x"], COLUMNS["y"], strict=True)) == set(ROWS)
    assert facts("edge", pa.table(COLUMNS).to_reader()) == set(ROWS)


@pytest.mark.parametrize(
    "given", [[], (), iter([]), pa.table(COLUMNS).slice(0, 0), pd.DataFrame(COLUMNS)[:0], pl.DataFrame(COLUMNS)[:0]]
)
def test_nothing(given: Any) -> None:
    assert facts("edge", given) == set()


def test_rows_of_one_column_may_be_bare_values() -> None:
    assert facts("name", ["ab", "c"]) == {("ab",), ("c",)}
    assert facts("small", [1, np.uint8(2)]) == {(1,), (2,)}
    assert facts("weight", [1, 2.5]) == {(1.0,), (2.5,)}


@pytest.mark.parametrize("given", [pd.Series(["ab", "c"]), pl.Series(["ab", "c"]), pa.chunked_array([["ab"], ["c"]])])
def test_a_column_is_a_table(given: Any) -> None:
    assert facts("name", given) == {("ab",), ("c",)}
    assert complaint("edge", given).startswith("error[E315]: column `x` of `edge` is missing")


def test_arrays_are_rows() -> None:
    program = Program.parse(".decl p(x:number, y:number)")
    assert set(program.materialise({"p": np.array([[1, 2], [3, 4]])})["p"]) == {(1, 2), (3, 4)}


def test_ends_of_ranges() -> None:
    ends = [(0,), (2**63,), (2**64 - 1,)]
    assert facts("small", ends) == set(ends)
    assert facts("small", pa.table({"x": pa.array([row[0] for row in ends], pa.uint64())})) == set(ends)
    assert facts("edge", [(2**63 - 1, "max"), (-(2**63), "min")]) == {(2**63 - 1, "max"), (-(2**63), "min")}


def test_floats() -> None:
    assert facts("weight", [(-0.0,), (0,), (float("inf"),), (np.float32(0.5),)]) == {(0.0,), (float("inf"),), (0.5,)}
    assert str(next(iter(facts("weight", [(-0.0,)])))) == "(0.0,)"
    assert str(next(iter(facts("weight", pa.table({"x": [-0.0]}))))) == "(0.0,)"


def test_nullary() -> None:
    assert facts("flag", [()]) == facts("flag", [(), ()]) == {()}
    assert facts("flag", []) == set()
    assert facts("flag", pa.table({"present": [True]})) == {()}


def test_facts_of_one_materialisation_are_input_of_another() -> None:
    first = PROGRAM.materialise({"edge": ROWS, "flag": [()]})
    second = PROGRAM.materialise({"edge": first["edge"], "flag": first["flag"]})
    assert set(second["edge"]) == set(ROWS)
    assert set(second["flag"]) == {()}


# --- misfits -----------------------------------------------------------------------------------------------


def complaint(name: str, given: Any) -> str:
    with pytest.raises(DataError) as raised:
        PROGRAM.materialise({name: given})
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("edge", [(1, "a"), (2,)], "error[E331]: row 2 of the facts for `edge` has 1 column, not 2"),
        ("edge", [(1, "a", 2)], "error[E331]: row 1 of the facts for `edge` has 3 columns, not 2"),
        ("edge", ["ab"], "error[E331]: row 1 of the facts for `edge` has 1 column, not 2"),
        ("edge", [{"x": 1, "y": "a"}], "error[E331]: row 1 of the facts for `edge` has 1 column, not 2"),
        ("edge", [("a", "a")], "error[E332]: 'a' in row 1, column `x` of the facts for `edge` is not a number"),
        ("edge", [(1, 1)], "error[E332]: 1 in row 1, column `y` of the facts for `edge` is not a symbol"),
        ("edge", [(1.0, "a")], "error[E332]: 1.0 in row 1, column `x` of the facts for `edge` is not a number"),
        ("edge", [(True, "a")], "error[E332]: True in row 1, column `x` of the facts for `edge` is not a number"),
        ("edge", [(None, "a")], "error[E332]: None in row 1, column `x` of the facts for `edge` is not a number"),
        ("edge", [(1, None)], "error[E332]: None in row 1, column `y` of the facts for `edge` is not a symbol"),
        ("edge", [(1, b"a")], "error[E332]: b'a' in row 1, column `y` of the facts for `edge` is not a symbol"),
        ("edge", [(1, "\ud800")], "error[E332]: '\\ud800' in row 1, column `y` of the facts for `edge` is not a symbol"),
        ("edge", [(2**63, "a")], "error[E332]: 9223372036854775808 in row 1, column `x` of the facts for `edge` is not a number"),
        ("weight", [(float("nan"),)], "error[E332]: nan in row 1, column `x` of the facts for `weight` is not a float"),
        ("weight", [("1",)], "error[E332]: '1' in row 1, column `x` of the facts for `weight` is not a float"),
        ("name", [("a", "b")], "error[E331]: row 1 of the facts for `name` has 2 columns, not 1"),
        ("flag", [(1,)], "error[E331]: row 1 of the facts for `flag` has 1 column, not 0"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit(name: str, given: Iterable[Any], told: str) -> None:
    assert complaint(name, given) == told


def test_numbers_out_of_range() -> None:
    for value in (-1, 2**64):
        assert complaint("small", [(value,)]).startswith(
            f"error[E332]: {value} in row 1, column `x` of the facts for `small`"
        )
    assert complaint("weight", [(10**400,)]).startswith("error[E332]: 1000000000")


@pytest.mark.parametrize(
    ("name", "columns", "told"),
    [
        ("edge", {"x": [None, 1], "y": ["a", "b"]},
         "error[E313]: NULL in row 1, column 1 (`x`)\n --> the facts for `edge`\n  = note: a fact has a value in every column"),
        ("edge", {"x": [1, 2], "y": ["a", None]},
         "error[E313]: NULL in row 2, column 2 (`y`)\n --> the facts for `edge`\n  = note: a fact has a value in every column"),
        ("edge", {"x": [1.5], "y": ["a"]},
         ("error[E314]: column 1 (`x`) is of the Arrow type `double`, but the column is `number`\n --> the facts for `edge`\n"
         "  = note: a `number` is read from integer columns and decimals without a fraction")),
        ("edge", {"x": [1], "y": [2]},
         ("error[E314]: column 2 (`y`) is of the Arrow type `int64`, but the column is `symbol`\n --> the facts for `edge`\n"
         "  = note: a `symbol` is read from string columns, also large or dictionary-encoded ones")),
        ("edge", {"x": [1]},
         "error[E315]: column `y` of `edge` is missing\n --> the facts for `edge`\n  = note: the columns here: `x`"),
        ("edge", {"x": [1], "y": ["a"], "z": [1]},
         "error[E316]: `z` is not a column of `edge`\n --> the facts for `edge`\n  = note: its columns: `x`, `y`"),
        ("small", {"x": [3, -1]},
         "error[E308]: `-1` in row 2, column 1 (`x`) is negative, but the column is `unsigned`\n --> the facts for `small`"),
        ("weight", {"x": [float("nan")]},
         ("error[E309]: NaN in row 1, column 1 (`x`)\n --> the facts for `weight`\n"
         "  = note: a `float` is a number or an infinity; NaN is never stored")),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit(name: str, columns: dict[str, list[Any]], told: str) -> None:
    assert complaint(name, pa.table(columns)) == told


def test_frames_that_do_not_fit() -> None:
    assert "NULL in row 2, column 1 (`x`)" in complaint("edge", pl.DataFrame({"x": [1, None], "y": ["a", "b"]}))
    assert "of the Arrow type `double`" in complaint("edge", pd.DataFrame({"x": [1, None], "y": ["a", "b"]}))
    assert "column `x` of `edge` is missing" in complaint("edge", pd.DataFrame(COLUMNS).set_index("x"))


def test_all_relations_are_reported_at_once_and_ten_rows_of_each() -> None:
    with pytest.raises(DataError) as raised:
        PROGRAM.materialise({"edge": [(1,)] * 30, "name": [1], "nam": [], "small": [1]})
    told = [problem.kind.label for problem in raised.value.problems]
    assert told == ["E331"] * 10 + ["E332", "E330"]


@pytest.mark.parametrize(
    ("name", "help_"),
    [("egde", "\n  = help: did you mean `edge`?"), ("unrelated", ""), ("known#1", "\n  = help: did you mean `known`?")],
)
def test_no_such_relation(name: str, help_: str) -> None:
    assert complaint(name, []) == f"error[E330]: the program has no relation `{name}`{help_}"


@pytest.mark.parametrize("given", ["edge.facts", b"x", 5, COLUMNS, pl.DataFrame(COLUMNS).lazy()])
def test_what_are_no_facts_at_all(given: Any) -> None:
    with pytest.raises(
        TypeError,
        match=f"the facts for `edge` are of type {type(given).__name__}: give rows, Arrow, pandas, polars or a Spark",
    ):
        PROGRAM.materialise({"edge": given})


@pytest.mark.parametrize("dictionary", [False, True])
def test_texts_are_utf_8(dictionary: bool) -> None:
    with pytest.raises(DataError) as caught:
        PROGRAM.materialise({"name": pa.table({"x": not_utf8(dictionary=dictionary)})})
    assert str(caught.value).startswith(
        "error[E333]: byte 2 of the text in row 2, column 1 (`x`) is not valid UTF-8\n --> the facts for `name`\n"
    )


def test_a_wrong_text_that_no_row_has_does_no_harm() -> None:
    texts = not_utf8(dictionary=True)
    used = pa.DictionaryArray.from_arrays(pa.array([0, 2], pa.int32()), texts.dictionary)
    assert facts("name", pa.table({"x": used})) == {("a",), ("c",)}


@pytest.mark.parametrize("type_", [pl.Categorical, pl.Enum(["<a:b>", "<a:c>"])])
def test_categories_of_polars_are_texts(type_: Any) -> None:
    frame = pl.DataFrame({"x": pl.Series(["<a:c>", "<a:b>", "<a:c>"], dtype=type_)})
    for column in ("symbol", "term"):
        with Program.parse(f".decl c(x:{column})").materialise({"c": frame}, engine="memory") as made:
            assert sorted(made["c"]) == [("<a:b>",), ("<a:c>",)]
