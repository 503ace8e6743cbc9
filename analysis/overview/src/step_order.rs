//! The order of steps that pass files on: declared by a table or a graph of files, or missing.

use std::collections::BTreeMap;

use proctrace_recording::Recording;
use proctrace_recording::steps::Steps;

use crate::step_files::StepFile;

/// Of the files that one step passes to another one, those whose place in the graph is looked at.
const LOOKED_AT_MAX: usize = 100;

/// Directories and files that any step may fill and all may read, whoever comes first.
const CACHES: [&[u8]; 12] = [
    b"__pycache__",
    b".cache",
    b".ccache",
    b"ccache",
    b".sccache",
    b".mypy_cache",
    b".pytest_cache",
    b".ruff_cache",
    b".git",
    b".ninja_log",
    b".ninja_deps",
    b".snakemake",
];

/// What is declared about the order of two steps of which one reads what the other one writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// The reader waits for the writer.
    Declared,
    /// It does not: the dependency is missing.
    Missing,
    /// Nothing is known about one of them.
    Unknown,
}

impl Order {
    /// As in tables; `None` where it is not known.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Declared => Some("yes"),
            Self::Missing => Some("no"),
            Self::Unknown => None,
        }
    }
}

/// A step that reads what another one writes.
#[derive(Debug, Clone)]
pub struct StepFlow<'a> {
    /// The step that writes.
    pub writer: u32,
    /// The step that reads.
    pub reader: u32,
    /// Number of such files.
    pub files: u64,
    /// One of them: if the order is missing, one that shows it, otherwise the first.
    pub example: &'a [u8],
    /// What is declared about their order.
    pub order: Order,
}

/// A flow, and those of its files that the graph knows.
struct Flow<'a> {
    flow: StepFlow<'a>,
    looked_at: Vec<(u32, &'a [u8])>,
}

/// True if a file or graph from outside says what must come before what.
pub fn are_orders_declared(recording: &Recording) -> bool {
    !recording.steps().needs.is_empty() || !recording.steps().graph.is_empty()
}

/// Which steps read what others write, by writer and reader. A step and its own parts do not count as others, and what is
/// in a cache is not passed on.
pub fn step_flows<'a>(recording: &Recording, files: &[StepFile<'a>]) -> Vec<StepFlow<'a>> {
    let steps = recording.steps();
    let made = Made::of(recording, files);
    // By reader: what it waits for is worked out once.
    let mut flows: BTreeMap<(u32, u32), Flow<'a>> = BTreeMap::new();
    for file in files.iter().filter(|file| !is_in_cache(file.path)) {
        for (writer, reader) in file.pairs() {
            let (writer, reader) = (writer.step, reader.step);
            let is_within = |inner: u32, outer: u32| steps.up(inner).any(|at| at == outer);
            if is_within(writer, reader) || is_within(reader, writer) {
                continue;
            }
            let Flow { flow, looked_at } = flows.entry((reader, writer)).or_insert_with(|| {
                let (files, example, order) = (0, file.path, Order::Unknown);
                let flow = StepFlow { writer, reader, files, example, order };
                Flow { flow, looked_at: Vec::new() }
            });
            flow.files += 1;
            if looked_at.len() < LOOKED_AT_MAX {
                let number = made.number(file.path, &[writer, reader]);
                looked_at.extend(number.map(|number| (number, file.path)));
            }
        }
    }
    let names = Names::of(steps);
    // What a reader waits for, by the graph and by name.
    let mut waits_for: Option<(u32, Vec<bool>, Option<Vec<bool>>)> = None;
    let mut all: Vec<StepFlow<'a>> = Vec::with_capacity(flows.len());
    for ((reader, writer), Flow { mut flow, looked_at }) in flows {
        let products = made.by_step.get(&reader);
        let (_, before, named_before) = match &mut waits_for {
            Some(of) if of.0 == reader => of,
            of => of.insert((
                reader,
                products.map(|products| steps.graph.before(products)).unwrap_or_default(),
                names.before(reader),
            )),
        };
        flow.order = names.order(named_before.as_deref(), writer, reader);
        if flow.order == Order::Unknown
            && let Some(products) = products.filter(|_| !looked_at.is_empty())
        {
            let comes_before = |number: u32| before.get(number as usize).is_some_and(|is| *is);
            match looked_at.iter().find(|(number, _)| !comes_before(*number)) {
                None => flow.order = Order::Declared,
                // A make within a make, or a script that calls several, has an order of its own.
                Some(_) if started_by(recording, writer) != started_by(recording, reader) => {}
                Some(_) if products.iter().any(|product| steps.graph.is_in_order(*product)) => {}
                Some((_, path)) => {
                    flow.order = Order::Missing;
                    flow.example = path;
                }
            }
        }
        all.push(flow);
    }
    all.sort_by_key(|flow| (flow.writer, flow.reader));
    all
}

