//! The action, the GitLab component and the Jenkins step, whose own steps are run as the runners of the services run
//! them: as root, as a user with sudo, as one without any rights, as root of a container.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use saphyr::{LoadableYamlNode, Yaml};

use crate::common::stage::{Broker, Stage, USER};

/// Longer than any of these jobs takes, in seconds.
const PATIENCE: &str = "300";

/// The names of inputs and variables with their values.
type Values = BTreeMap<String, String>;

fn repository() -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

fn values<const N: usize>(pairs: [(&str, &str); N]) -> Values {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The text of a scalar, as the services hand it over.
fn text(node: &Yaml<'_>) -> String {
    let number = || node.as_integer().map(|it| it.to_string());
    let flag = || node.as_bool().map(|it| it.to_string());
    node.as_str().map(str::to_owned).or_else(number).or_else(flag).unwrap()
}

fn pairs<'a>(node: &'a Yaml<'a>) -> impl Iterator<Item = (String, &'a Yaml<'a>)> {
    node.as_mapping().unwrap().iter().map(|(key, value)| (text(key), value))
}

/// The rights that a job has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rights {
    Root,
    /// An ordinary user who may use sudo without a password.
    Sudo,
    /// An ordinary user.
    User,
    /// An ordinary user who can gain no rights by any program.
    Nothing,
    /// Root of a container that is not privileged.
    Container,
}

/// A machine on which jobs run.
struct Runner {
    stage: Stage,
}

/// What is left of a job.
struct Done {
    output: Output,
    outputs: Values,
    summary: String,
}

impl Done {
    fn code(&self) -> i32 {
        self.output.status.code().unwrap()
    }

    fn log(&self) -> String {
        let both = [&self.output.stdout[..], &self.output.stderr[..]].concat();
        String::from_utf8_lossy(&both).into_owned()
    }

    fn output(&self, name: &str) -> &str {
        self.outputs.get(name).map_or("", String::as_str)
    }

    /// Requires an exit status, and that log, output and summary say how it was recorded.
    fn assert_recorded(&self, code: i32, how: &str) {
        assert_eq!(self.code(), code, "{}", self.log());
        assert!(self.log().contains(&format!("proctrace: recording by {how}")), "{}", self.log());
        assert!(self.output("recorder").starts_with(&format!("by {how}")), "{}", self.log());
        let said = self.summary.replace("&#58;", ":");
        assert!(said.contains(&format!("Recorded by {how}")), "{said}");
        assert!(Path::new(self.output("trace")).is_file(), "{}", self.log());
        assert!(!self.log().contains("::warning title=proctrace::"), "{}", self.log());
    }

    /// Requires that the commands ran without a recorder, and that this is said with the reason.
    fn assert_plain(&self, code: i32, reason: &str) {
        assert_eq!(self.code(), code, "{}", self.log());
        let log = self.log();
        let warning = log.lines().find(|line| line.starts_with("::warning title=proctrace::"));
        assert!(warning.is_some_and(|it| it.contains(reason)), "{log}");
        assert!(self.summary.contains("not recorded"), "{}", self.summary);
        assert_eq!(self.output("trace"), "", "{log}");
        assert_eq!(self.output("exit-code"), code.to_string());
    }
}

impl Runner {
    fn new() -> Self {
        let stage = Stage::new();
        let runner = Self { stage };
        for folder in ["temp", "work", "action", "action/packaging", "action/packaging/ci"] {
            fs::create_dir(runner.path(folder)).unwrap();
            fs::set_permissions(runner.path(folder), fs::Permissions::from_mode(0o777)).unwrap();
        }
        let script = repository().join("packaging/ci/proctrace-ci");
        runner.stage.copy(&script, "action/packaging/ci/proctrace-ci", 0o755);
        runner
    }

