"""The language means what its description says: texts and the typed rules that come of them."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from evermat.language.builtins import Type
from evermat.language.model import Program
from tests.support.golden import cases, compile_file, compile_text

DECLARATIONS = """
.decl a(x:number)
.decl b(x:number)
.decl c(x:number)
.decl e(x:number, y:number)
.decl s(x:symbol)
.decl f(x:float)
.decl u(x:unsigned)
.decl t(x:term)
.decl yes()
"""


def rules(text: str, *, declarations: str = DECLARATIONS) -> list[str]:
    """The rules of a program after the passes, as texts."""
    return [str(rule) for rule in compile_text(declarations + textwrap.dedent(text)).rules]


def facts(text: str, relation: str, *, declarations: str = DECLARATIONS) -> list[tuple[object, ...]]:
    return compile_text(declarations + text).facts.get(relation, [])


def test_core_programs_compile():
    assert len(cases("souffle")) >= 12


@pytest.mark.parametrize("path", cases("souffle"), ids=lambda path: path.stem)
def test_programs_in_the_core_dialect_compile(path: Path):
    program = compile_file(path)
    assert program.rules
    assert program.outputs


# --- precedence --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "grouped"),
    [
        ("x + y * 2", "(x + (y * 2))"),
        ("x - y - 1", "((x - y) - 1)"),
        ("x / y / 2", "((x / y) / 2)"),
        ("x ^ y ^ 2", "(x ^ (y ^ 2))"),
        ("-x ^ 2", "-((x ^ 2))"),
        ("2 ^ -x", "(2 ^ -(x))"),
        ("2 ^ -x ^ y * 3", "((2 ^ -((x ^ y))) * 3)"),
        ("-x * y", "(-(x) * y)"),
        ("- - x", "-(-(x))"),
        ("(x + y) * 2", "((x + y) * 2)"),
        ("x % 2 + 1", "((x % 2) + 1)"),
        ("x band y bor 1", "((x band y) bor 1)"),
        ("x bor y band 1", "(x bor (y band 1))"),
        ("x bxor y bor 1", "((x bxor y) bor 1)"),
        ("x land y lor 1", "((x land y) lor 1)"),
        ("x bshl 1 + y", "(x bshl (1 + y))"),
        ("x band y bshr 1", "(x band (y bshr 1))"),
        ("bnot x band y", "(bnot(x) band y)"),
        ("min(x, y, 1)", "min(x, y, 1)"),
        ("max(x + 1, y)", "max((x + 1), y)"),
    ],
)
def test_operators_bind_as_in_souffle(expression: str, grouped: str):
    assert rules(f"a(z) :- e(x, y), z = {expression}.") == [f"a(z) :- e(x, y), z = {grouped}."]


def test_a_sign_before_a_number_is_part_of_it():
    assert rules("a(x) :- a(x), x > -3.") == ["a(x) :- a(x), x > -3."]


def test_comma_binds_tighter_than_semicolon():
    assert rules("a(x) :- b(x), c(x) ; e(x, _).") == ["a(x) :- b(x), c(x).", "a(x) :- e(x, _)."]


def test_parentheses_distribute():
    assert rules("a(x) :- (b(x) ; c(x)), e(x, x).") == ["a(x) :- b(x), e(x, x).", "a(x) :- c(x), e(x, x)."]


# --- negation ----------------------------------------------------------------------------------------------


def test_negated_conjunction_is_de_morgan():
    assert rules("a(x) :- b(x), !(c(x), x > 1).") == ["a(x) :- b(x), !c(x).", "a(x) :- b(x), x <= 1."]


def test_negated_disjunction_is_de_morgan():
    assert rules("a(x) :- b(x), !(c(x) ; x = 1).") == ["a(x) :- b(x), !c(x), x != 1."]


def test_double_negation_is_none():
    assert rules("a(x) :- !!b(x).") == ["a(x) :- b(x)."]


@pytest.mark.parametrize(
    ("test", "negated"),
    [("x = 1", "x != 1"), ("x < 1", "x >= 1"), ("x <= 1", "x > 1"), ("x != 1", "x = 1"), ("x >= 1", "x < 1")],
)
def test_negated_comparisons_turn_round(test: str, negated: str):
    assert rules(f"a(x) :- b(x), !({test}).") == [f"a(x) :- b(x), {negated}."]


def test_negated_tests_stay_tests():
    assert rules('s(x) :- s(x), !match("a.*", x), !contains("b", x).') == [
        's(x) :- s(x), !match("a.*", x), !contains("b", x).'
    ]


def test_truth_and_falsehood():
    assert rules("a(1) :- true. a(2) :- false. a(3) :- !false. a(x) :- b(x), (true ; c(x)).") == [
        "a(1) :- true.",
        "a(3) :- true.",
        "a(x) :- b(x).",
        "a(x) :- b(x), c(x).",
    ]


def test_negation_with_wildcard_asks_a_projection():
    assert rules("a(x) :- b(x), !e(x, _).") == ["a(x) :- b(x), !e[x](x).", "e[x](x) :- e(x, _)."]
    assert rules("a(x) :- b(x), !e(_, _).") == ["a(x) :- b(x), !e[]().", "e[]() :- e(_, _)."]


def test_the_same_projection_is_made_once():
    made = rules("a(x) :- b(x), !e(x, _). a(y) :- c(y), !e(y, _).")
    assert made.count("e[x](x) :- e(x, _).") == 1


# --- heads and facts ---------------------------------------------------------------------------------------


def test_several_heads_are_several_rules():
    assert rules("a(x), b(y) :- e(x, y).") == ["a(x) :- e(x, y).", "b(y) :- e(x, y)."]


def test_several_heads_in_a_fact():
    program = compile_text(DECLARATIONS + "a(1), b(2), a(3).")
    assert program.facts == {"a": [(1,), (3,)], "b": [(2,)]}


def test_facts_may_be_computed():
    assert facts('a(1 + 2 * 3). a(strlen(cat("ab", "c"))). a(-7 / 2). a(min(3, 2)).', "a") == [(7,), (3,), (-3,), (2,)]


def test_expressions_in_heads_and_bodies_become_equations():
    (rule,) = rules("e(x + 1, 2) :- e(x, y), a(y * 2).")
    assert rule == "e('1, 2) :- e(x, y), a('2), '2 = (y * 2), '1 = (x + 1)."


def test_nullary_relations():
    assert rules("yes() :- a(1), !b(2). a(3) :- yes().") == ["yes() :- a(1), !b(2).", "a(3) :- yes()."]
    assert facts("yes().", "yes") == [()]


def test_equations_bind_either_way():
    assert rules("a(z) :- e(x, y), z = x + y.") == ["a(z) :- e(x, y), z = (x + y)."]
    assert rules("a(z) :- e(x, y), x + y = z.") == ["a(z) :- e(x, y), (x + y) = z."]


def test_equations_may_chain_in_any_order():
    assert rules("a(z) :- z = y, y = x + 1, b(x).") == ["a(z) :- z = y, y = (x + 1), b(x)."]


# --- aggregates --------------------------------------------------------------------------------------------


def test_count_without_groups():
    assert rules("a(n) :- n = count : { b(_) }.") == [
        "a#1('result) :- 'result = count : { b(_) }.",
        "a(n) :- a#1(n).",
    ]


def test_count_lists_its_groups_because_an_empty_one_is_zero():
    assert rules("e(x, n) :- b(x), n = count : { a(y), y < x }.") == [
        "e#1(x, 'result) :- b(x), 'result = count : { a(y'1), y'1 < x }.",
        "e(x, n) :- b(x), e#1(x, n).",
    ]


def test_min_takes_the_groups_that_there_are():
    made = rules(".decl m(x:number, y:number)\nm(x, n) :- b(x), n = min y : { e(x, y) }.")
    assert made == [
        "m#1(x, 'result) :- 'result = min y'1 : { e(x, y'1) }.",
        "m(x, n) :- b(x), m#1(x, n).",
    ]


def test_an_aggregate_over_one_atom_needs_no_braces():
    assert rules("a(n) :- n = count : b(_).") == rules("a(n) :- n = count : { b(_) }.")


def test_aggregates_in_expressions_and_comparisons():
    made = rules("a(n + 1) :- b(n), count : { c(_) } > n.")
    assert made[0] == "a#1('result) :- 'result = count : { c(_) }."
    assert len(made) == 2


def test_nested_aggregates():
    made = rules("a(n) :- n = max m : { b(x), m = count : { e(x, _) } }.")
    aggregates = [rule for rule in made if " : { " in rule]
    assert len(aggregates) == 2
    assert "count : { e(" in aggregates[0]
    assert "max m'1 : { a#1.rows(" in aggregates[1]


def test_alternatives_in_aggregates_get_a_relation():
    made = rules("a(n) :- n = sum x : { b(x) ; c(x) }.")
    assert sum(rule.startswith("a#1.rows(") for rule in made) == 2


def test_local_variables_of_two_aggregates_are_two():
    made = rules("a(n) :- n = count : { b(x), x > 1 }, n = count : { c(x), x > 2 }.")
    assert made[0] == "a#1('result) :- 'result = count : { b(x'1), x'1 > 1 }."
    assert made[1] == "a#2('result) :- 'result = count : { c(x'2), x'2 > 2 }."


def test_types_of_aggregates():
    program = compile_text(
        """
        .decl v(x:float) .decl k(x:number) .decl w(x:symbol)
        .decl o1(x:float) .decl o2(x:float) .decl o3(x:number) .decl o4(x:symbol)
        o1(n) :- n = sum x : { v(x) }.
        o2(n) :- n = mean x : { k(x) }.
        o3(n) :- n = count : { w(_) }.
        o4(n) :- n = max x : { w(x) }.
        """
    )
    assert [program.relations[f"o{i}#1"].types for i in (1, 2, 3, 4)] == [
        (Type.FLOAT,),
        (Type.FLOAT,),
        (Type.NUMBER,),
        (Type.SYMBOL,),
    ]


# --- equivalence relations ---------------------------------------------------------------------------------


def test_eqrel_adds_symmetry_and_transitivity():
    program = compile_text('.decl q(x:symbol, y:symbol) eqrel\nq("a", "b").')
    assert [str(rule) for rule in program.rules] == ["q(y, x) :- q(x, y).", "q(x, z) :- q(x, y), q(y, z)."]


# --- RDF names ---------------------------------------------------------------------------------------------

PREFIXES = """
.prefix ub: <http://example.org/ub#>
.prefix xsd: <http://www.w3.org/2001/XMLSchema#>
"""


def test_classes_and_properties_need_no_declaration():
    program = compile_text(PREFIXES + "ub:Person(x) :- ub:knows(x, _). ub:knows(ub:ann, <http://example.org/bob>).")
    assert [relation.types for relation in program.relations.values()] == [(Type.TERM,), (Type.TERM, Type.TERM)]
    assert program.facts == {
        "<http://example.org/ub#knows>": [("<http://example.org/ub#ann>", "<http://example.org/bob>")]
    }


def test_prefixes_count_from_their_declaration_on():
    text = ".decl edge(x:number, y:number)\n.decl a(x:number)\na(n) :- n = count:edge(1,_).\n"
    assert len(compile_text(text).rules) == 2
    later = text + ".prefix n: <http://example.org/n#>\nn:thing(n:x).\n"
    assert compile_text(later).facts == {"<http://example.org/n#thing>": [("<http://example.org/n#x>",)]}


def test_a_prefix_does_not_disturb_columns():
    program = compile_text('.prefix x: <http://example.org/x#>\n.decl r(x:symbol, y:symbol)\nr("a", "b").\nx:a(x:b).')
    assert program.facts["r"] == [("a", "b")]
    assert program.facts["<http://example.org/x#a>"] == [("<http://example.org/x#b>",)]


def test_an_undeclared_word_before_a_colon_is_no_prefix():
    assert rules("a(n) :- n = sum x:e(x,_).")[0] == "a#1('result) :- 'result = sum x'1 : { e(x'1, _) }."


def test_angle_brackets_may_be_comparisons():
    text = ".decl r(x:number, y:number, z:number, w:number)\nr(x,y,z,w) :- r(x,y,z,w), x<y,z>w."
    (rule,) = rules(text, declarations="")
    assert rule == "r(x, y, z, w) :- r(x, y, z, w), x < y, z > w."


def test_literals_of_rdf():
    text = PREFIXES + 't("x"). t("x"@en-GB). t("1"^^xsd:integer). t("s"^^xsd:string). t("y"^^<http://example.org/d>).'
    assert [value for (value,) in facts(text, "t")] == [
        '"x"',
        '"x"@en-gb',
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"s"',
        '"y"^^<http://example.org/d>',
    ]


def test_atoms_stand_for_triples_where_triples_are_mentioned():
    made = rules(PREFIXES + "ub:Person(x) :- ub:knows(x, y), triple(y, _, _).", declarations="")
    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    (rule,) = made
    head, _, body = rule.partition(" :- ")
    assert head == f"triple(x, {rdf_type}, <http://example.org/ub#Person>)"
    assert body == "triple(x, <http://example.org/ub#knows>, y), triple(y, _, _)."


def test_triples_inside_aggregates_and_negations():
    text = PREFIXES + ".decl n(x:number)\nn(k) :- triple(x, _, _), !ub:Dead(x), k = count : { ub:knows(x, _) }."
    made = rules(text, declarations="")
    assert not any("ub#Dead>(" in rule or "ub#knows>(" in rule for rule in made)


# --- declarations ------------------------------------------------------------------------------------------


def test_old_types_and_qualifiers():
    program = compile_text(
        ".number_type Id\n.symbol_type Name\n.type Plain\n"
        ".decl r(x:Id, y:Name, z:Plain) input output printsize\n.decl q(x:Id) overridable inline\n"
    )
    assert program.relations["r"].types == (Type.NUMBER, Type.SYMBOL, Type.SYMBOL)
    assert [io.relation.name for io in program.inputs] == ["r"]
    assert [io.relation.name for io in program.outputs] == ["r"]
    assert [relation.name for relation in program.sizes] == ["r"]


def test_words_after_a_declaration_are_qualifiers_only_there():
    program = compile_text(".decl btree(eqrel:number) btree\nbtree(inline) :- btree(inline), btree(1).")
    assert [str(rule) for rule in program.rules] == ["btree(inline) :- btree(inline), btree(1)."]


def test_one_declaration_for_several_relations():
    program = compile_text(".decl p, q(x:number)\n")
    assert [relation.types for relation in program.relations.values()] == [(Type.NUMBER,)] * 2


def test_inputs_of_several_relations_with_parameters():
    program = compile_text(
        '.decl A(x:number)\n.decl B(x:number)\n.input A,B(IO=file, filename="x.csv", delimiter=";", headers=true)\n'
    )
    assert [(io.relation.name, io.path, io.delimiter, io.headers) for io in program.inputs] == [
        ("A", "x.csv", ";", True),
        ("B", "x.csv", ";", True),
    ]


def test_defaults_of_inputs_and_outputs():
    program = compile_text('.decl A(x:number)\n.input A\n.output A(IO="stdout")\n.output A(rfc4180=true)\n')
    (read,) = program.inputs
    assert (read.medium, read.path, read.delimiter, read.headers, read.rfc4180) == ("file", None, "\t", False, False)
    assert [(io.medium, io.delimiter) for io in program.outputs] == [("stdout", "\t"), ("file", ",")]


def test_printsize_in_both_forms():
    program = compile_text(".decl A(x:number)\n.printsize A\n.output A(IO=stdoutprintsize)\n")
    assert [relation.name for relation in program.sizes] == ["A", "A"]
    assert not program.outputs


def test_types_subtypes_and_unions():
    program = compile_text(
        ".type City <: symbol .type Town <: symbol .type Place = City | Town .type Alias = Place\n"
        ".decl city(x:City) .decl place(x:Place) .decl alias(x:Alias) .decl name(x:symbol)\n"
        "place(x) :- city(x). alias(x) :- place(x). place(x) :- alias(x). name(x) :- place(x).\n"
        "city(x) :- city(x), place(x). city(x) :- place(x), city(x). city(as(x, City)) :- name(x).\n"
    )
    assert len(program.rules) == 7


# --- numbers, strings, texts -------------------------------------------------------------------------------


def test_number_literals():
    text = "a(0x1F). a(0b101). a(-9223372036854775808). a(9223372036854775807). a(-0)."
    assert facts(text, "a") == [(31,), (5,), (-(2**63),), (2**63 - 1,), (0,)]
    assert facts("u(18446744073709551615). u(7u). u(0xFFu). u(0b11u).", "u") == [(2**64 - 1,), (7,), (255,), (3,)]
    assert facts("f(1.5). f(2). f(1e3). f(1.5e-3). f(-0.0).", "f") == [(1.5,), (2.0,), (1000.0,), (0.0015,), (0.0,)]


def test_integers_take_the_type_that_they_are_needed_as():
    assert rules("f(x + 1) :- f(x), x < 3.")[0].count("1.0") == 1
    assert "3u" in rules("u(x) :- u(x), x < 3.")[0]


def test_escapes():
    assert facts(r's("\\ \" \' \n\t\r\b\f\v\a\0 \u00e9 \U0001F600").', "s") == [("\\ \" ' \n\t\r\b\f\v\a\0 é 😀",)]


def test_comments_may_stand_anywhere():
    text = "a /* in */ (/**/1 // to the end\n)/* over\nlines */. // last"
    assert facts(text, "a") == [(1,)]


def test_comment_signs_in_strings_are_text():
    assert facts('s("// not"). s("/* a */ comment").', "s") == [("// not",), ("/* a */ comment",)]


def test_line_ends_and_byte_order_marks():
    text = '\ufeff.decl r(x:symbol)\r\nr("a").\r\n// comment\r\nr("b").\r\n'
    assert facts(text, "r", declarations="") == [("a",), ("b",)]


def test_any_unicode_in_strings():
    assert facts('s("naïve 北京 😀 \u2028 e\u0301").', "s") == [("naïve 北京 😀 \u2028 e\u0301",)]


def test_question_marks_and_underscores_in_names():
    assert rules("a(?x) :- b(?x), c(_ignored).") == ["a(?x) :- b(?x), c(_ignored)."]


def test_everything_on_one_line():
    text = ".decl p(x:number) .decl q(x:number) .input p .output q p(1).q(x):-p(x)."
    assert rules(text, declarations="") == ["q(x) :- p(x)."]


def test_an_empty_text_is_a_program():
    assert compile_text("").rules == ()
    assert compile_text(" // nothing\n/* at all */").relations == {}


def test_functions_have_names_of_their_own_only_before_a_parenthesis():
    assert rules("a(ord) :- b(ord), c(match), match = ord.") == ["a(ord) :- b(ord), c(match), match = ord."]


# --- strata ------------------------------------------------------------------------------------------------


def strata(program: Program) -> list[tuple[str, ...]]:
    return [stratum.relations for stratum in program.strata]


def test_strata_of_a_layered_program():
    program = compile_text(
        """
        .decl edge(x:number, y:number) .decl path(x:number, y:number) .decl unreachable(x:number, y:number)
        .decl n(x:number)
        path(x, y) :- edge(x, y).
        path(x, z) :- path(x, y), edge(y, z).
        unreachable(x, y) :- edge(x, _), edge(_, y), !path(x, y).
        n(k) :- k = count : { unreachable(_, _) }.
        """
    )
    assert strata(program) == [("edge",), ("path",), ("unreachable",), ("n#1",), ("n",)]
    path = program.strata[1]
    assert [str(rule) for rule in path.nonrecursive] == ["path(x, y) :- edge(x, y)."]
    assert [str(rule) for rule in path.recursive] == ["path(x, z) :- path(x, y), edge(y, z)."]


def test_mutual_recursion_is_one_stratum():
    program = compile_text(DECLARATIONS + "a(x) :- b(x). b(x) :- a(x). b(x) :- c(x).")
    assert ("a", "b") in strata(program)
