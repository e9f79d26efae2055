"""Learn from outcomes: training runs into the registry, and walks through time that say what a model is worth."""
