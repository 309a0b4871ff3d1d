#!/bin/sh
# Writes the pages of docs/ that come from code; with --check only says which of them is stale (exit 1).
# A generator is a module that prints its page; one that is not built yet is named and passed over.
set -eu
cd "$(dirname "$0")/.."
python="${PYTHON:-python3}"
mode="${1:-write}"
fresh="$(mktemp)"
trap 'rm -f "$fresh"' EXIT
stale=0

page() { # page FILE MODULE
    if ! "$python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$2') is None)" 2>/dev/null; then
        echo "docs/$1: no $2 yet"
        return
    fi
    "$python" -m "$2" >"$fresh"
    if cmp -s "$fresh" "docs/$1"; then
        return
    fi
    if [ "$mode" = --check ]; then
        echo "docs/$1 is stale: make docs writes it from $2"
        stale=1
    else
        cp "$fresh" "docs/$1"
        echo "docs/$1 written"
    fi
}

page contract.md redrive.contract.reference
page state-machine.md redrive.domain.diagram
page reliability.md tests.proof.report
page performance.md bench.report
exit "$stale"
