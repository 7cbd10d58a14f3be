"""Imported by a fork server: its user cannot start a process until SIGUSR1 allows it.

The limit does not apply to root, so root becomes another user.
"""

import os
import resource
import signal

OTHER_USER = 54_321

if os.geteuid() == 0:
    os.setresuid(OTHER_USER, OTHER_USER, OTHER_USER)

_hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
resource.setrlimit(resource.RLIMIT_NPROC, (0, _hard))
signal.signal(signal.SIGUSR1, lambda *_: resource.setrlimit(resource.RLIMIT_NPROC, (_hard, _hard)))
