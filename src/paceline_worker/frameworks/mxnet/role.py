"""A scheduler or server of ps-lite, as DMLC_ROLE says: `python -m paceline_worker.frameworks.mxnet.role`.

MXNet becomes one by being imported, and stays one until the workers say goodbye, which ours do not: the site ends it.
"""

import os
import socket


def check_port(environ):
    """Raises OSError, "Address already in use", in the system's words; ps-lite only says that its bind failed."""
    address, port = environ["DMLC_PS_ROOT_URI"], int(environ["DMLC_PS_ROOT_PORT"])
    family = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0][0]
    socket.create_server((address, port), family=family).close()


if __name__ == "__main__":
    if os.environ["DMLC_ROLE"] == "scheduler":
        check_port(os.environ)
    import mxnet  # noqa: F401
