"""The law of the null framework, computed without processes: phases, jitter, loss."""

import ast
import math
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from paceline.frameworks.null import KNOBS, NULL, law_step_s
from paceline.workloads import MODELS, load_workload
from paceline_worker.frameworks.null import law as null_law
from paceline_worker.frameworks.null.law import FORWARD_SHARE, Jitter, Law

WORKER = Path(null_law.__file__).parent
LONG = 200_000


def knobs(**changed):
    return {name: knob.default for name, knob in KNOBS.items()} | changed


def law(workers=1, batch=32, gradient_bytes=4e6, **changed):
    return Law(knobs(**changed), workers, batch, gradient_bytes)


def test_default_step_of_one_worker_takes_fifty_milliseconds():
    one = law()

    times = one.step(one.compute_s(0), one.compute_s(0), None)

    assert sum(times) == pytest.approx(0.050, abs=1e-15)
    assert times.communication == 0


def test_phases_are_those_the_host_declares():
    assert NULL.capabilities.phases == null_law.PHASES


def test_forward_is_a_third_of_compute():
    times = law().step(0.045, 0.045, None)

    assert times.forward == pytest.approx(0.015)
    assert times.forward == pytest.approx(FORWARD_SHARE * 0.045)
    assert times.backward == pytest.approx(0.030)


def test_exchange_is_alpha_beta_of_the_ring():
    four = law(workers=4, message_bytes=1e6, alpha_s=1e-3, beta_s_per_byte=1e-8)

    assert four.exchange_s == pytest.approx(6 * 1e-3 + 6 / 4 * 1e6 * 1e-8, rel=1e-12)


def test_buckets_pay_the_latency_each_and_the_bytes_once():
    whole = law(workers=4, message_bytes=1e6)
    cut = law(workers=4, message_bytes=1e6, bucket_bytes=3e5)

    assert list(cut.bucket_sizes()) == [300_000, 300_000, 300_000, 100_000]
    assert cut.num_buckets == 4
    assert cut.exchange_s - whole.exchange_s == pytest.approx(3 * 6 * 50e-6, rel=1e-9)


def test_empty_message_costs_nothing():
    assert law(workers=4, message_bytes=0.0).exchange_s == 0


def test_message_is_the_gradient_unless_set():
    assert law(workers=2, gradient_bytes=1000).message_bytes == 1000
    assert law(workers=2, gradient_bytes=1000, message_bytes=5.0).message_bytes == 5


def test_only_trainable_parameters_are_counted():
    graph = {
        "layers": [
            {"parameters": []},
            {"parameters": [{"shape": [3, 4], "trainable": True}, {"shape": [5], "trainable": False}]},
        ]
    }

    assert null_law.num_parameters(graph) == 12


@pytest.mark.parametrize("model", MODELS)
def test_gradient_of_every_model_is_known(model):
    graph = load_workload(model)
    trainable = sum(tensor.size for _, tensor in graph.tensors() if tensor.trainable)

    assert null_law.num_parameters(graph.to_json()) == trainable > 0


def test_overlap_hides_the_exchange_behind_the_backward_of_the_slowest():
    half = law(workers=2, message_bytes=2.5e6, overlap=0.5)  # 20.1 ms of exchange

    seen = half.step(0.030, 0.045, None).communication

    assert seen == pytest.approx(0.015 + 0.0201 - 0.5 * 0.030, abs=1e-12)


def test_overlap_never_makes_exchange_negative():
    assert law(workers=2, message_bytes=1e3, overlap=1.0).step(0.045, 0.045, None).communication == 0


def test_fast_rank_waits_for_the_slow_one():
    slow = law(workers=2, message_bytes=0.0, slow_rank=1, slow_factor=2.0)

    assert slow.compute_s(1) == 2 * slow.compute_s(0)
    assert slow.step(0.045, 0.090, None).communication == pytest.approx(0.045)


@pytest.mark.parametrize("changed", [{}, {"slow_input_factor": 40.0}])
def test_prefetched_input_makes_the_step_the_longer_of_the_two(changed):
    ahead = law(input_overlap=True, **changed)
    rest = 0.048

    first = ahead.step(0.045, 0.045, None)
    later = ahead.step(0.045, 0.045, rest)

    assert sum(first) == pytest.approx(ahead.input_s + rest)
    assert sum(later) == pytest.approx(max(ahead.input_s, rest))


