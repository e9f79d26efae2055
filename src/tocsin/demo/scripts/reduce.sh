#!/bin/bash
@directives

module load @module
source ~/venvs/analysis/bin/activate

# tables of @system into one summary
python reduce.py --rows @steps --input @input --output results/@system.parquet @option
