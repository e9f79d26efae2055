#!/bin/bash
@directives

module purge
module load @module

srun lmp -in @input -var steps @steps -log log.@system @option
