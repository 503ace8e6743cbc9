//! Requests: what to ask a batch system for, for the job and by group of steps.

use proctrace_findings::{Mismatch, Request, Resource, Table, Unit, Values};
use proctrace_overview::disk::disk_space_of;
use proctrace_overview::options::{Content, Options};
use proctrace_overview::requested::mismatches;
use proctrace_overview::requests::{job_request, step_requests};
use proctrace_overview::steps::sums;
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

/// Quantities of CPUs over time.
const OF_JOB: &[Quantity] = &[Quantity::Cpu, Quantity::Times, Quantity::Samples];

pub(crate) fn section(recording: &Recording, _: &Options) -> Content {
    let sums = sums(recording);
    let disk = disk_space_of(recording, &sums);
    let groups = step_requests(recording, &sums, disk.as_ref(), None);
    let mut tables = Vec::new();
    if !groups.is_empty() {
        let name = |request: &Request| request.group.clone();
        let table = Table::new("step_requests", "What to request for a step of each group")
            .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Argv])
            .column("group", "group", Unit::Text, Values::Text(groups.iter().map(name).collect()))
            .whole("steps", "steps", Unit::Count, groups.iter().map(|request| request.steps));
        tables.push(with_figures(table, &groups, (&[Quantity::Cpu, Quantity::Times], disk.is_some())).note(
            "Of steps that have ended and are scheduled on their own: not of parts of others. used, peak and longest are what \
             the largest used, cores, memory, disk and wall what to request. cores: CPU by wall: a step that needs several for a part of \
             its time needs more. memory: the largest peak and as much as it is above the median, at least a tenth.",
        ));
    }
    let table = Table::new("job_request", "What to request for the job as a whole")
        .rows_need(&[Quantity::Forks]);
    tables.push(with_figures(table, &[job_request(recording, disk.as_ref())], (OF_JOB, disk.is_some())).note(
        "If the command is all that the job runs. cores: in use in all but the busiest twentieth of the time. is: PSS, the sum of \
         what was read; RSS, the peak of the largest process, which was more than any reading (read more often); at most, the sum of \
         the peak RSS of processes that were alive at one time, in which shared pages count more than once (record with \
         --memory). memory: a tenth above the peak; wall: half as much again. With more input, or on a slower machine, it needs more.",
    ));
    let wrong = mismatches(recording);
    if !wrong.is_empty() {
        let amount = |of: &Mismatch| match of.resource {
            Resource::Cores => "cores",
            Resource::Memory => "memory_bytes",
            Resource::Wall => "wall_ns",
        };
        tables.push(
            Table::new(
                "request_mismatches",
                "Requests that are off by 2 or more, if this command is all of the job",
            )
            .text("what", "what", wrong.iter().map(Mismatch::what))
            .text("for_the_job", "for the job", wrong.iter().map(|of| of.amount(of.asked as f64)))
            .text("was_used", "used", wrong.iter().map(|of| of.amount(of.used)))
            .text("would_do", "would do", wrong.iter().map(|of| of.amount(of.fits as f64)))
            .text("resource", "resource", wrong.iter().map(amount))
            .detail()
            .text("variable", "said by", wrong.iter().map(|of| of.variable))
            .whole("asked", "requested", Unit::Count, wrong.iter().map(|of| of.asked))
            .detail()
            .whole("fits", "fits", Unit::Count, wrong.iter().map(|of| of.fits))
            .detail(),
        );
    }
    Content { tables, charts: Vec::new() }
}

fn with_figures(
    table: Table,
    all: &[Request],
    (cores, has_disk): (&'static [Quantity], bool),
) -> Table {
    let of = || all.iter();
    let from = |request: &Request| Some(request.memory_from.name().to_owned());
    let table = table
        .real("cores_used", "used", Unit::Cores, of().map(|request| request.cores_used))
        .needs(cores)
        .whole("cores", "cores", Unit::Count, of().map(|request| request.cores))
        .needs(cores)
        .whole(
            "memory_used_bytes",
            "peak",
            Unit::Bytes,
            of().map(|request| request.memory_used_bytes),
        )
        .needs(&[Quantity::PeakRss])
        .column("memory_from", "is", Unit::Text, Values::Text(of().map(from).collect()))
        .whole("memory_bytes", "memory", Unit::Bytes, of().map(|request| request.memory_bytes))
        .needs(&[Quantity::PeakRss]);
    // Without --opens, which most recordings lack, there is nothing to say of it.
    let table = match has_disk {
        true => table
            .whole("disk_used_bytes", "written", Unit::Bytes, of().map(|of| of.disk_used_bytes))
            .needs(&[Quantity::FileSizes])
            .detail()
            .whole("disk_bytes", "disk", Unit::Bytes, of().map(|of| of.disk_bytes))
            .needs(&[Quantity::FileSizes]),
        false => table,
    };
    table
        .whole(
            "wall_used_ns",
            "longest",
            Unit::Nanoseconds,
            of().map(|request| request.wall_used_ns),
        )
        .whole("wall_ns", "wall", Unit::Nanoseconds, of().map(|request| request.wall_ns))
}
