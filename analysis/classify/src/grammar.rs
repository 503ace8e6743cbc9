//! Options of interpreters, as listed in their manuals.

/// Rules by which an interpreter parses its arguments. Letters are short options, several of which
/// can share one argument; words are whole arguments, whose value may also follow a `=`.
pub(super) struct Grammar {
    pub(super) names: &'static [&'static str],
    /// Letters whose value is the rest of the argument, or the next one.
    pub(super) value: &'static [u8],
    /// Letters whose value is always the next argument; more letters may follow them.
    pub(super) next: &'static [u8],
    /// Letters whose value, if there is one, is the rest of the argument.
    pub(super) attached: &'static [u8],
    /// Letters whose value, if there is one, is the digits following them.
    pub(super) digits: &'static [u8],
    /// Letters whose value is a program text.
    pub(super) text: &'static [u8],
    /// Letters whose value is the file or module to run.
    pub(super) file: &'static [u8],
    /// Letters whose value, the next argument, is a program text if it looks like one; otherwise
    /// the argument does not belong to them.
    pub(super) perhaps_text: &'static [u8],
    /// Letters that make the first operand a program text.
    pub(super) first_is_text: &'static [u8],
    /// Letters that make the interpreter read standard input.
    pub(super) input: &'static [u8],
    /// Words whose value is the next argument.
    pub(super) value_words: &'static [&'static str],
    /// Words whose value is a program text.
    pub(super) text_words: &'static [&'static str],
    /// Words whose value is the file or module to run.
    pub(super) file_words: &'static [&'static str],
    /// Suffixes of its script names.
    pub(super) endings: &'static [&'static str],
    /// True if options may begin with `+`, and a single `-` ends them.
    pub(super) is_shell: bool,
    /// True if a script can follow a program text.
    pub(super) goes_on: bool,
    /// True if long options that are not in the table take no value.
    pub(super) knows_long: bool,
    /// True if `@FILE` stands for the arguments in a file.
    pub(super) argument_files: bool,
}

const NOTHING: Grammar = Grammar {
    names: &[],
    value: b"",
    next: b"",
    attached: b"",
    digits: b"",
    text: b"",
    perhaps_text: b"",
    file: b"",
    first_is_text: b"",
    input: b"",
    value_words: &[],
    text_words: &[],
    file_words: &[],
    endings: &[],
    is_shell: false,
    goes_on: false,
    knows_long: false,
    argument_files: false,
};

const SHELLS: &[&str] = &["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "rbash"];

/// True of the name of a shell; that of a login shell begins with a dash.
pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name.strip_prefix('-').unwrap_or(name))
}

