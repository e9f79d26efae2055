"""The scripts, public and made up, that the shipped workload weights are trained on."""
