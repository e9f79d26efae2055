"""How fast the activity of a kind of job changes: its power spectrum and lowest dominant frequency (paper, section 2.2).

The spectrum is Welch's: overlapping segments, tapered, transformed and averaged over the CPUs and jobs of the kind,
summed over channels. A frequency is dominant if the spectrum has a peak there that
- is at least three times the lower quartile of the bins on either side (so a slope is not a peak, and harmonics hide
none), and higher than white noise reaches for one in a thousand kinds;
- has at least a tenth of the power of the highest such peak.
The lowest dominant frequency is the first of them. A kind that hardly changes at all has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import welch
from scipy.stats import chi2

from tocsin.traces.series import Series

__all__ = ["Spectrum", "lowest_dominant", "recommended_window", "spectrum_of"]

_SEGMENTS = (1024, 768, 512, 384, 256, 192, 128, 96, 64)  # seconds
_ENOUGH = 4
_MOST_SERIES = 200  # per kind: the mean of more is no better
_BESIDE = 10  # bins on either side that form the background of a peak
_BACKGROUND = 0.25  # quantile: harmonics of a pulse would raise the median
_LEAST_RATIO = 3.0
_FALSE_ALARM = 1e-3 / len(_SEGMENTS)  # for a spectrum with segments of one size
_LEAST_POWER = 0.1  # of the highest peak
_FLAT = 0.01  # standard deviation, all channels together: below 1 % of a CPU, nothing changes


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The power spectrum of one kind of job, and its peaks."""

    kind: str
    seconds: int
    """Total length of all series."""
    segment: int
    """Seconds of a segment; 0 if all series are too short."""
    segments: int
    """Independent ones: those of one job on several CPUs count once."""
    deviation: float
    """Standard deviation, all channels together."""
    frequencies: NDArray[np.float64]
    power: NDArray[np.float64]
    frequency: float | None
    """The lowest dominant one, in Hz."""
    ratio: float | None
    """The ratio of its peak to the background."""
    why: str = ""
    """Why there is none."""

    def to_json(self) -> dict[str, Any]:
        visible = round(2.5 / self.segment, 5) if self.segment else None
        return {
            "kind": self.kind,
            "seconds": self.seconds,
            "segment": self.segment or None,
            "segments": self.segments,
            "deviation": round(self.deviation, 5),
            "lowest_visible": visible,
            "frequency": None if self.frequency is None else round(self.frequency, 5),
            "period": None if self.frequency is None else round(1 / self.frequency, 2),
            "ratio": None if self.ratio is None else round(self.ratio, 2),
            "why": self.why or None,
            "spectrum": {
                "frequency": [round(float(f), 6) for f in self.frequencies[1:]],
                "power": [float(f"{p:.4g}") for p in self.power[1:]],
            },
        }


def spectrum_of(kind: str, series: Sequence[Series]) -> Spectrum:
    """The mean spectrum of all series of a kind, with segments of the size that shows the lowest dominant frequency.

    Long segments show slow changes, short ones give more segments and therefore less noise; all sizes with enough
    segments are tried. Without a dominant frequency, the longest is used.
    """
    sizes = [size for size in _SEGMENTS if _segments(series, size) >= _ENOUGH]
    found = [_with_segments(kind, series, size) for size in sizes]
    if not found:
        total = sum(len(each.values) for each in series)
        why = f"its series are too short: {_ENOUGH} segments of {_SEGMENTS[-1]} s are needed"
        return Spectrum(kind, total, 0, 0, 0.0, np.empty(0), np.empty(0), None, None, why)
    return min(found, key=lambda each: each.frequency or np.inf)


def _with_segments(kind: str, series: Sequence[Series], size: int) -> Spectrum:
    chosen = [each for each in series if len(each.values) >= size]
    chosen = chosen[:: -(-len(chosen) // _MOST_SERIES)]
    long = [each.values for each in chosen]
    weights = [1 + (len(values) - size) // (size // 2) for values in long]
    found = [welch(values, nperseg=size, noverlap=size // 2, axis=0) for values in long]
    frequencies = np.asarray(found[0][0])
    power = np.average([density.sum(axis=1) for _, density in found], axis=0, weights=weights)
    variance = np.average([values.var(axis=0).sum() for values in long], weights=weights)
    total = sum(len(each.values) for each in series)
    count, deviation = _segments(chosen, size), float(np.sqrt(variance))
    shared = (kind, total, size, count, deviation, frequencies, power)
    if deviation < _FLAT:
        return Spectrum(*shared, None, None, f"it hardly changes: by {deviation:.1%} of a CPU")
    peak = lowest_dominant(frequencies, power, count)
    return Spectrum(*shared, *peak) if peak else Spectrum(*shared, None, None, "no peak stands out")


def lowest_dominant(
    frequencies: NDArray[np.float64], power: NDArray[np.float64], segments: int
) -> tuple[float, float] | None:
    """Frequency of the lowest dominant peak and its ratio to the background; see above."""
    if len(power) < 2 * _BESIDE:
        return None
    independent = max(1.0, 0.947 * segments)  # of half overlapping segments with a Hann taper (Welch 1967)
    noise = chi2(2 * independent)
    highest = noise.ppf(1 - _FALSE_ALARM / len(power)) / noise.ppf(_BACKGROUND)
    peaks: list[tuple[int, float]] = []
    for place in range(3, len(power) - 3):
        if power[place] <= max(power[place - 1], power[place + 1]):
            continue
        below = power[max(1, place - _BESIDE) : place - 1]  # without the neighbour, into which a tone leaks
        above = power[place + 2 : place + 1 + _BESIDE]
        ratio = float(power[place] / max(_quartile(below), _quartile(above), 1e-300))
        if ratio >= max(_LEAST_RATIO, float(highest)):
            peaks.append((place, ratio))
    if not peaks:
        return None
    strongest = max(power[place] for place, _ in peaks)
    place, ratio = next(peak for peak in peaks if power[peak[0]] >= _LEAST_POWER * strongest)
    return _between_bins(frequencies, power, place), ratio


def _quartile(power: NDArray[np.float64]) -> float:
    return float(np.sort(power)[int(_BACKGROUND * len(power))])


def recommended_window(spectra: Sequence[Spectrum]) -> int | None:
    """One period of the lowest dominant frequency of any kind, in whole tens of seconds; None without one."""
    periods = [1 / each.frequency for each in spectra if each.frequency]
    return int(np.ceil(round(max(periods), 1) / 10) * 10) if periods else None


def _segments(series: Sequence[Series], size: int) -> int:
    """Segments of this size, with the CPUs of a group counted as one."""
    longest: dict[str, int] = {}
    for each in series:
        longest[each.group] = max(longest.get(each.group, 0), len(each.values))
    return sum(1 + (seconds - size) // (size // 2) for seconds in longest.values() if seconds >= size)


def _between_bins(frequencies: NDArray[np.float64], power: NDArray[np.float64], place: int) -> float:
    """Where the parabola through the logarithms of a peak and its neighbours is highest."""
    left, top, right = np.log(np.maximum(power[place - 1 : place + 2], 1e-300))
    curve = left - 2 * top + right
    off = 0.5 * (left - right) / curve if curve < 0 else 0.0
    return float(frequencies[place] + off * (frequencies[1] - frequencies[0]))
