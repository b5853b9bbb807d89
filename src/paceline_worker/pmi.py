"""How ranks of MPI find each other without mpirun: the first starts a server of PMI-1, which MPICH's launchers speak.

MPICH reads PMI_PORT, PMI_RANK and PMI_SIZE when it starts, connects, and asks in lines of `cmd=… key=value …`: who am
I, keep this value, give me that one, wait for all. That is all of it. Any site can so start MPI programs as it starts
any other. The server is a process of its own, because MPI_Init holds the interpreter's lock while it waits for answers.
Standard library only.
"""

import binascii
import os
import socket
import subprocess
import sys
import threading

MAXIMA = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0"


def join(rank, size, per_host, rendezvous, patience_s=60.0):
    """Set what MPI_Init looks for; the first rank serves the others. Call it before MPI is loaded.

    Args:
        per_host: ranks of each host, which fill host after host.
        rendezvous: (address, port) at the first rank.
    """
    if rank == 0:
        _start_server(rendezvous, size, per_host)
    _wait_for(rendezvous, patience_s)
    os.environ["PMI_PORT"] = "{}:{}".format(*rendezvous)
    os.environ["PMI_ID"] = os.environ["PMI_RANK"] = str(rank)
    os.environ["PMI_SIZE"] = str(size)


def _start_server(rendezvous, size, per_host):
    """It ends with us: however we end, our end of its standard input is closed then, and not before."""
    its_end, _ours = os.pipe()
    arguments = [str(word) for word in (rendezvous[0], rendezvous[1], size, per_host)]
    subprocess.Popen([sys.executable, "-I", "-S", os.path.abspath(__file__)] + arguments, stdin=its_end)
    os.close(its_end)


def _wait_for(rendezvous, patience_s):
    """MPICH tries to connect once; the server may not be there yet."""
    from paceline_worker import clock

    deadline = clock.wall() + patience_s
    while True:
        try:
            socket.create_connection(rendezvous, timeout=patience_s).close()
            return
        except OSError:
            if clock.wall() > deadline:
                raise
            threading.Event().wait(0.05)


class Server(object):
    """Keeps what ranks tell each other, and lets all through a barrier together."""

    def __init__(self, address, size, per_host):
        self._size = size
        # MPICH names the memory that ranks of a host share after it: jobs of one name would write into each other's.
        self._name = "paceline-" + binascii.hexlify(os.urandom(8)).decode("ascii")
        self._kept = {"PMI_process_mapping": "(vector,(0,{},{}))".format(-(-size // per_host), per_host)}
        self._lock = threading.Lock()
        self._waiting = []
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.bind(address)
        self._listening.listen(128)

    def start(self):
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            taken, _ = self._listening.accept()
            threading.Thread(target=self._serve, args=(taken,), daemon=True).start()

    def _serve(self, taken):
        with taken, taken.makefile("r", encoding="ascii") as lines:
            for line in lines:
                asked = dict(pair.partition("=")[::2] for pair in _pairs(line))
                answer = self._answer(asked, taken)
                if answer is not None:
                    taken.sendall((answer + "\n").encode("ascii"))
                if asked.get("cmd") == "finalize":
                    return

    def _answer(self, asked, taken):
        command = asked.get("cmd")
        if command == "initack":
            told = ("cmd=initack", "cmd=set size={}".format(self._size), "cmd=set rank={}".format(asked["pmiid"]))
            return "\n".join((*told, "cmd=set debug=0"))
        if command == "init":
            return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
        if command == "get_maxes":
            return MAXIMA
        if command == "get_appnum":
            return "cmd=appnum appnum=0 rc=0"
        if command == "get_universe_size":
            return "cmd=universe_size size={} rc=0".format(self._size)
        if command == "get_my_kvsname":
            return "cmd=my_kvsname kvsname={} rc=0".format(self._name)
        if command == "put":
            with self._lock:
                self._kept[asked["key"]] = asked["value"]
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            with self._lock:
                value = self._kept.get(asked["key"])
            if value is None:
                return "cmd=get_result rc=-1 msg=key_not_found"
            return "cmd=get_result rc=0 msg=success value={}".format(value)
        if command == "barrier_in":
            return self._barrier(taken)
        if command == "finalize":
            return "cmd=finalize_ack rc=0"
        return "cmd={} rc=-1 msg=unknown".format(command)

    def _barrier(self, taken):
        with self._lock:
            self._waiting.append(taken)
            if len(self._waiting) < self._size:
                return
            all_here, self._waiting = self._waiting, []
        for rank_link in all_here:
            rank_link.sendall(b"cmd=barrier_out rc=0\n")


def _pairs(line):
    """`key=value` words; a value is the rest of its word, and none of ours has a space."""
    return [word for word in line.split() if "=" in word]


def main(address, port, size, per_host):
    """Serve until the rank that started us is gone."""
    Server((address, int(port)), int(size), int(per_host)).start()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
