#!/usr/bin/env bash
# A program of the user's own over a matrix: its report says which setting is best, and shows its
# curves; so do results.json, export, and analyze over two studies.
# shellcheck source=tests/program/lib.bash
. "$(dirname "$0")/lib.bash"
export HOME=$work XDG_STATE_HOME=$work/state GPULAB_LOCK_DIR=$work

cat >"$work/train" <<'SCRIPT'
#!/bin/sh
for i in 1 2 3 4 5 6; do echo "iter $i: loss $((7 - i)).$1, time 5ms"; done
echo "Iter 7 loss 0.$1$2"
echo "Final loss: 0.$1$2"
SCRIPT
chmod +x "$work/train"
matrix() { # NAME KEYS…
    local name=$1
    shift
    run run test_matrix "experiment.command='$work/train {lr} {repeat}'" '~experiment.matrix' \
        experiment.name="$name" output_dir="$work/outputs" "$@"
    expect_status 0
    folder=$(echo "$work/outputs/$name"/*/*)
}
matrix one '+experiment.matrix={lr: [50, 25], optimizer: [adam]}'
expect_out '^one \(test_matrix\): 2 of 2 runs succeeded$'
expect_out '^loss from 0.25 \(lr=25\) to 0.5 \(lr=50\): no verdict \(1 run each\)\.'
expect_out '^ +lr=25 +0.25 +-50.0% +0.25 \(7\) +[0-9.]+ [mµ]?s '
expect_out '^ +lr=25 +0.25 '
expect_err '^\[2/2\] lr=[25]+[05]: [0-9.]+ (million )?steps/s \('
grep -Eq "^\| lr=50 \| 0.5 \|" "$folder/report/report.md" || fail "$what: no metrics in its report.md"
grep -q "over steps" "$folder/report/index.html" || fail "$what: no curve in its page"
[ -s "$folder/report/curves_by_step.svg" ] || fail "$what: no picture of its curves"
! grep -q 'gpu0_numa0_lr' "$folder/report/report.md" || fail "$what: ids instead of names"
python3 - "$folder" <<'END' || fail "$what: results.json"
import json, sys
run = json.load(open(f"{sys.argv[1]}/results.json"))[0]
loss = next(m for m in run["metric_summary"] if m["name"] == "loss")
last = 0.25 if "lr25" in run["run_id"] else 0.5
assert (loss["last"], loss["best"], loss["best_step"], loss["values"]) == (last, last, 7, 7), loss
END

# and so it is told later
run show test_matrix
expect_status 0
expect_out '^ +lr=50 +0.5 '
run export "$folder" --what metrics
expect_out '^run_id,rank,name,unit,value,time_ns,step,time_s$'
expect_out '^gpu0_numa0_lr25,0,loss,,6.25,[0-9]+,1,[0-9]\.[0-9]+$'

# its recordings have the settings' names
run analyze summary "$folder"
expect_status 0
expect_out '^ +lr=25 +[0-9.]+ [mµ]?s '

# repeats give a verdict and a line to paste; several studies are analysed at once
first=$folder
matrix two '+experiment.matrix={lr: [50, 25]}' experiment.repeat=2
expect_out '^lr=25: 50.0% lower loss than lr=50'
grep -Fq "$work/train 25 \${SEED:-0}" "$folder/report/report.md" || fail "$what: no line to paste"
run advise --study "$folder"
expect_out '^Use lr=25 .*lr=25: 50.0% lower'
expect_out "^  $work/train 25 .*SEED"
run analyze metrics "$first" "$folder" objective=LOSS
expect_status 0
expect_out '^lr=25: [0-9.]+% lower loss than lr=50 .*2 runs each' # one plan: its runs are pooled, but for
expect_out "^2 runs are another study's repeat value for value" # the same seed
run analyze metrics before="$first" after="$folder" objective=loss
expect_out '^ +before: lr=25 ' # but for labels

# repeats that are copies give none, nor do copies of another program; an objective has to be reported
two=$folder
matrix copies '+experiment.matrix={lr: [50, 25]}' experiment.repeat=2 \
    "experiment.command='$work/train {lr} 0'" experiment.objective=bleu
expect_out '^  Warning: objective bleu: not reported; metrics read: loss, time, final_loss$'
run analyze metrics "$folder" objective=loss
expect_out '^loss from 0.25 \(lr=25\) to 0.5 \(lr=50\): inconclusive \(2 runs each\)\. The repeats$'
run analyze metrics "$folder" "$two" objective=loss
expect_status 0
expect_out '^ +two: lr=25 '
run run test_matrix "experiment.command=x" experiment.objective=loss:down --dry-run
expect_status 2
expect_err 'objective=loss:down: must be a metric.s name, or that with :min or :lower, :max or :higher'
run analyze metrics a="$two" a="$folder"
expect_status 2
expect_err "label 'a' is given to .*: give each a label of its own"
folder=$two
run analyze metrics "$folder" objective=bleu
expect_status 2
expect_err "no run reported 'bleu'"

# Given two keys of which one matters, then it is named, once, with a line to paste.
cat >"$work/train" <<'SCRIPT'
#!/bin/sh
echo "step 5: loss $1.$3"
SCRIPT
run run test_matrix "experiment.command='$work/train {lr} {batch} {repeat}'" '~experiment.matrix' \
    '+experiment.matrix={lr: [1, 2], batch: [16, 32]}' experiment.repeat=3 \
    experiment.name=keys output_dir="$work/outputs"
expect_status 0
expect_out '^Use lr=1: 2 has [0-9.]+% \[[0-9.]+, [0-9.]+\] higher loss \(95% CI, means over batch, 3 runs'
expect_out "^  Next +$work/train 1 16 \\$\{SEED:-0\}"
run report keys --format md
expect_out '^batch, mean over lr: no difference\. Not tested: lr below 1\.$'
run advise --study keys
expect_out '^Use lr=1: 2 has'

# Given values on stdout and their steps on stderr, then rereading shows the steps that they keep.
cat >"$work/train" <<'SCRIPT'
#!/bin/sh
for i in 1 2 3; do
    echo "step $i: loss $i.5" >&2
    sleep 0.1
    echo "val_loss: $i.25"
done
SCRIPT
run run test_matrix "experiment.command='$work/train'" 'experiment.matrix={}' \
    output_dir="$work/outputs"
run metrics reread --dry-run
expect_out '^ +gpu0_numa0_train +val_loss +0 +3 +3.25 +[1-3]$'

# Given lines of ranks in a form that is not known, then a pattern is suggested, and reads them later.
cat >"$work/train" <<'SCRIPT'
#!/bin/sh
for i in 1 2; do
    echo "[rank0]: objective = $i.5 at $i"
    echo "[rank1]: objective = $i.25 at ${i}00000"
done
SCRIPT
run run test_matrix "experiment.command='$work/train'" 'experiment.matrix={}' \
    'experiment.metrics.direction={objective: lower}' output_dir="$work/outputs"
expect_status 0
expect_out "no metric was read: the pattern 'objective [{]objective[}] at"
run metrics reread --pattern 'objective {objective} at {step}' --pattern 'no {no}' --dry-run
expect_status 0
expect_out '^ +gpu0_numa0_train +objective +1 +2 +2.25 +200,?000$'
expect_out '4 values would replace 0'
expect_out "the pattern 'no [{]no[}]' reads no line"
run export test_matrix --what metrics
[ "$(wc -l <"$work/out")" = 1 ] || fail "a dry run wrote metrics"
run metrics reread --pattern 'objective {objective} at {step}'
expect_status 0
run export test_matrix --what metrics
expect_out '^gpu0_numa0_train,1,objective,,2.25,,200000,$'
run show test_matrix
expect_out '^ +train +2.5 +2.25$'
! grep -q 'no metric was read' <"$work/out" || fail "the warning is still there"
run metrics reread --pattern 'nothing {here}'
expect_status 2
expect_err 'no value was read from the logs of 1 run: nothing was changed'
run metrics reread --pattern 'objective {other} at {step}' --pattern 'no {no}'
expect_status 2
expect_err "the pattern 'no [{]no[}]' reads no line of the logs: nothing was changed"
run metrics reread --pattern 'no number'
expect_status 2
expect_err "'no number': reads no number"
run export test_matrix --what metrics
[ "$(wc -l <"$work/out")" = 5 ] || fail "a refused pattern changed metrics"

# A value that was read during the run keeps its time, of a log that is cut the rest is known to be missing.
first=$(echo "$work"/outputs/one/*/*/logs/gpu0_numa0_lr25.stdout)
study=${first%/logs/*}
printf '\n=== 7 more bytes of stdout were dropped: the log keeps 9 of an attempt ===\n' >>"$first"
run export "$study" --what metrics
before=$(cat "$work/out")
run metrics reread "$study"
expect_status 0
expect_out 'the log holds only the first part of the'
run export "$study" --what metrics
[ "$(cat "$work/out")" = "$before" ] || fail "reading the same again changed metrics"
cp "$first" "$work/whole"
head -n 3 "$work/whole" >"$first" && tail -n 1 "$work/whole" >>"$first"
run metrics reread "$study"
expect_status 2
expect_err 'lr25: its log holds only the first part of the output, .* nothing was changed'
run export "$study" --what metrics
[ "$(cat "$work/out")" = "$before" ] || fail "a log that was cut took values away"
cp "$work/whole" "$first"
run metrics reread "$study" --json
python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["values_read"] == 28 and d["written"], d' <"$work/out" ||
    fail "its JSON is wrong"

# Nothing is changed while a study runs, nor where whoever reads is killed.
flock -o "$study/lock" sleep 2 &
holder=$!
sleep 0.3
run metrics reread "$study"
expect_status 2
expect_err 'is running'
kill $holder
wait $holder 2>/dev/null || true
GPULAB_FAILPOINT=before-reread-commit:1 run metrics reread "$study" --pattern 'Iter {other} loss {loss}'
expect_status 137
run export "$study" --what metrics
[ "$(cat "$work/out")" = "$before" ] || fail "a killed reading changed metrics"

# Given a launcher that prints the same twice, then each value keeps its time and rank; none is lost unasked. Its
# memory is that of both its processes.
cat >"$work/train" <<'SCRIPT'
#!/bin/sh
for i in 1 2; do python3 -c 'import time; b = b"x" * (60 << 20); time.sleep(2)' & done
for i in 1 1 2; do echo "step $i loss 0.5" && sleep 0.4; done # each is read before the next
echo "[rank1]: step 2 loss 0.7"
wait
SCRIPT
run run test_matrix device=cpu:0/2 'experiment.hardware.gpu_ids=[[0,1]]' experiment.processes=launcher \
    "experiment.command='$work/train'" 'experiment.matrix={}' experiment.name=launched output_dir="$work/outputs"
expect_status 0
study=$(echo "$work"/outputs/launched/*/*)
python3 - "$study" <<'END' || fail "$what: peak memory"
import json, sys
peak = json.load(open(f"{sys.argv[1]}/results.json"))[0]["peak_memory_mb"]
assert 119 < peak < 180, peak
END
run export "$study" --what metrics
before=$(cat "$work/out")
[ "$(cut -d, -f6 "$work/out" | sort -u | wc -l)" -ge 4 ] || fail "values have no times: $before"
run metrics reread "$study"
run export "$study" --what metrics
[ "$(cat "$work/out")" = "$before" ] || fail "reading a launcher's log again changed metrics: $(cat "$work/out")"
sed -i 1d "$study"/logs/*.stdout
run metrics reread "$study" --dry-run
expect_out 'Warning: 1 of 4 values would be lost'
run metrics reread "$study"
expect_status 2
expect_err "1 of the run's 4 values would be lost: nothing was changed"
run metrics reread "$study" --force
expect_out ' 3 values replaced 4'

# Given a program without a named number, then the warning shows a line of its output.
run run test_matrix 'experiment.command="echo 3 files ready"' 'experiment.matrix={}' output_dir="$work/outputs"
expect_out "no metric was read from its output, such as '3 files ready'"

# Given a bar and then epochs, then the program's pace is that of its epochs. Read again, stdout and stderr come in
# another order: no value is lost, and each keeps its time.
cat >"$work/train" <<'SCRIPT'
#!/bin/sh
for i in 1 2 3 4; do
    echo " ${i}0%|#   | $i/10 [00:01<00:09,  1.00it/s]" >&2
    echo "{'loss': '$i.5', 'epoch': '$i.0'}"
    echo "val loss 0.$i" >&2
done
SCRIPT
run run test_matrix "experiment.command='$work/train'" 'experiment.matrix={}' output_dir="$work/outputs"
expect_err '\] train: [0-9.]+ ((thousand|million) )?epochs/h'
run export test_matrix --what metrics
expect_out ',iterations_per_s,iterations/s,1.0,[0-9]+,1,'
expect_out ',loss,,4.5,[0-9]+,4,'
timed() { cut -d, -f1-6 "$work/out" | sort; }
before=$(timed)
run metrics reread test_matrix
expect_status 0
run export test_matrix --what metrics
[ "$(timed)" = "$before" ] || fail "two streams, read again: $(diff <(echo "$before") <(timed))"

# a program that goes on beyond its last step is no flood of events
printf '#!/bin/sh\nseq 200000 | sed "s|.*|step &/5 loss 1.5|"\n' >"$work/train"
run run test_matrix "experiment.command='$work/train'" 'experiment.matrix={}' output_dir="$work/last" --no-report
expect_status 0

finish