    fn path(&self, name: &str) -> PathBuf {
        self.stage.path(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A command with these rights and this environment, which is ended if it takes too long.
    fn command(&self, rights: Rights, environment: &Values) -> Command {
        let mut words: Vec<String> = Vec::new();
        let mut add = |line: &str| words.extend(line.split(' ').map(str::to_owned));
        let user = format!("setpriv --reuid {USER} --regid {USER}");
        match rights {
            Rights::Root => {}
            Rights::Sudo => {
                let sudoers = self.path("sudoers");
                let rules = "Defaults env_reset, use_pty\n\
                    Defaults secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"\n\
                    root ALL=(ALL:ALL) ALL\n";
                fs::write(&sudoers, format!("{rules}#{USER} ALL=(ALL:ALL) NOPASSWD: ALL\n"))
                    .unwrap();
                fs::set_permissions(&sudoers, fs::Permissions::from_mode(0o440)).unwrap();
                add("unshare --mount sh -c");
                words.push("mount --bind \"$0\" /etc/sudoers && exec \"$@\"".to_owned());
                words.push(self.name("sudoers"));
                words.extend(format!("{user} --init-groups").split(' ').map(str::to_owned));
            }
            Rights::User => add(&format!("{user} --init-groups")),
            Rights::Nothing => add(&format!("{user} --clear-groups --no-new-privs")),
            Rights::Container => add("setpriv --bounding-set -all --inh-caps -all --no-new-privs"),
        }
        let mut command = Command::new("timeout");
        command.arg(PATIENCE).args(words).current_dir(self.path("work")).env_clear();
        command.env("PATH", format!("{}:/usr/bin:/bin", self.name("own")));
        command.env("HOME", self.path("work")).env("PROCTRACE_BROKER", &self.stage.socket);
        command.env("OF_THE_JOB", "a b\n'c'").env("LD_LIBRARY_PATH", "/opt/of-the-job");
        command.envs(environment);
        command
    }

    /// The environment that GitHub gives each step.
    fn github(&self) -> Values {
        let mut all = values([("GITHUB_ACTIONS", "true"), ("CI", "true"), ("GITHUB_JOB", "build")]);
        for (name, path) in [
            ("GITHUB_ACTION_PATH", "action"),
            ("GITHUB_WORKSPACE", "work"),
            ("RUNNER_TEMP", "temp"),
            ("GITHUB_OUTPUT", "temp/output"),
            ("GITHUB_STEP_SUMMARY", "temp/summary"),
            ("GITHUB_ENV", "temp/env"),
            ("GITHUB_PATH", "temp/path"),
        ] {
            all.insert(name.to_owned(), self.name(path));
        }
        all
    }

    /// The value of an expression, of those that the action uses.
    fn expression(&self, expression: &str, inputs: &Values) -> String {
        let context = values([
            ("github.server_url", &format!("file://{}", self.name("server"))),
            ("github.action_repository", "owner/proctrace"),
            ("github.action_ref", "v1"),
        ]);
        let each =
            expression.split("||").map(str::trim).map(|name| match name.strip_prefix("inputs.") {
                Some(input) => {
                    inputs.get(input).unwrap_or_else(|| panic!("no input {input}")).clone()
                }
                None => context.get(name).unwrap_or_else(|| panic!("unknown: {name}")).clone(),
            });
        each.reduce(|first, second| if first.is_empty() { second } else { first }).unwrap()
    }

    fn substituted(&self, text: &str, inputs: &Values) -> String {
        let mut parts = text.split("${{");
        let mut out = parts.next().unwrap().to_owned();
        for part in parts {
            let (expression, rest) = part.split_once("}}").unwrap();
            out.push_str(&self.expression(expression.trim(), inputs));
            out.push_str(rest);
        }
        out
    }

    /// Runs the steps of action.yml in order, as GitHub does, until one fails.
    fn action(&self, rights: Rights, given: &Values) -> Done {
        let file = read("action.yml");
        let documents = Yaml::load_from_str(&file).unwrap();
        let action = &documents[0];
        let mut inputs = Values::new();
        for (name, input) in pairs(&action["inputs"]) {
            let default = input.as_mapping_get("default").map(text);
            let value = given.get(&name).cloned().or(default);
            inputs.insert(name, value.expect("a required input"));
        }
        assert!(given.keys().all(|name| inputs.contains_key(name)), "{given:?}");
        assert_eq!(action["runs"]["using"].as_str(), Some("composite"));
        for name in ["temp/output", "temp/summary", "temp/env", "temp/path"] {
            fs::write(self.path(name), "").unwrap();
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o666)).unwrap();
        }
        let mut last = None;
        for step in action["runs"]["steps"].as_sequence().unwrap() {
            let Some(run) = step.as_mapping_get("run").map(text) else { continue };
            assert_eq!(step["shell"].as_str(), Some("bash"));
            let mut environment = self.github();
            for (name, value) in pairs(&step["env"]) {
                environment.insert(name, self.substituted(&text(value), &inputs));
            }
            let script = self.path("temp/step.sh");
            fs::write(&script, self.substituted(&run, &inputs)).unwrap();
            let shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail"];
            let mut command = self.command(rights, &environment);
            let output = command.args(shell).arg(&script).output().unwrap();
            let failed = !output.status.success();
            last = Some(output);
            if failed {
                break;
            }
        }
        let written = fs::read_to_string(self.path("temp/output")).unwrap();
        let each = written.lines().map(|line| line.split_once('=').unwrap());
        Done {
            output: last.unwrap(),
            outputs: each.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            summary: fs::read_to_string(self.path("temp/summary")).unwrap(),
        }
    }

