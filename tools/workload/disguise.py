"""Scripts as somebody would disguise them: lines replaced by random strings (RoWD, section 5.2)."""

import random
import string

__all__ = ["Disguise"]

_SIGNS = string.ascii_letters + string.digits
_POOL = 1 << 17  # letters drawn once; a line is a stretch of them from a random place


class Disguise:
    """The same seed gives the same strings."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # no secret
        kinds = (
            _SIGNS,
            string.ascii_lowercase,
            _SIGNS + string.punctuation + "   ",
            string.ascii_lowercase + "    ",
        )
        self._pools = ["".join(self._chance.choices(kind, k=_POOL)) for kind in kinds]

    def replaced(self, text: str, share: float) -> str:
        """The script with this share of its lines, blank ones not counted, replaced by random strings."""
        lines = text.split("\n")
        written = [number for number, line in enumerate(lines) if line.strip()]
        for number in self._chance.sample(written, round(share * len(written))):
            lines[number] = self.line(len(lines[number].strip()))
        return "\n".join(lines)

    def replaced_at_random(self, text: str, shares: tuple[float, ...]) -> str:
        return self.replaced(text, self._chance.choice(shares))

    def line(self, length: int) -> str:
        """Letters, digits, signs or words of random letters, about as long as the line that they replace."""
        length = max(5, min(length, 80))
        start = self._chance.randrange(_POOL - length)
        return self._chance.choice(self._pools)[start : start + length]
