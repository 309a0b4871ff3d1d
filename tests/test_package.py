"""What is installed is whole, light by default, and typed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import redrive

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = Path(redrive.__file__).resolve().parent
HEAVY = [
    "apsw",
    "cronsim",
    "httptools",
    "jinja2",
    "prometheus_client",
    "psycopg",
    "psycopg_pool",
    "pydantic",
    "pydantic_settings",
    "pymysql",
    "rich",
    "sqlalchemy",
    "starlette",
    "typer",
    "uvicorn",
    "uvloop",
]
LIGHT = ["redrive", "redrive.domain.errors", "redrive.ledger", "redrive.worker", "redrive.transports.rest"]


def test_the_installed_package_is_tested_not_the_sources() -> None:
    """Under `make test` the package comes from the wheel."""
    if os.environ.get("REDRIVE_TEST_INSTALLED") != "1":
        pytest.skip("not run by `make test`: the sources may be what is imported")
    assert not INSTALLED.is_relative_to(ROOT / "src")
    assert "site-packages" in INSTALLED.parts


def _is_cache(path: Path) -> bool:
    return any(part == "__pycache__" or part.endswith("_cache") for part in path.parts)


def test_the_package_holds_every_file_of_the_sources() -> None:
    """Statements, migrations, templates and `py.typed` are installed beside the code."""
    source = ROOT / "src" / "redrive"
    wanted = {
        path.relative_to(source) for path in source.rglob("*") if path.is_file() and not _is_cache(path)
    }
    missing = sorted(str(path) for path in wanted if not (INSTALLED / path).is_file())
    assert not missing, "not installed: " + ", ".join(missing)
    assert (INSTALLED / "py.typed").is_file()


@pytest.mark.parametrize("module", LIGHT)
def test_the_light_sdk_needs_no_extra(module: str) -> None:
    """The application's side imports with the base dependencies alone: no server, driver or command line."""
    if importlib.util.find_spec(module.rsplit(".", 1)[0]) is None or importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not built yet")
    blocked = f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r})); import {module}"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocked],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_block_of_the_light_sdk_can_fail() -> None:
    """The control: a blocked module cannot be imported."""
    blocked = "import sys; sys.modules['apsw'] = None; import apsw"
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, timeout=30, check=False)
    assert done.returncode != 0


def test_the_base_dependencies_are_few() -> None:
    """Without extras the package brings msgspec, structlog and urllib3, and nothing else."""
    required = importlib.metadata.requires("redrive") or []
    base = sorted(line.split(">")[0].strip() for line in required if "extra ==" not in line)
    assert base == ["msgspec", "structlog", "urllib3"]


def test_the_command_is_installed() -> None:
    """`redrive` is a command of the installed package, and its function exists once the room is built."""
    (command,) = importlib.metadata.entry_points(group="console_scripts", name="redrive")
    assert command.value == "redrive.cli:main"
    if importlib.util.find_spec("redrive.cli") is None:
        pytest.skip("redrive.cli is not built yet")
    assert callable(command.load())


def test_the_locks_name_no_address_and_pin_every_hash() -> None:
    """Each locked package has one exact version and hashes, and no line says where it comes from."""
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text, path.name
        assert "--index" not in text, path.name
        blocks = text.replace("\\\n", " ").splitlines()
        unpinned = [
            line for line in blocks if line.strip() and ("==" not in line or "--hash=sha256:" not in line)
        ]
        assert not unpinned, f"{path.name}: {unpinned[:3]}"
