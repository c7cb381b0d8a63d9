"""Statistics of bench/against: the ratio of two programs' times, its interval, the verdict.

A block gives one log ratio per measure: the best time of new over the best time of REF. The order
within a block is random, so log ratios of two equal programs are symmetric about 0 under any noise.
Wilcoxon's signed-rank interval needs symmetry alone, and one disturbed block moves it little.
"""
import collections
import functools
import math
import random
import statistics

BOUND = 1.05    # a ratio fails if its whole interval is above this
SCREEN = 0.025  # one-sided level of the first interval: 95% two-sided
ALARM = 0.01    # probability that equal programs fail, over all ratios of a comparison
LEAST_BLOCKS = 6
LEAST_AGAIN = 24  # finds 10% in 9 of 10 rows where samples vary by 3%
SIDES = ("ref", "new")

Estimate = collections.namedtuple("Estimate", "ratio low high")


@functools.lru_cache(maxsize=None)
def rank_sum_cut(count, level):
    """The largest c with P(signed-rank sum of `count` values ≤ c) ≤ level; −1 if there is none."""
    subsets = [1]  # number of subsets of the ranks by their sum
    for rank in range(1, count + 1):
        longer = subsets + [0] * rank
        for total, number in enumerate(subsets):
            longer[total + rank] += number
        subsets = longer
    below, cut = 0, -1
    for number in subsets:
        below += number
        if below > level * 2 ** count:
            break
        cut += 1
    return cut


def estimate(logs, level):
    """Hodges-Lehmann estimate with its interval, whose error is at most `level` on each side."""
    cut = rank_sum_cut(len(logs), level)
    if cut < 0:
        raise ValueError(f"{len(logs)} blocks are too few for a level of {level:g}")
    means = sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])
    values = statistics.median(means), means[cut], means[-1 - cut]
    return Estimate(*(math.exp(value) for value in values))


def is_suspect(found):
    """Measured again: the estimate is above the bound and the interval above 1."""
    return found.ratio > BOUND and found.low > 1


class SampleError(Exception):
    """A program can't do a row: its side and its message."""

    def __init__(self, side, text):
        super().__init__(text)
        self.side = side


class Result:
    """A row with its log ratios and its estimates, by measure."""

    def __init__(self, row):
        self.row = row
        self.reference = {}  # best time of REF, in seconds
        self.logs = {}
        self.estimates, self.blocks, self.confirmed = {}, {}, set()
        self.skipped = self.failed = None

    def is_measured(self):
        return not self.skipped and not self.failed

    def attempt(self, action):
        """Notes which program can't do the row."""
        try:
            action()
        except SampleError as error:
            if error.side == "ref":
                self.skipped = str(error)
            else:
                self.failed = str(error)

    def warm_up(self, sample):
        """One sample per program, not counted. REF first: a row that neither can do is skipped."""
        for side in SIDES:
            sample(self.row, side)

    def add_block(self, sample, generator):
        """Both programs in turn, ABBA or BAAB, repeated as the row requires."""
        first, second = generator.sample(SIDES, 2)
        best = {side: {} for side in SIDES}
        for side in (first, second, second, first) * self.row.turns:
            for measure, seconds in sample(self.row, side).items():
                best[side][measure] = min(seconds, best[side].get(measure, math.inf))
        for measure, seconds in best["ref"].items():
            self.logs.setdefault(measure, []).append(math.log(best["new"][measure] / seconds))
            self.reference[measure] = min(seconds, self.reference.get(measure, math.inf))

    def settle(self, measures, level):
        for measure in measures:
            self.estimates[measure] = estimate(self.logs[measure], level)
            self.blocks[measure] = len(self.logs[measure])

    def suspects(self):
        return [measure for measure, found in self.estimates.items() if is_suspect(found)]

    def verdict(self, measure):
        found = self.estimates[measure]
        if found.low > BOUND and measure in self.confirmed:
            return "SLOWER"
        return "ok" if found.high <= BOUND else "unclear"


def measure_blocks(results, blocks, sample, generator, progress):
    """Round robin over the rows: a short disturbance hits at most one block per row."""
    for number in range(blocks):
        for result in results:
            if result.is_measured():
                progress(number + 1, blocks, result.row.name)
                result.attempt(lambda: result.add_block(sample, generator))


def compare(rows, blocks, sample, generator=None, progress=lambda *_: None):
    """One result per row. `sample(row, side)` returns seconds by measure or raises SampleError.

    Suspects are measured again in three times as many blocks. Their verdict depends on the new
    blocks alone, at a level that is corrected for the number of ratios.
    """
    generator = generator or random.Random()
    results = [Result(row) for row in rows]
    for result in results:
        result.attempt(lambda: result.warm_up(sample))
    measure_blocks(results, blocks, sample, generator, progress)
    measured = [result for result in results if result.is_measured()]
    for result in measured:
        result.settle(result.logs, SCREEN)
    ratios = sum(len(result.logs) for result in measured)
    again = {result: result.suspects() for result in measured if result.suspects()}
    for result in again:
        result.logs = {}
    measure_blocks(list(again), max(LEAST_AGAIN, 3 * blocks), sample, generator, progress)
    for result, measures in again.items():
        if result.is_measured():
            result.settle(measures, ALARM / ratios)
            result.confirmed.update(measures)
    return results
