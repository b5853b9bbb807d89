#!/bin/sh
# What the tests of the HTML report and of the documentation site need and a fresh machine has not: Chromium from Debian,
# Playwright and MkDocs into our own Python.
# What cannot be had is said, and the tests are skipped.
set -eu
python=$1
if ! command -v chromium >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing chromium"
        export DEBIAN_FRONTEND=noninteractive
        { apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; } ||
            echo "chromium could not be installed"
    else
        echo "not root, or no apt-get; without chromium"
    fi
fi
"$python" -c "import playwright, mkdocs, mkdocstrings_handlers.python" 2>/dev/null ||
    "$python" -m pip install -qq --editable '.[browser,docs]' || echo "Playwright or MkDocs could not be installed"
