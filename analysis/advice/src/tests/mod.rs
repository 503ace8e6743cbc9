//! Scenes whose gains follow by arithmetic, and healthy ones without advice: sleeps and short commands.

mod false_lines;
mod in_the_way;
mod memory_and_files;
mod others;

use proctrace_findings::{Advice, Gain};
use proctrace_overview::path::CriticalPath;
use proctrace_recording::Recording;
use proctrace_scenes::{MS, Scene};

use super::evidence::Evidence;
use super::model::{Cut, Earlier, Model};
use super::search::Asked;
use super::{AdviceRules, advise};

/// System calls of x86-64.
const NANOSLEEP: i16 = 35;
const WAIT4: i16 = 61;

/// A shell that is the command, and what it starts. Times are in milliseconds.
struct Job {
    scene: Scene,
    now: u64,
    next: u32,
}

impl Job {
    fn new() -> Self {
        Self::of(&["/bin/sh", "job.sh"])
    }

    fn of(argv: &[&str]) -> Self {
        let mut scene = Scene::new(4, 100 * MS);
        scene.header().env_names = vec!["PATH".into()];
        scene.exec_with(0, 1, argv[0], argv, (0, 0));
        Self { scene, now: 0, next: 2 }
    }

    /// Starts a command in the background.
    fn start(&mut self, argv: &[&str]) -> u32 {
        self.start_by(1, argv)
    }

    /// Another process than the shell starts a command.
    fn start_by(&mut self, parent: u32, argv: &[&str]) -> u32 {
        let child = self.next;
        self.next += 1;
        self.scene.fork(self.now * MS, parent, child);
        self.scene.exec_with(self.now * MS, child, &format!("/bin/{}", argv[0]), argv, (0, 0));
        child
    }

    /// Ends a child after this time, in which it has computed all the while; the shell waits for that.
    fn end(&mut self, child: u32, after: u64, cpu: u64) {
        let since = self.now;
        self.now += after;
        self.scene.exit(self.now * MS, child, (cpu * MS, 0));
        self.waits(1, since, self.now, WAIT4, child);
    }

    fn waits(&mut self, task: u32, since: u64, until: u64, call: i16, waker: u32) {
        self.scene.sleep(task, (since * MS, until * MS, until * MS), call, waker);
    }

    /// Runs a command that computes, and waits for it.
    fn run(&mut self, argv: &[&str], takes: u64) {
        let child = self.start(argv);
        self.end(child, takes, takes);
    }

    fn sleeps(&mut self, takes: u64) {
        let child = self.start(&["sleep", "1"]);
        self.waits(child, self.now, self.now + takes, NANOSLEEP, 0);
        self.end(child, takes, 0);
    }

    /// The shell itself computes.
    fn computes(&mut self, takes: u64) {
        self.now += takes;
    }

    fn load(&mut self) -> Recording {
        let end_ns = self.now * MS;
        self.scene.exit(end_ns, 1, (10 * MS, 0)).load(Some((end_ns, 0, 0)))
    }

    fn advice(&mut self) -> Vec<Advice> {
        advise(&self.load(), &AdviceRules::built_in(), 1.0).advice
    }
}

fn kinds(advice: &[Advice]) -> Vec<&'static str> {
    advice.iter().map(|advice| advice.kind).collect()
}

fn of<'a>(advice: &'a [Advice], kind: &str) -> &'a Advice {
    advice.iter().find(|advice| advice.kind == kind).unwrap_or_else(|| panic!("{advice:#?}"))
}

/// Milliseconds.
fn ms(low: u64, middle: u64, high: u64) -> Gain {
    Gain { low: low * MS, middle: middle * MS, high: high * MS }
}

