"""Starts the processes of a test, which meet over loopback."""

import contextlib
import json
import socket
import subprocess
import sys

# What a script finds done, and `task`, its arguments.
_BEFORE = """
import json
import os
import sys
import traceback


def end_at_once(*error):
    traceback.print_exception(*error)
    sys.stderr.flush()
    # JAX would wait for the other processes.
    os._exit(1)


sys.excepthook = end_at_once
task = json.loads(sys.argv[1])
os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = (
    f"--xla_force_host_platform_device_count={task['devices']}"
)

import jax

jax.distributed.initialize(
    task["coordinator"],
    task["processes"],
    task["process"],
    initialization_timeout=60,
)
"""

_AFTER = """
sys.stdout.flush()
if task["process"] == 0:
    # When this one is gone, JAX ends the others.
    sys.stdin.read()
os._exit(0)
"""


@contextlib.contextmanager
def started(script, processes, devices=1, **task):
    """Starts processes that run a script.

    Args:
        script: Python code. JAX is initialized when it starts, and what was
            given here is in a dictionary `task`, with `process`, the number
            of the process.
        processes: How many processes.
        devices: How many devices each of them has.
        **task: What else the script needs, as JSON can tell.

    Yields:
        A list of `subprocess.Popen`, none of which outlives the scope.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"
    task |= {"processes": processes, "devices": devices}
    task["coordinator"] = coordinator
    code = _BEFORE + script + _AFTER
    workers = []
    try:
        for process in range(processes):
            arguments = json.dumps(task | {"process": process})
            workers.append(
                subprocess.Popen(
                    [sys.executable, "-c", code, arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def finished(workers, timeout=300):
    """Waits for processes.

    Args:
        workers: What `started` yields.
        timeout: After how many seconds `subprocess.TimeoutExpired` is raised.

    Returns:
        A list of `subprocess.CompletedProcess`.
    """
    done = []
    # The first one waits for its input to end.
    for worker in reversed(workers):
        output = worker.communicate(timeout=timeout)
        done.append(
            subprocess.CompletedProcess(worker.args, worker.returncode, *output)
        )
    return done[::-1]


def run(script, processes, devices=1, **task):
    """Runs a script in several processes, all of which have to do well.

    Args:
        script: As for `started`, like all arguments.
        processes: How many processes.
        devices: How many devices each of them has.
        **task: What else the script needs.

    Returns:
        What each process printed, a list of strings.

    Raises:
        RuntimeError: One of them failed, with the end of what it said.
    """
    with started(script, processes, devices, **task) as workers:
        done = finished(workers)
    for worker in done:
        if worker.returncode:
            raise RuntimeError(worker.stderr[-3000:])
    return [worker.stdout for worker in done]
