"""One host's hands: started there by ssh, mpirun, srun or Ray; does what it is asked, and dies with who asks.

Travels as text in its own command line (`launch.agent_command`), so a host needs nothing but Python 3.8: no files of
ours, no shared folder. Requests and answers are JSON, one frame each; a file follows as frames of bytes. When the
connection ends, or nobody has said a word for SILENCE_S, it ends all that it started, and itself.

Standard library only, and no import of ours: the source is all there is.
"""

import contextlib
import errno
import fcntl
import glob
import hashlib
import json
import os
import platform
import random
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing import ProcessError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge

FRAME = 1 << 22
SILENCE_S = 120.0
GRACE_S = 2.0
REAP_S = 10.0
CONNECT_S = 5.0
CHILDREN_EVERY_S = 5.0
FIRST_PORT = 20000
FEW_PORTS = 1000
SIOCGIFADDR = 0x8915
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Hands:
    """What a host can be asked to do: each method without underscore, with the request's fields as arguments."""

    def __init__(self, receive, send, tether, address):
        self._receive = receive
        self._send_frame = send
        self._tether = tether
        self._address = address
        self._sending = threading.Lock()
        self._started = {}
        self._families = {}
        self._job = None

    def serve(self):
        """Answer until the connection ends."""
        heard = [time.monotonic()]
        threading.Thread(target=self._listen_for_silence, args=(heard,), daemon=True).start()
        with contextlib.suppress(EOFError, OSError):
            while True:
                request = json.loads(self._receive().decode())
                heard[0] = time.monotonic()
                number = request.pop("number")
                try:
                    answer = getattr(self, request.pop("do"))(**request)
                except Exception as error:
                    answer = {"error": f"{type(error).__name__}: {error}"}
                # What has to be told after the answer: the bytes of a file, and that they are over.
                follows = answer.pop("follows", None)
                with self._sending:
                    self._send_frame(json.dumps({"number": number, "answer": answer}).encode())
                    if follows is not None:
                        for frame in follows:
                            self._send_frame(frame)
                        self._send_frame(b"")
        self.stop()

    def hello(self):
        # Of several addresses the one by which it was reached: peers will be reached there too.
        by_ssh = os.environ.get("SSH_CONNECTION", "").split()[2:3]
        address = self._address or ([*by_ssh, *_addresses().values(), "127.0.0.1"])[0]
        return {
            "name": socket.gethostname(),
            "address": address,
            "interface": _device_with(address),
            "pid": os.getpid(),
            "python": platform.python_version(),
            "cores": _cores(),
            "machine": platform.machine(),
            "cpu_model": _found("/proc/cpuinfo", "model name"),
            "kernel": platform.release(),
            "memory_bytes": PAGE * os.sysconf("SC_PHYS_PAGES"),
            "addresses": _addresses(),
        }

    def clock(self):
        return {"unix_s": time.time()}

    def ports(self, count, address):
        return {"ports": free_ports(count, address)}

    def missing(self, digests):
        """Which of these files are not there, or are others."""
        return {"paths": [path for path, wanted in digests.items() if digest(path) != wanted]}

    def put(self, path, mode):
        """Take a file; its bytes follow the request, then an empty frame."""
        part = "{}.{}.part".format(path, os.getpid())
        failed = None
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            file = open(part, "wb")
        except OSError as error:
            file, failed = open(os.devnull, "wb"), error  # the bytes come all the same
        with file:
            file.writelines(iter(self._receive, b""))
        if failed:
            raise failed
        os.chmod(part, mode)
        os.replace(part, path)
        return {}

    def listing(self, folder):
        """Path within a folder → digest, of all files there."""
        found = {}
        for where, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(where, name)
                if stat.S_ISREG(os.lstat(path).st_mode):
                    found[os.path.relpath(path, folder)] = digest(path)
        return {"digests": found}

    def get(self, path):
        """Give a file; its bytes follow the answer, then an empty frame."""
        return {"size": os.path.getsize(path), "follows": _frames(path)}

    def run(self, argv, env, timeout_s):
        """Run a program to its end: exit code and the last of what it said."""
        try:
            done = subprocess.run(
                argv,
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            return {"code": 124, "text": f"not done after {timeout_s:g} s"}
        except OSError as error:
            return {"code": 127, "text": str(error)}
        return {"code": done.returncode, "text": done.stdout.decode(errors="replace")[-20000:]}

    def start(self, name, argv, env, folder, cores):
        """Start a program tied to this one, leader of its own group, its output in `folder/<name>.log`."""
        os.makedirs(folder, exist_ok=True)
        self._job = env.get("PACELINE_JOB")
        tied = [sys.executable, "-I", "-S", "-c", self._tether, str(os.getpid()), ",".join(map(str, cores)), "--"]
        with open(os.path.join(folder, name + ".log"), "wb") as log:
            popen = subprocess.Popen(
                tied + argv,
                env=env,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started[name] = popen
        threading.Thread(target=self._tell_end, args=(name, popen), daemon=True).start()
        return {"pid": popen.pid}

    def usage(self):
        """What each process and its children have used so far, and what the host's devices carried."""
        used = {name: _usage(self._family(one.pid)) for name, one in self._started.items() if one.poll() is None}
        sent, received = _traffic()
        return {"processes": used, "sent_bytes": sent, "received_bytes": received}

    def counters(self):
        """CPU seconds of the whole host so far; two of them bracket a run."""
        user, nice, system, idle, iowait, irq, softirq, steal = (int(n) / TICKS for n in _words("/proc/stat")[1:9])
        pressure = _found("/proc/pressure/cpu", "some", "total=")
        return {
            "wall_s": time.monotonic(),
            "busy_s": user + nice + system + irq + softirq,
            "steal_s": steal,
            "host_s": sum(os.times()[:2]),
            "cores": os.cpu_count() or 1,
            "pressure_s": float(pressure) * 1e-6 if pressure else None,
            "oom_kills": int(_found("/proc/vmstat", "oom_kill ", " ") or 0),
            "load1": os.getloadavg()[0],
        }

    def stop(self):
        """End everything that was started, for sure; the names of what the kernel would not let go."""
        started, self._started = self._started, {}
        for popen in started.values():
            _signal_group(popen.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for popen in started.values():
            _gone(popen, deadline - time.monotonic())
        for popen in started.values():
            _signal_group(popen.pid, signal.SIGKILL)
        if self._job:
            _sweep(self._job)
        return {"stuck": [name for name, popen in started.items() if not _gone(popen, REAP_S)]}

    def _family(self, pid):
        """A process and its children. Old ones are asked seldom for new ones: the question costs a read a thread."""
        now = time.monotonic()
        begun, again, known = self._families.get(pid, (now, now, []))
        if now >= again:
            known, again = _descendants(pid), now + min(CHILDREN_EVERY_S, (now - begun) / 4)
        self._families[pid] = (begun, again, known)
        return [pid] + known

    def _tell_end(self, name, popen):
        code = popen.wait()
        with self._sending, contextlib.suppress(OSError):
            self._send_frame(json.dumps({"ended": name, "pid": popen.pid, "code": code}).encode())

    def _listen_for_silence(self, heard):
        while time.monotonic() - heard[0] < SILENCE_S:
            time.sleep(SILENCE_S / 10)
        self.stop()
        os._exit(3)


def _gone(popen, within_s):
    try:
        popen.wait(max(0.0, within_s))
    except subprocess.TimeoutExpired:
        return False
    return True


def _signal_group(pid, signum):
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)


def _sweep(job):
    """Kill what was started for this job file and left its group."""
    mark = b"\0PACELINE_JOB=" + job.encode() + b"\0"
    for path in glob.glob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError):
            with open(path, "rb") as file:
                ours = mark in b"\0" + file.read()
            if ours:
                os.kill(int(path.split("/")[2]), signal.SIGKILL)


def digest(path: "str | os.PathLike[str]") -> "str | None":
    """SHA-256 of a file; None where there is none that can be read."""
    made = hashlib.sha256()
    try:
        for frame in _frames(path):
            made.update(frame)
    except OSError:
        return None
    return made.hexdigest()


def free_ports(count: int, address: str) -> "list[int]":
    """Ports that nobody is likely to take before they are bound: none that the kernel gives to whoever connects
    somewhere, and each in its turn, so that runs which start together get different ones. A program with a port of
    its own can still come first: whoever asks tries again then.
    """
    first, last = _ports_to_choose()
    found: "list[int]" = []
    with _own_file(os.path.join(tempfile.gettempdir(), f"paceline-ports.{os.getuid()}")) as turns:
        fcntl.flock(turns, fcntl.LOCK_EX)
        turn = int(turns.read() or random.randrange(last - first))  # other users start elsewhere
        while len(found) < count:
            port = first + turn % (last - first)
            if _is_free(address, port):
                found.append(port)
            turn += 1
        turns.seek(0)
        turns.truncate()
        turns.write(str(turn))
    return found


def _own_file(path):
    """A file of ours in a folder where others may write: nothing that they put in its place is followed or changed."""
    try:
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EACCES, errno.EISDIR):
            raise
        number = None
    status = None if number is None else os.fstat(number)
    if status and stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and status.st_nlink == 1:
        return os.fdopen(number, "r+")
    if number is not None:
        os.close(number)
    raise OSError(f"{path} is not a regular file of ours: remove it, or set TMPDIR to a folder of your own")


