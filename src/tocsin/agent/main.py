"""The command `tocsin-agent`: sample this node and serve the samples until stopped."""

import argparse
import os
import signal
import socket
import sys
import threading

from tocsin.agent.sampler import Sampler
from tocsin.agent.server import AgentServer

__all__ = ["run"]


def run(arguments: list[str] | None = None) -> int:
    """Exit code 0 after SIGTERM or Ctrl-C, 1 if the address or the kernel's files cannot be used."""
    options = _parser().parse_args(arguments)
    host, _, port = options.listen.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        _parser().error(f"--listen {options.listen} is not an address; write HOST:PORT, such as 0.0.0.0:9814")
    if not os.access(f"{options.proc}/stat", os.R_OK):
        print(
            f"tocsin-agent: {options.proc}/stat cannot be read; set the right folder with --proc",
            file=sys.stderr,
        )
        return 1
    node = options.node or socket.gethostname().partition(".")[0]
    sampler = Sampler(
        proc=options.proc,
        cgroup=options.cgroup,
        node=options.node,
        interval=options.interval,
        keep_seconds=options.keep,
    )
    try:
        server = AgentServer((host.strip("[]"), int(port)), sampler, node)
    except OSError as error:
        print(f"tocsin-agent: cannot listen on {options.listen}: {error.strerror}", file=sys.stderr)
        return 1
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(
        f"tocsin-agent: node {node}, http://{host}:{server.server_address[1]}/metrics",
        file=sys.stderr,
        flush=True,
    )
    sampler.run(stop)
    server.shutdown()
    server.server_close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tocsin-agent",
        description="Prometheus exporter for a compute node: what each CPU does, and for which Slurm job.",
    )
    parser.add_argument(
        "--listen", default="127.0.0.1:9814", metavar="HOST:PORT", help="default: %(default)s"
    )
    parser.add_argument(
        "--node", metavar="NAME", help="count only this slurmd's jobs, where several share the host"
    )
    parser.add_argument(
        "--interval", type=_seconds, default=1.0, metavar="SECONDS", help="default: %(default)s"
    )
    parser.add_argument(
        "--keep",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="samples kept for /window, default: %(default)s",
    )
    parser.add_argument("--proc", default="/proc", metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--cgroup", default="/sys/fs/cgroup", metavar="FOLDER", help="default: %(default)s")
    return parser


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text} is not between 0.1 and 86400 seconds")
    return value