    /// Inputs of the action: commands, and the binary under test.
    fn inputs<const N: usize>(&self, run: &str, more: [(&str, &str); N]) -> Values {
        let mut all = values([("run", run), ("binary", &self.name("proctrace"))]);
        all.extend(values(more));
        all
    }
}

#[test]
fn root_records_by_ebpf() {
    let runner = Runner::new();
    let run = "echo \"as $(id -u)\"\nfor i in 1 2 3; do /bin/true; done";
    let done = runner.action(Rights::Root, &runner.inputs(run, [("html", "true")]));
    done.assert_recorded(0, "eBPF, as root");
    assert!(done.log().contains("as 0\n"), "{}", done.log());
    assert!(done.summary.starts_with("## proctrace: build\n"), "{}", done.summary);
    for part in ["### What to change", "### When programs ran", "true", "<details>"] {
        assert!(done.summary.contains(part), "no {part}: {}", done.summary);
    }
    for file in ["trace", "page", "metrics"] {
        assert!(fs::metadata(done.output(file)).unwrap().len() > 0, "{file}");
    }
    assert!(!done.summary.contains("Before and after"), "{}", done.summary);
    // A second step of the same job has results of its own, and can be compared with the first.
    let before = done.output("metrics").to_owned();
    let again = runner.action(Rights::Root, &runner.inputs("/bin/true", [("baseline", &before)]));
    again.assert_recorded(0, "eBPF, as root");
    assert!(again.summary.contains("### Before and after"), "{}", again.summary);
    assert_ne!(again.output("directory"), done.output("directory"));
}

