"""Programs whose standard error is a terminal."""

import os
import subprocess
import threading


def errors_on_terminal(command, **options):
    """Run a command, and return what it writes to a terminal as its standard error."""
    ours, theirs = os.openpty()
    drawn = []

    def read():
        while True:
            try:
                some = os.read(ours, 1 << 16)
            except OSError:  # nobody has the other end any more, as Linux says it
                return
            if not some:
                return
            drawn.append(some)

    reader = threading.Thread(target=read)
    reader.start()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        check=False,
        env=environment,
        **options,
    )
    os.close(theirs)
    reader.join()
    os.close(ours)
    return b"".join(drawn).decode()
