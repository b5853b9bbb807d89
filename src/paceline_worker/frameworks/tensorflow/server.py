"""`python -m paceline_worker.frameworks.tensorflow.server`: a parameter server, until the site ends it.

TF_CONFIG says where. It holds variables and applies gradients as they come; what is done is decided by the workers.
"""

import json
import os

import tensorflow as tf

from paceline_worker.frameworks.tensorflow.group import claim_own_port


def main():
    config = json.loads(os.environ["TF_CONFIG"])
    claim_own_port()
    # No more threads than the cores that it shares with the workers of its host.
    threads = len(os.sched_getaffinity(0))
    tf.distribute.Server(
        config["cluster"],
        job_name=config["task"]["type"],
        task_index=config["task"]["index"],
        config=tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads),
    ).join()


if __name__ == "__main__":
    main()