#[test]
fn a_user_with_sudo_records_by_ebpf_and_runs_as_without() {
    assert!(Path::new("/usr/bin/sudo").exists(), "install sudo: cargo xtask setup");
    let runner = Runner::new();
    let run = "id -u; id -G; umask; ulimit -a; echo \"$PWD $HOME $PATH\"; env | grep -v ^_= | sort; exit 7";
    let mut environment = runner.github();
    environment.insert("GITHUB_JOB".to_owned(), "build".to_owned());
    let shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", run];
    let without = runner.command(Rights::Sudo, &environment).args(shell).output().unwrap();
    assert_eq!(without.status.code(), Some(7), "{without:?}");
    let done = runner.action(Rights::Sudo, &runner.inputs(run, []));
    done.assert_recorded(7, "eBPF, through sudo");
    let said = String::from_utf8_lossy(&done.output.stdout).into_owned();
    let (first, said) = said.split_once('\n').unwrap();
    assert!(first.starts_with("proctrace: recording"), "{first}");
    let without = String::from_utf8_lossy(&without.stdout);
    assert!(without.starts_with(&format!("{USER}\n")), "{without}");
    // Shells count how deep they are.
    let but_depth = |text: &str| {
        text.lines().filter(|line| !line.starts_with("SHLVL=")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(but_depth(said), but_depth(&without));
}

#[test]
fn a_user_without_rights_records_by_ptrace_and_is_told_so() {
    let runner = Runner::new();
    let done = runner.action(Rights::Nothing, &runner.inputs("id -u; /bin/true", []));
    done.assert_recorded(0, "ptrace, not by eBPF: as nobody, ");
    assert!(done.log().contains(&format!("\n{USER}\n")), "{}", done.log());
    for cost in ["costs time at each process", "leaves out waits"] {
        assert!(done.output("recorder").contains(cost), "{}", done.output("recorder"));
    }
}

#[test]
fn a_user_is_served_by_the_broker_of_the_machine() {
    let mut runner = Runner::new();
    let broker = Broker::start(&runner.stage, &[]);
    runner.stage.socket.clone_from(&broker.socket);
    let done = runner.action(Rights::User, &runner.inputs("/bin/true", []));
    done.assert_recorded(0, "eBPF, through the broker");
}

#[test]
fn the_step_ends_as_its_commands_do() {
    for rights in [Rights::Root, Rights::Nothing] {
        let runner = Runner::new();
        fs::write(runner.path("work/gate.toml"), "[limits]\ntotal_execs = \"|0\"\n").unwrap();
        // Commands stop at the first failure, also in a pipe. What failed is not judged.
        let inputs = runner.inputs("(exit 7) | cat\necho not reached", [("budget", "gate.toml")]);
        let done = runner.action(rights, &inputs);
        assert_eq!(done.code(), 7, "{}", done.log());
        assert_eq!(done.output("exit-code"), "7");
        assert!(!done.log().contains("not reached\n"), "{}", done.log());
        assert!(done.summary.contains("the budget was not judged"), "{}", done.summary);
        assert!(done.summary.contains("exit 7 ·"), "{}", done.summary);
    }
}

#[test]
fn a_budget_that_is_exceeded_fails_the_step() {
    let runner = Runner::new();
    fs::write(runner.path("work/gate.toml"), "[limits]\ntotal_execs = \"0%\"\n").unwrap();
    let less = runner.action(Rights::Root, &runner.inputs("/bin/true", []));
    let baseline = less.output("metrics").to_owned();
    let judged = |run: &str, baseline: &str| {
        let more = [("budget", "gate.toml"), ("baseline", baseline), ("working-directory", "work")];
        fs::create_dir_all(runner.path("work/work")).unwrap();
        fs::copy(runner.path("work/gate.toml"), runner.path("work/work/gate.toml")).unwrap();
        runner.action(Rights::Root, &runner.inputs(run, more))
    };
    let same = judged("/bin/true", &baseline);
    same.assert_recorded(0, "eBPF, as root");
    assert!(same.summary.contains("**Pass"), "{}", same.summary);
    let more = judged("/bin/true; /bin/true", &baseline);
    assert_eq!(more.code(), 3, "{}", more.log());
    assert_eq!(more.output("exit-code"), "0");
    assert!(more.log().contains("\n::error"), "{}", more.log());
    for part in ["**Regression", "### Before and after", "### What to change"] {
        assert!(more.summary.contains(part), "no {part}: {}", more.summary);
    }
    // The first run of all has nothing to be compared with.
    let first = judged("/bin/true", "none.json");
    assert_eq!(first.code(), 0, "{}", first.log());
    assert!(first.log().contains("::warning title=proctrace::there is no baseline none.json"));
    assert!(first.log().contains("cannot be judged"), "{}", first.log());
}

#[test]
fn inputs_are_data() {
    let hostile =
        "\"; touch planted; '$(touch planted)`touch planted`' ${{ inputs.x }}\n::error::x";
    let program = "| ~~~~~~ <b>`@all`";
    let run = format!("cat > is <<'END'\n{hostile}\nEND\ncp /bin/true '{program}'\n'./{program}'");
    for rights in [Rights::Root, Rights::Nothing] {
        let runner = Runner::new();
        let done = runner.action(rights, &runner.inputs(&run, [("name", hostile)]));
        assert_eq!(done.code(), 0, "{}", done.log());
        let is = fs::read_to_string(runner.path("work/is")).unwrap();
        assert_eq!(is, format!("{hostile}\n"));
        assert!(!runner.path("work/planted").exists());
        assert!(!done.log().contains("\n::error"), "{}", done.log());
        let name = done.output("name");
        assert!(name.contains("touch-planted"), "{name}");
        assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || "._-".contains(it)), "{name}");
        // The program is there, in blocks of text, which end where they end.
        let (mut inside, mut outside) = (false, String::new());
        for line in done.summary.lines() {
            if line.starts_with("~~~~~~") {
                inside = !inside;
            } else if !inside {
                outside += line;
            }
        }
        assert!(done.summary.contains(program), "{}", done.summary);
        let acts = inside || outside.contains("<b>") || outside.contains("@all");
        assert!(!acts, "{}", done.summary);
        for other in ["budget", "baseline", "version", "working-directory"] {
            let done = runner.action(rights, &runner.inputs("/bin/true", [(other, hostile)]));
            assert!(!runner.path("work/planted").exists(), "{other}: {}", done.log());
        }
    }
}

