# Copyright the proctrace authors.
#
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Builds proctrace from source for Spack.

Copy it to packages/proctrace/package.py of a repository of yours (spack repo create), with the URL of your clone in
`git`. Written after the packages of spack-packages of July 2026; not run.
"""

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Proctrace(CargoPackage):
    """Records what a job runs, by eBPF or ptrace, and reports what that costs and what to change."""

    git = "https://github.com/OWNER/proctrace.git"

    license("MIT OR Apache-2.0", checked_by="proctrace")

    version("main", branch="main")

    variant("analysis", default=True, description="With report, advise and the other commands that read")

    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("rust@1.88:", type="build")

    @property
    def build_directory(self):
        crate = "cli" if self.spec.satisfies("+analysis") else "recorder"
        return join_path(self.stage.source_path, "crates", crate)

    @run_after("install")
    def install_pages(self):
        name = "proctrace" if self.spec.satisfies("+analysis") else "proctrace-recorder"
        program = Executable(join_path(self.prefix.bin, name))
        mkdirp(self.prefix.share.man.man1)
        program("man", self.prefix.share.man.man1)
        mkdirp(bash_completion_path(self.prefix))
        with open(bash_completion_path(self.prefix) / name, "w") as file:
            program("completions", "bash", output=file)

    def test_record(self):
        """record a command by ptrace, which needs no rights"""
        name = "proctrace" if self.spec.satisfies("+analysis") else "proctrace-recorder"
        program = which(join_path(self.prefix.bin, name), required=True)
        program("record", "--backend", "ptrace", "--output", "job.ptrace", "--", "true")
        program("check", "job.ptrace")
