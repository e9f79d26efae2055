#!/bin/bash
@directives

module purge
module load @module

# de novo assembly of @system, @steps million reads
spades.py --threads $SLURM_CPUS_PER_TASK --memory 900 -1 @input -2 reads_2.fastq.gz \
    --tmp-dir /scratch/$USER/$SLURM_JOB_ID -o assembly_@system @option
