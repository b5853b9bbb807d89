"""Makes the golden store of the current schema version: run it when SCHEMA_VERSION rises, commit the result.

PYTHONPATH=src:tests python tests/data/record/make_golden.py
"""

from pathlib import Path

from paceline.record import SCHEMA_VERSION, Store
from paceline.record.machines import Machine
from paceline.record.meter import meter_table
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
used = {"rss_bytes": 2.0**20, "cpu_s": 0.25, "read_bytes": 0.0, "written_bytes": 4096.0}
looks = [{"t_s": 0.5, "processes": {"worker0": used}}, {"t_s": 1.0, "processes": {}}]
machine = Machine(host="host0", cpu_model="Test CPU", kernel="6.1.0", accelerator="none")
with Store.open(folder, create=True) as store:
    store.add(make_record(**words, meter=meter_table(looks), machines=(machine,)))
    store.add(failed_record("timed_out", **words, repeat=1))
