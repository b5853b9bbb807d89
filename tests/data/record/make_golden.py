"""Makes the golden store of the current schema version: run it when SCHEMA_VERSION rises, commit the result.

PYTHONPATH=src:tests python tests/data/record/make_golden.py
"""

from pathlib import Path

from paceline.record import SCHEMA_VERSION, Store
from records import failed_record, make_record

folder = Path(__file__).parent / f"v{SCHEMA_VERSION}"
if folder.exists():
    raise SystemExit(f"{folder} exists; a golden store is never made again")
words = {
    "model": "mlp",
    "batch": 16,
    "workers": 1,
    "steps": 2,
    "warmup_steps": 1,
    "layers": True,
    "study": "golden",
}
with Store.open(folder, create=True) as store:
    store.add(make_record(**words))
    store.add(failed_record("timed_out", **words, repeat=1))
