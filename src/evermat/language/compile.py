"""From text to program: parse, declare, check, type, rewrite, stratify. All errors are reported at once."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock

from evermat.core import Problem, Problems, ProgramError, Source, Span
from evermat.core import error_catalogue as errors
from evermat.language.analysis.declarations import Names
from evermat.language.analysis.declared_types import Types
from evermat.language.analysis.flatten import lower
from evermat.language.analysis.safety import check_safety, note_singletons
from evermat.language.analysis.strata import stratify
from evermat.language.analysis.term_constants import check_terms
from evermat.language.analysis.type_inference import LITERAL_TYPES, type_rule, typed_constant
from evermat.language.builtins import evaluate
from evermat.language.model import Apply, Constant, Expression, Program, Row, Rule, Test, Variable
from evermat.language.rewrites import PASSES
from evermat.language.syntax.ast import Clause, Literal, TypeDeclaration, Unread
from evermat.language.syntax.parser import parse
from evermat.language.terms import Value

_STANDARD_INPUT = "-"


def read_source(path: str | Path) -> Source:
    """The text of a program in a file, or `-` for standard input.

    Raises:
        ProgramError: the file cannot be read.
    """
    standard = str(path) == _STANDARD_INPUT
    try:
        data = sys.stdin.buffer.read() if standard else Path(path).read_bytes()
    except (OSError, ValueError) as error:  # the latter for a name that no file can have
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise ProgramError(Problem(errors.UNREADABLE, {"path": str(path), "why": why})) from None
    path = "<stdin>" if standard else path
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        source = Source(str(path), before + "�")
        details = {"path": str(path), "byte": error.start + 1}
        span = Span(len(before), len(before) + 1)
        raise ProgramError(Problem(errors.NOT_UTF8, details, source, span)) from None
    return Source(str(path), text)


def compile_program(source: Source, *, checked: bool = False) -> Program:
    """The program of a text.

    Args:
        source: the text.
        checked: whether constants that are not RDF terms are accepted: the text was saved, or made, by Evermat.

    Raises:
        ProgramError: with all errors of the text.
    """
    problems = Problems(source)
    with collector_paused():
        program = typed_program(
            source, problems, checked=len(source.text) * checked
        )  # without what is wrong: the rest is checked all the same
        finished = finish(program, problems)
        problems.raise_if_any()
        return finished


_pause = Lock()  # held by the thread that has paused the collector; no other waits for it


@contextmanager
def collector_paused() -> Iterator[None]:
    """A large program is many small objects that all stay: looking for garbage among them costs a quarter.

    The collector is the process's. A pause that began in another thread is used as long as it lasts, and not made longer: else there would be no
    end of it while threads compile one program after the other.
    """
    if not _pause.acquire(blocking=False):
        yield
        return
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
        _pause.release()


def finish(program: Program, problems: Problems) -> Program:
    """A typed program, rewritten and stratified."""
    for rewrite in PASSES:
        program = rewrite(program, problems)
    strata = stratify(program, problems)
    return replace(program, strata=strata, warnings=tuple(problems.warnings))


def typed_program(source: Source, problems: Problems, *, checked: int = 0) -> Program:
    """The program as written, with names and types known but not yet rewritten or stratified.

    As many characters as are `checked` may have constants that are not RDF terms.
    """
    statements = parse(source, problems)
    if checked < len(source.text):
        check_terms(statements, problems, checked)
    types = Types([s for s in statements if isinstance(s, TypeDeclaration | Unread)], problems)
    names = Names(statements, types, problems)
    facts: dict[str, list[Row]] = {}
    rules: list[Rule] = []
    for clause in names.clauses:
        _compile_clause(names.resolve(clause), names, types, facts, rules, problems)
    return Program(
        source=source,
        relations=names.relations,
        rules=tuple(rules),
        written=tuple(rules),
        facts=facts,
        inputs=tuple(names.inputs),
        outputs=tuple(names.outputs),
        sizes=tuple(names.sizes),
        equality=names.equality,
    )


def _compile_clause(
    clause: Clause, names: Names, types: Types, facts: dict[str, list[Row]], rules: list[Rule], problems: Problems
) -> None:
    if clause.body is None and all(isinstance(a, Literal) for head in clause.heads for a in head.arguments):
        for head in clause.heads:
            columns = names.relations[head.name.text].columns
            pairs = zip(head.arguments, columns, strict=True)
            if all(isinstance(a, Literal) and LITERAL_TYPES[a.kind] & column.type for a, column in pairs):
                row = [typed_constant(a, c.type, problems) for a, c in zip(head.arguments, columns, strict=True)]  # type: ignore[arg-type]
                if None not in row:
                    facts.setdefault(head.name.text, []).append(tuple(c.value for c in row if c is not None))
                continue
            _compile_rules(Clause([head], None, clause.span), names, types, facts, rules, problems)
        return
    _compile_rules(clause, names, types, facts, rules, problems)
    note_singletons(clause, problems)


def _compile_rules(
    clause: Clause, names: Names, types: Types, facts: dict[str, list[Row]], rules: list[Rule], problems: Problems
) -> None:
    for flat in lower(clause, problems):
        if not check_safety(flat, problems):
            continue
        rule = type_rule(flat, names.relations, types, problems)
        if rule is None:
            continue
        if clause.body is None and all(isinstance(literal, Test) for literal in rule.body):
            _add_fact(rule, facts, problems)
        else:
            rules.append(rule)


def _add_fact(rule: Rule, facts: dict[str, list[Row]], problems: Problems) -> None:
    """A fact with computed values: the body is a list of equations for them."""
    values: dict[str, Value] = {}
    for equation in rule.body:
        assert isinstance(equation, Test)
        assert isinstance(equation.left, Variable)
        value = fold(equation.right, values)
        if value is None:
            text = str(equation.right)
            shown = text[1:-1] if text.startswith("(") else text
            problems.add(errors.NO_VALUE, rule.span, expression=shown)
            return
        values[equation.left.name] = value
    row = [fold(term, values) for term in rule.head.terms]  # type: ignore[arg-type]
    facts.setdefault(rule.head.relation.name, []).append(tuple(v for v in row if v is not None))


def fold(expression: Expression, values: dict[str, Value]) -> Value | None:
    """The value of an expression, or None where it has none."""
    match expression:
        case Constant(value):
            return value
        case Variable(name):
            return values[name]
        case Apply(function, arguments, operands, type_):
            found = [fold(argument, values) for argument in arguments]
            known = [value for value in found if value is not None]
            return evaluate(function, operands, known, type_) if len(known) == len(found) else None
