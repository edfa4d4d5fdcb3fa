"""The reference of the Python API, made from docstrings: `python -m tools.generate_api_page FOLDER`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import evermat
from evermat import core, language
from evermat.core.choices import CHOICES
from evermat.io.rdf.writer import Written
from evermat.owl import translation
from evermat.runtime.streams.stream import Follower

_SECTIONS = {
    "Programs": ["Program", "ProgramOptions", "translate", "Translation"],
    "Materialisations": [
        "Materialisation",
        "Snapshot",
        "Relation",
        "Answer",
        "Change",
        "Changes",
        "ChangedFacts",
        "PhaseTimer",
    ],
    "State directories": ["open", "query", "versions", "changes", "vacuum", "migrate", "Version"],
    "Terms": ["Term", "iri", "literal", "blank_node"],
    "Streams": ["StreamedUpdate", "AnyUpdate", "FolderStream", "register_source"],
    "Errors": [
        "EvermatError",
        "ProgramError",
        "ArgumentError",
        "DataError",
        "LimitError",
        "StateError",
        "ResourceError",
        "SandboxError",
        "UnknownRelationError",
        "Problem",
    ],
    "Types": [
        "MaterialiseAlgorithm",
        "UpdateAlgorithm",
        "Placement",
        "SavedPositions",
        "SchemePolicy",
        "KeptCounters",
        "Entailment",
        "EqualityMode",
        "Inconsistency",
        "AnswerFormat",
        "Which",
    ],
}
#: types of values that functions return or take, and that users need not name: by the names that signatures have for them
DESCRIBED: dict[str, type] = {
    "CompiledProgram": language.Program,
    "Stratum": language.Stratum,
    "RelationSchema": language.Relation,
    "Rule": translation.Rule,
    "HelperRelation": translation.HelperRelation,
    "Note": translation.Note,
    "NoteGroup": translation.NoteGroup,
    "Written": Written,
    "Follower": Follower,
    "Kind": core.Kind,
    "Source": core.Source,
    "Span": core.Span,
}
_HEADING = re.compile(r"(Args|Attributes|Returns|Raises|Yields):")
_ITEM = re.compile(r" {4}(\*{0,2}\w+): (.*)")


def api_page() -> str:
    """The page: a section for every kind of public name.

    Raises:
        ValueError: a public name has no section.
    """
    listed = [name for names in _SECTIONS.values() for name in names]
    if sorted(listed) != sorted(evermat.__all__):
        raise ValueError(f"in a section or public, but not both: {set(listed) ^ set(evermat.__all__)}")
    lines = [
        "# Python API",
        "",
        "`import evermat` has every name on this page; no other name is public.",
        "`make docs` makes the page from the docstrings.",
    ]
    described: dict[Any, str] = {}
    for title, names in _SECTIONS.items():
        lines += ["", f"## {title}"]
        for name in names:
            lines += ["", f"### `{name}`", "", *_entry(name, getattr(evermat, name), described)]
    lines += ["", "## Other types", "", "Values of these types occur; the names are not public."]
    for name, class_ in DESCRIBED.items():
        fields = ", ".join(f"`{one}`" for one in public_fields(class_))
        text = (inspect.getdoc(class_) or "").partition("\n\n>>> ")[0]  # examples need names that are not public
        lines += ["", f"### `{name}`", "", *_text(text)]
        if fields and "Attributes:" not in (class_.__doc__ or ""):
            lines += ["", f"Attributes: {fields}."]
    return "\n".join(lines) + "\n"


def public_fields(class_: type) -> list[str]:
    """The names of the public fields of a dataclass or a named tuple."""
    return [name for name in inspect.get_annotations(class_) if not name.startswith("_")]


def public_members(class_: type) -> list[tuple[str, Any]]:
    """The methods and properties of a class that users call, its own and those of Evermat's base classes."""
    found: dict[str, Any] = {}
    for base in class_.__mro__:
        if base.__module__.startswith("evermat."):
            for name, value in vars(base).items():
                if not name.startswith("_") and name not in found and _is_member(value):
                    found[name] = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    return list(found.items())


def _is_member(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, property | cached_property | classmethod | staticmethod)


def _entry(name: str, thing: Any, described: dict[Any, str]) -> Iterator[str]:
    """The lines about one public name; members that several classes share are `described` once."""
    if get_origin(thing) is Literal:
        (choices,) = [one for one in CHOICES.values() if one.type is thing]
        yield from (f"- `{one!r}`: {meaning}." for one, meaning in choices.meanings.items())
        if choices.names != get_args(thing):
            raise ValueError(f"{name} and its table differ")
    elif inspect.isclass(thing):
        yield from _class(name, thing, described)
    elif inspect.isfunction(thing):
        yield from _function(f"evermat.{name}", thing)
    else:
        yield "An update of a stream: an `evermat.StreamedUpdate`, a mapping with `insert` and `delete`, or both as a pair."