/// Interpreters with known options: sh(1p), bash(1), python(1), perlrun(1), ruby(1), lua(1),
/// luajit(1), tclsh(1), the `--help` of node and php, the java command of the JDK. An entry is used
/// only if a pack of rules lists the interpreter under `interpreters`.
pub(super) const GRAMMARS: &[Grammar] = &[
    Grammar {
        names: SHELLS,
        next: b"oO",
        first_is_text: b"c",
        input: b"s",
        value_words: &["--rcfile", "--init-file", "--emulate"],
        endings: &["sh", "bash", "ksh", "zsh"],
        is_shell: true,
        ..NOTHING
    },
    Grammar {
        names: &["python", "pypy"],
        value: b"WXQ",
        text: b"c",
        file: b"m",
        value_words: &["--check-hash-based-pycs"],
        endings: &["py", "pyc", "pyz"],
        ..NOTHING
    },
    Grammar {
        names: &["perl"],
        value: b"I",
        attached: b"MmixFdDCV",
        digits: b"0l",
        text: b"eE",
        endings: &["pl", "pm", "t"],
        ..NOTHING
    },
    Grammar {
        names: &["ruby"],
        value: b"IrCXE",
        attached: b"ixFKW",
        digits: b"0T",
        text: b"e",
        value_words: &[
            "--enable",
            "--disable",
            "--encoding",
            "--external-encoding",
            "--internal-encoding",
            "--dump",
        ],
        endings: &["rb"],
        ..NOTHING
    },
    Grammar {
        names: &["node", "nodejs"],
        value_words: NODE_VALUES,
        text_words: &["-e", "--eval", "-p", "--print", "-pe"],
        endings: &["js", "mjs", "cjs", "ts", "mts", "cts"],
        ..NOTHING
    },
    Grammar {
        names: &["php"],
        value: b"cdztS",
        text: b"rBRE",
        file: b"fF",
        value_words: &["--php-ini", "--define", "--zend-extension", "--server", "--docroot"],
        text_words: &["--run", "--process-begin", "--process-code", "--process-end"],
        file_words: &["--file", "--process-file"],
        endings: &["php", "phar"],
        ..NOTHING
    },
    Grammar {
        names: &["lua", "luajit", "texlua"],
        value: b"lj",
        attached: b"O",
        text: b"e",
        endings: &["lua"],
        goes_on: true,
        ..NOTHING
    },
    Grammar { names: &["Rscript"], text_words: &["-e"], endings: &["R", "r"], ..NOTHING },
    Grammar {
        names: &["tclsh", "wish"],
        value_words: &["-encoding"],
        endings: &["tcl"],
        ..NOTHING
    },
    Grammar {
        names: &["java"],
        value_words: &[
            "-cp",
            "-classpath",
            "--class-path",
            "-p",
            "--module-path",
            "--upgrade-module-path",
            "--add-modules",
            "--limit-modules",
            "--add-exports",
            "--add-opens",
            "--add-reads",
            "--patch-module",
            "--enable-native-access",
            "--describe-module",
            "-d",
            "--source",
        ],
        // What follows -jar may be another option: it only says what the operand is.
        file_words: &["-m", "--module"],
        endings: &["java", "jar"],
        knows_long: true,
        argument_files: true,
        ..NOTHING
    },
    // The first argument is the command to run as.
    Grammar { names: &["busybox"], ..NOTHING },
];

/// Options of node whose value can be the next argument. V8 options take values only after a `=`.
const NODE_VALUES: &[&str] = &[
    "-C",
    "--conditions",
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--env-file",
    "--env-file-if-exists",
    "--inspect-port",
    "--debug-port",
    "--inspect-publish-uid",
    "--title",
    "--input-type",
    "--icu-data-dir",
    "--openssl-config",
    "--redirect-warnings",
    "--disable-warning",
    "--experimental-policy",
    "--policy-integrity",
    "--v8-pool-size",
    "--report-dir",
    "--report-directory",
    "--report-filename",
    "--report-signal",
    "--diagnostic-dir",
    "--dns-result-order",
    "--experimental-default-type",
    "--experimental-sea-config",
    "--build-snapshot-config",
    "--snapshot-blob",
    "--heapsnapshot-signal",
    "--heapsnapshot-near-heap-limit",
    "--max-http-header-size",
    "--network-family-autoselection-attempt-timeout",
    "--secure-heap",
    "--secure-heap-min",
    "--tls-cipher-list",
    "--tls-keylog",
    "--trace-event-categories",
    "--trace-event-file-pattern",
    "--unhandled-rejections",
    "--use-largepages",
    "--cpu-prof-dir",
    "--cpu-prof-interval",
    "--cpu-prof-name",
    "--heap-prof-dir",
    "--heap-prof-interval",
    "--heap-prof-name",
    "--localstorage-file",
    "--disable-proto",
    "--allow-fs-read",
    "--allow-fs-write",
    "--test-concurrency",
    "--test-coverage-exclude",
    "--test-coverage-include",
    "--test-global-setup",
    "--test-isolation",
    "--test-name-pattern",
    "--test-reporter",
    "--test-reporter-destination",
    "--test-shard",
    "--test-skip-pattern",
    "--test-timeout",
    "--watch-path",
    "--watch-kill-signal",
    "--run",
];

/// Grammar of interpreters that are not in the table. They may be of any kind, so only the meanings
/// that most interpreters share are assumed.
pub(super) const UNKNOWN: Grammar =
    Grammar { value: b"WXIO", next: b"o", text: b"c", perhaps_text: b"e", file: b"m", ..NOTHING };
