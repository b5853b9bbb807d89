"""Split files: what they need, and how they are refused."""

from __future__ import annotations

import pytest

from paceline.errors import SpecError
from paceline.model.validation.split import read_split


@pytest.mark.parametrize(
    ("content", "missing"),
    [
        ('[split]\nfit = "hosts<=2"\n', "records"),
        ('[split]\nrecords = "r.zip"\nfit = 3\n', "fit"),
        ('[split]\nrecords = "r.zip"\nfit = "hosts<=2"\nonly = ["model=mlp"]\n', "only"),
    ],
)
def test_split_whose_key_is_no_text_is_refused(tmp_path, content, missing):
    path = tmp_path / "split.toml"
    path.write_text(content)

    with pytest.raises(SpecError, match=rf"lacks {missing} as text"):
        read_split(path)
