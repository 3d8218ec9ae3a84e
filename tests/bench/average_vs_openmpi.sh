#!/usr/bin/env bash
# Averaging in windows against OpenMPI's allreduce: both in one run, alternating, five rounds; prints medians and their ratio.
#
#   tests/bench/average_vs_openmpi.sh BUILD_DIR [WORKERS...]     (default: 2 4)
#
# BYTES='4096 104857600' chooses sizes, ROUNDS and SECONDS_EACH how long.
set -euo pipefail

build=${1:?usage: average_vs_openmpi.sh BUILD_DIR [WORKERS...]}
shift
workers=("$@")
[ ${#workers[@]} -gt 0 ] || workers=(2 4)
bytes_list=${BYTES:-104857600}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-1}

ours=$build/tests/bench/average_bench
theirs=$build/tests/bench/openmpi_allreduce
for program in "$ours" "$theirs"; do
  [ -x "$program" ] || { echo "average_vs_openmpi: $program is missing: install libopenmpi-dev and openmpi-bin, then configure and build again" >&2; exit 1; }
done

mpi=(mpirun --oversubscribe)
[ "$(id -u)" -ne 0 ] || mpi+=(--allow-run-as-root)
export OMP_NUM_THREADS=1

# Nanoseconds of one averaging.
average() {  # mode workers bytes
  "$ours" --benchmark_filter="^average/$1/workers:$2/bytes:$3/real_time\$" --benchmark_min_time="$seconds" --benchmark_format=csv 2>/dev/null |
    awk -F, '/^"average/ { print $3 }'
}
allreduce() { "${mpi[@]}" -n "$2" "$theirs" "$3" "$seconds" $([ "$1" = in_place ] && echo in_place); }
median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

printf 'load before: %s; cores: %s; microseconds, medians of %s rounds\n' "$(cut -d' ' -f1-3 /proc/loadavg)" "$(getconf _NPROCESSORS_ONLN)" "$rounds"
printf '%8s %12s %12s %12s %12s %12s %10s\n' workers bytes in_place flip openmpi openmpi_inpl ratio
for p in "${workers[@]}"; do
  for bytes in $bytes_list; do
    a=() b=() c=() d=()
    for ((round = 0; round < rounds; ++round)); do
      a+=("$(average in_place "$p" "$bytes")")
      c+=("$(allreduce separate "$p" "$bytes")")
      b+=("$(average flip "$p" "$bytes")")
      d+=("$(allreduce in_place "$p" "$bytes")")
    done
    printf '%s\n' "$(printf '%s\n' "${a[@]}" | median)" "$(printf '%s\n' "${b[@]}" | median)" \
      "$(printf '%s\n' "${c[@]}" | median)" "$(printf '%s\n' "${d[@]}" | median)" |
      awk -v p="$p" -v bytes="$bytes" '{ v[NR] = $1 / 1000 }
        END { o = v[1] > v[2] ? v[1] : v[2]; m = v[3] < v[4] ? v[3] : v[4]
              printf "%8d %12d %12.1f %12.1f %12.1f %12.1f %9.2fx\n", p, bytes, v[1], v[2], v[3], v[4], m / o }'
  done
done
echo "ratio: the faster of OpenMPI's two against the slower of our two"
printf 'load after: %s\n' "$(cut -d' ' -f1-3 /proc/loadavg)"
