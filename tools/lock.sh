#!/bin/sh
# Writes requirements/*.txt anew: exact versions with hashes for Python 3.11 to 3.13 on every platform, no addresses.
# Needs uv (a package of the index); run by `make lock`. With UPGRADE=1 to the newest versions.
set -eu
cd "$(dirname "$0")/.."
uv="${UV:-uv}"

lock() { # lock NAME EXTRA...
    name="$1"
    shift
    extras=""
    for extra in "$@"; do extras="$extras --extra $extra"; done
    # shellcheck disable=SC2086
    "$uv" pip compile pyproject.toml $extras ${UPGRADE:+--upgrade} --universal --python-version 3.11 \
        --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
        --quiet --output-file "requirements/$name.txt" >/dev/null
    echo "requirements/$name.txt: $(grep -c == "requirements/$name.txt") packages"
}

lock dev all build test dev
lock test all build test
lock run all build
if grep -nE '://|--(extra-)?index|--find-links' requirements/*.txt; then
    echo "a lock names an address: see above" >&2
    exit 1
fi
