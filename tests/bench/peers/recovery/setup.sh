#!/usr/bin/env bash
# Installs what tests/bench/recovery.py measures beside Paceline into a virtual environment, about 6 GB: PyPI's torch brings CUDA.
#   setup.sh DIR     DIR: a throw-away folder
set -euo pipefail
dir=${1:?folder for the environment}
[ -x "$dir/bin/pip" ] || python3 -m venv "$dir"
"$dir/bin/pip" install -q torch==2.15.0 torchft==0.2.0 'ray[train]==2.60.0' numpy
