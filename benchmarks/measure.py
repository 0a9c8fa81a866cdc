"""Measures what a piece of work costs, in a process of its own.

The work is a function of a module beside this one, a contender. It is called
with some arguments, gets ready, and returns a function without arguments that
does the work once and returns what it made. The module may be run by a Python
that has little installed, so imports that are part of a contender belong in
it.

Run as a script, this file is that process.
"""

import concurrent.futures
import ctypes
import inspect
import json
import os
import platform
import re
import resource
import runpy
import socket
import subprocess
import sys
import time
from pathlib import Path

_PACKAGES = ("keras", "jax", "jaxlib", "flax", "torch", "numpy")


def measure(contender, arguments, warm_up, python=None):
    """Runs a contender in a fresh process.

    Args:
        contender: A function of a module that is a file.
        arguments: Its keyword arguments, a dict that JSON can express.
        warm_up: The arguments of the run before, whose cost does not count: a
            tiny size of the same work.
        python: The path of another Python to run it, with the packages that
            are installed there. By default, this one with what it imports.

    Returns:
        A dict: `seconds` of the first and of the second run, a list; `growth`,
        how many bytes the process held more at the peak of the first run than
        before it; and `versions` of what it imported, a dict.

    Raises:
        RuntimeError: If the process fails.
    """
    environment = dict(os.environ)
    if python:
        environment.pop("PYTHONPATH", None)
    task = {
        "path": inspect.getfile(contender),
        "name": contender.__name__,
        "runs": [warm_up, arguments],
    }
    done = subprocess.run(
        [python or sys.executable, __file__, json.dumps(task)],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(
            f"`{contender.__name__}` ended with status {done.returncode}, "
            "which is negative if a signal ended it (-9: perhaps for want of "
            f"memory). Received: arguments={arguments}, python={python}:\n"
            f"{done.stderr[-4000:]}"
        )
    return json.loads(done.stdout.splitlines()[-1])


def measure_processes(contender, arguments, warm_up, processes, python=None):
    """Runs a contender in several fresh processes that know of each other.

    Args:
        contender: As for `measure`. It also takes `processes`, their number,
            `process`, which of them it is in, and `coordinator`, the address
            for `jax.distributed.initialize`.
        arguments: As for `measure`.
        warm_up: As for `measure`.
        processes: The number of processes.
        python: As for `measure`.

    Returns:
        A list of what `measure` returns, one for each process.

    Raises:
        RuntimeError: If a process fails.
    """
    with socket.socket() as free:
        free.bind(("localhost", 0))
        coordinator = f"localhost:{free.getsockname()[1]}"

    def run(process):
        place = {
            "processes": processes,
            "process": process,
            "coordinator": coordinator,
        }
        return measure(contender, arguments | place, warm_up | place, python)

    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        return list(pool.map(run, range(processes)))


def machine():
    """Describes this machine, a dict of strings and integers."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    model = re.search(r"model name\s*: (.*)", text)
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))  # Those that we may use.
    else:
        cores = os.cpu_count()
    return {
        "processor": model[1] if model else platform.processor(),
        "cores": cores,
        "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.system(),
    }


def resident_bytes():
    """Returns the memory that this process holds, now and at its peak."""
    status = Path("/proc/self/status")
    if not status.exists():  # macOS tells the peak only, and in bytes.
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak, peak
    # Not `ru_maxrss`: on Linux, a process inherits that of its parent.
    text = status.read_text()
    now, peak = (
        1024 * int(re.search(rf"{field}:\s+(\d+) kB", text)[1])
        for field in ("VmRSS", "VmHWM")
    )
    return now, peak


def forget_peak():
    """Lets the peak be counted from now on, where the system can do so.

    Where it cannot, the peak of the warm-up or the imports is part of what is
    measured, which makes the result larger, never smaller.
    """
    # What was freed but is still held would be used again and not be counted.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def timed(work):
    start = time.perf_counter()
    made = work()
    return time.perf_counter() - start, made


def main():
    task = json.loads(sys.argv[1])
    contender = runpy.run_path(task["path"])[task["name"]]
    warm_up, arguments = task["runs"]
    contender(**warm_up)()
    work = contender(**arguments)
    forget_peak()
    before, _ = resident_bytes()
    first, made = timed(work)
    _, peak = resident_bytes()
    del made
    second, _ = timed(work)
    versions = {
        name: sys.modules[name].__version__
        for name in _PACKAGES
        if name in sys.modules
    }
    result = {
        "seconds": [first, second],
        "growth": peak - before,
        "versions": {"python": platform.python_version(), **versions},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
