"""The style of the house, held by reading the sources: every finding is `path:line: rule`."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "redrive"
TESTS = ROOT / "tests"

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
FORBIDDEN_NAMES = {"manager", "managers", "helper", "helpers", "util", "utils", "common", "base"}
CLOCK_AND_CHANCE = {"time", "random", "secrets"}  # modules that only the seam may import
CLOCK_CALLS = {"now", "utcnow", "today", "fromtimestamp", "uuid1", "uuid4", "urandom", "getrandom"}
CLOCK_OWNERS = {"datetime", "date", "uuid", "os", "dt"}
PURE_NAMES = {
    "struct_time",
    "Random",
}  # of those modules: they read nothing (a Random must be given its seed)
SQL = re.compile(
    r"^\s*(select\s.+\sfrom\s|select\s+\S+\(|insert\s+into\s|update\s+\S+\s+set\s|delete\s+from\s"
    r"|create\s+(unique\s+)?(table|index|function|schema|database|role|view|trigger)\s|alter\s+table\s"
    r"|drop\s+(table|index|database|schema)\s|with\s+(recursive\s+)?\w+(\s*\([^)]*\))?\s+as\s)",
    re.IGNORECASE | re.DOTALL,
)
PUBLIC_FACE_ONLY = {
    "arena",
    "proof",
}  # rooms that use `redrive` and its rooms' own faces, like any application
FACES = {"ledger", "worker", "transports", "guards", "rollout"}
MACHINE = re.compile(
    r"(?<![\w.])/(?:root|work|home/\w+|Users/\w+)/|/tmp/(?:rv|notes)\b"
    r"|\b(?:files\.pythonhosted\.org|pypi\.org/simple|registry\.npmjs\.org|deb\.debian\.org)",
)


@dataclass(frozen=True)
class Module:
    """A parsed source file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Its path from the project's root."""
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.name

    @property
    def room(self) -> str:
        """The room of the house that it stands in: `domain`, `ledger`, …"""
        return (
            self.path.relative_to(SOURCE).parts[0].removesuffix(".py")
            if self.path.is_relative_to(SOURCE)
            else ""
        )


Findings = Iterator[str]


def parse(path: Path, text: str | None = None) -> Module:
    """The module at ``path``, or of ``text`` as if it stood there."""
    source = path.read_text(encoding="utf-8") if text is None else text
    return Module(path, source, ast.parse(source, str(path)))


@cache
def sources() -> tuple[Module, ...]:
    """Every Python module of the package."""
    return tuple(parse(path) for path in sorted(SOURCE.rglob("*.py")))


@cache
def suite() -> tuple[Module, ...]:
    """Every Python module of the tests."""
    return tuple(parse(path) for path in sorted(TESTS.rglob("*.py")))


def found(rule: object, modules: tuple[Module, ...]) -> None:
    """Fail with everything that ``rule`` finds in ``modules``."""
    assert callable(rule)
    findings = [line for module in modules for line in rule(module)]
    if findings:
        pytest.fail(f"{len(findings)} findings\n" + "\n".join(findings), pytrace=False)


def at(module: Module, line: int, rule: str) -> str:
    """One finding in the form that editors jump to."""
    return f"{module.name}:{line}: {rule}"


# --- rules: each yields its findings in one module ----------------------------------------------------------


def too_long(module: Module) -> Findings:
    """Modules and functions that do not fit on a screen or a few."""
    lines = len(module.text.splitlines())
    if lines > MODULE_LINES_MAX:
        yield at(module, 1, f"module of {lines} lines, at most {MODULE_LINES_MAX}")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield at(module, node.lineno, f"{node.name} has {length} lines, at most {FUNCTION_LINES_MAX}")


def reads_clock_or_chance(module: Module) -> Findings:
    """Clocks and randomness outside the seam."""
    if module.name == "src/redrive/seams.py":
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in CLOCK_AND_CHANCE:
                    yield at(module, node.lineno, f"imports {alias.name}; use redrive.seams")
        elif isinstance(node, ast.ImportFrom) and node.module in CLOCK_AND_CHANCE | {"uuid", "os"}:
            taken = {alias.name for alias in node.names} - PURE_NAMES
            wrong = taken if node.module in CLOCK_AND_CHANCE else taken & CLOCK_CALLS
            if wrong:
                yield at(
                    module,
                    node.lineno,
                    f"imports {', '.join(sorted(wrong))} of {node.module}; use redrive.seams",
                )
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Random" and not node.args:
            yield at(module, node.lineno, "Random() without a seed; use redrive.seams, or take the seed")
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in CLOCK_CALLS
        ):
            owner = ast.unparse(node.func.value)
            pure = node.func.attr == "fromtimestamp"  # converts an instant that it is given
            if not pure and owner.rsplit(".", 1)[-1] in CLOCK_OWNERS:
                yield at(
                    module,
                    node.lineno,
                    f"{owner}.{node.func.attr}() reads a clock or chance; use redrive.seams",
                )