#[test]
fn what_cannot_be_recorded_runs_all_the_same() {
    let runner = Runner::new();
    let run = "echo ran; exit 5";
    for (binary, reason) in [
        ("/bin/false", "by ptrace"),
        ("/no/such/file", "cannot be executed"),
        ("", "cannot download"),
    ] {
        let done = runner.action(Rights::Nothing, &runner.inputs(run, [("binary", binary)]));
        done.assert_plain(5, reason);
        assert!(done.log().contains("ran\n"), "{}", done.log());
    }
    // A budget is not judged without a recording, and does not fail.
    let inputs = runner.inputs("true", [("binary", "/bin/false"), ("budget", "gate.toml")]);
    runner.action(Rights::Root, &inputs).assert_plain(0, "nothing is judged");
}

#[test]
fn a_release_is_used_only_if_its_checksum_is_right() {
    let runner = Runner::new();
    let release = runner.path("server/owner/proctrace/releases/download/v1");
    fs::create_dir_all(release.join("bin")).unwrap();
    runner.stage.copy(&runner.path("proctrace"), "own-proctrace", 0o755);
    fs::hard_link(runner.path("own-proctrace"), release.join("bin/proctrace")).unwrap();
    let packed = "set -e; asset=proctrace-$(uname -m)-linux.tar.gz; tar -cf - bin | gzip -1 > $asset\n\
        sha256sum $asset > $asset.sha256; chmod -R a+rX \"$OLDPWD/server\"";
    let packed = format!("cd \"$0\"; cd \"$1\"; {packed}");
    let pack = Command::new("sh").args(["-c", &packed]).arg(runner.path("")).arg(&release).status();
    assert!(pack.unwrap().success());
    let inputs = runner.inputs("/bin/true", [("binary", "")]);
    runner.action(Rights::Nothing, &inputs).assert_recorded(0, "ptrace");
    let asset = fs::read_dir(&release).unwrap().map(|it| it.unwrap().path());
    let asset = asset.into_iter().find(|it| it.extension().is_some_and(|end| end == "gz")).unwrap();
    let mut bytes = fs::read(&asset).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&asset, bytes).unwrap();
    runner.action(Rights::Nothing, &inputs).assert_plain(0, "is not what its checksum says");
}

/// Runs a job of the component as GitLab's shell does: inputs in the values of variables, then the lines of its script.
fn gitlab(runner: &Runner, rights: Rights, given: &Values) -> Output {
    let file = read("packaging/ci/gitlab/templates/proctrace.yml");
    let documents = Yaml::load_from_str(&file).unwrap();
    let (header, body) = (&documents[0], &documents[1]);
    let interpolated = |value: &str| {
        let mut value = value.to_owned();
        for (name, input) in pairs(&header["spec"]["inputs"]) {
            let default = input.as_mapping_get("default").map(text);
            let with = given.get(&name).cloned().or(default).unwrap_or_default();
            if value == format!("$[[ inputs.{name} ]]") {
                value = with;
                break;
            }
        }
        value
    };
    let (_, job) = pairs(body).next().unwrap();
    let project = runner.name("work");
    let mut environment =
        values([("GITLAB_CI", "true"), ("CI", "true"), ("CI_PROJECT_DIR", &project)]);
    for (name, value) in pairs(&job["variables"]) {
        let value = match value.as_mapping_get("value") {
            Some(raw) => {
                assert_eq!(value["expand"].as_bool(), Some(false));
                interpolated(&text(raw))
            }
            None => interpolated(&text(value)).replace("$CI_PROJECT_DIR", &project),
        };
        environment.insert(name, value);
    }
    let lines: Vec<String> = job["script"].as_sequence().unwrap().iter().map(text).collect();
    assert!(lines.iter().all(|line| !line.contains("$[[")), "{lines:?}");
    let script = runner.path("temp/job.sh");
    fs::write(&script, format!("set -eo pipefail\n{}", lines.join("\n"))).unwrap();
    runner.command(rights, &environment).arg("bash").arg(&script).output().unwrap()
}

