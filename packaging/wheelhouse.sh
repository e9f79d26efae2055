#!/bin/bash
# Wheels of tocsin and of everything it needs, for hosts without a network.
# Usage: wheelhouse.sh PYTHON FOLDER [EXTRAS]   (the wheels fit that Python, this architecture and this C library)
# On the other host: pip install --no-index --find-links FOLDER 'tocsin[serve]'
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1 folder=$2 extras=${3:-serve,charts,engines,kafka,minilm,mqtt,postgres,traces}
torch=$(sed -n 's/^TORCH := //p' Makefile)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv"
pip=("$work/venv/bin/python" -m pip -qq --disable-pip-version-check)
mkdir -p "$folder"
rm -f "$folder"/*.whl

"${pip[@]}" wheel --no-deps -w "$folder" .
wheel=$(echo "$folder"/tocsin-*.whl)
grep -v '^torch==' constraints.txt >"$work/constraints.txt"
if [[ ,$extras, == *,traces,* ]]; then
    # By name: the same version without the suffix brings gigabytes of CUDA.
    if "${pip[@]}" download --no-deps --only-binary :all: -d "$folder" "$torch" 2>/dev/null; then
        echo "$torch" >>"$work/constraints.txt"
    else
        extras=$(echo "$extras" | sed 's/traces/minilm/')  # which brings ONNX Runtime: models of traces can be used
        echo "no CPU build of PyTorch ($torch) for $("$python" -V) in this package index; without it, tocsin traces train does not work" >&2
    fi
fi
"${pip[@]}" download --only-binary :all: -c "$work/constraints.txt" --find-links "$folder" -d "$folder" "$wheel[$extras]"
echo "$folder: $(find "$folder" -name '*.whl' | wc -l) wheels, $(du -sm "$folder" | cut -f1) MB, for $("$python" -V) on $(uname -m): tocsin[$extras]"
