"""Job scripts: one for each operation, labelled ones to train with, and mutations."""

import random
from pathlib import Path

__all__ = ["CRACK", "FOAM", "MINE", "TRAIN", "labelled_scripts", "mutated"]

TRAIN = "#!/bin/bash\n#SBATCH --gres=gpu:4\nmodule load cuda\nsource activate torch\n\nsrun python train.py --epochs 90 --batch-size 256 --model resnet50\n"
FOAM = "#!/bin/bash\n#SBATCH -n 64\nmodule load openfoam\nblockMesh\ndecomposePar\nmpirun -np 64 simpleFoam -parallel\n"
MINE = "#!/bin/bash\n#SBATCH -n 1\ncd /tmp\n./xmrig -o pool.supportxmr.com:3333 -u $WALLET -p x -k --donate-level 1\n"
CRACK = "#!/bin/bash\nmodule load cuda\nhashcat -m 1000 -a 0 hashes.txt rockyou.txt -r best64.rule\n"


def labelled_scripts(folder: Path) -> Path:
    """Twenty scripts that render and twenty that do not, as `tocsin train workload --data` reads them."""
    for name, lines in (
        ("yes", "blender -b scene{}.blend -o frames -f {}"),
        ("no", "./solver --input case{}.dat -n {}"),
    ):
        (folder / name).mkdir(parents=True)
        for number in range(20):
            text = f"#!/bin/bash\nmodule load gcc\n{lines.format(number, number * 7)}\n"
            (folder / name / f"{number}.sh").write_text(text)
    return folder


def mutated(text: str, chance: random.Random) -> str:
    """The text with parts cut out, doubled, exchanged for others or for noise."""
    for _ in range(chance.randrange(1, 6)):
        at, to = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        kind = chance.randrange(5)
        if kind == 0:
            text = text[:at] + text[to:]
        elif kind == 1:
            text = text[:to] + text[at:to] + text[to:]
        elif kind == 2:
            text = text[:at] + "".join(chr(chance.randrange(0x2FF)) for _ in range(20)) + text[at:]
        elif kind == 3:
            text = text.replace("\n", chance.choice(["", "\r\n", "\0", "\\\n"]), chance.randrange(9))
        else:
            text = (
                text[:at]
                + chance.choice(["$(", "`", '"', "'", "\\", "<<EOF\n", "\udcff", "=" * 50])
                + text[at:]
            )
    return text[:50_000]
