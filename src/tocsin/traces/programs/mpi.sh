#!/bin/bash
# A labelled MPI job of a campaign: mpi.sh SECONDS [FOLDER], submitted by `tocsin campaign run` with one task per CPU.
# Each rank works for a random time, then all meet in an Allreduce. Needs mpicc and mpiexec (MPICH or OpenMPI) on the node.
seconds=$1
folder=$(mktemp -d "${2:-/var/tmp}/tocsin-campaign-XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 143' TERM
command -v mpicc >/dev/null && command -v mpiexec >/dev/null || exit 3
cat >"$folder/allreduce.c" <<'END'
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    srand(getpid() + 7919 * rank);
    double end = MPI_Wtime() + atof(words[1]), left = 1.0, value = rank + 2.0;
    while (left > 0) { /* all ranks leave in the same round */
        double until = MPI_Wtime() + 0.5 + 11.5 * rand() / RAND_MAX, total, mine;
        while (MPI_Wtime() < until && MPI_Wtime() < end)
            for (int n = 0; n < 100000; n++) value = sqrt(value + n);
        mine = end - MPI_Wtime() + 1e-9 * value;
        MPI_Allreduce(&mine, &left, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        MPI_Allreduce(&value, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        value = 2.0 + 1e-3 * total;
    }
    MPI_Finalize();
    return 0;
}
END
mpicc -O2 -o "$folder/allreduce" "$folder/allreduce.c" -lm || exit 3
export HYDRA_LAUNCHER=fork OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpiexec -n "$SLURM_NTASKS" "$folder/allreduce" "$seconds" &
wait $!
