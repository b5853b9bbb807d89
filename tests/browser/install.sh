#!/bin/sh
# What the tests of reports, of the documentation site and of shell completion need and a fresh machine has not: Chromium,
# pdflatex, zsh and fish from Debian, Playwright and MkDocs into our own Python.
# What cannot be had is said, and the tests are skipped.
set -eu
python=$1
missing=""
for pair in chromium:chromium pdflatex:texlive-latex-base zsh:zsh fish:fish; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing$missing"
        export DEBIAN_FRONTEND=noninteractive
        # shellcheck disable=SC2086  one word per package
        { apt-get -qq update && apt-get -qq install -y --no-install-recommends $missing >/dev/null; } ||
            echo "could not be installed:$missing"
    else
        echo "not root, or no apt-get; without$missing"
    fi
fi
"$python" -c "import playwright, mkdocs, mkdocstrings_handlers.python" 2>/dev/null ||
    "$python" -m pip install -qq --editable '.[browser,docs]' || echo "Playwright or MkDocs could not be installed"
