from paceline.environments.indexes import Indexes, parse_pip_config, redacted

CONFIG = r"""
:env:.find-links='/wheels'
global.cert='/etc/certs.pem'
global.extra-index-url='https://me:secret@one.example/simple\nfile:///two/simple'
global.find-links='/elsewhere'
install.index-url='https://three.example/simple'
download.index-url='https://not-for-install.example/simple'
"""


def test_pip_configuration_is_read_with_later_sections_over_earlier_ones():
    assert parse_pip_config(CONFIG) == Indexes(
        index_url="https://three.example/simple",
        extra_index_urls=("https://me:secret@one.example/simple", "file:///two/simple"),
        find_links=("/wheels",),
        cert="/etc/certs.pem",
    )


def test_uv_is_told_what_pip_knows_and_the_extra_indexes_last():
    variables = parse_pip_config(CONFIG).for_uv(("https://extra.example",), environ={"UV_INDEX": "file:///own"})

    assert variables["UV_DEFAULT_INDEX"] == "https://three.example/simple"
    assert variables["UV_INDEX"].split() == [
        "file:///own",
        "https://me:secret@one.example/simple",
        "file:///two/simple",
        "https://extra.example",
    ]
    assert variables["UV_FIND_LINKS"] == "/wheels"
    assert variables["SSL_CERT_FILE"] == "/etc/certs.pem"


def test_no_settings_leave_the_public_index():
    assert parse_pip_config("").for_pip() == {}


def test_addresses_and_passwords_are_redacted():
    line = "ERROR: cannot fetch https://me:secret@index.example/simple/torch/ (404), see file:///x"

    assert redacted(line) == "ERROR: cannot fetch <index> (404), see <index>"
