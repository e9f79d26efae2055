"""Code in other languages that only computes, plots and saves tables: nothing runs or receives the text that it makes.

What it prints is followed elsewhere. Code is inert only if every module that it loads is on a list, so that new ways to
start a program are excluded.
"""

import re

__all__ = ["is_inert"]

_PYTHON_MODULES = frozenset(
    """re sys os json csv collections pathlib glob datetime time math argparse itertools functools statistics string random copy
    pandas numpy polars matplotlib sklearn scipy torch torchvision tensorflow keras jax xarray seaborn h5py netCDF4 yaml anndata scanpy
    transformers uuid gc warnings typing dataclasses Bio networkx sympy astropy mdtraj MDAnalysis pm4py skimage statsmodels cupy pyarrow tqdm""".split()  # noqa: SIM905
)
_PYTHON_IMPORTS = re.compile(
    r"(?:^|[;\n])\s*(?:import\s+([\w.]+(?:[ \t]+as\s+\w+)?(?:[ \t]*,[ \t]*[\w.]+(?:[ \t]+as\s+\w+)?)*)|from\s+([\w.]+)\s+import\s+([^\n;]*))"
)
_PYTHON_ACTS = re.compile(
    r"system|[Pp]open|subprocess|\bexec|\beval|compile|pickle|marshal|spawn|fork|\bpty\b|socket|ctypes|importlib|getattr|globals|vars\(|locals|url|request"
    r"|connect|\bwrite|\.write|dump|runpy|cffi|asyncio|paramiko|(?<!\w)__(?!version__|name__|main__)|[\"'][wax]b?\+?[\"']|[\"']r\+|`|cpp_extension|load_inline|hub\."
    r"|\bos\.(?!path|environ|getenv|listdir|makedirs|getcwd|cpu_count)|\bsys\.(?!argv|exit|path|stdin|version|stdout|executable)|environ\[[^\]]*\]\s*=|putenv|decode"
    r"|rcParams|animation|load_library|load_op|py_function|numpy_function|http|frombuffer|tobytes|to_bytes|\bchr\b|\bbytes|fromhex|\.tofile|sys\.stdout\.buffer|distributed"
)
_R_PACKAGES = frozenset(
    """ggplot2 dplyr tidyverse data.table purrr readr stringr tidyr tibble Seurat DESeq2 edgeR limma Biobase Matrix methods vegan ape
    phyloseq survival lme4 mgcv sf terra raster ncdf4 sp rmarkdown knitr scales reshape2 plyr magrittr lubridate GenomicRanges
    rtracklayer VariantAnnotation SummarizedExperiment MASS nlme caret randomForest glmnet igraph cowplot patchwork RColorBrewer
    pheatmap zoo forecast jsonlite yaml optparse argparse haven readxl writexl arrow stats utils graphics grDevices base""".split()  # noqa: SIM905
)
_R_LOADS = re.compile(r"\b(?:library|require|requireNamespace)\s*\(\s*[\"']?([\w.]+)|\b([\w.]+):::?")
_R_ACTS = re.compile(
    r"\bsystem|\bshell|\bpipe\b|socket|\burl\b|download|\bsource\b|\beval\b|\bparse\b|do\.call|dyn\.load|\.C\(|\.Call|\.External|match\.fun|\bget\(|Reduce|`"
    r"|writeLines|\bcat\s*\([^)]*file|\bsink\b|\bfile\s*\(|Sys\.setenv|intToUtf8|rawToChar|\bmake\.socket|\bbrowseURL|\bwrite\s*\(|\bdput|\bdump\b|\bassign\b"
)
_MATLAB_ACTS = re.compile(
    r"\bsystem|\bunix\b|\bdos\b|!|\beval|feval|\bjava|\bpy\.|\bperl\b|tcp|udp|\bweb|\burl|http|socket|fopen|fprintf\s*\(\s*[a-z]|fwrite|loadlibrary|calllib|\bmex\b"
    r"|str2func|builtin|popen|\bpython\b|pyrun|setenv|char\s*\(|native2unicode|diary|\bexec"
)
_PYTHON = re.compile(r"(?:python[\d.]*|pypy\d?)$")
_R = frozenset(("R", "Rscript"))
_MATLAB = frozenset(("matlab", "octave"))


def is_inert(program: str, code: str) -> bool:
    """Whether code for this program runs nothing, connects to nothing, and writes nothing but tables and pictures."""
    if _PYTHON.match(program):
        return not _PYTHON_ACTS.search(code) and all(
            module.partition(".")[0] in _PYTHON_MODULES for module in _python_modules(code)
        )
    if program in _R:
        return not _R_ACTS.search(code) and all(
            (first or second) in _R_PACKAGES for first, second in _R_LOADS.findall(code)
        )
    return program in _MATLAB and not _MATLAB_ACTS.search(code)


def _python_modules(code: str) -> list[str]:
    found: list[str] = []
    for several, one, names in _PYTHON_IMPORTS.findall(code):
        found += [part.split()[0] for part in several.split(",") if part.strip()]
        if one:
            found.append(one)
        if one == "os":
            found += [
                name.strip() for name in names.split(",") if name.strip() not in ("path", "environ", "getenv")
            ]
    return found
