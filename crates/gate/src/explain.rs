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
        Code::Unknown => UNKNOWN,
    };
    format!("{code}: {}\n\n{}", code.title(), body.trim_start())
}

const COUNT: &str = "
A number of things that happened (processes, execs, failed look-ups) is worse
than the baseline by more than the rule's relative limit. Such numbers do not
depend on how busy the machine is, so they are compared exactly: with one
baseline against its number, with several against the worst of them. It is a
regression if every run of the candidate lies beyond that.

What to do: look at what changed with it, below the finding: who starts the
command, which directory is searched. If the change is wanted, record a new
baseline. If the number differs from run to run, give several baselines, or
allow for it with min_change or a greater relative_percent.
";

const ABSOLUTE: &str = "
A figure is beyond the absolute limit of its rule in every run of the
candidate. No baseline is needed for that.

What to do: look at the largest contributors below the finding. If the limit is
too tight, raise it where the finding says it is written.
";

const MEASURED: &str = "
Something that differs from run to run (CPU time, elapsed time, memory, context
switches) is worse than the baseline by more than the rule's relative limit, and
noise does not explain it. Both must hold for that:
  - the whole interval of the ratio of means lies beyond the limit (bootstrap,
    95 %);
  - if the true ratio were only just the limit, runs as bad as these would be
    seen less than once in 100 times (Mann-Whitney test, which assumes nothing
    about the noise).
In simulations two equal sides fail in less than 1 of 100 comparisons, whatever
the limit and the noise. With 5 runs on each side and noise of 3 %, 10 % more is
found in 90 of 100 cases with a limit of 0 %, in 73 with 2 %, and in 31 with 5 %
(with noise of 1 % in nearly all). Where it is not found it is inconclusive
(PT004), and no pass.

What to do: look at which command's CPU time grew, below the finding, and
whether it also runs more often.
";

const NOISE: &str = "
The interval of the ratio reaches from within the limit to beyond it: these runs
do not tell whether it is kept. That is neither a pass nor a regression.

What to do: record more runs on each side (the interval narrows with the root of
their number), on a quieter machine; or allow for the noise with a greater
relative_percent. A limit of 0 % on something measured can hardly be kept. To
have it said without failing, set inconclusive = \"warn\".
";

const FEW_RUNS: &str = "
Something measured has a relative limit, and there are too few runs to tell a
change from noise. An interval takes 3 runs on each side. A regression takes as
many as make it less likely than 1 in 100 that all runs of the candidate are
worse by chance: 5 on each side, or 4 against 5.

What to do: record 5 runs on each side. To have it said without failing, set
inconclusive = \"warn\".
";

const RUNS_DISAGREE: &str = "
Some runs of the candidate are beyond the limit, and others are not. For an
absolute limit one run beyond it is enough for this finding; for a count against
the baselines, more than half of them.

What to do: find out why runs of the same payload differ (a race, a retry, a
cache that is filled by the first run), or allow for it with a greater limit.
";

const UNMATCHED: &str = "
A rule is about nothing that was recorded, on either side. Either what it limits
does not happen any more, and the rule can go; or a value of its labels is
misspelt, and it would never have fired.

What to do: compare with the names that `proctrace metrics` prints. If it is
right that there is nothing, set unmatched = \"allow\" for the rule. To fail
on this, set unmatched = \"deny\".
";

const SHADOWED: &str = "
Of the rules about a figure the last one decides. For everything this rule is
about there is a later one, so it has no effect.

What to do: remove it, or put patterns before their exceptions.
";

const NO_BASELINE: &str = "
A rule limits the change against a baseline, and none was given. Its absolute
limit, if it has one, was checked.

What to do: give --baseline with a trace or the output of `proctrace metrics`,
several times for several runs.
";

const NOT_MEASURED: &str = "
A figure is there in some runs and was not measured in others, so they cannot be
compared.

What to do: record all of them with the same options. peak_pss_bytes needs
`record --memory`.
";

const DOUBTFUL: &str = "
A recording lost events, is damaged, or its books do not balance, so its figures
may be too small. It was compared because that was asked for.

What to do: record it again; `proctrace check` says what is wrong. Losses are
avoided with greater buffers, or --on-full block.
";

const UNKNOWN: &str = "
A rule is about a figure that one of the recordings does not know: it was left
out while recording (record --misses, --no-env, without --memory), the source of
the recording has no such figure, or too few scheduler ticks hit the payload to
divide its CPU time. What is not known is not 0, so nothing is judged, and the
exit status is 1, as for a recording that cannot be trusted.

What to do: record again with what the rule needs (proctrace metrics --format
json lists what is unknown, and why), or remove the rule. --allow-doubts judges
the other figures and makes a warning of this.
";

const OTHER_MACHINE: &str = "
The sides were recorded with different numbers of CPUs. Counts can be compared
where the payload does not start as many workers as there are CPUs; CPU time and
elapsed time cannot.

What to do: record both sides on the same kind of machine.
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
