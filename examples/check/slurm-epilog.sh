#!/bin/sh
# Slurm epilog: what a job has left behind: processes, memory, errors. Metrics go to node-exporter's
# textfile collector. slurm.conf: Epilog=/etc/slurm/epilog.d/50-gpulab.sh
gpulab=${GPULAB:-/usr/bin/gpulab}
metrics=${GPULAB_METRICS:-/var/lib/node_exporter/textfile_collector/gpulab_check.prom}

[ -x "$gpulab" ] || exit 0
[ -n "${CUDA_VISIBLE_DEVICES:-${SLURM_JOB_GPUS:-}}" ] || exit 0 # a job without GPUs
[ -d "$(dirname "$metrics")" ] && set -- --textfile "$metrics"
unset CUDA_VISIBLE_DEVICES

reason=$("$gpulab" check --level 1 --quiet --fail-on reset "$@" 2>&1) && exit 0
echo "gpulab check: ${reason#gpulab: }" >&2
exit 1 # Slurm drains the host
