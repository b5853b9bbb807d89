"""The Python API, cell by cell: run a study, look at runs and raw samples as tables.

Open it in an editor that knows `# %%` cells, or run it as it is: python docs/tutorial/notebook.py
It uses the null framework in law time, so it needs no other environment and ends in seconds.
"""

# %% A study is a file. Here it is written from a text, to have all in one place.
from __future__ import annotations

import tempfile
from pathlib import Path

from paceline.api import load_study, records, run_study

STUDY = """
[study]
name = "notebook"
question = "What does a slow rank cost?"

[workload]
model = "lenet5"
batch_per_worker = 16

[framework]
name = "null"

[framework.null]
time = "law"
slow_rank = 1
slow_factor = [1.0, 1.5]
jitter = 0.02

[cluster]
workers_per_host = [1, 2]

[measure]
warmup_steps = 2
steps = 20
repeats = 3
"""

folder = Path(tempfile.mkdtemp(prefix="paceline-notebook-"))
(folder / "study.toml").write_text(STUDY, encoding="utf-8")
study = load_study(folder / "study.toml")
print(study.name, "-", study.question)

# %% Run what is not recorded yet. A second call measures nothing and returns the same records.
results = run_study(study, store=folder / "store")
print(len(results), "runs,", sum(record.ok for record in results), "ended well")

# %% One row per run, with derived numbers.
runs = records(study, store=folder / "store").to_pandas()
columns = ["workers", "knob.slow_factor", "throughput", "step_s", "share.communication"]
print(runs.groupby(columns[:2])[columns[2:]].mean().round(3))

# %% One row per rank and step: everything above can be derived again from these.
samples = results.samples_to_pandas()
measured = samples[samples["kind"] == "measured"]
compute_s = measured["phase.forward"] + measured["phase.backward"]
slowest = compute_s.groupby([measured["run_id"], measured["rank"]]).mean().unstack("rank")
print("compute time of rank 1 over rank 0, by run:")
print((slowest[1] / slowest[0]).dropna().round(2).to_string())

# %% A record is the whole story of one run: outcome, machine, environment, warnings.
record = results[0]
print(record.run_id, record.outcome.kind.value)
print("warnings:", [doubt.code for doubt in record.doubts])
