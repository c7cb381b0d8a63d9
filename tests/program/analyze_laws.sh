#!/usr/bin/env bash
# Laws from a study that really ran: growing models, compiled and not, in two pools.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
cd "$work" || exit 1
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work
small=(device=cpu:0 experiment.trace=false experiment.test.warmup_samples=5 experiment.test.num_samples=50
    'experiment.test.tensor_shape=[3,32,32]' experiment.test.memory_size_mb=16)
model() { # DEPTH
    echo "{patch_size: 16, depth: $1, heads: 1, dim: 64}"
}
models="[$(model 1), $(model 2), $(model 4)]"

run run compile_study "${small[@]}" "experiment.vit_configs=$models" experiment.repeat=2
expect_status 0
folder=$(ls -d outputs/compile_study/*/*)

# both ways are a group of their own; three models make no cost model
run analyze scaling "$folder"
expect_status 0
[[ $(tr -s ' \n' ' ' <"$work/out") == *"model (3 models, at least 4 needed)."* ]] || # lines may break in it
    fail "$what: doesn't say why there is no cost model"

# a simulated machine's planted rate is found again, and a model that wasn't run is predicted
run run scaling_study device=sim:l40s-10 seed=1 experiment.trace=false experiment.repeat=3
expect_status 0
simulated=$(ls -d outputs/model_scaling_study/*/*)
run analyze scaling "$simulated" predict=vit32x10x512 --json
expect_status 0
json 'next(c for c in d["claims"] if c["kind"] == "scaling.compute_rate")["verdict"] == "yes"'
json '(lambda c: c["low"] <= 52e12 <= c["high"])(next(c for c in d["claims"] if c["kind"] == "scaling.compute_rate"))'
json 'd["groups"][0]["predictions"][0]["model"] == "vit32x10x512"'
json 'd["groups"][0]["leave_one_out_error"] < 0.02'

# what can't be a model is the user's mistake
run analyze scaling "$folder" predict=resnet50
expect_status 2
expect_err 'predict=resnet50: must be a model by patch size, depth and width, such as vit32x10x512'

run analyze compile "$folder" --json
expect_status 0
expect_out '"studies": \['
expect_out '"model": "vit16x4x64"'
expect_out '"cost_ms": ([0-9.]+|null)'
expect_out '"kind": "compile.gain"'

# nothing but compile_model and the model differs: there is no batch or pool to tell of
run analyze transfer "$folder" --json
expect_status 0
expect_out '"name": "Copies to the host"|"answer": "Not tested'
finish