def holds_sql(module: Module) -> Findings:
    """SQL text in Python: it belongs into `statements/` or `migrations/`."""
    docstrings = {id(node) for node in _docstring_nodes(module.tree)}
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str | bytes)
            and id(node) not in docstrings
        ):
            text = node.value.decode("latin-1") if isinstance(node.value, bytes) else node.value
            if SQL.match(text):
                yield at(
                    module,
                    node.lineno,
                    f"SQL text {text.strip()[:40]!r}; one file an operation in statements/",
                )


def lacks_docstring(module: Module) -> Findings:
    """Modules, public classes and public functions that do not say what they are."""
    if ast.get_docstring(module.tree) is None:
        yield at(module, 1, "module without a docstring")
    yield from _undocumented(module, module.tree.body, None)


def lacks_future_annotations(module: Module) -> Findings:
    """Modules with code and without `from __future__ import annotations`."""
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.AnnAssign
    code = any(isinstance(node, definitions) for node in module.tree.body)
    future = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in module.tree.body
    )
    if code and not future:
        yield at(module, 1, "no `from __future__ import annotations`")


def leaves_for_later(module: Module) -> Findings:
    """Marks that put work off: an issue is the place for them."""
    for number, line in enumerate(module.text.splitlines(), 1):
        if re.search(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b", line):
            yield at(module, number, "puts work off; file it or do it")


def says_nothing(module: Module) -> Findings:
    """Names of modules and folders that say nothing about the domain."""
    parts = {part.removesuffix(".py") for part in module.path.relative_to(SOURCE).parts}
    for name in sorted(parts & FORBIDDEN_NAMES):
        yield at(module, 1, f"the name {name!r} says nothing")


def prints(module: Module) -> Findings:
    """Output to stdout outside the rooms that talk to a person, and pages that a command prints."""
    if module.room in {"cli", "arena", "proof"}:
        return
    main = [n for n in module.tree.body if isinstance(n, ast.If) and "__main__" in ast.unparse(n.test)]
    allowed = {id(node) for block in main for node in ast.walk(block)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "print" and id(node) not in allowed:
            yield at(module, node.lineno, "print(); log it, or return it")


def reaches_inside(module: Module) -> Findings:
    """The reference application and the harness importing what no application could."""
    if module.room not in PUBLIC_FACE_ONLY:
        return
    own = f"redrive.{module.room}"
    allowed = {"redrive", "redrive.seams", *(f"redrive.{room}" for room in FACES | PUBLIC_FACE_ONLY)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            if (
                name.split(".")[0] == "redrive"
                and name not in allowed
                and not (name + ".").startswith(own + ".")
            ):
                yield at(module, node.lineno, f"{module.room} imports {name}, which is not a public face")


def sleeps(module: Module) -> Findings:
    """Tests that sleep instead of waiting for what they need."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"time.sleep", "sleep", "asyncio.sleep"}:
            yields = node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            if not yields:
                yield at(
                    module, node.lineno, "sleeps; wait for an event with a deadline (tests.database.wait_for)"
                )


def unsaid_tests(module: Module) -> Findings:
    """Tests without the one line that says the behaviour."""
    if module.tree.body and ast.get_docstring(module.tree) is None:
        yield at(module, 1, "module without a docstring")
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_") and ast.get_docstring(node) is None:
            yield at(module, node.lineno, f"{node.name} without the line that says the behaviour")


SOURCE_RULES = [
    too_long,
    reads_clock_or_chance,
    holds_sql,
    lacks_docstring,
    lacks_future_annotations,
    leaves_for_later,
    says_nothing,
    prints,
    reaches_inside,
]
TEST_RULES = [sleeps, unsaid_tests, leaves_for_later]


def _docstring_nodes(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _undocumented(module: Module, body: list[ast.stmt], owner: ast.ClassDef | None) -> Findings:
    for node in body:
        if not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None and not _speaks_elsewhere(node, owner):
            name = f"{owner.name}.{node.name}" if owner else node.name
            yield at(module, node.lineno, f"{name} without a docstring")
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(module, node.body, node)


def _speaks_elsewhere(node: ast.stmt, owner: ast.ClassDef | None) -> bool:
    """Whether a definition is documented without a docstring of its own.

    An overload or setter by its main definition, a protocol's field by its class, a method by the protocol or
    base that promises it.
    """
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    decorators = {ast.unparse(decorator).rsplit(".", 1)[-1] for decorator in node.decorator_list}
    if decorators & {"overload", "setter"}:
        return True
    if owner is None:
        return False
    field = "property" in decorators and ast.unparse(node.body[-1]) == "..."
    return (field and ast.get_docstring(owner) is not None) or any(
        node.name in methods
        for name, methods in _promises().items()
        if name in _bases(owner) or name.startswith("Protocol ")
    )


@cache
def _promises() -> dict[str, set[str]]:
    """The documented methods of every class of the package, by the class's name; protocols are marked."""
    promises: dict[str, set[str]] = {}
    for module in sources():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                methods = {
                    item.name
                    for item in node.body
                    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(item)
                }
                mark = "Protocol " if "Protocol" in _bases(node) else ""
                promises.setdefault(mark + node.name, set()).update(methods)
    return promises


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).split("[")[0].rsplit(".", 1)[-1] for base in node.bases}


def _tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    if listing.returncode != 0:
        pytest.skip("not a git work tree: which files are the project's is not known")
    return [path for line in listing.stdout.splitlines() if (path := ROOT / line).is_file()]


# --- the tests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", SOURCE_RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_the_style(rule: object) -> None:
    """No module of the package breaks the rule."""
    found(rule, sources())


@pytest.mark.parametrize("rule", TEST_RULES, ids=lambda rule: rule.__name__)
def test_the_tests_keep_the_style(rule: object) -> None:
    """No module of the tests breaks the rule."""
    found(rule, tuple(module for module in suite() if module.path != Path(__file__).resolve()))


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (too_long, '"""A."""\n' + "x = 1\n" * 400),
        (too_long, "def f():\n" + "    x = 1\n" * 60),
        (reads_clock_or_chance, "import time\n"),
        (reads_clock_or_chance, "from time import monotonic\n"),
        (reads_clock_or_chance, "import datetime\nx = datetime.datetime.now()\n"),
        (reads_clock_or_chance, "from random import Random\nx = Random()\n"),
        (reads_clock_or_chance, "import uuid\nx = uuid.uuid4()\n"),
        (reads_clock_or_chance, "import os\nx = os.urandom(4)\n"),
        (holds_sql, "x = 'select id from jobs'\n"),
        (holds_sql, "x = f'INSERT INTO {1} VALUES (1)'\n"),
        (holds_sql, "x = '''\n  with due as (select 1) delete'''\n"),
        (lacks_docstring, "x = 1\n"),
        (lacks_docstring, '"""A."""\nclass A:\n    """A."""\n    def f(self): ...\n'),
        (lacks_future_annotations, "x: int = 1\n"),
        (leaves_for_later, "x = 1  # TO" + "DO\n"),
        (prints, "print(1)\n"),
        (sleeps, "import time\ntime.sleep(1)\n"),
        (unsaid_tests, '"""A."""\ndef test_a(): ...\n'),
    ],
)
def test_each_rule_can_fail(rule: object, text: str) -> None:
    """The control of the rules: each finds the fault that is made for it."""
    assert callable(rule)
    assert list(rule(parse(SOURCE / "domain" / "made_up.py", text)))


