#!/bin/bash
@directives

# one point of the parameter study of each task
module load @module
POINT=$(sed -n "${SLURM_ARRAY_TASK_ID}p" @input) && test -n "$POINT" || exit 2
./sweep --system @system $POINT --seed $SLURM_ARRAY_TASK_ID --out out/$SLURM_ARRAY_TASK_ID.h5 @option
