//! Requests in the syntax of batch systems and of the engines of workflows.
//!
//! Sources: Slurm's sbatch(1); HTCondor's condor_submit(1); Snakemake's profiles (`set-threads`, `set-resources`); Nextflow's configuration
//! (`process { withName }`).

use std::fmt::Write;

use proctrace_findings::Request;

const KIBIBYTE: u64 = 1 << 10;
const MEBIBYTE: u64 = 1 << 20;
const MEGABYTE: u64 = 1_000_000;
const MINUTE_NS: u64 = 60_000_000_000;

/// Who reads the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestSyntax {
    /// `#SBATCH` lines of a job script, and the options for each group of steps as comments.
    Slurm,
    /// Commands of a submit description, and those for each group of steps as comments.
    HtCondor,
    /// A profile of Snakemake.
    Snakemake,
    /// A configuration of Nextflow.
    Nextflow,
}

impl RequestSyntax {
    /// The coordinator whose steps the requests are of; `None` for any.
    pub fn coordinator(self) -> Option<&'static str> {
        match self {
            Self::Slurm | Self::HtCondor => None,
            Self::Snakemake => Some("snakemake"),
            Self::Nextflow => Some("nextflow"),
        }
    }

    /// The requests as text.
    pub fn write(self, requests: &[Request]) -> String {
        let (jobs, groups): (Vec<_>, Vec<_>) =
            requests.iter().partition(|request| request.group.is_none());
        match self {
            Self::Slurm => slurm(&jobs, &groups),
            Self::HtCondor => script(&jobs, &groups, ("", ", "), condor_commands),
            Self::Snakemake => snakemake(&named(&groups)),
            Self::Nextflow => nextflow(&named(&groups)),
        }
    }

    /// Number of the groups whose names this syntax can say.
    pub fn groups(self, requests: &[Request]) -> usize {
        let groups: Vec<&Request> =
            requests.iter().filter(|request| request.group.is_some()).collect();
        match self {
            Self::Slurm | Self::HtCondor => groups.len(),
            Self::Snakemake | Self::Nextflow => named(&groups).len(),
        }
    }
}

/// The groups that have the name of a rule or process. Other names are commands, and selectors are patterns, in which
/// other characters would match other names.
fn named<'a>(groups: &[&'a Request]) -> Vec<(&'a str, &'a Request)> {
    let is_word = |name: &str| {
        let is_letter =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':');
        name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(is_letter)
    };
    let groups = groups.iter().filter_map(|request| Some((request.group.as_deref()?, *request)));
    groups.filter(|(name, _)| is_word(name)).collect()
}

/// A line for each of what is requested for the job, and a comment with all of it for each group.
fn script(
    jobs: &[&Request],
    groups: &[&Request],
    (prefix, separator): (&str, &str),
    lines: fn(&Request) -> Vec<String>,
) -> String {
    let mut text = String::new();
    for job in jobs {
        for line in lines(job) {
            let _ = writeln!(text, "{prefix}{line}");
        }
    }
    for group in groups {
        // A name may contain the end of a line, which would end the comment.
        let name = group.group.as_deref().unwrap_or_default().escape_default();
        let _ = writeln!(text, "# a step of {name}: {}", lines(group).join(separator));
    }
    text
}

/// Disk space is a comment: Slurm refuses a job that asks for it where a site has not said what its nodes have, which is so
/// by default (slurm.conf(5), TmpDisk).
fn slurm(jobs: &[&Request], groups: &[&Request]) -> String {
    let mut text = script(jobs, &[], ("#SBATCH ", " "), slurm_options);
    for bytes in jobs.iter().filter_map(|job| job.disk_bytes) {
        let mebibytes = bytes.div_ceil(MEBIBYTE);
        let _ = writeln!(text, "# where slurm.conf has TmpDisk: --tmp={mebibytes}M");
    }
    text + &script(&[], groups, ("#SBATCH ", " "), slurm_options)
}

fn slurm_options(request: &Request) -> Vec<String> {
    let minutes = request.wall_ns / MINUTE_NS;
    let mut options = Vec::new();
    options.extend(request.cores.map(|cores| format!("--cpus-per-task={cores}")));
    options
        .extend(request.memory_bytes.map(|bytes| format!("--mem={}M", bytes.div_ceil(MEBIBYTE))));
    options.push(format!("--time={:02}:{:02}:00", minutes / 60, minutes % 60));
    options
}

/// HTCondor has no limit of wall time unless a site adds one.
fn condor_commands(request: &Request) -> Vec<String> {
    let cores = request.cores.map(|cores| format!("request_cpus = {cores}"));
    // In MiB.
    let memory =
        request.memory_bytes.map(|bytes| format!("request_memory = {}", bytes.div_ceil(MEBIBYTE)));
    // In KiB, of what is written: files that are transferred to the job are to be added.
    let disk =
        request.disk_bytes.map(|bytes| format!("request_disk = {}", bytes.div_ceil(KIBIBYTE)));
    cores.into_iter().chain(memory).chain(disk).collect()
}