def test_batch_counts_in_compute_and_input():
    scaled = law(batch=10, compute_per_sample_s=1e-3, input_per_sample_s=1e-4)

    assert scaled.compute_s(0) == pytest.approx(0.055)
    assert scaled.input_s == pytest.approx(0.003)


@pytest.mark.parametrize("correlation", [0.0, 0.7])
def test_jitter_has_the_stated_mean_sigma_and_correlation(correlation):
    sigma = 0.1
    stream = Jitter("0|0|0|0", sigma, correlation)
    factors = [stream.draw() for _ in range(LONG)]
    logs = [math.log(factor) + sigma**2 / 2 for factor in factors]
    mean = fmean(logs)
    lagged = fmean((a - mean) * (b - mean) for a, b in pairwise(logs)) / pstdev(logs) ** 2

    # The error of a mean of correlated draws is sqrt((1+c)/(1-c)) times that of free ones; four of those.
    allowed = 4 * math.sqrt((1 + correlation) / (1 - correlation) / LONG)
    assert fmean(factors) == pytest.approx(1.0, abs=sigma * allowed)
    assert pstdev(logs) == pytest.approx(sigma, rel=allowed)
    assert lagged == pytest.approx(correlation, abs=allowed)


def test_run_factor_has_mean_one_and_its_sigma():
    factors = [null_law.run_factor(null_law.stream_name(0, n, "run"), 0.05) for n in range(4000)]

    assert fmean(factors) == pytest.approx(1.0, abs=4 * 0.05 / math.sqrt(4000))
    assert pstdev(map(math.log, factors)) == pytest.approx(0.05, rel=0.05)


def test_jitter_is_the_same_each_time_and_another_on_each_rank():
    names = [null_law.stream_name(0, "r", rank) for rank in (0, 0, 1)]
    first, again, other = ([stream.draw() for _ in range(3)] for stream in (Jitter(n, 0.1, 0.5) for n in names))

    assert first == again
    assert first != other


def test_no_jitter_is_a_factor_of_exactly_one():
    assert Jitter("any", 0.0, 0.9).draw() == 1.0


def test_loss_falls_and_stays_finite():
    losses = [null_law.loss(step) for step in (0, 1, 100, 10**6)]

    assert losses == sorted(losses, reverse=True)
    assert len(set(losses)) == len(losses)
    assert all(math.isfinite(loss) for loss in losses)


@pytest.mark.parametrize("workers", [1, 2, 7])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"overlap": 0.8},
        {"bucket_bytes": 123_457.0, "overlap": 0.3},
        {"slow_rank": 1, "slow_factor": 1.5},
        {"slow_rank": 0, "slow_factor": 0.5},
        {"slow_input_factor": 50.0, "input_overlap": True},
        {"slow_input_factor": 5.0, "compute_per_sample_s": 1e-3},
    ],
)
def test_law_agrees_with_the_closed_form_of_the_host(workers, changed):
    ours = law(workers=workers, **changed)
    truth = law_step_s(knobs(**changed), workers, 32, 4e6)
    slowest = max(ours.compute_s(rank) for rank in range(workers))

    for rank in range(workers):
        first = ours.step(ours.compute_s(rank), slowest, None)
        later = ours.step(ours.compute_s(rank), slowest, sum(first) - first.data)

        assert sum(first) == pytest.approx(truth["first_step_s"], abs=1e-12)
        assert sum(later) == pytest.approx(truth["step_s"], abs=1e-12)
    assert ours.exchange_s == pytest.approx(truth["exchange_s"], abs=1e-12)


def _modules_of_every_framework():
    for path in sorted(WORKER.rglob("*.py")):
        family = path.relative_to(WORKER).parts[0]
        if family not in {"builders", "frameworks"} or path.name in {"null.py", "__init__.py"}:
            yield path


@pytest.mark.parametrize("path", list(_modules_of_every_framework()), ids=lambda path: path.stem)
def test_worker_module_parses_as_python_3_6(path):
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 6))
