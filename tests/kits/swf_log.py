"""An SWF log in which failures depend on the user, so that a model can learn them."""

__all__ = ["swf_log"]


def swf_log(jobs: int = 800, *, failing: bool = True) -> str:
    """A job every ten minutes by one of seven users; those of the third fail, those of the fifth every other half day."""
    lines = ["; UnixStartTime: 1000000000"]
    for number in range(1, jobs + 1):
        user = 1 + number % 7
        bad = failing and (user == 3 or (user == 5 and number // 72 % 2 == 0) or number % 41 == 0)
        run, procs = 20 + number % 90 if bad else 300 + number % 500, 1 + number % 4
        request = [procs, 1200, -1]
        words = [
            number,
            number * 600,
            10,
            run,
            procs,
            -1,
            -1,
            *request,
            0 if bad else 1,
            user,
            1,
            1 + user % 3,
        ]
        lines.append(" ".join(map(str, [*words, 1, 1, -1, -1])))
    return "\n".join(lines) + "\n"
