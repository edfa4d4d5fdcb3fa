"""How the time to load ontologies grows with the number of files that import each other: ``python -m bench.imports``.

Generated ontologies in RDF/XML, each with 25 classes and 5 properties, entities, and imports of up to 12 of the files before it, found through one
catalogue; the last file imports, by others, all of them. Each size is translated in processes of its own, the best of five by CPU: the whole job, of it
loading (finding, reading and joining the files), and of that reading the triples of the same files alone.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.environment import environment
from bench.report import preamble, save, table
from bench.scaling import RESULTS

SIZES = (125, 250, 500, 1000)
QUICK = (25, 50)
RUNS = 5  # by turns, so that other work on the machine meets all sizes
MOST = 2.3  # times as long, for twice the files
_HEAD = """<?xml version='1.0'?>
<!DOCTYPE rdf:RDF [<!ENTITY owl 'http://www.w3.org/2002/07/owl#'> <!ENTITY o 'http://example.org/o/'>]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
  xmlns:owl="http://www.w3.org/2002/07/owl#">
"""


def generate(folder: Path, count: int) -> Path:
    """Writes the files and their catalogue; the file that imports all others is returned."""
    rng = random.Random(count)
    places = []
    for number in range(count):
        before = {number - 1, *(rng.randrange(number) for _ in range(min(number, 11)))} if number else set()
        lines = [f'<owl:Ontology rdf:about="&o;{number}/">']
        lines += [f'<owl:imports rdf:resource="&o;{other}/"/>' for other in sorted(before)]
        lines.append("</owl:Ontology>")
        for i in range(25):
            other = rng.choice([*before, number])
            lines.append(
                f'<owl:Class rdf:about="&o;{number}/C{i}"><rdfs:label xml:lang="en">class {i}</rdfs:label>'
                f'<rdfs:subClassOf rdf:resource="&o;{other}/C{rng.randrange(25)}"/></owl:Class>'
            )
        for i in range(5):
            lines.append(
                f'<owl:ObjectProperty rdf:about="&o;{number}/p{i}"><rdfs:domain rdf:resource="&o;{number}/C{i}"/></owl:ObjectProperty>'
            )
        (folder / f"ontology-{number}.rdf").write_text(_HEAD + "\n".join(lines) + "\n</rdf:RDF>\n", encoding="utf-8")
        places.append(f'<uri name="http://example.org/o/{number}/" uri="ontology-{number}.rdf"/>')
    catalog = '<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">\n' + "\n".join(places) + "\n</catalog>\n"
    (folder / "catalog-v001.xml").write_text(catalog, encoding="utf-8")
    return folder / f"ontology-{count - 1}.rdf"


def measure(path: Path) -> dict[str, float]:
    """CPU seconds of one process: for the whole translation, for loading, and for reading the files alone."""
    from evermat.io import read_triples
    from evermat.owl.load import load
    from evermat.owl.translation import translate

    files = sorted(path.parent.glob("*.rdf"))
    read_triples(path)  # imports are done
    began = time.process_time()
    for file in files:
        read_triples(file)
    read = time.process_time()
    loaded = load([path], base=None, imports="require", blank="n")
    loading = time.process_time()
    assert len(loaded.files) == len(files)
    translation = translate([path])
    done = time.process_time()
    assert len(translation.rules) > len(files)
    return {"translate": done - loading, "load": loading - read, "read": read - began}


def run(sizes: Sequence[int]) -> dict[int, dict[str, float]]:
    """For each size the best of some processes."""
    found: dict[int, list[dict[str, float]]] = {count: [] for count in sizes}
    with tempfile.TemporaryDirectory() as name:
        paths = {}
        for count in sizes:
            folder = Path(name, str(count))
            folder.mkdir()
            paths[count] = generate(folder, count)
        for _ in range(RUNS):
            for count, path in paths.items():
                command = [sys.executable, "-m", "bench.imports", "--measure", str(path)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found[count].append(json.loads(output))
    return {count: {key: round(min(one[key] for one in each), 3) for key in each[0]} for count, each in found.items()}


def main() -> int:
    """Measures, saves, prints; exit code 1 if twice the files take more than 2.3 times as long to load, or to translate."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
        return 0
    quick = "--quick" in sys.argv[1:]
    measured = run(QUICK if quick else SIZES)
    rows, grown = [["files", "load, s", "times as long", "of it reading, s", "translate, s", "times as long"]], [1.0]
    before: dict[str, float] | None = None
    for count, found in measured.items():
        times = {key: "" if before is None else f"{found[key] / before[key]:.2f}" for key in found}
        grown += [float(times["load"]), float(times["translate"])] if before else []
        cells = (f"{found['load']:.2f}", times["load"], f"{found['read']:.2f}", f"{found['translate']:.2f}")
        rows.append([f"{count:,}", *cells, times["translate"]])
        before = found
    around: dict[str, Any] = environment([], "python -m bench.imports" + " --quick" * quick)
    text = "\n\n".join(["# Ontologies that import each other, CPU seconds", preamble(around), table(rows)]) + "\n"
    if not quick:
        save(RESULTS, "imports", around | {"measured": measured}, [], text)
    print(text)
    return int(max(grown) > MOST)


if __name__ == "__main__":
    sys.exit(main())
