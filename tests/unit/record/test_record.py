import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.record import Doubt, Outcome, OutcomeKind, Record
from paceline.spec import Network
from records import make_record, make_trial

text = st.text(max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
facts = st.dictionaries(text, json_values, max_size=3)
outcomes = st.builds(
    Outcome,
    kind=st.sampled_from(OutcomeKind),
    stage=st.none() | text,
    reason=st.none() | text,
    rank=st.none() | st.integers(0, 9),
    log_tail=st.lists(text, max_size=3).map(tuple),
)
networks = st.none() | st.builds(
    Network, bandwidth_bytes_per_s=st.none() | st.floats(1, 1e12), latency_s=st.none() | st.floats(0, 1)
)

BASE = make_record()


@settings(max_examples=60)
@given(
    outcome=outcomes,
    facts=facts,
    knobs=facts,
    network=networks,
    doubts=st.lists(st.builds(Doubt, code=text, message=text, hint=text), max_size=2).map(tuple),
)
def test_a_record_is_the_same_after_json(outcome, facts, knobs, network, doubts):
    record = replace(
        BASE,
        trial=make_trial(knobs=knobs, network=network),
        outcome=outcome,
        doubts=doubts,
        state=facts,
        resources=facts,
        ranks=tuple(replace(rank, facts=facts, notes=("n",)) for rank in BASE.ranks),
    )

    back = Record.from_json(json.loads(json.dumps(record.to_json())))

    assert record == back
    assert record.trial.id == back.trial.id
