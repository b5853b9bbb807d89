"""The agent: a program on a host of a run that does what the machine which measures asks of it.

ssh, mpirun, srun, Ray or kubectl starts it. It travels as text in its own command line (`launch.agent_command`), so a
host needs Python 3.8 and nothing else: no files of ours and no shared folder. Each module imports the standard library
and modules that stand before it in `MODULES`, and nothing else, for that is all that a host gets to see.

Requests and answers are JSON, one frame of bytes each; the content of a file follows as further frames. When the
connection ends, or when nothing was asked for `serve.SILENCE_S`, the agent ends everything that it started, and itself.
"""

MODULES = (
    "kernel_files",
    "channel",
    "files",
    "ports",
    "addresses",
    "cores",
    "host_facts",
    "usage",
    "counters",
    "processes",
    "service",
    "serve",
)
"""Every module, after those that it imports: the host loads them in this order."""
