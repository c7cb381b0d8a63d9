#!/bin/sh
# Slurm prolog: a host whose GPUs fail a check takes no job. Slurm drains a host whose prolog fails; the
# reason is in slurmd's log. slurm.conf: Prolog=/etc/slurm/prolog.d/50-gpulab.sh
#
# Level 1 takes seconds and opens no GPU. Failures to be watched only (monitor) don't stop the job.
gpulab=${GPULAB:-/usr/bin/gpulab}

[ -x "$gpulab" ] || exit 0 # a host without gpulab isn't drained for that
[ -n "${CUDA_VISIBLE_DEVICES:-${SLURM_JOB_GPUS:-}}" ] || exit 0 # a job without GPUs
unset CUDA_VISIBLE_DEVICES # all GPUs of the host

reason=$("$gpulab" check --level 1 --quiet --fail-on reset 2>&1)
status=$?
case $status in
0) exit 0 ;;
1) echo "gpulab check: $reason" >&2 && exit 1 ;;
*) echo "gpulab check: ${reason#gpulab: }" >&2 && exit 1 ;; # not checked; exit 0 to let such hosts take jobs
esac
