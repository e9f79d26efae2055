#!/bin/bash
@directives

module load @module
for size in 1024 4096 16384; do
    srun --cpu-bind=cores osu_alltoall -m $size:$size @option
done
srun xhpl < @input | tee hpl.@system.txt
