"""Print the Debian packages that the test services still lack, one per line; with `why`, the sentences instead."""

import sys

from tests.services import SERVICES, missing, missing_packages

if sys.argv[1:] == ["why"]:
    lines = [sentence for service in SERVICES if (sentence := missing(service))]
else:
    lines = missing_packages()
for line in lines:
    print(line)
