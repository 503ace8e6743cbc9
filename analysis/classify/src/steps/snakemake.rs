//! Snakemake's records of its jobs, `.snakemake/metadata`: rules by the commands that their jobs ran, and what files are made
//! from.
//!
//! Source: snakemake/persistence.py. There is a file for each output of a job: its name is the path of the output in URL-safe
//! base64, cut into directories whose names begin with `@` if it is long; its content is a JSON object.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use serde::Deserialize;

use super::declared::{Declared, Row};
use crate::error::RulesError;

/// The file of one output.
#[derive(Debug)]
pub struct SnakemakeRecord {
    /// Its path below the directory of all of them.
    pub path: Vec<u8>,
    /// What is in it.
    pub content: Vec<u8>,
}

#[derive(Deserialize)]
struct Record {
    rule: String,
    #[serde(default)]
    input: Vec<String>,
    /// None of a rule that runs Python.
    #[serde(default)]
    shellcmd: Option<String>,
    /// The same for all outputs of a job; missing in records of older versions.
    #[serde(default)]
    job_hash: Option<i64>,
    #[serde(default)]
    incomplete: bool,
}

/// What the records of all outputs of a job have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    rule: String,
    command: Option<String>,
    hash: Option<i64>,
    input: Vec<String>,
}

/// A job, which may have several outputs.
struct Job {
    /// In order.
    outputs: Vec<String>,
    record: Record,
}

impl SnakemakeRecord {
    /// Longest record, in bytes: it has a checksum of each input.
    pub const BYTES_MAX: u64 = 64 << 20;

    /// True if a record may have this path.
    pub fn is_path(path: &[u8]) -> bool {
        output(path).is_some()
    }
}

/// The path of the output that a record is of; `None` if the name is not that of a record.
fn output(path: &[u8]) -> Option<String> {
    let mut parts = path.split(|byte| *byte == b'/').rev();
    let last = parts.next()?;
    let mut chunks = vec![last];
    for directory in parts {
        chunks.push(directory.strip_prefix(b"@")?);
    }
    chunks.reverse();
    String::from_utf8(URL_SAFE.decode(chunks.concat()).ok()?).ok()
}

fn jobs(source: &str, records: &[SnakemakeRecord]) -> Result<Vec<Job>, RulesError> {
    let mut jobs: BTreeMap<Key, Job> = BTreeMap::new();
    let mut seen = 0_usize;
    for SnakemakeRecord { path, content } in records {
        let Some(output) = output(path) else { continue };
        // Snakemake that is killed may leave one that is cut off.
        let Ok(record) = serde_json::from_slice::<Record>(content) else { continue };
        seen += 1;
        if record.incomplete {
            continue;
        }
        let key = Key {
            rule: record.rule.clone(),
            command: record.shellcmd.clone(),
            hash: record.job_hash,
            input: record.input.clone(),
        };
        let job = jobs.entry(key).or_insert_with(|| Job { outputs: Vec::new(), record });
        job.outputs.push(output);
    }
    if seen == 0 {
        return Err(RulesError {
            name: source.to_owned(),
            line: 1,
            column: 1,
            message:
                "no record of Snakemake can be read in this directory; it is called .snakemake/metadata"
                    .to_owned(),
        });
    }
    let mut jobs: Vec<Job> = jobs.into_values().collect();
    jobs.iter_mut().for_each(|job| job.outputs.sort_unstable());
    Ok(jobs)
}

impl Declared {
    /// Adds what Snakemake recorded of its jobs. `source` is the directory, for messages.
    ///
    /// A job is called by its first output, as its wildcards are not recorded; its group is the rule. Jobs without a shell
    /// command are known by their rules only ([analysis/rules/steps/snakemake.toml]).
    ///
    /// # Errors
    /// If none of the files is a record that can be read. Others are left out.
    pub fn add_snakemake(
        &mut self,
        source: &str,
        records: &[SnakemakeRecord],
    ) -> Result<(), RulesError> {
        let wrong = |message: &str| RulesError {
            name: source.to_owned(),
            line: 1,
            column: 1,
            message: message.to_owned(),
        };
        for Job { outputs, record } in jobs(source, records)? {
            for output in &outputs {
                let made_from = record.input.iter().map(String::as_bytes);
                self.graph_mut().add_made(output.as_bytes(), made_from).map_err(wrong)?;
            }
            let name = outputs.into_iter().next().unwrap_or_default();
            if let Some(command) = record.shellcmd {
                self.add(Row::of_shell(name, record.rule, command)).map_err(wrong)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(output: &str, content: &str) -> SnakemakeRecord {
        SnakemakeRecord { path: URL_SAFE.encode(output).into(), content: content.into() }
    }

    /// As Snakemake 9.27.1 wrote it, shortened.
    const MERGE: &str = r#"{"rule": "merge", "input": ["out/0.py", "out/1.py"], "log": [],
        "shellcmd": "cat out/0.py out/1.py > out/final.txt; touch out/a.txt", "params": [], "record_format_version": 6,
        "job_hash": 8794918348159, "starttime": 1795817581.67, "endtime": 1795817581.7423337, "incomplete": false}"#;

    #[test]
    fn outputs_of_a_job_are_one_step() {
        let mut declared = Declared::default();
        // Older versions have no hash.
        let later = MERGE.replace("81.742", "81.748").replace("job_hash", "job_name");
        let merge = MERGE.replace("job_hash", "job_name");
        let records = [record("out/final.txt", &merge), record("out/a.txt", &later)];
        let mut old = Declared::default();
        old.add_snakemake("metadata", &records).unwrap();
        assert_eq!(old.steps.len(), 1);
        let later = MERGE.replace("81.742", "81.748");
        let records = [record("out/final.txt", MERGE), record("out/a.txt", &later)];
        declared.add_snakemake("metadata", &records).unwrap();
        let told: Vec<_> =
            declared.steps.iter().map(|it| (&*it.name, it.group.as_deref())).collect();
        assert_eq!(told, [("out/a.txt", Some("merge"))]);
        let made = |path: &str| declared.graph.made(path.as_bytes(), b"/job");
        let both = [made("/job/out/a.txt").unwrap(), made("/job/out/final.txt").unwrap()];
        for file in both {
            assert_eq!(declared.graph.direct(file).len(), 2);
        }
        assert_eq!(made("/job/out/0.py"), None, "nothing is said of who makes it");
    }

    #[test]
    fn long_paths_are_in_directories() {
        let long = format!("out/{}", "x".repeat(300));
        let name = URL_SAFE.encode(&long);
        let path = format!("@{}/{}", &name[..254], &name[254..]);
        assert_eq!(output(path.as_bytes()).as_deref(), Some(&*long));
        assert_eq!(output(b"plain/b3V0"), None);
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        let of = |records: &[SnakemakeRecord]| {
            Declared::default().add_snakemake("m", records).unwrap_err().to_string()
        };
        assert!(of(&[]).contains(".snakemake/metadata"), "{}", of(&[]));
        let cut = || record("out/x", "{\n \"rule\": ");
        assert!(of(&[cut()]).contains("can be read"));
        // One that is cut off does not hide the others.
        let mut declared = Declared::default();
        declared.add_snakemake("m", &[cut(), record("out/a.txt", MERGE)]).unwrap();
        assert_eq!(declared.steps.len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_records_or_an_error(path: Vec<u8>, content: Vec<u8>) {
            let mut declared = Declared::default();
            let _ = declared.add_snakemake("m", &[SnakemakeRecord { path, content }]);
        }
    }
}