def _class(name: str, class_: type, described: dict[Any, str]) -> Iterator[str]:
    if "__init__" in vars(class_) and inspect.getdoc(class_.__init__) not in {None, inspect.getdoc(object.__init__)}:
        yield from _signature(name, class_.__init__)
    yield from _text(inspect.getdoc(class_) or "")
    init = vars(class_).get("__init__")
    if init is not None and init.__doc__ and "Args:" in init.__doc__:
        text = inspect.getdoc(init) or ""
        yield from ("", *_text(text[text.index("Args:") :]))
    shared = []
    for member, value in public_members(class_):
        if value in described:
            shared.append(described[value])
            continue
        described[value] = f"{name}.{member}"
        yield ""
        if inspect.isfunction(value):
            yield f"#### `{name}.{member}`"
            yield ""
            yield from _function(member, value)
        else:
            yield f"#### `{name}.{member}` (property)"
            yield ""
            yield from _text(inspect.getdoc(value) or "")
    if shared:
        yield ""
        yield f"As described above: {', '.join(f'`{one}`' for one in shared)}."


def _function(name: str, function: Any) -> Iterator[str]:
    yield from _signature(name, function)
    yield from _text(inspect.getdoc(function) or "")


def _signature(name: str, function: Any) -> Iterator[str]:
    """A call with all parameters, one a line if they do not fit on one."""
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.name not in {"self", "cls"}]
    plain = signature.replace(parameters=own, return_annotation=signature.empty)
    result = "" if signature.return_annotation in {signature.empty, None} else f" -> {signature.return_annotation}"
    short = f"{name}{_unquoted(str(plain))}{result}"
    yield "```python"
    if len(short) <= 100:
        yield short
    else:
        yield f"{name}("
        star = False
        for parameter in own:
            if parameter.kind is parameter.KEYWORD_ONLY and not star:
                star = True
                yield "    *,"
            yield f"    {_unquoted(str(parameter))},"
        yield f"){result}"
    yield "```"
    yield ""


def _unquoted(text: str) -> str:
    """A signature without the quotation marks of annotations, and without addresses of functions."""
    text = re.sub(r"<function .*? at 0x[0-9a-f]+>", "…", text)
    return re.sub(r""": (?:'([^']*)'|"([^"]*)")""", lambda found: f": {found[1] or found[2]}", text)


def _text(docstring: str) -> Iterator[str]:
    """A docstring as Markdown: one sentence a line, lists of parameters, examples as code."""
    lines = docstring.splitlines()
    i = 0
    while i < len(lines):
        line = lines[i]
        if _HEADING.fullmatch(line):
            i += 1
            block = []
            while i < len(lines) and (
                lines[i].startswith("    ") or (not lines[i] and i + 1 < len(lines) and lines[i + 1].startswith("    "))
            ):
                block.append(lines[i])
                i += 1
            yield f"**{line}**"
            yield ""
            yield from _items(block)
        elif line.startswith((">>> ", "    ")):
            yield "```python"
            example = line.startswith(">>> ")
            while i < len(lines) and lines[i] and (example or lines[i].startswith("    ")):
                yield lines[i] if example else lines[i][4:]
                i += 1
            yield "```"
        elif not line:
            yield ""
            i += 1
        else:
            paragraph = []
            while i < len(lines) and lines[i] and not lines[i].startswith(">>> "):
                paragraph.append(lines[i].strip())
                i += 1
            yield from _sentences(" ".join(paragraph))


def _items(block: list[str]) -> Iterator[str]:
    """The entries of `Args:` and its like, each as an item of a list."""
    found: list[str] = []
    for line in block:
        item = _ITEM.fullmatch(line)
        if item:
            found.append(f"- `{item[1]}`: {item[2]}")
        elif found and line.startswith("     "):
            found[-1] += f" {line.strip()}"
        elif line:
            found.append(line.strip())
    for entry in found:
        first, *rest = _sentences(entry)
        yield first
        yield from (f"  {sentence}" if entry.startswith("- ") else sentence for sentence in rest)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) (?=[A-Z`])", text)


if __name__ == "__main__":
    Path(sys.argv[1], "api.md").write_text(api_page(), encoding="utf-8")
