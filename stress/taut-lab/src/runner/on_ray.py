"""Rounds of a lab on the hosts of a Ray cluster; `taut lab` starts it.

Usage: on_ray.py hosts ADDRESS RESOURCE: the hosts that offer the resource, as one line of JSON, names and ids.
       on_ray.py round ADDRESS RESOURCE NODE TAR OUTPUT FOLDER COMMAND...: unpacks TAR there, runs COMMAND in it, and brings what
       it left in OUTPUT into FOLDER here.

The resource is of a host as a whole, so that one round runs on it at a time, whoever asks. Nothing is tried again here: a round
whose host is gone is the lab's to give to another. Exit code 255: the host is lost; else the command's. The last line says why.
"""

import ctypes
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

LOST = 255
PR_SET_PDEATHSIG = 1


def main() -> int:
    verb, address, resource, *rest = sys.argv[1:]
    # Else Ray hides GPUs from tasks that ask for none, and warns that it will not do so for ever.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as refused:
        print(f"no Ray cluster at {address} ({str(refused).splitlines()[0]}); start one with: ray start --head")
        return 2
    if verb == "hosts":
        print(json.dumps(hosts(ray.nodes(), resource)))
        return 0
    node, packed, output, folder, *command = rest
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node, soft=False)
    task = ray.remote(num_cpus=0, max_retries=0, resources={resource: 1}, scheduling_strategy=there)(run)
    try:
        code, said, brought = ray.get(task.remote(Path(packed).read_bytes(), output, command))
    except RayTaskError as failed:
        print(str(failed.cause or failed).splitlines()[-1])
        return 1
    except RayError as lost:
        print(type(lost).__name__, str(lost).splitlines()[0])
        return LOST
    if code == 0:
        unpack(brought, folder)
    print(said)
    return code


def hosts(nodes: list[dict], resource: str) -> list[dict[str, str]]:
    """Those that live and offer it; several on one machine differ by their ids."""
    offering = [node for node in nodes if node["Alive"] and node["Resources"].get(resource, 0) >= 1]
    times = Counter(node["NodeManagerHostname"] for node in offering)

    def name(node: dict) -> str:
        host = str(node["NodeManagerHostname"])
        return host if times[host] == 1 else f"{host}-{node['NodeID'][:6]}"

    return [{"name": name(node), "id": node["NodeID"]} for node in offering]


def run(packed: bytes, output: str, command: list[str]) -> tuple[int, str, bytes]:
    """There: the command's exit code, its last word, and what it left. It ends with the worker that runs this."""

    def end_with_the_worker() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    with tempfile.TemporaryDirectory(prefix="taut-ray-") as folder:
        unpack(packed, folder)
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            preexec_fn=end_with_the_worker,
        )
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        left = io.BytesIO()
        with tarfile.open(fileobj=left, mode="w") as archive:
            if (Path(folder) / output).is_dir():
                archive.add(Path(folder) / output, arcname=".")
        return done.returncode, lines[-1] if lines else "nothing", left.getvalue()


def unpack(packed: bytes, folder: str) -> None:
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")


if __name__ == "__main__":
    sys.exit(main())
