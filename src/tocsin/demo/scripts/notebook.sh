#!/bin/bash
@directives

module load @module
source @input || exit 2
PORT=$((8000 + SLURM_JOB_ID % 1000))
jupyter lab --no-browser --ip=$(hostname) --port=$PORT --notebook-dir=$HOME/@system @option
