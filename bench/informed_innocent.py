"""Innocent job scripts that use what disguises use: other shells, text that is put together, traps, generated files.

Written with the rules at hand, like the disguises of the same kind, and measured before any rule was changed for them.
"""

from bench.informed_disguises import entries

__all__ = ["INNOCENT", "innocent_script"]

_HEADERS = (
    "#!/bin/bash\n#SBATCH --job-name=relax\n#SBATCH --ntasks=16\n#SBATCH --time=04:00:00\nmodule load gcc openmpi\n",
    "#!/bin/bash\n#PBS -N scan\n#PBS -l select=1:ncpus=16\n#PBS -l walltime=8:00:00\ncd $PBS_O_WORKDIR\n",
)

_BODIES = r"""
## crackers as food
python crackers.py --wordlist recipes.txt --out counts.csv
## crack growth
python crack_growth.py --mesh plate.msh --crack 0.01 --steps 500
srun ./phase_field_crack input.yaml
## fish for a loop
fish -c 'for f in *.fq; gzip $f; end'
## fish with a variable
fish -c 'set -l n (nproc); ./solver -t $n case.in'
## zsh join
zsh -c 'files=(*.nc); ncrcat ${(j: :)files} all.nc'
## tcsh environment
tcsh -c 'source /opt/amber/amber.csh; setenv CUDA_VISIBLE_DEVICES 0; pmemd.cuda -O -i md.in -o md.out'
## csh document
csh -f <<E
set dir = /scratch/run7
cd \$dir
./wrf.exe
E
## ksh typeset
ksh -c 'typeset -i n=4; while (( n > 0 )); do ./case $n; (( n -= 1 )); done'
## nu table
nu -c 'open results.csv | where score > 0.5 | save best.csv'
## perl one-liner
perl -pe 's/NaN/0/g' raw.dat > clean.dat
./fit clean.dat
## perl joins fields
perl -lane 'print join(",", @F[0,2,4])' table.txt > table.csv
## perl system with a literal
perl -e 'system("gzip results.dat")'
## ruby rename
ruby -e 'Dir["*.out"].each { |f| File.rename(f, f.sub(/out$/, "log")) }'
## node script
node build.js --input data.json --output page.html
## lua in LuaJIT
luajit simulate.lua 1000 seed=4
## awk sums
awk '{ s += $2 } END { print s / NR }' energy.dat > mean.txt
## awk builds commands, shown
awk -F, '{ printf "%s %s\n", $1, $2 }' cases.csv > list.txt
./batch list.txt
## tcl for VMD
vmd -dispdev text -e - <<'E'
mol new system.psf
mol addfile traj.dcd waitfor all
set sel [atomselect top "protein"]
puts [measure rgyr $sel]
quit
E
## R pastes file names
Rscript -e 'for (i in 1:10) write.csv(read.csv(paste0("run", i, ".csv")), paste0("out", i, ".csv"))'
## R system of a literal
Rscript -e 'system("tar czf out.tgz out")'
## Julia runs
julia --project -e 'using Pkg; Pkg.instantiate(); include("model.jl"); main(ARGS)' 100
## PHP report
php report.php results.json > report.html
## emacs exports
emacs --batch notes.org -f org-html-export-to-html
## gdb backtrace
gdb -batch -ex run -ex bt --args ./solver input.dat
## vim substitution
vim -es -c '%s/old/new/g' -c wq input.nml
## ed edit
ed -s input.nml <<'E'
/nsteps/s/100/200/
w
q
E
## m4 template
m4 -DN=128 -DDT=0.01 template.m4 > input.nml
./solver input.nml
## make in parallel
make -j 16 -f Makefile.cluster all
make -C build install
## make from a document
make -f - <<'E'
all: a.out b.out
%.out: %.in
	./solver $< > $@
E
## CMake script
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=$HOME/opt
cmake --build build -j 8
ctest --test-dir build
## coproc for a server
coproc SERVER { python -m http.server 8000; }
python client.py --port 8000
kill $SERVER_PID
## trap with several commands
trap 'echo "stopped at $(date)"; cp -r $TMPDIR/out $SLURM_SUBMIT_DIR; exit 1' TERM INT
srun ./simulate
## trap of a function
cleanup() { rm -rf "$SCRATCH/tmp.$SLURM_JOB_ID"; }
trap cleanup EXIT
./simulate
## BASH_ENV for modules
export BASH_ENV=/usr/share/lmod/lmod/init/bash
bash -c 'module load netcdf; nc-config --all'
## exec -a for a name in top
exec -a solver_case7 ./solver case7.in
## printf -v of a file name
printf -v out 'run_%04d.h5' "$SLURM_ARRAY_TASK_ID"
./simulate --output "$out"
## name reference for results
collect() { local -n into=$1; into=(results/*.csv); }
collect files
python merge.py "${files[@]}"
## arithmetic
n=$(( SLURM_NTASKS / 2 )); m=$(( n * 4 + 1 )); srun -n $n ./app --block $m
## split by IFS
IFS=, read -r name temp pressure <<< "$(sed -n "${SLURM_ARRAY_TASK_ID}p" cases.csv)"
./md --name "$name" --T "$temp" --p "$pressure"
## globs in arguments
./merge run_??/out_[0-9]*.dat > all.dat
## braces
mkdir -p out/{raw,clean,plots}/{2020..2024}
cp model/{config,mesh}.yaml out/raw/
## lower case of a label
label="RUN_A"; ./solver --label "${label,,}" --tag "${label:0:3}"
## substring of a file name
f=run_20240131.nc; y=${f:4:4}; m=${f:8:2}; cdo -selyear,$y -selmon,$m $f sub.nc
## associative array of options
declare -A opt=([small]="-n 8" [large]="-n 64"); srun ${opt[$SIZE]} ./app
## array of a command
cmd=(srun --cpu-bind=cores ./app); [ -n "$DEBUG" ] && cmd=(gdb --args "${cmd[@]}"); "${cmd[@]}" input.dat
## python here-string
python3 <<< 'import numpy as np; print(np.load("a.npy").mean())'
## python joins strings
python3 - <<'E'
import subprocess
cases = ["a", "b"]
for c in cases:
    subprocess.run(["./solver", "--case", c, "--out", "out_" + c + ".h5"], check=True)
E
## find and compress
find . -name '*.log' -mtime +7 -exec gzip {} +
## env -S
env -S "OMP_NUM_THREADS=8 ./app input.dat"
## script for colours
script -qec "pytest -v tests" test.log
## systemd-run limits
systemd-run --user --scope -p MemoryMax=8G ./app input.dat
## tmux for a monitor
tmux new-session -d -s mon 'nvidia-smi -l 5 > gpu.log'
python train.py
tmux kill-session -t mon
## screen with a simulation
screen -dmS sim ./simulate --steps 1000
## ssh to nodes for a copy
for n in $(scontrol show hostnames); do ssh $n "mkdir -p /local/$USER; cp $PWD/data.h5 /local/$USER/" & done; wait
## pdsh cleans
pdsh -w $SLURM_NODELIST "rm -rf /local/${USER}/${SLURM_JOB_ID}"
## an image by version
ver=24.05; apptainer exec --nv docker://nvcr.io/nvidia/pytorch:${ver}-py3 python train.py
## a package by name
pkg=xarray; conda install -y -c conda-forge "${pkg}" "py${pkg}-utils"
## npm
npm ci && npx --yes vite build
## git clone by variable
repo=wrf; git clone --depth 1 https://github.com/${ORG:-ncar}/${repo}-model.git && cmake -S ${repo}-model -B b
## a service file for a notebook
mkdir -p ~/.config/systemd/user; printf '[Service]\nExecStart=%s/bin/jupyter lab --port %s\n' "$HOME/mc" 8888 > ~/.config/systemd/user/lab.service
systemctl --user start lab
## scrontab for a backup
scrontab - <<E
0 3 * * * rsync -a $HOME/results/ backup:/results/
E
## multi-prog
for i in 0 1 2 3; do echo "$i ./case_$i.x"; done > multi.conf
srun -n4 --multi-prog multi.conf
## task prolog
printf '#!/bin/bash\necho export OMP_PLACES=cores\n' > prolog.sh; chmod +x prolog.sh; srun --task-prolog=./prolog.sh ./app
## wrap with variables
for t in 300 310 320; do sbatch -n 8 --wrap="./md --T $t --out md_${t}.xtc"; done
## exported parameters
sbatch --export=ALL,CASE=a,STEPS=1000 job2.sh
## comment read back
#SBATCH --comment="calibration run 7"
note=$(squeue -h -j $SLURM_JOB_ID -o %k); echo "$note" > note.txt
## name of the job in a file
#SBATCH --job-name=spin_up
./model --restart "restart_${SLURM_JOB_NAME}.nc"
## resubmits itself
if [ ! -f done ]; then sbatch --dependency=afterany:$SLURM_JOB_ID "$0"; fi
srun ./model
## keeps a copy of itself
cp "$0" results/job.sh; scontrol write batch_script $SLURM_JOB_ID results/submitted.sh
./model
## here-document with pieces
cat > input.nml <<E
&run nx=${NX:-128} ny=${NY:-128} title="${CASE}_${RUN}" /
E
./model input.nml
## letters of an alphabet
for c in {a..z}; do ./blast -query chunk_$c.fa -db nr > $c.out; done
## a motif of letters
python motifs.py --alphabet ACDEFGHIKLMNPQRSTVWY --width 8 seqs.fa
## random seed from letters
id=$(tr -dc 'a-z0-9' < /dev/urandom | head -c 8); ./model --tag $id
## hash of a configuration
key=$(sha256sum config.yaml | cut -c1-12); mkdir -p cache/$key; ./model --cache cache/$key
## decode a result
base64 -d result.b64 > result.bin; ./show result.bin
## rotated letters in a lesson
echo 'Uryyb' | tr 'A-Za-z' 'N-ZA-Mn-za-m' > lesson.txt
## strata of a survey
Rscript sample.R --strata region --pool-size 20 --random x
## a pool of workers
python -c 'from multiprocessing import Pool; import work; Pool(8).map(work.run, range(100))'
## vault secrets
vault kv get -field=token secret/data > token; hash=$(git rev-parse HEAD); ./upload --token-file token --hash $hash
"""

INNOCENT = entries(_BODIES)


def innocent_script(name: str) -> str:
    """The whole job script of one body."""
    return f"{_HEADERS[list(INNOCENT).index(name) % len(_HEADERS)]}{INNOCENT[name]}"
