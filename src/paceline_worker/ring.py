"""Ranks find each other over TCP, then meet in a star around rank 0 and pass bytes round a ring.

Rank 0 listens at the job's rendezvous; every rank also listens on a port of its own for its left neighbour,
tells rank 0 where that is and gets the whole list back. The star serves small values (two messages deep), the
ring moves the bytes that an all-reduce would: 2(P-1) rounds, each a P-th of the message. Knows no framework.
"""

import contextlib
import json
import select
import socket
import struct
import time

RENDEZVOUS_LIMIT_S = 120.0
"""How long ranks wait for each other: environments on slow disks take tens of seconds to start."""

RETRY_S = 0.02
"""Between two tries to reach a rank that does not listen yet."""

PIECE_BYTES = 1 << 18
"""Sent at once; more than a socket takes, little enough to stay in cache."""

NEWS_LIMIT_S = 1.0
"""How long rank 0, about to fail, waits for a rank to hear of it."""

LENGTH = struct.Struct("!I")
VALUE = struct.Struct("!Bd")
"""A word and a number: (FINE, a time), or (LOST, the rank that is gone)."""

FINE = 0
LOST = 1
MAX_GREETING_BYTES = 1 << 20


class PeerLostError(RuntimeError):
    """A rank closed its connection in the middle of the run."""

    def __init__(self, rank, told=False):
        how = "as rank 0 says" if told else "its connection closed"
        super(PeerLostError, self).__init__("rank {} is gone ({})".format(rank, how))
        self.rank = rank


class RendezvousError(RuntimeError):
    """Not all ranks came together."""

    def __init__(self, message, *fields):
        super(RendezvousError, self).__init__(message.format(*fields))


def join(rank, world_size, *, rendezvous, own_address, run_id, limit_s=RENDEZVOUS_LIMIT_S):
    """Meet all other ranks of this run; returns their Group.

    Args:
        rendezvous: (address, port) at which rank 0 listens.
        own_address: where this rank is reached by its left neighbour.
        run_id: ranks of another run that come to the same port are sent away.
        limit_s: for all of it.

    Raises:
        RendezvousError: an address is taken or not ours, or a rank did not come in time; names it.
        PeerLostError: a rank came and went.
    """
    if world_size == 1:
        return Group(0, 1, {}, None, None)
    deadline = time.time() + limit_s
    listener = _listen(own_address, 0, world_size)
    try:
        me = {"run": run_id, "rank": rank, "address": own_address, "port": listener.getsockname()[1]}
        if rank == 0:
            star, table = _gather(me, world_size, rendezvous, deadline)
        else:
            hub = _dial(rendezvous[0], rendezvous[1], 0, deadline)
            _send_json(hub, me, 0)
            star, table = {0: hub}, _receive_json(hub, 0, deadline)
        right = (rank + 1) % world_size
        onward = _dial(table[right]["address"], table[right]["port"], right, deadline)
        _send_json(onward, me, right)
        left, _ = _accept(listener, run_id, {(rank - 1) % world_size}, deadline)
    finally:
        listener.close()
    return Group(rank, world_size, star, onward, left)


class Group(object):
    """All ranks of a run, met. Every rank must make the same calls in the same order."""

    def __init__(self, rank, world_size, star, onward, left):
        self.rank = rank
        self.world_size = world_size
        self._star = star
        self._right, self._left = onward, left
        for link in self._links():
            link.settimeout(None)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for link in (self._right, self._left):
            if link is not None:
                link.setblocking(False)
        self._piece = bytearray(PIECE_BYTES)
        self._waste = bytearray(PIECE_BYTES)

    def maximum(self, value):
        """The largest value of any rank; returns when all ranks have called it, so it is a barrier too."""
        if self.world_size == 1:
            return value
        if self.rank != 0:
            _send(self._star[0], VALUE.pack(FINE, value), 0)
            word, answer = VALUE.unpack(_receive(self._star[0], VALUE.size, 0))
            if word == LOST:
                raise PeerLostError(int(answer), told=True)
            return answer
        try:
            for peer in sorted(self._star):
                value = max(value, VALUE.unpack(_receive(self._star[peer], VALUE.size, peer))[1])
            for peer in sorted(self._star):
                _send(self._star[peer], VALUE.pack(FINE, value), peer)
        except PeerLostError as error:
            self._tell_lost(error.rank)
            raise
        return value

    def all_reduce(self, message_bytes):
        """Move the bytes of a ring all-reduce of this size. They mean nothing and are not added up."""
        size, rank = self.world_size, self.rank
        for turn in range(2 * (size - 1)):
            outgoing = _chunk_bytes(message_bytes, size, (rank - turn) % size)
            incoming = _chunk_bytes(message_bytes, size, (rank - turn - 1) % size)
            self._pass_on(outgoing, incoming)

    def all_gather(self, message_bytes):
        """Move the bytes of a ring all-gather, or of a reduce-scatter, which moves the same the other way round."""
        size, rank = self.world_size, self.rank
        for turn in range(size - 1):
            outgoing = _chunk_bytes(message_bytes, size, (rank - turn) % size)
            incoming = _chunk_bytes(message_bytes, size, (rank - turn - 1) % size)
            self._pass_on(outgoing, incoming)

    def broadcast(self, message_bytes):
        """Pass a message of rank 0 on, whole, from each rank to the next."""
        if self.rank > 0:
            self._pass_on(0, message_bytes)
        if self.rank < self.world_size - 1:
            self._pass_on(message_bytes, 0)

    def ping_pong(self, message_bytes):
        """A message from rank 0 to rank 1 and back; of two ranks."""
        # To go first is to send; to go second is to send what has come.
        turns = ((message_bytes, 0), (0, message_bytes))
        for outgoing, incoming in turns if self.rank == 0 else reversed(turns):
            self._pass_on(outgoing, incoming)

    def close(self):
        for link in self._links():
            link.close()

    def _links(self):
        return [link for link in list(self._star.values()) + [self._right, self._left] if link is not None]

    def _pass_on(self, outgoing, incoming):
        # At the same time: either alone would wait for ever once the sockets' buffers are full.
        piece, waste = memoryview(self._piece), memoryview(self._waste)
        while outgoing or incoming:
            readable, writable, _ = select.select(
                [self._left] if incoming else [], [self._right] if outgoing else [], []
            )
            if readable:
                incoming -= self._take(waste[: min(incoming, PIECE_BYTES)])
            if writable:
                outgoing -= self._give(piece[: min(outgoing, PIECE_BYTES)])

    def _take(self, into):
        try:
            count = self._left.recv_into(into)
        except BlockingIOError:
            return 0
        except OSError:
            count = 0
        if count == 0:
            raise PeerLostError((self.rank - 1) % self.world_size)
        return count

    def _give(self, piece):
        try:
            return self._right.send(piece)
        except BlockingIOError:
            return 0
        except OSError:
            raise PeerLostError((self.rank + 1) % self.world_size) from None

    def _tell_lost(self, lost):
        others = [link for peer, link in self._star.items() if peer != lost]
        # One that is gone as well has had its own last word.
        for link in others:
            with contextlib.suppress(OSError):
                link.sendall(VALUE.pack(LOST, lost))
        # A close with unread values would reset the connection and take the news with it.
        for link in others:
            with contextlib.suppress(OSError):
                link.settimeout(NEWS_LIMIT_S)
                while link.recv(PIECE_BYTES):
                    pass