/// Which steps a table declares to come before others, by name, directly or through others.
pub(crate) struct DeclaredBefore<'a> {
    names: Names<'a>,
    known: BTreeMap<u32, Option<Vec<bool>>>,
}

impl<'a> DeclaredBefore<'a> {
    pub(crate) fn of(recording: &'a Recording) -> Self {
        Self { names: Names::of(recording.steps()), known: BTreeMap::new() }
    }

    pub(crate) fn is_before(&mut self, first: u32, then: u32) -> bool {
        let Self { names, known } = self;
        let before = known.entry(then).or_insert_with(|| names.before(then));
        let number = names.numbers.get(names.name(first));
        before.as_ref().zip(number).is_some_and(|(before, number)| before[*number])
    }
}

/// The process that started a step: the coordinator.
fn started_by(recording: &Recording, step: u32) -> Option<usize> {
    let run = recording.runs().get(recording.steps().all[step as usize].run as usize)?;
    recording.processes().get(run.process as usize)?.parent()
}

pub(crate) fn is_in_cache(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| CACHES.contains(&part))
}

/// Files of the graph, and who made them.
pub(crate) struct Made<'a> {
    recording: &'a Recording,
    /// Numbers of those that each step wrote.
    pub(crate) by_step: BTreeMap<u32, Vec<u32>>,
}

impl<'a> Made<'a> {
    pub(crate) fn of(recording: &'a Recording, files: &[StepFile<'_>]) -> Self {
        let mut made = Self { recording, by_step: BTreeMap::new() };
        if recording.steps().graph.is_empty() {
            return made;
        }
        for file in files {
            for writer in file.writers() {
                if let Some(number) = made.number(file.path, &[writer.step]) {
                    made.by_step.entry(writer.step).or_default().push(number);
                }
            }
        }
        made
    }

    /// The steps that wrote each file of the graph, in order of their beginnings.
    pub(crate) fn writers(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut writers: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (step, products) in &self.by_step {
            for product in products {
                writers.entry(*product).or_default().push(*step);
            }
        }
        writers
    }

    /// The number of a file that something makes, in terms of one of these steps.
    fn number(&self, path: &[u8], steps: &[u32]) -> Option<u32> {
        let all = self.recording.steps();
        if all.graph.is_empty() {
            return None;
        }
        let job = self.recording.header().cwd.trim_end_matches('/').as_bytes();
        let absolute = [job, b"/", path].concat();
        let directory = |step: &u32| &*all.all[*step as usize].directory;
        steps.iter().find_map(|step| all.graph.made(&absolute, directory(step)))
    }
}

/// Orders that tables declare: by name, as a step may run more than once.
struct Names<'a> {
    steps: &'a Steps,
    /// Numbers of the names that the table declares, and of what they need.
    numbers: BTreeMap<&'a str, usize>,
    /// The needs of each; none for names that are only needed.
    needs: Vec<Vec<usize>>,
}

impl<'a> Names<'a> {
    fn of(steps: &'a Steps) -> Self {
        let all = steps.needs.iter().flat_map(|(name, needs)| needs.iter().chain([name]));
        let mut numbers: BTreeMap<&str, usize> = all.map(|name| (&**name, 0)).collect();
        for (at, number) in numbers.values_mut().enumerate() {
            *number = at;
        }
        let mut needs = vec![Vec::new(); numbers.len()];
        for (name, of) in &steps.needs {
            needs[numbers[&**name]] = of.iter().map(|need| numbers[&**need]).collect();
        }
        Self { steps, numbers, needs }
    }