#[test]
fn if_nothing_is_cut_everything_ends_when_it_did() {
    let mut job = Job::new();
    let worker = job.start(&["work"]);
    (0..3).for_each(|_| job.sleeps(20));
    job.scene.wait_for_cpu(1, 61 * MS, 62 * MS);
    job.computes(5);
    (0..3).for_each(|_| job.run(&["tool"], 10));
    job.end(worker, 40, 100);
    let recording = job.load();
    let path = CriticalPath::of(&recording).unwrap();
    let last = path.parts.last().unwrap();
    let model = Model::of(&recording, (last.task as usize, last.end_ns));
    assert_eq!(recording.wall_ns(), 135 * MS);
    // The wait for a CPU is the shell's, which the worker outlives.
    for cut in [Cut::Nothing, Cut::CpuWaits] {
        assert_eq!(model.wall_ns(cut, true), (135 * MS, true));
        assert_eq!(model.earlier(cut), Earlier::default());
    }
}

#[test]
fn a_loop_that_looks_every_now_and_then_is_late_by_the_rest_of_its_last_sleep() {
    let mut job = Job::new();
    let worker = job.start(&["work"]);
    for _ in 0..3 {
        job.sleeps(200);
        job.computes(5);
    }
    job.scene.exit(705 * MS, worker, (600 * MS, 0));
    job.sleeps(200);
    let advice = job.advice();
    assert_eq!(kinds(&advice), ["polling"]);
    // The worker ends at 705, the last sleep lasts from 615 to 815.
    assert_eq!(advice[0].wall_ns, ms(0, 110, 220));
    assert_eq!(advice[0].processes, 4);
}

#[test]
fn a_delay_after_the_loop_does_not_belong_to_it() {
    let mut job = Job::new();
    let worker = job.start(&["work"]);
    (0..3).for_each(|_| job.sleeps(200));
    job.scene.exit(520 * MS, worker, (500 * MS, 0));
    job.sleeps(100);
    let advice = job.advice();
    assert_eq!(of(&advice, "polling").wall_ns.middle, 80 * MS);
    assert_eq!(of(&advice, "timer-in-path").wall_ns.middle, 100 * MS);
}

#[test]
fn waiting_for_the_worker_itself_is_no_polling() {
    let mut job = Job::new();
    let worker = job.start(&["work"]);
    job.end(worker, 705, 600);
    assert_eq!(kinds(&job.advice()), [] as [&str; 0]);
}

#[test]
fn delays_without_anything_to_wait_for_are_timers() {
    let advice = |lengths: [u64; 4]| {
        let mut job = Job::new();
        lengths.into_iter().for_each(|length| job.sleeps(length));
        job.computes(100);
        job.advice()
    };
    let several = advice([100, 200, 50, 50]);
    assert_eq!(kinds(&several), ["timer-in-path"]);
    assert_eq!(several[0].wall_ns, ms(360, 400, 440));
    assert_eq!(several[0].cpu_ns, Gain::default());
    // A loop may wait for something outside the recording, which comes no earlier without its sleeps.
    let looped = advice([100; 4]);
    assert_eq!(kinds(&looped), ["timer-in-path"]);
    assert_eq!(looped[0].wall_ns, ms(0, 400, 440));
}

/// As those of a Go program: `go vet` was told to do without the 21 pauses of 4 ms of its runtime.
#[test]
fn short_pauses_of_a_program_with_threads_are_those_of_its_runtime() {
    let advice = |threads: bool, pause: u64| {
        let mut job = Job::new();
        let child = job.start(&["vet", "./..."]);
        let began = job.now;
        if threads {
            job.scene.thread(began * MS, child, 100);
            job.scene.exit(began * MS + 1, 100, (0, 0));
        }
        for at in 0..20 {
            let from = began + at * (pause + 1);
            job.waits(child, from, from + pause, NANOSLEEP, 0);
        }
        job.end(child, 20 * (pause + 1), 20);
        kinds(&job.advice())
    };
    assert_eq!(advice(true, 5), [] as [&str; 0]);
    assert_eq!(advice(true, 25), ["timer-in-path"]);
    assert_eq!(advice(false, 5), ["timer-in-path"]);
}

