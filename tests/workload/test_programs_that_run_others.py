"""A program that can run others is asked what it runs, and so is a recipe, a hook or a file that a shell reads by itself."""

import pytest

from tocsin.workload.signs.computed import computed_commands
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.sed_programs import sed_runs

_HOST = "$(tr _ . <<< gate_example_ch)"
OPEN = {
    "a pager of git": f'git -c core.pager="./m -s {_HOST}" log',
    "a transport of git": "git ls-remote 'ext::./m -s gate.example.ch -n 3333'",
    "git bisect": "git bisect run ./m -s gate.example.ch -n 3333",
    "conda run": "conda run -n base ./m -s gate.example.ch -n 3333",
    "an escape of sftp": "sftp a <<'E'\n!./m -s gate.example.ch -n 3333\nE",
    "a shell of rsync": "rsync -e './m -s gate.example.ch -n 3333' a: b",
    "a compressor of tar": f'tar -I "./m -s {_HOST}" -cf a b',
    "a wrapper of gcc": "gcc -wrapper ./m,-s,gate.example.ch,-n,3333 a.c",
    "a callback": "mapfile -C './m -s gate.example.ch -n 3333' x",
    "an agent of mpirun": "mpirun --mca plm_rsh_agent './m -s gate.example.ch -n 3333' -np 2 ./model",
    "another meaning": "hash -p ./m sort; sort -s gate.example.ch -n 3333",
    "another path": "ln -s ./m sort; PATH=.:$PATH; sort -s gate.example.ch -n 3333",
    "env splits": "env -vS './m -s gate.example.ch -n 3333'",
    "words of a file": "echo a > w; xargs --arg-file=w ./m",
    "a hook": "cat > .git/hooks/post-commit <<'E'\n#!/bin/sh\nx=gate_ch; ./m ${x//_/.}\nE",
    "a file of a shell": "cat >> ~/.bashrc <<'E'\nx=gate_ch; ./m ${x//_/.}\nE",
    "a Makefile": "cat > Makefile <<'E'\nall:\n\t./m -s $(subst _,.,a_b)\nE\nmake",
    "make reads": "make -f - <<'E'\nH=a\nall:\n\t./m -s $(H).b\nE",
    "a Snakefile": "cat > Snakefile <<'E'\nrule a:\n params: h='.'.join(x)\n shell: './m {params.h}'\nE\nsnakemake",
    "CMake": "cat > CMakeLists.txt <<'E'\nadd_custom_target(m COMMAND ./m ${H})\nE\ncmake .",
    "ant": "cat > build.xml <<'E'\n<arg line='-s ${h}.org'/>\nE\nant",
    "an editor": "vim -es -c 'exe \"!./m -s \".h' -c q",
    "a program of sed": "cat > a.sed <<'E'\ns|$| x|e\nE\nsed -f a.sed b",
}
READ = {
    "git": "git clone --depth 1 https://example.org/a.git && git -C a checkout v1",
    "conda run": "conda run -n md python analyse.py --frames 5000",
    "rsync": 'rsync -av -e "ssh -p 2222" a/ me@store.example.edu:/b/',
    "tar": 'tar -I "zstd -T8" -cf a.tar.zst b',
    "sftp": "sftp -b - me@store.example.edu <<'E'\nput a\nE",
    "a hook": "cat > .git/hooks/post-commit <<'E'\n#!/bin/sh\ndate >> log\nE",
    "a Makefile": "cat > Makefile <<'E'\na: a.c\n\tgcc -o $@ $<\nE\nmake",
    "a Snakefile": "cat > Snakefile <<'E'\nrule a:\n shell: 'bwa {input} > {output}'\nE\nsnakemake",
    "mpirun": "mpirun --mca btl self,vader -np 4 ./model",
    "sed": "sed -i -e 's/else/e/g;/^e/d' a.txt",
    "a editor": "vim -es -c '%s/a/b/g' -c 'wq!' notes.txt",
}


@pytest.mark.parametrize("name", OPEN)
def test_what_they_run_is_an_open_sign(name: str) -> None:
    assert list(computed_commands(OPEN[name], Effort()))


@pytest.mark.parametrize("name", READ)
def test_their_ordinary_use_is_none(name: str) -> None:
    assert list(computed_commands(READ[name], Effort())) == []


@pytest.mark.parametrize("program", ["e", "1e./m", "s,a,b,ge", "s|a|b|e;p", "/x/{s#a#b#e}", "y/a/b/\n$e ls"])
def test_sed_runs(program: str) -> None:
    assert sed_runs(program)


@pytest.mark.parametrize("program", ["s/e/e/g", "/e/d", "s,a,b,w e", "a e\np", ":e;be", "s/a/b", "/e$/!d"])
def test_sed_runs_nothing(program: str) -> None:
    assert not sed_runs(program)