    fn name(&self, step: u32) -> &str {
        &self.steps.all[step as usize].named.name
    }

    /// All that must come before a step, directly or not, by number; `None` if nothing is declared of it.
    fn before(&self, step: u32) -> Option<Vec<bool>> {
        self.steps.needs.get(self.name(step))?;
        let mut found = vec![false; self.needs.len()];
        let mut next = vec![*self.numbers.get(self.name(step))?];
        while let Some(name) = next.pop() {
            for need in &self.needs[name] {
                if !std::mem::replace(&mut found[*need], true) {
                    next.push(*need);
                }
            }
        }
        Some(found)
    }

    fn order(&self, before: Option<&[bool]>, writer: u32, reader: u32) -> Order {
        let (Some(before), true) = (before, self.steps.needs.contains_key(self.name(writer)))
        else {
            return Order::Unknown;
        };
        let number = self.numbers.get(self.name(writer));
        let is_before = number.and_then(|number| before.get(*number)).is_some_and(|is| *is);
        // A second try of the same step.
        if is_before || self.name(writer) == self.name(reader) {
            Order::Declared
        } else {
            Order::Missing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step_files::{Level, step_files};
    use crate::step_needs::unused_needs;
    use crate::step_scenes::{WRITE, renaming, table, with};
    use proctrace_classify::Rules;
    use proctrace_scenes::{MS, Scene};

    #[test]
    fn an_order_that_is_declared_through_another_step_is_declared() {
        let recording = with(&table(r#""use""#));
        let files = step_files(&recording, Level::Innermost);
        let flows = step_flows(&recording, &files);
        assert!(flows.iter().all(|flow| flow.order == Order::Declared), "{flows:?}");
        assert_eq!(flows.len(), 3);
        assert!(
            unused_needs(&recording, &step_files(&recording, Level::Innermost), &flows).is_empty()
        );
    }

    #[test]
    fn an_order_that_nobody_declared_is_found() {
        let recording = with(&table(""));
        let files = step_files(&recording, Level::Workflow);
        let flows = step_flows(&recording, &files);
        let orders: Vec<_> =
            flows.iter().map(|flow| (flow.writer, flow.reader, flow.order)).collect();
        assert_eq!(
            orders,
            [(0, 1, Order::Declared), (0, 2, Order::Missing), (1, 2, Order::Missing)]
        );
        assert_eq!(flows[1].example, b"tf1/sub.dat");
    }

    #[test]
    fn what_is_declared_and_not_used_is_told() {
        let json = table(r#""use""#).replace(r#""needs": []"#, r#""needs": ["merge", "absent"]"#);
        let recording = with(&json);
        let flows = step_flows(&recording, &step_files(&recording, Level::Innermost));
        assert_eq!(
            unused_needs(&recording, &step_files(&recording, Level::Innermost), &flows),
            [("gen", "merge")]
        );
    }

    #[test]
    fn without_a_table_no_order_is_known() {
        let json = table("").replace(r#", "needs": []"#, "").replace(r#", "needs": ["gen"]"#, "");
        let recording = with(&json);
        let flows = step_flows(&recording, &step_files(&recording, Level::Innermost));
        assert!(flows.iter().all(|flow| flow.order == Order::Unknown), "{flows:?}");
    }

    const RECIPE: &str = "#  recipe to execute (from 'Makefile', line 1):\n\tx\n";

    #[test]
    fn who_renames_what_another_step_wrote_comes_after_it() {
        let recording = renaming(|scene| {
            scene
                .open(10 * MS, 2, 1, "/work/x.tmp", WRITE)
                .moved(20 * MS, 3, "/work/x.tmp", "/work/x", 0)
                .open(30 * MS, 4, 2, "/work/x", 0);
        });
        let flows = step_flows(&recording, &step_files(&recording, Level::Innermost));
        let pairs: Vec<_> = flows.iter().map(|flow| (flow.writer, flow.reader)).collect();
        assert_eq!(pairs, [(0, 1), (0, 2), (1, 2)]);
    }

    /// A make whose three compilers write objects; the second one reads a header that the first one makes.
    fn make(object_from: &str) -> Recording {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/usr/bin/make", (0, 0));
        for (at, name) in [(2, "gen.h"), (3, "a.o"), (4, "app")] {
            let begin = u64::from(at) * 10 * MS;
            scene.fork(begin, 1, at);
            scene.exec_with(begin + MS, at, "/usr/bin/cc", &["cc", "-o", name], (0, 0));
        }
        scene
            .open(22 * MS, 2, 1, "/work/gen.h", WRITE)
            .open(22 * MS, 2, 2, "/work/__pycache__/x.pyc", WRITE)
            .open(32 * MS, 3, 1, "/work/gen.h", 0)
            .open(32 * MS, 3, 2, "/work/__pycache__/x.pyc", 0)
            .open(33 * MS, 3, 3, "/work/a.o", WRITE)
            .open(43 * MS, 4, 1, "/work/app", WRITE);
        for task in [2, 3, 4, 1] {
            scene.exit(50 * MS, task, (0, 0));
        }
        let text = format!(
            "# Make data base, printed on x\nCURDIR := /work\n# Files\ngen.h:\n{RECIPE}a.o: a.c {object_from}\n{RECIPE}\
             app: a.o\n{RECIPE}"
        );
        let rules = Rules::generic().with_steps("database", text.as_bytes()).unwrap();
        scene.launched_in("/work").load_by(&rules, None)
    }

    /// What automake writes: `all` is made of the header, and then calls make again for the objects.
    #[test]
    fn the_order_of_a_make_within_a_make_is_not_missing() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/usr/bin/make", (0, 0)).fork(MS, 1, 2);
        scene.exec_with(2 * MS, 2, "/usr/bin/cc", &["cc", "-o", "gen.h"], (0, 0));
        scene.open(3 * MS, 2, 1, "/work/gen.h", WRITE).exit(4 * MS, 2, (0, 0)).fork(5 * MS, 1, 3);
        scene.exec_with(6 * MS, 3, "/usr/bin/make", &["make", "all-am"], (0, 0)).fork(7 * MS, 3, 4);
        scene.exec_with(8 * MS, 4, "/usr/bin/cc", &["cc", "-o", "a.o"], (0, 0));
        scene.open(9 * MS, 4, 1, "/work/gen.h", 0).open(10 * MS, 4, 2, "/work/a.o", WRITE);
        scene.exit(11 * MS, 4, (0, 0)).exit(12 * MS, 3, (0, 0)).exit(13 * MS, 1, (0, 0));
        let text = format!(
            "# Make data base, printed on x\nCURDIR := /work\n# Files\nall: gen.h\n{RECIPE}gen.h:\n{RECIPE}a.o: a.c\n{RECIPE}"
        );
        let rules = Rules::built_in().with_steps("database", text.as_bytes()).unwrap();
        let recording = scene.launched_in("/work").load_by(&rules, None);
        let flows = step_flows(&recording, &step_files(&recording, Level::Innermost));
        assert_eq!((flows.len(), flows[0].order), (1, Order::Unknown));
    }

    #[test]
    fn a_graph_of_files_shows_what_is_missing() {
        for (from, order) in [("gen.h", Order::Declared), ("", Order::Missing)] {
            let recording = make(from);
            let files = step_files(&recording, Level::Innermost);
            let flows = step_flows(&recording, &files);
            let [flow] = &flows[..] else { panic!("{flows:?}") };
            assert_eq!((flow.writer, flow.reader, flow.order), (0, 1, order));
            assert_eq!((flow.files, flow.example), (1, &b"gen.h"[..]));
            // The program is made from an object that it does not read.
            assert_eq!(unused_needs(&recording, &files, &flows), [("app", "a.o")]);
        }
    }
}