#[test]
fn pauses_of_tools_and_of_what_they_start_are_theirs() {
    let kinds_of = |argv: &[&str], script: &[&str]| {
        let mut job = Job::of(script);
        let child = job.start(argv);
        job.waits(child, job.now, job.now + 100, NANOSLEEP, 0);
        job.end(child, 100, 0);
        job.computes(100);
        kinds(&job.advice())
    };
    let own = ["/bin/sh", "job.sh"];
    assert_eq!(kinds_of(&["./wait_for_it"], &own), ["timer-in-path"]);
    assert_eq!(kinds_of(&["./conftest"], &["/bin/sh", "./configure"]), [] as [&str; 0]);
    assert_eq!(kinds_of(&["perl", "/usr/bin/autoreconf", "-i"], &own), [] as [&str; 0]);
}

/// The tests of rsync: eight had a line each.
#[test]
fn pauses_of_one_program_are_one_finding() {
    let advice = |name: &str| {
        let mut job = Job::new();
        for of in ["a.test", "bb.test", "c.d.test"] {
            let child = job.start(&[name, of]);
            job.waits(child, job.now, job.now + 100, NANOSLEEP, 0);
            job.end(child, 100, 0);
        }
        job.computes(100);
        job.advice()
    };
    let found = advice("testrun");
    let timers = kinds(&found).into_iter().filter(|kind| *kind == "timer-in-path");
    assert_eq!(timers.count(), 1);
    assert!(found[0].what.contains("and 2 like it"), "{}", found[0].what);
    assert_eq!(found[0].wall_ns.middle, 300 * MS);
    assert!(!kinds(&advice("rsync")).contains(&"timer-in-path"));
}

#[test]
fn a_timer_counts_as_far_as_nothing_else_takes_as_long() {
    let mut job = Job::new();
    let worker = job.start(&["work"]);
    job.scene.exit(60 * MS, worker, (60 * MS, 0));
    job.sleeps(100);
    // The shell did not have to wait for the worker any more, but would have had to without the sleep.
    job.waits(1, 100, 100, WAIT4, worker);
    let (mut long, mut short) = (Job::new(), Job::new());
    let worker = long.start(&["work"]);
    long.sleeps(100);
    long.end(worker, 50, 150);
    // Until 150 the worker runs: without the sleep, nothing ends earlier.
    assert_eq!(kinds(&long.advice()), [] as [&str; 0]);
    short.sleeps(100);
    short.computes(100);
    assert_eq!(of(&short.advice(), "timer-in-path").wall_ns, ms(90, 100, 110));
}

fn short_commands(background: Option<u64>) -> Vec<Advice> {
    let mut job = Job::new();
    let worker = background.map(|_| job.start(&["work"]));
    for at in 0..12_u32 {
        job.run(&["basename", &format!("/data/{at}x")], 10);
        job.computes(5);
    }
    if let (Some(worker), Some(takes)) = (worker, background) {
        job.scene.exit(takes * MS, worker, (takes * MS, 0));
        job.waits(1, 175, 180, WAIT4, worker);
    }
    job.advice()
}

#[test]
fn short_commands_cost_their_time_on_the_path_and_what_the_shell_spends_on_them() {
    let advice = short_commands(None);
    assert_eq!(kinds(&advice), ["short-commands"]);
    // 12 commands of 10 ms, of which the lower end keeps one; 60 ms of the shell.
    assert_eq!(advice[0].wall_ns, ms(98, 120, 180));
    assert_eq!(advice[0].cpu_ns, ms(98, 120, 130));
    assert_eq!(advice[0].processes, 12);
    assert!(advice[0].what.contains("${path##*/}"), "{}", advice[0].what);
}

#[test]
fn without_them_something_else_may_take_the_time() {
    // The shell also waits for a worker that ends with them: without them it still ends then.
    let advice = short_commands(Some(180));
    let gain = of(&advice, "short-commands").wall_ns;
    assert_eq!(gain.low, 0);
}

