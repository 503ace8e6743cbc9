#!/usr/bin/env python3
"""Makes a wheel of what `cargo xtask dist` has built, so that `pip install` and `uv tool install` can install it.

    packaging/wheel/build.py FOLDER VERSION OUT [ARCHITECTURE]

FOLDER is target/dist/package, or that of another ARCHITECTURE, as `uname -m` says it. The wheel has no Python in it: its
programs are scripts in the sense of PEP 427. The same files give the same bytes. Prints the path of the wheel.
"""

import base64
import hashlib
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

NAME = "proctrace"
PROGRAMS = ("proctrace", "proctrace-recorder")
LICENSES = ("LICENSE-APACHE", "LICENSE-MIT", "LICENSE-GPL-2.0", "THIRD-PARTY-LICENSES.txt")
# What the programs are made of (PEP 770).
BILL = "proctrace.cdx.json"
# The first time that a zip file can hold.
TIME = (1980, 1, 1, 0, 0, 0)


def glibc(programs):
    """The newest version of glibc's symbols that the programs ask for; None if they are linked statically."""
    versions = set()
    for program in programs:
        symbols = subprocess.run(["objdump", "-T", program], capture_output=True, text=True).stdout
        versions |= {tuple(map(int, found)) for found in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)}
    return max(versions, default=None)


def tag(programs, machine):
    """The platforms that it runs on (PEP 600)."""
    version = glibc(programs)
    if version is None:
        return f"py3-none-manylinux_2_17_{machine}.musllinux_1_1_{machine}"
    return f"py3-none-manylinux_{version[0]}_{version[1]}_{machine}"


def metadata(version, readme):
    return f"""Metadata-Version: 2.4
Name: {NAME}
Version: {version}
Summary: What did this job really run, and what did it cost?
License-Expression: (MIT OR Apache-2.0) AND (GPL-2.0-only OR MIT)
{"".join(f"License-File: {name}{chr(10)}" for name in LICENSES)}Keywords: tracing,profiling,ebpf,ci
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Software Development :: Debuggers
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""


def main(folder, version, out, machine=None):
    folder, out = pathlib.Path(folder), pathlib.Path(out)
    programs = [folder / "bin" / name for name in PROGRAMS]
    tags = tag(programs, machine or platform.machine())
    data, info = f"{NAME}-{version}.data", f"{NAME}-{version}.dist-info"
    files = {f"{data}/scripts/{program.name}": program.read_bytes() for program in programs}
    for page in sorted((folder / "man/man1").iterdir()):
        files[f"{data}/data/share/man/man1/{page.name}"] = page.read_bytes()
    for name in LICENSES:
        files[f"{info}/licenses/{name}"] = (folder / name).read_bytes()
    files[f"{info}/sboms/{BILL}"] = (folder / BILL).read_bytes()
    files[f"{info}/METADATA"] = metadata(version, (folder / "README.md").read_text()).encode()
    python, abi, platforms = tags.split("-")
    wheel = "Wheel-Version: 1.0\nGenerator: proctrace\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: {python}-{abi}-{one}\n" for one in platforms.split("."))
    files[f"{info}/WHEEL"] = wheel.encode()
    record = "".join(f"{name},{digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()

    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{NAME}-{version}-{tags}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if "/scripts/" in name else 0o644
            member.external_attr = (0o100000 | mode) << 16
            archive.writestr(member, content)
    print(path)


def digest(content):
    """The hash of a file as RECORD has it (PEP 376, PEP 427)."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