fn snakemake(groups: &[(&str, &Request)]) -> String {
    let mut text = String::new();
    let mut with_cores = groups.iter().filter(|(_, of)| of.cores.is_some()).peekable();
    if with_cores.peek().is_some() {
        text.push_str("set-threads:\n");
    }
    for (name, request) in with_cores {
        let _ = writeln!(text, "  {name}: {}", request.cores.unwrap_or(1));
    }
    if !groups.is_empty() {
        text.push_str("set-resources:\n");
    }
    for (name, request) in groups {
        let _ = writeln!(text, "  {name}:");
        if let Some(bytes) = request.memory_bytes {
            let _ = writeln!(text, "    mem_mb: {}", bytes.div_ceil(MEGABYTE));
        }
        if let Some(bytes) = request.disk_bytes {
            let _ = writeln!(text, "    disk_mb: {}", bytes.div_ceil(MEGABYTE));
        }
        let _ = writeln!(text, "    runtime: {}", request.wall_ns / MINUTE_NS);
    }
    text
}

fn nextflow(groups: &[(&str, &Request)]) -> String {
    let mut text = String::from("process {\n");
    for (name, request) in groups {
        let _ = writeln!(text, "    withName: '{name}' {{");
        if let Some(cores) = request.cores {
            let _ = writeln!(text, "        cpus = {cores}");
        }
        if let Some(bytes) = request.memory_bytes {
            let _ = writeln!(text, "        memory = {}.MB", bytes.div_ceil(MEBIBYTE));
        }
        if let Some(bytes) = request.disk_bytes {
            let _ = writeln!(text, "        disk = {}.MB", bytes.div_ceil(MEBIBYTE));
        }
        let _ = writeln!(text, "        time = {}.min\n    }}", request.wall_ns / MINUTE_NS);
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::MemoryFrom;

    fn request(group: Option<&str>, memory_bytes: Option<u64>) -> Request {
        Request {
            group: group.map(str::to_owned),
            steps: 3,
            cores_used: Some(1.5),
            cores: Some(2),
            memory_used_bytes: memory_bytes,
            memory_from: MemoryFrom::Pss,
            memory_bytes,
            disk_used_bytes: memory_bytes,
            disk_bytes: memory_bytes.map(|bytes| 2 * bytes),
            wall_used_ns: 59 * MINUTE_NS,
            wall_ns: 90 * MINUTE_NS,
        }
    }

    fn all() -> Vec<Request> {
        let hostile = "a'\n#SBATCH --wrap=x";
        vec![
            request(None, Some(1_050_000_000)),
            request(Some("align"), Some(500_000_000)),
            request(Some(hostile), None),
        ]
    }

    #[test]
    fn slurm_has_lines_for_the_job_and_comments_for_steps() {
        let expected = "#SBATCH --cpus-per-task=2\n#SBATCH --mem=1002M\n#SBATCH --time=01:30:00\n\
            # where slurm.conf has TmpDisk: --tmp=2003M\n\
            # a step of align: --cpus-per-task=2 --mem=477M --time=01:30:00\n\
            # a step of a\\'\\n#SBATCH --wrap=x: --cpus-per-task=2 --time=01:30:00\n";
        assert_eq!(RequestSyntax::Slurm.write(&all()), expected);
        assert_eq!(RequestSyntax::Slurm.groups(&all()), 2);
    }

    #[test]
    fn condor_has_commands_for_the_job_and_comments_for_steps() {
        let expected = "request_cpus = 2\nrequest_memory = 1002\nrequest_disk = 2050782\n\
            # a step of align: request_cpus = 2, request_memory = 477, request_disk = 976563\n\
            # a step of a\\'\\n#SBATCH --wrap=x: request_cpus = 2\n";
        assert_eq!(RequestSyntax::HtCondor.write(&all()), expected);
        assert_eq!(RequestSyntax::HtCondor.groups(&all()), 2);
    }

    #[test]
    fn engines_have_only_groups_with_names_of_theirs() {
        let snakemake = RequestSyntax::Snakemake.write(&all());
        assert_eq!(
            snakemake,
            "set-threads:\n  align: 2\nset-resources:\n  align:\n    mem_mb: 500\n    disk_mb: 1000\n    runtime: 90\n"
        );
        assert_eq!(
            RequestSyntax::Nextflow.write(&all()),
            "process {\n    withName: 'align' {\n        cpus = 2\n        memory = 477.MB\n        \
             disk = 954.MB\n        \
             time = 90.min\n    }\n}\n"
        );
        assert_eq!(RequestSyntax::Nextflow.groups(&all()), 1);
    }
}
