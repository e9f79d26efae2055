"""Print the Debian packages that the test services still lack, one per line; with `why`, what is skipped and why, in one."""

import sys

from tests.services import SERVICES, missing, missing_packages

packages = missing_packages()
if sys.argv[1:] != ["why"]:
    print("\n".join(packages))
elif skipped := [service.title for name, service in SERVICES.items() if missing(name)]:
    step = f"apt-get install --no-install-recommends {' '.join(packages)}" if packages else "make test"
    print(f"Tests that need {' or '.join(skipped)} are skipped; to run them, as root: {step}")