def _chunk_bytes(message_bytes, size, index):
    """Bytes of one of `size` nearly equal parts of a message."""
    return message_bytes // size + (1 if index < message_bytes % size else 0)


def _listen(address, port, backlog):
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # Without it a port of a run just ended stays taken for a minute; one that is listened on stays refused.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address, port))
    except OSError as error:
        listener.close()
        raise RendezvousError("cannot listen at {}:{}: {}", address, port, error.strerror) from error
    listener.listen(backlog)
    return listener


def _gather(me, world_size, rendezvous, deadline):
    """Rank 0: wait for all others, then tell everyone where everyone is."""
    door = _listen(rendezvous[0], rendezvous[1], world_size)
    hellos, star = {0: me}, {}
    try:
        while len(hellos) < world_size:
            link, hello = _accept(door, me["run"], set(range(world_size)) - set(hellos), deadline)
            hellos[hello["rank"]] = hello
            star[hello["rank"]] = link
    finally:
        door.close()
    table = [hellos[rank] for rank in range(world_size)]
    for peer, link in star.items():
        _send_json(link, table, peer)
    return star, table


def _accept(listener, run_id, wanted, deadline):
    """The next connection of one of the wanted ranks of this run; strangers are sent away."""
    while True:
        left_s = deadline - time.time()
        if left_s <= 0:
            names = ", ".join(str(rank) for rank in sorted(wanted))
            raise RendezvousError("rank {} did not come to the rendezvous in time", names)
        listener.settimeout(left_s)
        try:
            link, _ = listener.accept()
        except socket.timeout:
            continue
        try:
            hello = _receive_json(link, "unknown", min(deadline, time.time() + 5))
            if hello["run"] == run_id and hello["rank"] in wanted:
                return link, hello
        except (PeerLostError, RendezvousError, ValueError, KeyError, TypeError):
            pass  # a port scanner, or a rank of an earlier run on the same port
        link.close()


def _dial(address, port, peer, deadline):
    """Connect, again and again until the other side listens."""
    while True:
        try:
            link = socket.create_connection((address, port), timeout=max(0.001, deadline - time.time()))
            # While nobody listens, the kernel may give us that very port and connect us to ourselves.
            if link.getsockname() != link.getpeername():
                return link
            link.close()
            reason = "nobody listens"
        except OSError as error:
            reason = error
        if time.time() + RETRY_S >= deadline:
            raise RendezvousError("rank {} cannot be reached at {}:{}: {}", peer, address, port, reason)
        time.sleep(RETRY_S)


def _send(link, data, peer):
    try:
        link.sendall(data)
    except OSError:
        raise PeerLostError(peer) from None


def _receive(link, count, peer):
    data = b""
    while len(data) < count:
        try:
            more = link.recv(count - len(data))
        except socket.timeout:
            raise RendezvousError("rank {} said nothing in time", peer) from None
        except OSError:
            more = b""
        if not more:
            raise PeerLostError(peer)
        data += more
    return data


def _send_json(link, value, peer):
    text = json.dumps(value).encode("utf-8")
    _send(link, LENGTH.pack(len(text)) + text, peer)


def _receive_json(link, peer, deadline):
    link.settimeout(max(0.001, deadline - time.time()))
    (count,) = LENGTH.unpack(_receive(link, LENGTH.size, peer))
    if count > MAX_GREETING_BYTES:
        raise ValueError("not a greeting")
    return json.loads(_receive(link, count, peer).decode("utf-8"))
