//! Explanations of the codes for `gate explain CODE`: meaning, reason, and what to do.

use crate::code::Code;

/// The explanation of a code in a few paragraphs, wrapped to 80 characters.
pub fn explain(code: Code) -> String {
    let body = match code {
        Code::Count => COUNT,
        Code::Absolute => ABSOLUTE,
        Code::Measured => MEASURED,
        Code::Noise => NOISE,
        Code::FewRuns => FEW_RUNS,
        Code::RunsDisagree => RUNS_DISAGREE,
        Code::Unmatched => UNMATCHED,
        Code::Shadowed => SHADOWED,
        Code::NoBaseline => NO_BASELINE,
        Code::NotMeasured => NOT_MEASURED,
        Code::Doubtful => DOUBTFUL,
        Code::OtherMachine => OTHER_MACHINE,
        Code::Busy => BUSY,
        Code::Unknown => UNKNOWN,
    };
    format!("{code}: {}\n\n{}", code.title(), body.trim_start())
}

const COUNT: &str = "
A count (processes, execs, failed look-ups) is worse than the baseline by more
than the relative limit of its rule. Counts do not depend on the load of the
machine, so they are compared exactly: with the value of a single baseline, or
with the worst of several. It is a regression if every run of the candidate is
beyond the limit.

What to do: look at the related changes listed below the finding: which program
starts the command, which directory is searched. If the change is intended,
record a new baseline. If the count varies between runs, give several baselines,
or allow for the variation with min_change or a larger relative_percent.
";

const ABSOLUTE: &str = "
A metric is beyond the absolute limit of its rule in every run of the candidate.
This needs no baseline.

What to do: look at the largest contributors listed below the finding. If the
limit is too tight, change it at the location given in the finding.
";

const MEASURED: &str = "
A measurement (CPU time, elapsed time, memory, context switches) is worse than
the baseline by more than the relative limit of its rule, and noise does not
explain the difference. Both of these conditions are met:
  - the 95 % bootstrap interval of the ratio of means lies entirely beyond the
    limit;
  - if the true ratio were exactly at the limit, runs as bad as these would
    occur in less than 1 of 100 cases (Mann-Whitney test, which makes no
    assumption about the distribution of the noise).
In simulations, two equal sides fail in less than 1 of 100 comparisons, whatever
the limit and the noise. With 5 runs on each side and 3 % noise, an increase of
10 % is found in 90 of 100 cases with a limit of 0 %, in 73 with 2 %, and in 31
with 5 % (with 1 % noise in nearly all). An increase that is not found is
reported as inconclusive (PT004), and does not pass.

What to do: look at which command's CPU time increased, listed below the
finding, and whether the command also runs more often.
";

const NOISE: &str = "
The interval of the ratio extends from within the limit to beyond it, so these
runs do not show whether the limit is met; or all of it lies beyond the limit,
but runs as bad as these would occur by chance in more than 1 of 100 cases
(Mann-Whitney test, see PT003): with 5 runs on each side, a single good run
that is slower than a bad one can be the reason. This is neither a pass nor a
regression.

What to do: record more runs on each side (the interval narrows with the square
root of their number), on a quieter machine; or allow for the noise with a
larger relative_percent. A limit of 0 % on a measurement can hardly be met. To
report this without failing, set inconclusive = \"warn\".
";

const FEW_RUNS: &str = "
A measurement has a relative limit, and there are too few runs to distinguish a
change from noise. An interval needs 3 runs on each side. A regression needs so
many that all runs of the candidate are worse by chance in less than 1 of 100
cases: 5 on each side, or 4 against 5.

Or all runs are beyond the absolute limit of a rule with min_runs, which says
how many are needed: CPU time may nearly double while other jobs run on the
machine, so a single run proves little.

What to do: record 5 runs on each side. To report this without failing, set
inconclusive = \"warn\".
";

const RUNS_DISAGREE: &str = "
Some runs of the candidate are beyond the limit, and others are not. For an
absolute limit, one run beyond it is enough for this finding; for a count
compared with baselines, it takes more than half of the runs.

What to do: find out why runs of the same payload differ (a race, a retry, a
cache filled by the first run), or allow for the variation with a looser limit.
";

const UNMATCHED: &str = "
A rule matches no recorded metric on either side. Either what it limits no
longer occurs, and the rule can be removed; or the value of a label is misspelt,
and the rule never had an effect.

What to do: compare the rule with the names printed by `proctrace metrics`. If
no match is expected, set unmatched = \"allow\" for the rule. To fail in this
case, set unmatched = \"deny\".
";

const SHADOWED: &str = "
If several rules match a metric, the last one decides. Every metric that this
rule matches is matched by a later rule as well, so this rule has no effect.

What to do: remove it, or put patterns before their exceptions.
";

const NO_BASELINE: &str = "
A rule limits the change from a baseline, and no baseline was given. Its
absolute limit, if it has one, was checked.

What to do: give --baseline with a trace or the output of `proctrace metrics
--format json`, once for each run.
";

const NOT_MEASURED: &str = "
A metric was measured in some runs and not in others, so they cannot be
compared.

What to do: record all runs with the same options. peak_pss_bytes needs
`record --memory`.
";

const DOUBTFUL: &str = "
A recording lost records, is damaged, or fails a consistency check, so its
metrics may be too small. It was judged because --allow-doubts was given.

What to do: record it again; `proctrace check` lists the problems. To avoid
losses, use larger buffers or --on-full block.
";

const UNKNOWN: &str = "
A rule selects a metric that is not available in one of the recordings: it was
excluded when recording (record --misses, --no-env, without --memory), the
source of the recording does not provide it, or too few scheduler ticks hit the
payload to split its CPU time. A missing value is not 0, so nothing is judged,
and the exit status is 1, as for a recording that cannot be trusted.

What to do: record again with what the rule needs (proctrace metrics --format
json lists the metrics that are not available, and why), or remove the rule.
With --allow-doubts the other metrics are judged, and this becomes a warning.
";

const OTHER_MACHINE: &str = "
The two sides were recorded with different numbers of CPUs. Counts can be
compared unless the payload starts as many workers as there are CPUs; CPU time
and elapsed time cannot.

What to do: record both sides on the same kind of machine.
";

const BUSY: &str = "
While one side was recorded, others used at least 10 percentage points more of
the machine's CPUs than while the other side was (the median of the runs of each
side). Counts can be compared. Wall time is longer on a busy machine, and CPU
time often is, too, as caches and cores are shared.

What to do: record again on a quiet machine, or both sides in turn
(proctrace gate run), before a difference of times is believed.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_and_fits_a_terminal() {
        for code in Code::ALL {
            let text = explain(*code);
            assert!(text.starts_with(&format!("{code}: ")) && text.contains("What to do"));
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
