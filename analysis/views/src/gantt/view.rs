//! Selection of the processes that a Gantt chart shows.

use proctrace_findings::GanttView;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;

use super::life;

/// The chosen processes and time window.
pub(super) struct Chosen {
    /// One flag a process: true if it was chosen.
    pub(super) processes: Vec<bool>,
    /// The window, relative to the start of the recording.
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    min_life_ns: u64,
}

impl Chosen {
    pub(super) fn of(recording: &Recording, view: &GanttView) -> Result<Self, AnalysisError> {
        let length_ns = recording.recorded_ns().max(1);
        let from_ns = view.from_ns.unwrap_or(0);
        let until_ns = view.until_ns.unwrap_or(length_ns).min(length_ns);
        if from_ns >= until_ns {
            let seconds = |ns: u64| ns as f64 / 1e9;
            return Err(AnalysisError::View {
                what: format!(
                    "the range {} s to {} s",
                    seconds(from_ns),
                    seconds(view.until_ns.unwrap_or(length_ns))
                ),
                why: format!(
                    "the recording covers 0 s to {} s; choose a range within it",
                    seconds(length_ns)
                ),
            });
        }
        let mut chosen = Self {
            processes: Vec::new(),
            from_ns,
            until_ns,
            min_life_ns: view.min_life_ns.unwrap_or(0),
        };
        chosen.processes = recording
            .processes()
            .iter()
            .map(|process| life(recording, process.born_ns, process.ended_ns()))
            .map(|(begin_ns, end_ns)| chosen.is_in_time(begin_ns, end_ns))
            .collect();
        if !view.only.is_empty() {
            chosen.keep(&of_kind(recording, &view.only)?);
        }
        if let Some(root) = &view.subtree {
            chosen.keep(&below(recording, root)?);
        }
        Ok(chosen)
    }

    /// True if this lifetime overlaps the window and is long enough.
    pub(super) fn is_in_time(&self, begin_ns: u64, end_ns: u64) -> bool {
        begin_ns <= self.until_ns
            && end_ns >= self.from_ns
            && end_ns.saturating_sub(begin_ns) >= self.min_life_ns
    }

    fn keep(&mut self, those: &[bool]) {
        for (chosen, keep) in self.processes.iter_mut().zip(those) {
            *chosen &= *keep;
        }
    }
}

/// Processes of these categories or programs.
fn of_kind(recording: &Recording, names: &[String]) -> Result<Vec<bool>, AnalysisError> {
    let mut wanted = vec![false; recording.programs().len()];
    for name in names {
        let mut found = false;
        for (at, program) in recording.programs().iter().enumerate() {
            let category = recording
                .category_of_programs()
                .get(at)
                .and_then(|at| recording.categories().get(*at));
            if program.name == *name || category == Some(name) {
                wanted[at] = true;
                found = true;
            }
        }
        if !found {
            return Err(AnalysisError::View {
                what: format!("only {name:?}"),
                why: format!(
                    "no category or program has this name; the categories are {}",
                    recording.categories().join(", ")
                ),
            });
        }
    }
    Ok(recording.processes().iter().map(|process| wanted[process.program()]).collect())
}

/// Processes with this pid or program, and their descendants.
fn below(recording: &Recording, root: &str) -> Result<Vec<bool>, AnalysisError> {
    let mut below: Vec<bool> = match root.parse::<i32>() {
        Ok(pid) => recording.processes().iter().map(|process| process.pid == pid).collect(),
        Err(_) => {
            let name_of = |program: usize| recording.programs().get(program).map(|p| &*p.name);
            let mut ran: Vec<bool> = recording
                .processes()
                .iter()
                .map(|process| process.execs > 0 && name_of(process.program()) == Some(root))
                .collect();
            for run in recording.runs() {
                if name_of(run.program as usize) == Some(root) {
                    ran[run.process as usize] = true;
                }
            }
            ran
        }
    };
    if !below.contains(&true) {
        return Err(AnalysisError::View {
            what: format!("the subtree of {root:?}"),
            why: "no process has this pid or ran a program of this name; \
                  the report lists the programs"
                .to_owned(),
        });
    }
    for (at, process) in recording.processes().iter().enumerate() {
        if let Some(parent) = process.parent().filter(|parent| *parent < at) {
            below[at] |= below[parent];
        }
    }
    Ok(below)
}
