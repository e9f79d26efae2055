"""The lowest dominant frequency of a kind of job: found where there is one, and nowhere else."""

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from tocsin.core.frames import CPU_SAMPLES
from tocsin.traces.series import Series, series_of
from tocsin.traces.spectra import Spectrum, recommended_window, spectrum_of

SECONDS = np.arange(3000)


def series(values: NDArray[np.float64], group: str = "n1/7") -> Series:
    """A job that shifts its CPU between user and system."""
    user = np.clip(0.5 + values, 0, 1)
    return Series("fit", group, np.stack([user, 1 - user, np.zeros(len(user))], axis=1))


def noise(seed: int, seconds: int = 3000, deviation: float = 0.05) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(0, deviation, seconds)


def spectrum(*of: Series) -> Spectrum:
    return spectrum_of("fit", of)


@pytest.mark.parametrize("frequency", [0.01, 0.0137, 0.05, 0.2, 0.4])
def test_the_frequency_of_a_sinusoid_is_found(frequency: float) -> None:
    wave = 0.1 * np.sin(2 * np.pi * frequency * SECONDS)
    found = spectrum(series(wave + noise(0)))
    assert found.frequency == pytest.approx(frequency, abs=0.25 / found.segment)
    assert found.ratio is not None
    assert found.ratio > 10


def test_the_lowest_of_two_dominant_frequencies_counts_and_a_faint_one_does_not() -> None:
    def wave(size: float, frequency: float) -> NDArray[np.float64]:
        return size * np.sin(2 * np.pi * frequency * SECONDS)

    two = spectrum(series(wave(0.2, 0.11) + wave(0.1, 0.02) + noise(1, deviation=0.02)))
    assert two.frequency == pytest.approx(0.02, abs=0.001)
    faint = spectrum(series(wave(0.2, 0.11) + wave(0.03, 0.02) + noise(1, deviation=0.02)))
    assert faint.frequency == pytest.approx(0.11, abs=0.001)


def test_a_square_wave_has_its_period_and_the_window_is_one_period_long() -> None:
    wave = 0.3 * np.sign(np.sin(2 * np.pi * SECONDS / 95.0))
    found = spectrum(series(wave + noise(2)))
    assert 1 / (found.frequency or 1) == pytest.approx(95, abs=2)
    assert recommended_window([found, spectrum(series(noise(3)))]) == 100


def test_white_noise_has_no_dominant_frequency() -> None:
    found = [spectrum(series(noise(seed))) for seed in range(40)]
    assert sum(each.frequency is not None for each in found) <= 1
    assert found[0].why == "no peak stands out"
    assert recommended_window(found[:1]) is None


def test_a_slope_is_no_peak() -> None:
    walks = [np.cumsum(noise(seed, deviation=0.002)) for seed in range(20)]
    assert sum(spectrum(series(walk)).frequency is not None for walk in walks) <= 1


def test_a_cpu_that_does_nothing_has_none() -> None:
    found = spectrum(series(noise(0, deviation=0.001) + 0.002 * np.sin(SECONDS / 5)))
    assert found.frequency is None
    assert "hardly changes" in found.why


def test_short_series_are_not_guessed_from() -> None:
    found = spectrum(series(0.3 * np.sin(SECONDS[:100])))
    assert found.frequency is None
    assert "too short" in found.why


def test_the_cpus_of_one_job_are_no_independent_evidence() -> None:
    same = noise(5, seconds=600)
    assert spectrum(*[series(same) for _ in range(32)]).segments == spectrum(series(same)).segments


def samples(*rows: tuple[str, int, int, str | None, float]) -> pl.DataFrame:
    node, cpu, at, job, user = zip(*rows, strict=True)
    columns = {"node": node, "cpu": cpu, "at": at, "job": job, "user": user}
    frame = pl.DataFrame(columns | {"system": [0.0] * len(rows), "iowait": [0.0] * len(rows)})
    return frame.cast(dict(CPU_SAMPLES)).with_columns(kind=pl.col("job").fill_null("idle"))


def test_a_series_ends_with_its_job_and_at_a_long_gap() -> None:
    rows = [("n1", 0, at, None if at < 3 else "7", at / 100) for at in (0, 1, 2, 3, 4, 6, 20, 21)]
    found = list(series_of(samples(*rows, ("n1", 1, 0, "7", 0.5))))
    assert [each.kind for each in found] == ["idle", "7", "7", "7"]
    assert [each.values[:, 0].tolist() for each in found][1] == pytest.approx([0.03, 0.04, 0.04, 0.06])
    assert [len(each.values) for each in found] == [3, 4, 2, 1]
    assert {each.group for each in found} == {"n1/idle", "n1/7"}
