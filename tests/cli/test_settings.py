"""Where settings come from, what is said of wrong ones, and that no secret is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.cli.failures import Refusal
from redrive.cli.origins import gather
from redrive.cli.settings import hidden, without_password
from tests.cli.program import Program


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    """And each says where it comes from; the rest are defaults."""
    file = tmp_path / "redrive.toml"
    file.write_text('port = 1\nhost = "file"\nurl = "http://file:1"\n')
    found = gather({"port": 3}, {"REDRIVE_PORT": "2", "REDRIVE_HOST": "variable"}, file)
    assert (found.values["port"], found.values["host"], found.values["url"]) == (
        3,
        "variable",
        "http://file:1",
    )
    assert found.origins["port"] == "flag --port"
    assert found.origins["host"] == "environment REDRIVE_HOST"
    assert found.origins["url"] == f"{file}:3"
    assert found.origins["storage"] == "default"
    assert found.problems == []


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"REDRIVE_PORT": "abc"}, "port must be a whole number, 0 (a free one) to 65535, got 'abc'"),
        ({"REDRIVE_LOG_LEVEL": "loud"}, "log_level must be debug, info, warning or error, got 'loud'"),
        ({"REDRIVE_URL": "ftp://x"}, "starts with none of http, https"),
        ({"REDRIVE_URL": "http://user:hidden-word@x"}, "must not carry a user or a password"),
        ({"REDRIVE_LEDGER": "redis://x"}, "starts with none of sqlite"),
        ({"REDRIVE_ALLOW_TARGETS": "10.0.0.0/8,!!"}, "'!!' is none of them"),
        ({"REDRIVE_ALLOW_TARGETS": "hooks.internal,10.0.0"}, "'10.0.0' is none of them"),
        ({"REDRIVE_API_KEY_FILE": "no-such-file"}, "no-such-file: No such file or directory"),
    ],
)
def test_a_wrong_value_names_its_place_and_what_is_allowed(environment: dict[str, str], said: str) -> None:
    """As one refusal, before anything starts; a password in it is not repeated."""
    with pytest.raises(Refusal) as refused:
        gather({}, environment).settings()
    assert refused.value.exit_code == 2
    assert said in refused.value.message
    assert "hidden-word" not in refused.value.message


def test_a_misspelt_setting_is_guessed(tmp_path: Path) -> None:
    """In the file it is an error, in the environment a warning (others may own REDRIVE_ names)."""
    file = tmp_path / "redrive.toml"
    file.write_text('stroage = "x"\n')
    found = gather({}, {"REDRIVE_STROAGE": "x"}, file)
    assert [(problem.warning, problem.what.partition("did you mean ")[2]) for problem in found.problems] == [
        (False, "storage?"),
        (True, "REDRIVE_STORAGE?"),
    ]


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("REDRIVE_KEY", "the nearest name is REDRIVE_API_KEY"),
        ("REDRIVE_TIMEOUT", "the nearest name is REDRIVE_TIMEOUT_SECONDS"),
        ("REDRIVE_CONFIG_PATH", "the nearest name is REDRIVE_CONFIG"),
        ("REDRIVE_PORT_FILE", "REDRIVE_PORT has no form for a file"),
        ("REDRIVE_OF_ANOTHER_PROGRAM", "`redrive config settings` lists what is"),
    ],
)
def test_a_variable_that_nothing_reads_is_told_by_the_check_alone(
    alone: Program, variable: str, said: str
) -> None:
    """With the nearest name. It may be another program's: the settings are valid, other commands silent."""
    name = variable.removeprefix("REDRIVE_")
    done = alone.inside("config", "check", **{name: "x"})
    assert (done.code, done.out) == (
        0,
        f"warning: {variable}: nothing reads it; {said}\nthe settings are valid\n",
    )
    assert alone.inside("config", "check", "--json", **{name: "x"}).json["problems"][0]["warning"] is True
    assert variable in alone.inside("config", "show", **{name: "x"}).err
    assert variable not in alone.inside("db", "check", **{name: "x"}).err


@pytest.mark.parametrize(
    "variable",
    ["REDRIVE_CONFIG", "REDRIVE_TESTING", "REDRIVE_UNSAFE", "REDRIVE_ARENA_PROVIDER", "REDRIVE_API_KEY_FILE"],
)
def test_what_is_read_is_not_called_unread(tmp_path: Path, variable: str) -> None:
    """The control: settings' files, and what the worker, the demo and the tests read."""
    (tmp_path / "file").write_text("")
    assert gather({}, {variable: str(tmp_path / "file")}).unread == []


def test_what_kubernetes_puts_into_a_pod_is_no_setting() -> None:
    """A service named redrive sets REDRIVE_PORT to a URL, and more; only a warning comes of it."""
    pod = {
        "REDRIVE_PORT": "tcp://10.0.0.1:7077",
        "REDRIVE_SERVICE_HOST": "10.0.0.1",
        "REDRIVE_PORT_7077_TCP": "x",
    }
    found = gather({}, pod)
    assert (found.settings().port, [problem.warning for problem in found.problems]) == (7077, [True])


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:se/c@r:et@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u@h/db?sslmode=on&password=secret", "postgresql://u@h/db?sslmode=on&password=***"),
        ("mysql://u:@h/db", "mysql://u:***@h/db"),
        ("sqlite:////tmp/a:b@c.db", "sqlite:////tmp/a:b@c.db"),
        ("http://host:7077", "http://host:7077"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    """Wherever it stands in a URL; what is none stays."""
    assert without_password(url) == shown
    assert hidden("api_key", "secret") == "***"


def test_config_show_masks(alone: Program) -> None:
    """Key and passwords from every source, in both forms; wrong values are told with it."""
    (alone.folder / "redrive.toml").write_text('port = "abc"\napi_key = "file-hidden-word"\n')
    settings = {"api_key": "key-hidden-word", "ledger": "mysql://root:hidden-word@h/db"}
    words = ["--storage", "postgresql://u:hidden-word@h/db?password=hidden-word"]
    for form in ([], ["--json"]):
        done = alone("config", "show", *words, *form, **settings)
        assert done.code == 0
        assert "hidden-word" not in done.out + done.err
        assert "postgresql://u:***@h/db?password=***" in done.out
        assert "port must be a whole number" in done.out + done.err
    rows = {row["setting"]: row for row in done.json["settings"]}
    assert (rows["api_key"]["value"], rows["api_key"]["from"]) == ("***", "environment REDRIVE_API_KEY")


def test_config_check_answers_with_its_exit_code(alone: Program) -> None:
    """0 when all is right, 1 when not; a command that would use the settings ends with 2."""
    assert alone.inside("config", "check").out == "the settings are valid\n"
    wrong = alone.inside("config", "check", "--json", port="abc")
    assert (wrong.code, wrong.json["valid"]) == (1, False)
    assert wrong.json["problems"][0]["where"] == "environment REDRIVE_PORT"
    assert alone.inside("config", "check", "--config", "nofile.toml").code == 1
    assert alone.inside("queue", "list", port="abc").code == 2
    assert "REDRIVE_STORAGE" in alone.inside("config", "settings").out
