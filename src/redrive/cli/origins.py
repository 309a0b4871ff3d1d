"""Where settings come from: flag, then ``REDRIVE_<NAME>``, then ``redrive.toml``, then the default."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from redrive.cli.failures import USAGE, Refusal
from redrive.cli.settings import DEFAULTS, FROM_FILE, PREFIX, TYPES, BadValue, Settings, read, variables

CONFIG_FILE: Final = "redrive.toml"
SECRET_FILE_BYTES_MAX: Final = 64 * 1024
_FLAGS: Final = {"timeout_seconds": "timeout", "api_key": "api-key-file"}
_SIMILAR: Final = 0.8
_NEAR: Final = 0.6
_TESTS: Final = {
    "KILL_AT", "PAUSE_AT", "SIGNAL_DIR", "TESTING", "TEST_INSTALLED", "TIME_FACTOR", "UNSAFE",
}  # fmt: skip
_OTHERS: Final = {"CONFIG", *_TESTS}
# what Kubernetes puts into every pod beside a service named "redrive"; REDRIVE_PORT is then a URL
_KUBERNETES: Final = re.compile(r"(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?)")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong: ``where`` (flag, variable or file and line) and ``what``. A warning stops no command."""

    where: str
    what: str
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(slots=True)
class Found:
    """The effective values, where each came from, and everything that is wrong.

    ``unread``: variables that begin like ours and that nothing reads; another program may.
    """

    values: dict[str, Any]
    origins: dict[str, str]
    problems: list[Problem] = field(default_factory=list)
    unread: list[Problem] = field(default_factory=list)

    def settings(self) -> Settings:
        """The settings; raises Refusal (exit 2) with everything that is wrong."""
        errors = [problem for problem in self.problems if not problem.warning]
        if errors:
            raise Refusal(
                USAGE,
                "\n  ".join(str(problem) for problem in errors),
                hint="`redrive config show` prints every setting and where it comes from.",
                code="SETTINGS",
            )
        return Settings(**self.values)


def gather(
    flags: Mapping[str, Any], environment: Mapping[str, str] | None = None, config: Path | None = None
) -> Found:
    """Every setting from its first source; wrong values are kept out and listed as problems."""
    environment = os.environ if environment is None else environment
    found = Found(dict(DEFAULTS), dict.fromkeys(DEFAULTS, "default"))
    for source in (
        _file(config, environment, found.problems),
        _environment(environment, found),
        _flags(flags),
    ):
        for name, raw, origin in source:
            try:
                found.values[name] = read(name, raw)
                found.origins[name] = origin
            except BadValue as error:
                found.problems.append(Problem(origin, str(error)))
    return found


def _flags(flags: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    for name, value in flags.items():
        if value is not None:
            yield name, value, f"flag --{_FLAGS.get(name, name.replace('_', '-'))}"


def _environment(environment: Mapping[str, str], found: Found) -> Iterator[tuple[str, Any, str]]:
    problems = found.problems
    for variable in sorted(name for name in environment if name.startswith(PREFIX)):
        name = variable.removeprefix(PREFIX)
        value = environment[variable]
        if not value or name in _OTHERS or name.startswith("ARENA_") or _KUBERNETES.fullmatch(name):
            continue
        if name == "PORT" and value.startswith(("tcp://", "udp://")):
            problems.append(Problem(variable, "is Kubernetes' own; ignored (use --port)", warning=True))
        elif name.lower() in TYPES:
            if environment.get(f"{variable}_FILE") and name.lower() in FROM_FILE:
                problems.append(
                    Problem(f"{variable}_FILE", f"is not read: {variable} is set too", warning=True)
                )
            yield name.lower(), value, f"environment {variable}"
        elif name.endswith("_FILE") and name.removesuffix("_FILE").lower() in FROM_FILE:
            if not environment.get(variable.removesuffix("_FILE")):
                yield from _secret_file(name.removesuffix("_FILE").lower(), value, variable, problems)
        elif similar := _similar(name.lower()):
            problems.append(
                Problem(variable, f"is no setting; did you mean {PREFIX}{similar.upper()}?", warning=True)
            )
        else:
            found.unread.append(Problem(variable, _unread(name), warning=True))


def _secret_file(
    name: str, path: str, variable: str, problems: list[Problem]
) -> Iterator[tuple[str, Any, str]]:
    try:
        with Path(path).open(encoding="utf-8") as secret:
            text = secret.read(SECRET_FILE_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        problems.append(Problem(variable, f"{path}: {reason}"))
        return
    yield name, text, f"file {path} ({variable})"


def _file(
    config: Path | None, environment: Mapping[str, str], problems: list[Problem]
) -> Iterator[tuple[str, Any, str]]:
    asked = config or (Path(environment["REDRIVE_CONFIG"]) if environment.get("REDRIVE_CONFIG") else None)
    path = asked or Path(CONFIG_FILE)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if asked is not None:
            problems.append(Problem(str(path), "no such file"))
        return
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        problems.append(Problem(str(path), str(reason)))
        return
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problems.append(Problem(str(path), f"is not TOML: {error}"))
        return
    for key, value in document.items():
        where = f"{path}:{_line_of(text, key)}"
        name = key.replace("-", "_")
        if name in TYPES:
            yield name, value, where
        else:
            similar = _similar(name)
            hint = f"did you mean {similar}?" if similar else f"settings are {', '.join(TYPES)}"
            problems.append(Problem(where, f"{key} is no setting; {hint}"))


def _similar(name: str) -> str | None:
    names = [*TYPES, *(f"{secret}_file" for secret in FROM_FILE)]
    close = difflib.get_close_matches(name, names, n=1, cutoff=_SIMILAR)
    return close[0] if close else None


def _unread(name: str) -> str:
    itself = name.removesuffix("_FILE")
    if itself.lower() in TYPES:
        return f"nothing reads it; {PREFIX}{itself} has no form for a file"
    known = ["CONFIG", *(one.removeprefix(PREFIX) for setting in TYPES for one in variables(setting))]
    near = difflib.get_close_matches(name.upper(), known, n=1, cutoff=_NEAR)
    nearest = f"the nearest name is {PREFIX}{near[0]}" if near else "`redrive config settings` lists what is"
    return f"nothing reads it; {nearest}"


def _line_of(text: str, key: str) -> int:
    pattern = re.compile(rf"""\s*(\[\s*)?["']?{re.escape(key)}["']?\s*[\]=.]""")
    for number, line in enumerate(text.splitlines(), 1):
        if pattern.match(line):
            return number
    return 1


def key_in_file(path: Path) -> str:
    """The secret that ``--api-key-file`` names; raises Refusal (exit 2)."""
    try:
        return path.read_text(encoding="utf-8")[:SECRET_FILE_BYTES_MAX].strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise Refusal(USAGE, f"--api-key-file {path}: {reason}", code="SETTINGS") from None
