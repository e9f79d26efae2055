"""Models: engines, search, time splits, calibration, thresholds, metrics, files and the registry of versions."""
