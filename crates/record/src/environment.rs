//! Blocks of environment variables as the kernel has them, and what they tell of a batch job.

use std::collections::BTreeMap;

use proctrace_trace::JOB_VARIABLES;
use proctrace_wire::escape::to_text;

/// Maximum length of a value that is an identifier.
const JOB_VALUE_BYTES_MAX: usize = 1024;

/// The variables of a block, name and value: NAME=value, each with its NUL.
pub fn variables(block: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    block.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        Some((&variable[..at], &variable[at + 1..]))
    })
}

/// The variables by which a command knows its batch job. Of several with one name the first counts, as for getenv(3).
pub fn job_variables<'a>(
    all: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, value) in all {
        if let Some(known) = JOB_VARIABLES.iter().find(|known| known.as_bytes() == name) {
            found.entry(*known).or_insert(value);
        }
    }
    let fits = |value: &[u8]| !value.is_empty() && value.len() <= JOB_VALUE_BYTES_MAX;
    let found = found.into_iter().filter(|(_, value)| fits(value));
    found.map(|(name, value)| (name.to_owned(), to_text(value).into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_taken_apart() {
        let got: Vec<_> = variables(b"A=1\0B=x=y\0\0odd\0C=\xff\0").collect();
        assert_eq!(got, [(&b"A"[..], &b"1"[..]), (b"B", b"x=y"), (b"C", b"\xff")]);
    }

    #[test]
    fn only_identifiers_of_batch_jobs_are_kept() {
        let long = [b"PBS_JOBID=", &[b'x'; JOB_VALUE_BYTES_MAX + 1][..], b"\0"].concat();
        let block = [b"SLURM_JOB_ID=7\0SLURM_JOB_ID=8\0HOME=/\0PBS_QUEUE=\0", &long[..]].concat();
        let found = job_variables(variables(&block));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("SLURM_JOB_ID".into(), "7".into())]);
    }
}
