"""`paceline check fairness STUDY`: runs and shows the proof that the frameworks of a study compute the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from paceline.cli.output import add_common, command, emit, say, show, width
from paceline.cli.progress import Narrator
from paceline.cli.subcommands import Subcommands
from paceline.compare import AGREES, NO_PROOF, NOT_COMPARABLE, Proof
from paceline.errors import FairnessError, documented
from paceline.folders import store_folder
from paceline.spec import load_study
from paceline.workbench import Workbench


def add_parser(commands: Subcommands) -> None:
    parser = commands.add_parser("check", help="the fairness proof: do the frameworks compute the same?")
    subjects = parser.add_subparsers(dest="subject", metavar="WHAT", required=True)
    fairness = subjects.add_parser("fairness", help="compare what each framework computes with a float64 reference")
    fairness.add_argument("study", help="study file (TOML)")
    fairness.add_argument("--retry-failed", action="store_true", help="repeat the runs that are recorded as failed")
    add_common(fairness)
    fairness.set_defaults(main=main)


def main(args: argparse.Namespace) -> int:
    study = load_study(args.study)
    bench = Workbench(study, store_folder(args.store), proving=True)
    bench.run(Narrator(), retry_failed=args.retry_failed, only_proof=True)
    proofs = list(bench.snapshot().fairness.proofs.values())
    if args.json:
        emit({"study": study.name, "proofs": [proof.to_json() for proof in proofs]})
    else:
        from paceline.report.text import fairness_report

        show(fairness_report(proofs, width()))
    failed = [proof for proof in proofs if proof.verdict != AGREES]
    if failed or not proofs:
        names = ", ".join(dict.fromkeys(f"{proof.name} ({proof.verdict})" for proof in failed)) or "nothing to prove"
        raise FairnessError(f"not shown to compute the same: {names}", hint=_what_to_do(args, failed))
    say(f"next: {command(args, 'run', args.study)}")
    return 0


def _what_to_do(args: argparse.Namespace, failed: Sequence[Proof]) -> str:
    if not failed:
        return (
            "a proof needs a framework that trains a model and can run here; what is skipped and why: "
            f"{command(args, 'plan', args.study)}"
        )
    verdicts = {proof.verdict for proof in failed}
    advice = ["see the reasons above"]
    if NO_PROOF in verdicts:
        again = command(args, "check", "fairness", args.study, "--retry-failed")
        advice.append(f"repeat the failed runs: {again}")
    if NOT_COMPARABLE in verdicts:
        # These runs succeeded, so repeating them would not help.
        advice.append(
            "what is not comparable is measured and shown, and not ranked: " + documented("concepts/fairness")
        )
    return "; ".join(advice)
