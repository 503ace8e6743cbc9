//! Installs the build and test tools with the system's package manager.

use std::path::Path;

use anyhow::{Result, bail};

use crate::python::is_wanting;
use crate::run::{as_root, exists, run as execute};

/// A system tool that a task needs.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    /// Test that is true if it is installed.
    there: fn() -> bool,
    /// Its package on Debian and derivatives.
    debian: &'static str,
    /// Its package on RHEL and derivatives.
    rhel: &'static str,
}

/// Tools needed to build. The compiled BPF programs are in bpf/prebuilt.
pub const BUILD: &[Tool] = &[
    Tool { there: || exists("cc"), debian: "gcc", rhel: "gcc" },
    Tool { there: || exists("make"), debian: "make", rhel: "make" },
];

/// Tools needed to build what is shipped, which is linked statically.
pub const DIST: &[Tool] = &[BUILD[0], BUILD[1], MUSL];

/// The C compiler for musl.
const MUSL: Tool = Tool { there: || exists("musl-gcc"), debian: "musl-tools", rhel: "musl-gcc" };

/// Tools needed to change bpf/, to build and to test.
pub const EVERYTHING: &[Tool] = &[
    BUILD[0],
    BUILD[1],
    Tool { there: || exists("clang"), debian: "clang", rhel: "clang" },
    Tool {
        there: || Path::new("/usr/include/bpf/bpf_helpers.h").exists(),
        debian: "libbpf-dev",
        rhel: "libbpf-devel",
    },
    Tool { there: || exists("bpftool"), debian: "bpftool", rhel: "bpftool" },
    Tool { there: || exists("zstd"), debian: "zstd", rhel: "zstd" },
    Tool { there: || exists("strace"), debian: "strace", rhel: "strace" },
    // a debugger below the recorder
    Tool { there: || exists("gdb"), debian: "gdb", rhel: "gdb" },
    // for tests of the model of musl's dynamic linker
    MUSL,
    Tool { there: || exists("patchelf"), debian: "patchelf", rhel: "patchelf" },
    // used by payloads
    Tool { there: || exists("bash"), debian: "bash", rhel: "bash" },
    Tool { there: || exists("ps") && exists("pgrep"), debian: "procps", rhel: "procps-ng" },
    Tool { there: || exists("awk"), debian: "mawk", rhel: "gawk" },
    // an independent reference for user and system time: its samples do not share our sources of
    // error
    Tool { there: || exists("perf"), debian: "linux-perf", rhel: "perf" },
    // third-party parsers of gate output
    PYTHON[0],
    // a browser for the page of `report --html`
    Tool { there: || exists("chromium"), debian: "chromium", rhel: "chromium" },
    Tool { there: || exists("chromedriver"), debian: "chromium-driver", rhel: "chromedriver" },
    // readers of exports, and a build to record
    WEB[0],
    WEB[1],
    Tool { there: || exists("g++"), debian: "g++", rhel: "gcc-c++" },
    // what a job of a CI service finds on its machine
    Tool { there: || exists("sudo"), debian: "sudo", rhel: "sudo" },
    Tool { there: || exists("curl"), debian: "curl", rhel: "curl" },
    // a package for other distributions than this one
    Tool { there: || exists("rpmbuild"), debian: "rpm", rhel: "rpm-build" },
    // a coordinator whose log says what it ran
    Tool { there: || exists("ninja"), debian: "ninja-build", rhel: "ninja-build" },
    // another one, and so are npm and cargo, which are here anyway
    Tool { there: || exists("parallel"), debian: "parallel", rhel: "parallel" },
    // a test runner whose tests are marked
    Tool { there: || exists("ctest"), debian: "cmake", rhel: "cmake" },
];

/// Tools for payloads in Python. RHEL's python3 may be too old, and includes venv.
pub const PYTHON: &[Tool] =
    &[Tool { there: || !is_wanting(), debian: "python3-venv", rhel: "python3.12" }];

/// Tools for PySpark.
pub const SPARK: &[Tool] = &[Tool {
    there: || exists("java"),
    debian: "openjdk-17-jre-headless",
    rhel: "java-17-openjdk-headless",
}];

/// A batch system of one node.
pub const SLURM: &[Tool] = &[
    Tool { there: || exists("slurmctld"), debian: "slurm-wlm", rhel: "slurm-slurmctld" },
    Tool { there: || exists("slurmd"), debian: "slurm-wlm", rhel: "slurm-slurmd" },
    Tool { there: || exists("munged"), debian: "munge", rhel: "munge" },
    Tool { there: || exists("ip"), debian: "iproute2", rhel: "iproute" },
];

/// Tools for the script of `report --html`.
pub const WEB: &[Tool] = &[
    Tool { there: || exists("node"), debian: "nodejs", rhel: "nodejs" },
    Tool { there: || exists("npm"), debian: "npm", rhel: "npm" },
];

/// Other tracers, for comparison.
pub const PEERS: &[Tool] = &[
    Tool { there: || exists("perf"), debian: "linux-perf", rhel: "perf" },
    Tool { there: || exists("bpftrace"), debian: "bpftrace", rhel: "bpftrace" },
    Tool {
        there: || exists("opensnoop") || exists("bpf-opensnoop"),
        debian: "libbpf-tools",
        rhel: "libbpf-tools",
    },
    Tool { there: || exists("forkstat"), debian: "forkstat", rhel: "forkstat" },
    // linked by tracexec
    Tool {
        there: || Path::new("/usr/include/seccomp.h").exists(),
        debian: "libseccomp-dev",
        rhel: "libseccomp-devel",
    },
];

/// Installs the missing ones of these tools.
pub fn run(tools: &[Tool]) -> Result<()> {
    let missing: Vec<&Tool> = tools.iter().filter(|tool| !(tool.there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let debian = missing.iter().map(|tool| tool.debian);
    let rhel = missing.iter().map(|tool| tool.rhel);
    if exists("apt-get") {
        // Another apt-get may be at work, such as that of a new machine's first start.
        let lock = ["-o", "DPkg::Lock::Timeout=600"];
        execute(as_root("apt-get").args(lock).args(["update", "-qq"]))?;
        execute(
            as_root("apt-get")
                .args(lock)
                .args(["install", "-y", "-qq", "--no-install-recommends"])
                .args(debian)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )?;
    } else if exists("dnf") {
        // The libbpf headers are in the repository for developers, whose name differs between the
        // distributions of this family and which may be enabled already; not all of these commands
        // can succeed.
        execute(as_root("dnf").args(["install", "-y", "-q", "dnf-plugins-core"]))?;
        for repository in ["crb", "powertools", "codeready-builder-for-rhel-9-x86_64-rpms"] {
            let _ = as_root("dnf")
                .args(["-q", "config-manager", "--set-enabled", repository])
                .stderr(std::process::Stdio::null())
                .status();
        }
        execute(as_root("dnf").args(["install", "-y", "-q"]).args(rhel))?;
    } else {
        bail!(
            "neither apt-get nor dnf is installed; install these packages: {}",
            missing.iter().map(|tool| tool.debian).collect::<Vec<_>>().join(" ")
        );
    }
    let still: Vec<_> =
        tools.iter().filter(|tool| !(tool.there)()).map(|tool| tool.debian).collect();
    if still.is_empty() { Ok(()) } else { bail!("still missing: {}", still.join(" ")) }
}