#[test]
fn a_container_of_gitlab_records_by_ptrace_and_says_so() {
    let runner = Runner::new();
    let binary = runner.name("proctrace");
    let installed = runner.name("action/packaging/ci/proctrace-ci");
    let run = "echo \"$HOME '$(id -u)'\"\nexit 7";
    let inputs = values([("run", run), ("binary", &binary), ("script", &installed)]);
    for rights in [Rights::Container, Rights::Nothing] {
        let output = gitlab(&runner, rights, &inputs);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert!(said.starts_with("proctrace: recording by ptrace, not by eBPF: as "), "{said}");
        let user = if rights == Rights::Container { 0 } else { USER };
        assert!(said.contains(&format!("\n{} '{user}'\n", runner.name("work"))), "{said}");
        let results = runner.path("work/proctrace-ci");
        let summary = fs::read_to_string(results.join("summary.md")).unwrap();
        assert!(summary.contains("Recorded by ptrace, not by eBPF"), "{summary}");
        let metrics = fs::read_to_string(results.join("metrics.txt")).unwrap();
        assert!(metrics.ends_with("# EOF\n"), "{metrics}");
        assert!(results.join("proctrace.html").is_file());
        fs::remove_dir_all(results).unwrap();
    }
    // Neither the script nor the release can be had.
    let inputs = values([("run", run), ("script", "/no/such/file"), ("releases", "file:///none")]);
    let output = gitlab(&runner, Rights::Container, &inputs);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("warning"), "{output:?}");
}

#[test]
fn a_step_of_jenkins_runs_the_same_script() {
    let runner = Runner::new();
    let file = read("packaging/ci/jenkins/vars/proctrace.groovy");
    let script = file.split("'''").nth(1).unwrap();
    fs::write(runner.path("temp/step.sh"), script).unwrap();
    let environment = values([
        ("PROCTRACE_CI_COMMANDS", &runner.name("work/commands")),
        ("PROCTRACE_CI_BINARY", &runner.name("proctrace")),
        ("PROCTRACE_CI_OUT", &runner.name("work/proctrace-ci/step")),
        ("PROCTRACE_CI_SCRIPT", &runner.name("action/packaging/ci/proctrace-ci")),
    ]);
    fs::write(runner.path("work/commands"), "echo \"$HOME\"\nexit 7").unwrap();
    let mut command = runner.command(Rights::Nothing, &environment);
    let output = command.arg("sh").arg(runner.path("temp/step.sh")).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert!(runner.path("work/proctrace-ci/step/job.ptrace").is_file(), "{output:?}");
}

#[test]
fn every_caller_sets_every_input() {
    let script = read("packaging/ci/proctrace-ci");
    let inputs: Vec<&str> = script
        .lines()
        .filter_map(|line| line.strip_prefix("#   ")?.split_whitespace().next())
        .filter(|word| word.starts_with("PROCTRACE_CI_"))
        .collect();
    assert!(inputs.len() > 8, "{inputs:?}");
    let callers = [
        "action.yml",
        "packaging/ci/gitlab/templates/proctrace.yml",
        "packaging/ci/jenkins/vars/proctrace.groovy",
    ];
    for (caller, text) in callers.map(|caller| (caller, read(caller))) {
        for input in &inputs {
            // On GitHub, results are in a folder for temporary files.
            let set = text.contains(&format!("{input}:")) || text.contains(&format!("{input}="));
            assert!(
                set || (caller, *input) == ("action.yml", "PROCTRACE_CI_OUT"),
                "{caller}: {input}"
            );
        }
    }
    for input in inputs {
        // The payload does not get it.
        let unset = script.split("\nunset ").nth(1).unwrap();
        assert!(unset.split("\n\n").next().unwrap().contains(input), "{input}");
    }
}

#[test]
fn actions_of_others_are_pinned() {
    let file = read("action.yml");
    let used: Vec<&str> =
        file.lines().filter_map(|line| line.trim().strip_prefix("uses: ")).collect();
    assert!(!used.is_empty());
    for action in used {
        let (name, version) = action.split_once(" # v").unwrap();
        let (_, commit) = name.split_once('@').unwrap();
        assert!(commit.len() == 40 && commit.chars().all(|it| it.is_ascii_hexdigit()), "{action}");
        assert!(version.split('.').count() == 3, "{action}");
    }
}
