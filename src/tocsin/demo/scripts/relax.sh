#!/bin/bash
@directives

module load @module
set -e
ulimit -s unlimited

# ionic relaxation of @system, @steps steps
cp @input POSCAR
cat > INCAR <<INCAR_END
SYSTEM = @system
PREC   = Accurate
ENCUT  = 520
IBRION = 2
NSW    = @steps
EDIFF  = 1E-6
INCAR_END

srun --mpi=pmi2 vasp_std @option
tail -n 5 OSZICAR
