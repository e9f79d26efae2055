#!/bin/bash
@directives

# production run of @system
module purge
module load @module

export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
cd "$SLURM_SUBMIT_DIR"

gmx grompp -f production.mdp -c @input -p topol.top -o run.tpr -maxwarn 1 || exit $?
srun gmx_mpi mdrun -s run.tpr -deffnm @system -cpi state.cpt -nsteps @steps @option