#[test]
fn a_few_short_commands_or_long_ones_are_no_waste() {
    let mut job = Job::new();
    (0..9).for_each(|_| job.run(&["basename", "/a/b"], 1));
    (0..12).for_each(|_| job.run(&["sed", "-n", "p", "big"], 300));
    let advice = job.advice();
    assert!(!kinds(&advice).contains(&"short-commands"), "{advice:#?}");
}

#[test]
fn the_same_command_again_and_again_is_needed_once() {
    let mut job = Job::new();
    for _ in 0..7 {
        job.run(&["tool", "--version"], 15);
    }
    job.computes(60);
    let advice = job.advice();
    assert_eq!(kinds(&advice), ["repeated-command"]);
    assert_eq!(advice[0].processes, 6);
    assert_eq!(advice[0].wall_ns.low, 81 * MS);
    assert_eq!(advice[0].wall_ns.middle, 90 * MS);
}

#[test]
fn other_arguments_effects_and_pools_are_no_repetition() {
    let mut job = Job::new();
    (0..7).for_each(|at| job.run(&["tool", &at.to_string()], 15));
    (0..7).for_each(|_| job.run(&["mktemp", "-d"], 15));
    let pool: Vec<u32> = (0..7).map(|_| job.start(&["worker"])).collect();
    pool.into_iter().for_each(|worker| job.end(worker, 10, 10));
    assert_eq!(kinds(&job.advice()), [] as [&str; 0]);
}

#[test]
fn without_waits_the_lifetimes_bound_the_gain() {
    let mut job = Job::new();
    (0..7).for_each(|_| job.run(&["tool", "--version"], 20));
    job.computes(60);
    job.scene.header().waits_min_ns = None;
    let advised = advise(&job.load(), &AdviceRules::built_in(), 1.0);
    assert!(!advised.has_path);
    let advice = of(&advised.advice, "repeated-command");
    assert_eq!(advice.wall_ns, ms(0, 60, 120));
    assert!(advice.method.contains("lifetimes only"), "{}", advice.method);
}

#[test]
fn what_pays_less_than_the_threshold_is_left_out() {
    let mut job = Job::new();
    (0..7).for_each(|_| job.run(&["tool", "--version"], 15));
    job.computes(60);
    let recording = job.load();
    let of = |min_percent: f64| advise(&recording, &AdviceRules::built_in(), min_percent).advice;
    assert_eq!(of(50.0).len(), 1);
    assert_eq!(of(100.0).len(), 0);
}

#[test]
fn what_is_possible_is_not_hidden_behind_what_is_sure() {
    let mut job = Job::new();
    (0..14).for_each(|_| job.run(&["basename", "/data/x"], 10));
    let advice = job.advice();
    assert_eq!(advice.len(), 2);
    assert!(advice[0].is_certain() && !advice[1].is_certain());
    assert_eq!((advice[0].part_of, advice[1].part_of), (None, None));
}

#[test]
fn threads_find_what_one_finds() {
    let mut job = Job::new();
    for at in 0..30 {
        job.run(&["sed", "s/a/b/"], 20);
        job.run(&["date", "+%s"], 5);
        job.sleeps(100);
        if at % 3 == 0 {
            job.run(&["gzip", "-9", "data"], 200);
        }
    }
    let recording = job.load();
    let rules = AdviceRules::built_in();
    let find_by = |threads: usize| {
        let evidence = Evidence::of(&recording, 0.0);
        let asked = Asked::first(&evidence);
        std::thread::scope(|scope| {
            (0..threads).for_each(|_| _ = scope.spawn(|| asked.ask(&evidence, &rules)));
        });
        format!("{:#?}", asked.found())
    };
    let alone = find_by(1);
    assert!(alone.matches("Found {").count() > 1, "{alone}");
    (0..20).for_each(|at| assert_eq!(find_by(2 + at % 4), alone));
}
