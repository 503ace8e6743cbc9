//! Names of compilers, and of programs that run one that they are given.

/// Compilers of C, C++, Objective-C and CUDA, without version and target.
const COMPILERS: &[&[u8]] = &[
    b"gcc", b"g++", b"cc", b"c++", b"c89", b"c99", b"clang", b"clang++", b"nvcc", b"hipcc", b"icc",
    b"icpc", b"icx", b"icpx",
];

/// Compilers of Fortran, whose compilations are counted.
const FORTRAN: &[&[u8]] = &[
    b"gfortran",
    b"f77",
    b"f95",
    b"flang",
    b"flang-new",
    b"ifort",
    b"ifx",
    b"nvfortran",
    b"pgfortran",
];

/// Compilers with the front end of clang.
const OF_CLANG: &[&[u8]] = &[b"clang", b"clang++", b"hipcc", b"icx", b"icpx"];

/// Programs that run the compiler which follows them on their command line.
const WRAPPERS: &[&[u8]] = &[b"ccache", b"distcc", b"icecc", b"sccache", b"colorgcc"];

/// The command line from the compiler on: all of it, or what follows wrappers; `None` for other
/// programs. A compiler is known by the name that it was given, since that of ccache may be a link
/// to it, and otherwise by its executable.
pub(super) fn compiler_call<'a>(arguments: &'a [Vec<u8>], exe: &[u8]) -> Option<&'a [Vec<u8>]> {
    let mut rest = arguments;
    let mut is_wrapped = false;
    loop {
        let (first, behind) = rest.split_first()?;
        if is_compiler(first) {
            return Some(rest);
        }
        if !is_wrapper(first) {
            return (!is_wrapped && is_compiler(exe)).then_some(rest);
        }
        is_wrapped = true;
        // ccache takes its configuration in front of the compiler.
        let options = behind.iter().take_while(|word| is_setting(word)).count();
        rest = &behind[options..];
    }
}

pub(super) fn is_compiler(path: &[u8]) -> bool {
    is_among(COMPILERS, path) || is_of_fortran(path)
}

pub(super) fn is_of_fortran(path: &[u8]) -> bool {
    is_among(FORTRAN, path)
}

pub(super) fn is_of_clang(path: &[u8]) -> bool {
    is_among(OF_CLANG, path)
}

fn is_among(compilers: &[&[u8]], path: &[u8]) -> bool {
    let name = without_version(base(path));
    // A cross compiler has its target in front: x86_64-linux-gnu-gcc.
    compilers.iter().any(|compiler| {
        name.strip_suffix(*compiler)
            .is_some_and(|target| target.is_empty() || target.ends_with(b"-"))
    })
}

fn is_wrapper(path: &[u8]) -> bool {
    WRAPPERS.contains(&base(path))
}

/// A setting of ccache: `key=value`.
fn is_setting(word: &[u8]) -> bool {
    let name = word.split(|byte| *byte == b'=').next().unwrap_or_default();
    name.len() < word.len()
        && !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The name without a version at its end: `gcc-14`, `clang-19.1`, `g++-4.9.2`.
fn without_version(name: &[u8]) -> &[u8] {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let front = &name[..name.len() - digits.count()];
    match front.strip_suffix(b"-") {
        Some(bare) if front.len() < name.len() => bare,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_known_by_their_names() {
        for name in [
            "gcc",
            "/usr/bin/g++",
            "cc",
            "c++",
            "gcc-14",
            "x86_64-linux-gnu-gcc-14",
            "clang++-19",
            "arm-none-eabi-g++",
            "clang-19.1",
            "/opt/x/bin/aarch64-linux-gnu-g++-4.9.2",
            "nvcc",
            "gfortran-12",
        ] {
            assert!(is_compiler(name.as_bytes()), "{name}");
        }
        for name in [
            "cc1",
            "cc1plus",
            "gcc-ar",
            "gcc-ranlib-14",
            "ld",
            "as",
            "collect2",
            "ccache",
            "clangd",
            "clang-tidy",
            "clang-cpp",
            "lto-wrapper",
            "c++filt",
            "mpicc",
            "",
            "-",
            "14",
            "gcc14",
        ] {
            assert!(!is_compiler(name.as_bytes()), "{name}");
        }
    }

    fn call(words: &str, exe: &str) -> Option<String> {
        let words: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let call = compiler_call(&words, exe.as_bytes())?;
        Some(call.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn wrappers_are_left_out() {
        let bare = Some("gcc -c x.c".to_owned());
        assert_eq!(call("gcc -c x.c", "/usr/bin/ccache"), bare);
        assert_eq!(call("ccache gcc -c x.c", "/usr/bin/ccache"), bare);
        assert_eq!(call("ccache debug=true base_dir=/ gcc -c x.c", "/usr/bin/ccache"), bare);
        assert_eq!(call("ccache distcc gcc -c x.c", "/usr/bin/ccache"), bare);
        assert_eq!(call("ccache --show-stats", "/usr/bin/ccache"), None);
        assert_eq!(call("ccache", "/usr/bin/ccache"), None);
        assert_eq!(call("hidden -c x.c", "/usr/bin/gcc-12"), Some("hidden -c x.c".to_owned()));
        assert_eq!(call("make -j2", "/usr/bin/make"), None);
    }
}