def _ports_to_choose():
    """The wider side of what the kernel gives out by itself; all, on a host where it gives out nearly all."""
    low, high = map(int, _words("/proc/sys/net/ipv4/ip_local_port_range") or (49152, 65535))
    first, last = max((FIRST_PORT, low), (high + 1, 1 << 16), key=lambda side: side[1] - side[0])
    return (first, last) if last - first >= FEW_PORTS else (FIRST_PORT, 1 << 16)


def _is_free(address, port):
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
        return True


def _frames(path):
    with open(path, "rb") as file:
        while True:
            frame = file.read(FRAME)
            if not frame:
                return
            yield frame


def _cores():
    """Cores this process may use, every physical one once before any gets a second turn."""
    if not hasattr(os, "sched_getaffinity"):
        return list(range(os.cpu_count() or 1))
    seen, turns = {}, {}
    for core in sorted(os.sched_getaffinity(0)):
        try:
            with open(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list") as file:
                physical = file.read().strip()
        except OSError:
            physical = str(core)
        seen[physical] = turns[core] = seen.get(physical, -1) + 1
    return sorted(turns, key=lambda core: (turns[core], core))


def _addresses():
    """Device → its IPv4 address; all but loopback."""
    found = {name: _address_of(name) for _, name in socket.if_nameindex() if name != "lo"}
    return {name: address for name, address in found.items() if address}


def _device_with(address):
    return next((name for _, name in socket.if_nameindex() if _address_of(name) == address), None)


def _address_of(device):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            told = fcntl.ioctl(asking.fileno(), SIOCGIFADDR, struct.pack("256s", device.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(told[20:24])


def _usage(pids):
    total = {"rss_bytes": 0.0, "cpu_s": 0.0, "read_bytes": 0.0, "written_bytes": 0.0}
    for one in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{one}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            total["cpu_s"] += (int(fields[11]) + int(fields[12])) / TICKS
            total["rss_bytes"] += int(fields[21]) * PAGE
            total["read_bytes"] += float(_found(f"/proc/{one}/io", "read_bytes") or 0)
            total["written_bytes"] += float(_found(f"/proc/{one}/io", "write_bytes") or 0)
    return total


def _descendants(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        found += [int(child) for child in _words(path)]
    return found + [deeper for child in found for deeper in _descendants(child)]


def _traffic():
    sent = received = 0
    with contextlib.suppress(OSError), open("/proc/net/dev") as file:
        for line in file:
            _, colon, numbers = line.partition(":")
            if colon:
                fields = numbers.split()
                received, sent = received + int(fields[0]), sent + int(fields[8])
    return sent, received


def _words(path):
    try:
        with open(path) as file:
            return file.read().split()
    except OSError:
        return []


def _found(path, start, before=":"):
    """The rest of the first line that starts so, after `before`; None where there is none."""
    try:
        with open(path) as file:
            for line in file:
                if line.startswith(start):
                    return line.rpartition(before)[2].strip()
    except OSError:
        pass
    return None


def connected(addresses, key):
    """A connection to the first of these addresses that answers and knows the key, and our own address there."""
    said = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            calling = socket.create_connection((host, int(port)), timeout=CONNECT_S)
            calling.settimeout(None)
            own = calling.getsockname()[0]
            connection = Connection(calling.detach())
            answer_challenge(connection, key)
            deliver_challenge(connection, key)
        except (OSError, EOFError, AssertionError, ProcessError) as error:
            said.append(f"{address}: {error}")
        else:
            return connection, own
    sys.exit("{} cannot call home: {}".format(socket.gethostname(), "; ".join(said)))


def main(tether):
    home, key = (os.environ.pop(name, "") for name in ("PACELINE_HOME", "PACELINE_KEY"))
    if home:
        connection, address = connected(home.split(","), key.encode())
        receive, send = connection.recv_bytes, connection.send_bytes
    else:
        # Frames on the pipes that ssh offers; whatever else is printed must not get between them.
        into, out = os.dup(0), os.dup(1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        address = None
        receive = Connection(into, writable=False).recv_bytes
        send = Connection(out, readable=False).send_bytes
    Hands(receive, send, tether, address).serve()
