//! The order of steps that pass files on: declared by a table or a graph of files, or missing.

use std::collections::{BTreeMap, BTreeSet};

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
    !recording.steps.needs.is_empty() || !recording.steps.graph.is_empty()
}

/// Which steps read what others write, by writer and reader. A step and its own parts do not count as others, and what is
/// in a cache is not passed on.
pub fn step_flows<'a>(recording: &Recording, files: &[StepFile<'a>]) -> Vec<StepFlow<'a>> {
    let steps = &recording.steps;
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
    let names = Names::new(steps);
    let mut waits_for: Option<(u32, Vec<bool>)> = None;
    let mut all: Vec<StepFlow<'a>> = Vec::with_capacity(flows.len());
    for ((reader, writer), Flow { mut flow, looked_at }) in flows {
        flow.order = names.order(writer, reader);
        if flow.order == Order::Unknown
            && !looked_at.is_empty()
            && let Some(products) = made.by_step.get(&reader)
        {
            if waits_for.as_ref().is_none_or(|(of, _)| *of != reader) {
                waits_for = Some((reader, steps.graph.before(products)));
            }
            let before = waits_for.as_ref().map_or(&[][..], |(_, before)| before);
            let comes_before = |number: u32| before.get(number as usize).is_some_and(|is| *is);
            match looked_at.iter().find(|(number, _)| !comes_before(*number)) {
                None => flow.order = Order::Declared,
                // A make within a make, or a script that calls several, has an order of its own.
                Some(_) if started_by(recording, writer) != started_by(recording, reader) => {}
                Some(_) if steps.graph.is_in_order => {}
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

/// The process that started a step: the coordinator.
fn started_by(recording: &Recording, step: u32) -> Option<usize> {
    let run = recording.runs.get(recording.steps.all[step as usize].run as usize)?;
    recording.processes.get(run.process as usize)?.parent()
}

fn is_in_cache(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|part| CACHES.contains(&part))
}

/// Files of the graph, and who made them.
struct Made<'a> {
    recording: &'a Recording,
    /// Numbers of those that each step wrote.
    by_step: BTreeMap<u32, Vec<u32>>,
}

impl<'a> Made<'a> {
    fn of(recording: &'a Recording, files: &[StepFile<'_>]) -> Self {
        let mut made = Self { recording, by_step: BTreeMap::new() };
        if recording.steps.graph.is_empty() {
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

    /// The number of a file that something makes, in terms of one of these steps.
    fn number(&self, path: &[u8], steps: &[u32]) -> Option<u32> {
        let all = &self.recording.steps;
        if all.graph.is_empty() {
            return None;
        }
        let job = self.recording.header.cwd.trim_end_matches('/').as_bytes();
        let absolute = [job, b"/", path].concat();
        let directory = |step: &u32| &*all.all[*step as usize].directory;
        steps.iter().find_map(|step| all.graph.made(&absolute, directory(step)))
    }
}

/// Orders that tables declare: by name, as a step may run more than once.
struct Names<'a> {
    steps: &'a Steps,
    /// All that must come before the step of a name.
    before: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl<'a> Names<'a> {
    fn new(steps: &'a Steps) -> Self {
        let mut before = BTreeMap::new();
        for name in steps.needs.keys() {
            let mut found: BTreeSet<&str> = BTreeSet::new();
            let mut next: Vec<&str> = vec![name];
            while let Some(step) = next.pop() {
                for need in steps.needs.get(step).into_iter().flatten() {
                    if found.insert(need) {
                        next.push(need);
                    }
                }
            }
            before.insert(&**name, found);
        }
        Self { steps, before }
    }

    fn order(&self, writer: u32, reader: u32) -> Order {
        let name = |step: u32| &*self.steps.all[step as usize].named.name;
        let (writer, reader) = (name(writer), name(reader));
        match self.before.get(reader) {
            Some(_) if !self.before.contains_key(writer) => Order::Unknown,
            Some(before) if before.contains(writer) => Order::Declared,
            // A second try of the same step.
            Some(_) if writer == reader => Order::Declared,
            Some(_) => Order::Missing,
            None => Order::Unknown,
        }
    }
}

/// For each step, those that are declared to come before it, directly, `None` if nothing is declared of it; `None` as a whole
/// if nothing is declared of any. By name, of
/// steps that ran more than once the last one before; by the graph, for steps that are called like what they make.
pub fn declared_needs(recording: &Recording) -> Option<Vec<Option<Vec<u32>>>> {
    if !are_orders_declared(recording) {
        return None;
    }
    let steps = &recording.steps;
    let numbers = || (0_u32..).zip(&steps.all);
    let mut by_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut product_of: BTreeMap<u32, u32> = BTreeMap::new();
    let mut products: Vec<Option<u32>> = Vec::with_capacity(steps.all.len());
    for (at, step) in numbers() {
        by_name.entry(&step.named.name).or_default().push(at);
        let name = step.named.name.as_bytes();
        let path = [&*step.directory, b"/", name].concat();
        let product = steps.graph.made(&path, &step.directory);
        product_of.extend(product.map(|product| (product, at)));
        products.push(product);
    }
    let needs = numbers().map(|(at, step)| {
        let product = products[at as usize];
        let named = steps.needs.get(&step.named.name);
        if named.is_none() && product.is_none() {
            return None;
        }
        let before = |name: &String| {
            let all = by_name.get(&**name)?;
            all.iter().rev().find(|other| **other < at).or(all.last()).copied()
        };
        let mut needs: Vec<u32> = named.into_iter().flatten().filter_map(before).collect();
        if let Some(product) = product {
            let nearest = steps.graph.nearest(product, |file| product_of.contains_key(&file));
            needs.extend(nearest.iter().filter_map(|file| product_of.get(file)));
        }
        needs.retain(|need| *need != at);
        Some(needs)
    });
    let needs: Vec<Option<Vec<u32>>> = needs.collect();
    needs.iter().flatten().any(|needs| !needs.is_empty()).then_some(needs)
}

/// Declared needs of a step of which it reads nothing: names of the one that waits and of the one it waits for. Only of
/// steps that ran, and only if opens were recorded.
pub fn unused_needs<'a>(
    recording: &'a Recording,
    files: &[StepFile<'_>],
    flows: &[StepFlow<'_>],
) -> Vec<(&'a str, &'a str)> {
    let steps = &recording.steps;
    let name = |step: u32| &*steps.all[step as usize].named.name;
    let ran: BTreeSet<&str> = steps.all.iter().map(|step| &*step.named.name).collect();
    let used: BTreeSet<(&str, &str)> =
        flows.iter().map(|flow| (name(flow.reader), name(flow.writer))).collect();
    let by_name = steps
        .needs
        .iter()
        .flat_map(|(reader, needs)| needs.iter().map(move |need| (reader.as_str(), need.as_str())));
    let mut unused: BTreeSet<(&str, &str)> = by_name
        .filter(|(reader, need)| ran.contains(reader) && ran.contains(need))
        .filter(|pair| !used.contains(pair))
        .collect();
    let made = Made::of(recording, files);
    let pairs =
        made.by_step.iter().flat_map(|(step, products)| products.iter().map(|of| (*of, *step)));
    let by_product: BTreeMap<u32, u32> = pairs.collect();
    for (reader, products) in &made.by_step {
        for from in products.iter().flat_map(|product| steps.graph.direct(*product)) {
            let Some(writer) = by_product.get(&from).filter(|writer| *writer != reader) else {
                continue;
            };
            let pair = (name(*reader), name(*writer));
            if !used.contains(&pair) {
                unused.insert(pair);
            }
        }
    }
    unused.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step_files::{Level, step_files};
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
            "# Make data base, printed on x\nCURDIR := /work\n# Files\ngen.h:\na.o: a.c {object_from}\napp: a.o\n"
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
        let text = "# Make data base, printed on x\nCURDIR := /work\n# Files\nall: gen.h\ngen.h:\na.o: a.c\n";
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
