"""The embedded model's server process: `python embedded_child.py MODEL ADDRESS_FILE PARENT_PID`."""

import fcntl
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

MODEL_ALIAS = "smollm2-135m-instruct"
CONTEXT_TOKENS = 8192
PROMPT_THREADS = 2
# Two threads generate no faster than one (83 against 85 tokens a second), and often wait for each other.
GENERATION_THREADS = 1
# States of finished prompts kept in memory: returning to an earlier chat then costs only its new tokens.
PROMPT_CACHE_MIB = 512


def serve(model: Path, address_file: Path, parent: int) -> None:
    """Serve the model on loopback until the parent ends; the held lock shows others that it lives."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with address_file.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        server = _server(model)
        file.write(json.dumps({"base_url": f"{server.listening_address}/v1", "pid": os.getpid()}).encode())
        file.flush()
        while True:
            time.sleep(3600)


def _end_with(parent: int) -> None:
    # NB: not PR_SET_PDEATHSIG: it fires when the parent's starting *thread* ends, which may be a pool's.
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(0)


def _server(model: Path) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {MODEL_ALIAS}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.ui = False
    params.verbosity = 0  # the log must not hold chat text
    params.n_parallel = 1
    params.n_ctx = CONTEXT_TOKENS
    params.n_ubatch = 2048
    params.cpuparams.n_threads = GENERATION_THREADS
    params.cpuparams_batch.n_threads = PROMPT_THREADS
    params.cache_ram_mib = PROMPT_CACHE_MIB
    return xllamacpp.Server(params)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