def test_names_and_faces_can_fail() -> None:
    """The control of the two rules that read the path: a nameless module, an arena that reaches inside."""
    assert list(says_nothing(parse(SOURCE / "domain" / "helpers.py", "")))
    assert list(
        reaches_inside(parse(SOURCE / "arena" / "x.py", "from redrive.storage.sqlite import Engine\n"))
    )
    assert not list(
        reaches_inside(parse(SOURCE / "arena" / "x.py", "from redrive.arena.money import cents\n"))
    )


def test_no_file_names_a_machine() -> None:
    """No path of somebody's machine and no registry's address stands in the project's files."""
    findings = []
    for path in _tracked():
        if path == Path(__file__).resolve() or path.suffix in {".png", ".ico", ".woff2", ".gz"}:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if match := MACHINE.search(line):
                findings.append(
                    f"{path.relative_to(ROOT)}:{number}: names a machine or a registry: {match[0]}"
                )
    assert not findings, "\n".join(findings[:50])
    assert MACHINE.search("see /ro" + "ot/.cache and more"), "the control: the pattern finds one"


def test_every_statement_says_its_purpose() -> None:
    """Each statement file begins with comment lines, and one of them is its purpose."""
    findings = []
    for path in sorted(SOURCE.rglob("statements/**/*.sql")):
        head = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith("--"):
                break
            head.append(line)
        if not any(line.startswith("-- purpose:") for line in head):
            findings.append(f"{path.relative_to(ROOT)}:1: no `-- purpose:` in its header")
    assert not findings, "\n".join(findings)


def test_every_error_code_is_in_the_docs() -> None:
    """Each code of the taxonomy is explained on a page of docs/."""
    page = ROOT / "docs" / "contract.md"
    if not page.exists():
        pytest.skip("docs/contract.md is not generated yet")
    text = page.read_text(encoding="utf-8")
    taxonomy = parse(SOURCE / "domain" / "errors.py").text
    codes = set(re.findall(r'"([A-Z]+(?:_[A-Z]+)*)",\s*\d{3}', taxonomy)) | {"INTERNAL"}
    assert len(codes) > 10, "the taxonomy's codes were not found in domain/errors.py"
    missing = sorted(code for code in codes if f"`{code}`" not in text)
    assert not missing, f"docs/contract.md: does not explain {', '.join(missing)}"
