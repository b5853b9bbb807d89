"""A training program without any deep-learning framework, which marks its steps. It runs with and without Paceline.

python train_marked.py             needs paceline-worker: pip install ../../packaging/worker
paceline run marked.toml           measures it, with its phases
"""

import argparse
import random

from paceline_worker import mark


def batches(count, batch, features, generator):
    for _ in range(count):
        rows = [[generator.gauss(0, 1) for _ in range(features)] for _ in range(batch)]
        yield rows, [sum(row[: features // 2]) for row in rows]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    generator = random.Random(0)
    weights = [0.0] * args.features
    for inputs, targets in mark.steps(batches(args.steps, args.batch, args.features, generator)):
        with mark.phase("forward"):
            errors = [sum(w * x for w, x in zip(weights, row)) - y for row, y in zip(inputs, targets)]
            loss = sum(error * error for error in errors) / len(errors)
        with mark.phase("backward"):
            gradient = [
                2.0 / len(inputs) * sum(error * row[k] for error, row in zip(errors, inputs))
                for k in range(args.features)
            ]
        with mark.phase("update"):
            weights = [w - 0.01 * g for w, g in zip(weights, gradient)]
        mark.loss(loss)
        mark.samples(len(inputs))
    print(f"loss {loss:.4f}")


if __name__ == "__main__":
    main()
