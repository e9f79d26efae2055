#!/bin/bash
@directives

module load @module
source ~/venvs/torch/bin/activate
nvidia-smi

export MASTER_PORT=$((10000 + SLURM_JOB_ID % 20000))
srun torchrun --standalone --nproc_per_node=$SLURM_GPUS_ON_NODE train.py \
    --config @input --epochs 40 --samples @steps --checkpoint checkpoints/@system @option
