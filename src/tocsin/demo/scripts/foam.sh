#!/bin/bash
@directives

module load @module
source $FOAM_BASH
cd "$SLURM_SUBMIT_DIR" || exit 1

test -f @input || { echo "no mesh: @input"; exit 2; }
# @steps thousand cells
decomposePar -force > log.decompose 2>&1 || exit $?
srun simpleFoam -parallel @option > log.simpleFoam 2>&1 || exit $?
reconstructPar -latestTime
