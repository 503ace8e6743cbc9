"""Prints what programs can notice of how they are run: one line for each behaviour, of its name and what came out.

Nothing that differs from run to run is printed, such as numbers of processes. FIXTURES is the directory of compiled
fixtures; ASAN and UBSAN are programs that were compiled with these sanitizers.
"""

import ctypes
import errno
import fcntl
import os
import pty
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
FIXTURES = os.environ["FIXTURES"]
BEHAVIOURS = []


def behaviour(function):
    BEHAVIOURS.append(function)
    return function


def run(*argv, **more):
    """Status and output of a command."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, **more)
    return done.returncode, done.stdout.decode(errors="replace").strip()


def child(function):
    """What waitpid says of a child that runs this."""
    pid = os.fork()
    if pid == 0:
        try:
            code = function() or 0
        except BaseException:
            code = 99
        os._exit(code)
    return os.waitpid(pid, 0)[1]


def status(pid, key):
    with open(f"/proc/{pid}/status") as lines:
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith(key + ":"))


def letter(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def until(is_so):
    """Waits at most a minute."""
    for _ in range(6000):
        if is_so():
            return True
        time.sleep(0.01)
    return False


def signals_of(text):
    """A mask of signals, without the two that the C library keeps for itself: posix_spawn(3) ignores them or not, by
    what the parent had done with threads."""
    return f"{int(text, 16) & ~(3 << 31):x}"


@behaviour
def exit_statuses():
    return [run("sh", "-c", f"exit {code}")[0] for code in (0, 1, 7, 126, 127, 255)]


@behaviour
def deaths_by_signals():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    names = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM SYS".split()

    def die(name):
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL) if name != "KILL" else None
        os.kill(os.getpid(), getattr(signal, "SIG" + name))

    return [child(lambda name=name: die(name)) for name in names]


@behaviour
def waitid_of_an_exit():
    pid = os.fork()
    if pid == 0:
        os._exit(5)
    left = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    found = os.waitid(os.P_PID, pid, os.WEXITED)
    return (left.si_code == os.CLD_EXITED, left.si_status, found.si_status, found.si_pid == pid)


@behaviour
def waitid_of_a_death():
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    found = os.waitid(os.P_PID, pid, os.WEXITED)
    return (found.si_code == os.CLD_KILLED, found.si_status)


@behaviour
def a_stop_and_a_continue_are_waited_for():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.kill(os.getpid(), signal.SIGSTOP)
        # Of one that has ended meanwhile, nobody is told that it went on.
        os.read(read, 1)
        os._exit(3)
    stopped = os.waitid(os.P_PID, pid, os.WSTOPPED)
    os.kill(pid, signal.SIGCONT)
    continued = os.waitid(os.P_PID, pid, os.WCONTINUED)
    os.close(write)
    ended = os.waitid(os.P_PID, pid, os.WEXITED)
    return [(found.si_code, found.si_status) for found in (stopped, continued, ended)]


@behaviour
def a_stopped_child_stands_still_and_goes_on():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        while True:
            os.write(write, b"x")
            time.sleep(0.002)
    os.read(read, 1)
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    os.set_blocking(read, False)
    try:
        while os.read(read, 65536):
            pass
    except BlockingIOError:
        pass
    time.sleep(0.1)
    still = not select.select([read], [], [], 0)[0]
    os.kill(pid, signal.SIGCONT)
    goes_on = bool(select.select([read], [], [], 60)[0])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return still, goes_on


@behaviour
def letter_of_a_stopped_child():
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitpid(pid, os.WUNTRACED)
    found = letter(pid)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return found


@behaviour
def letter_of_a_sleeping_child():
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
        os._exit(0)
    slept = until(lambda: letter(pid) == "S")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return slept


@behaviour
def a_zombie_stays_until_it_is_waited_for():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    found = until(lambda: letter(pid) == "Z")
    os.waitpid(pid, 0)
    return found, os.path.exists(f"/proc/{pid}")


@behaviour
def children_that_nobody_waits_for_vanish():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    return until(lambda: not os.path.exists(f"/proc/{pid}"))


@behaviour
def notices_of_children():
    seen = []
    signal.signal(signal.SIGCHLD, lambda *_: seen.append(1))
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitpid(pid, os.WUNTRACED)
    first = until(lambda: len(seen) == 1)
    os.kill(pid, signal.SIGCONT)
    os.waitpid(pid, 0)
    return first, until(lambda: len(seen) >= 2), len(seen) <= 3


@behaviour
def job_control_of_a_shell():
    script = (
        "set -m; sleep 100 & kill -STOP %1; until [ -n \"$(jobs -s)\" ]; do sleep 0.05; done; "
        "kill -CONT %1; kill -KILL %1; wait %1; echo $?"
    )
    code, text = run("bash", "-c", script)
    return code, text.split()[-1]


@behaviour
def job_control_on_a_terminal():
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["PS1"] = "ready "
        os.execvp("bash", ["bash", "--norc", "-i"])
    said = b""

    def expect(word):
        nonlocal said
        end = time.monotonic() + 60
        while word not in said and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                try:
                    said += os.read(terminal, 4096)
                except OSError:
                    break
        found = word in said
        said = b""
        return found

    begun = expect(b"ready ")
    os.write(terminal, b"sleep 1000\n")
    pgrp = until(lambda: os.tcgetpgrp(terminal) != pid)
    time.sleep(0.3)
    os.write(terminal, b"\x1a")
    stopped = expect(b"Stopped")
    os.write(terminal, b"bg\n")
    background = expect(b"sleep 1000 &")
    os.write(terminal, b"fg\n")
    foreground = expect(b"sleep 1000")
    until(lambda: os.tcgetpgrp(terminal) != pid)
    os.write(terminal, b"\x03")
    expect(b"ready ")
    os.write(terminal, b"exit 4\n")
    return begun, pgrp, stopped, background, foreground, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@behaviour
def a_death_sends_the_signal_that_was_asked_for():
    read, write = os.pipe()

    def parent():
        if os.fork() == 0:
            signal.signal(signal.SIGUSR1, lambda *_: (os.write(write, b"u"), os._exit(0)))
            libc.prctl(1, signal.SIGUSR1)
            os.write(write, b"r")
            time.sleep(60)
            os._exit(1)
        os.read(read, 1)

    child(parent)
    return os.read(read, 1)


@behaviour
def orphans_go_to_a_subreaper():
    libc.prctl(36, 1)
    me = os.getpid()
    read, write = os.pipe()

    def parent():
        if os.fork() == 0:
            until(lambda: os.getppid() == me)
            os.write(write, b"y" if os.getppid() == me else b"n")
            os._exit(6)

    child(parent)
    return os.read(read, 1), os.waitpid(-1, 0)[1]


@behaviour
def a_daemon_has_a_session_of_its_own():
    read, write = os.pipe()

    def first():
        os.setsid()
        if os.fork() == 0:
            os.write(write, b"%d" % (os.getsid(0) != os.getpid()))
            os._exit(0)

    return child(first), os.read(read, 1)


@behaviour
def pidfds():
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    descriptor = os.pidfd_open(pid)
    early = bool(select.select([descriptor], [], [], 0)[0])
    signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    late = bool(select.select([descriptor], [], [], 60)[0])
    found = os.waitid(3, descriptor, os.WEXITED)
    return early, late, found.si_status


@behaviour
def alarms():
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    good = until(lambda: len(seen) >= 5)
    signal.setitimer(signal.ITIMER_REAL, 0)
    return good


@behaviour
def queued_signals_keep_order_and_value():
    class Value(ctypes.Union):
        _fields_ = [("number", ctypes.c_int), ("pointer", ctypes.c_void_p)]

    numbers = [signal.SIGRTMIN + 2, signal.SIGRTMIN + 1]
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for at, number in enumerate([numbers[0], numbers[1], numbers[1]]):
        libc.sigqueue(os.getpid(), number, Value(number=40 + at))
    class Info(ctypes.Structure):
        _fields_ = [("number", ctypes.c_int), ("error", ctypes.c_int), ("code", ctypes.c_int), ("pad", ctypes.c_int),
                    ("pid", ctypes.c_int), ("uid", ctypes.c_uint), ("value", Value), ("rest", ctypes.c_byte * 100)]
    mask = (ctypes.c_ulong * 16)()
    for number in numbers:
        mask[0] |= 1 << (number - 1)
    found = []
    for _ in range(3):
        info = Info()
        libc.sigwaitinfo(mask, ctypes.byref(info))
        found.append((info.number - signal.SIGRTMIN, info.code, info.value.number))
    return found


@behaviour
def masks_and_ignored_signals_are_inherited():
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    code, text = run("grep", "-E", "^Sig(Blk|Ign|Cgt)", "/proc/self/status", restore_signals=False)
    return code, [signals_of(line.split()[1]) for line in text.splitlines()]


@behaviour
def what_a_program_inherits_of_signals():
    return [signals_of(status("self", key)) for key in ("SigBlk", "SigIgn", "ShdPnd")]


@behaviour
def limits_and_priorities():
    names = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
    return [resource.getrlimit(getattr(resource, name)) for name in names] + [os.nice(0), os.sched_getscheduler(0)]


@behaviour
def processors():
    return sorted(os.sched_getaffinity(0))


@behaviour
def open_descriptors():
    return sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]


@behaviour
def the_environment():
    return sorted(key for key in os.environ if key != "_")


@behaviour
def working_directory_and_mask_of_files():
    mask = os.umask(0)
    return os.path.realpath(".") == os.environ["HERE"], mask


@behaviour
def session_and_group():
    return os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid(), os.getpgid(os.getppid()) == os.getpgrp()


@behaviour
def credentials():
    return [status("self", key).split() for key in ("Uid", "Gid", "Groups", "CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd")]


@behaviour
def privileges_can_be_gained():
    return status("self", "NoNewPrivs")


@behaviour
def seccomp_filters():
    return status("self", "Seccomp")


@behaviour
def a_tracer():
    return status("self", "TracerPid") != "0"


@behaviour
def names_of_a_program():
    with open("/proc/self/comm") as comm:
        return comm.read(), os.path.basename(os.readlink("/proc/self/exe")).startswith("python")


@behaviour
def dumpable():
    return libc.prctl(3)


@behaviour
def many_threads():
    found = []
    threads = [threading.Thread(target=lambda: found.append(1)) for _ in range(60)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return len(found)


@behaviour
def an_exit_by_a_thread():
    def go():
        threading.Thread(target=lambda: os._exit(9)).start()
        time.sleep(60)

    return child(go)


@behaviour
def an_exec_by_a_thread():
    return run(f"{FIXTURES}/thread_exec", "/bin/true")[0]


@behaviour
def a_leader_that_ends_first():
    return run(f"{FIXTURES}/leader_exits", "3", "20")[0]


@behaviour
def children_that_refuse_a_tracer():
    return [run(f"{FIXTURES}/untraced", *how) for how in ((), ("clone3",))]


@behaviour
def execs_that_fail():
    def why(path, text=None, mode=0o755):
        if text is not None:
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, mode)
        try:
            os.execv(path, [path])
        except OSError as error:
            return error.errno

    with tempfile.TemporaryDirectory() as place:
        return [
            errno.errorcode[found]
            for found in (
                why("/no/such"),
                why("/"),
                why(f"{place}/text", "no program"),
                why(f"{place}/closed", "", 0o644),
                why(f"{place}/lost", "#!/no/such\n"),
            )
        ]


@behaviour
def scripts_of_scripts():
    with tempfile.TemporaryDirectory() as place:
        for name, head in (("one", "/bin/sh"), ("two", f"{place}/one"), ("three", f"{place}/two")):
            with open(f"{place}/{name}", "w") as file:
                file.write(f"#!{head}\necho $#\n")
            os.chmod(f"{place}/{name}", 0o755)
        return [run(f"{place}/{name}", "a") for name in ("one", "two", "three")]


@behaviour
def large_arguments():
    length = len(run("printf", "%s", "x" * 100_000)[1])
    try:
        return length, run("true", "x" * 200_000)[0]
    except OSError as error:
        return length, error.errno


@behaviour
def arguments_of_any_bytes():
    with tempfile.TemporaryDirectory() as place:
        with open(f"{place}/sum", "w") as file:
            file.write('#!/bin/sh\nprintf %s "$@" | cksum\n')
        os.chmod(f"{place}/sum", 0o755)
        return run(f"{FIXTURES}/exec_argv", f"{place}/sum", "5000")


@behaviour
def spawns():
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 8"], {})
    return os.waitpid(pid, 0)[1], subprocess.call(["sh", "-c", "exit 2"], close_fds=True)


@behaviour
def descriptors_close_at_an_exec():
    read, write = os.pipe()
    os.set_inheritable(read, True)
    return run("ls", "/proc/self/fd", close_fds=False)[1].split()[-2:] != [], run(
        "sh", "-c", f"test -e /proc/self/fd/{read}; echo $?; test -e /proc/self/fd/{write}; echo $?", close_fds=False
    )


@behaviour
def broken_pipes():
    return run("bash", "-c", "yes | head -1; echo ${PIPESTATUS[*]}")


@behaviour
def interrupted_calls():
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    libc.siginterrupt(signal.SIGUSR1, 1)
    read, write = os.pipe()
    me = os.getpid()
    pid = os.fork()
    if pid == 0:
        while not seen and os.getppid() == me:
            time.sleep(0.05)
            os.kill(me, signal.SIGUSR1)
        os._exit(0)
    buffer = ctypes.create_string_buffer(1)
    result = libc.read(read, buffer, 1)
    number = ctypes.get_errno()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return result, errno.errorcode[number]


@behaviour
def a_sleep_is_not_cut_by_children():
    begun = time.monotonic()
    pids = [os.posix_spawn("/bin/true", ["true"], {}) for _ in range(20)]
    time.sleep(0.3)
    slept = time.monotonic() - begun >= 0.3
    return slept, [os.waitpid(pid, 0)[1] for pid in pids].count(0)


@behaviour
def faults_are_handled():
    source = (
        "import ctypes, faulthandler; faulthandler.enable(); ctypes.string_at(0)"
    )
    code, text = run(sys.executable, "-c", source)
    return code, "Segmentation fault" in text


@behaviour
def a_core_is_dumped_or_not():
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), signal.SIGQUIT)
    found = os.waitpid(pid, 0)[1]
    return os.WCOREDUMP(found), os.WTERMSIG(found)


@behaviour
def signalfds():
    mask = (ctypes.c_ulong * 16)()
    mask[0] = 1 << (signal.SIGCHLD - 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    descriptor = libc.signalfd(-1, mask, 0)
    pid = os.fork()
    if pid == 0:
        os._exit(3)
    info = os.read(descriptor, 128)
    os.waitpid(pid, 0)
    return info[0], int.from_bytes(info[40:44], "little")


@behaviour
def sockets_pass_descriptors():
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        socket.send_fds(theirs, [b"x"], [os.open("/etc/passwd", os.O_RDONLY)])
        os._exit(0)
    _, found, _, _ = socket.recv_fds(ours, 1, 1)
    os.waitpid(pid, 0)
    return os.fstat(found[0]).st_size == os.stat("/etc/passwd").st_size


@behaviour
def locks_of_files():
    with tempfile.TemporaryFile() as file:
        fcntl.lockf(file, fcntl.LOCK_EX)

        def other():
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return 1

        return os.waitstatus_to_exitcode(child(other))


@behaviour
def groups_are_killed():
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        [os.fork() for _ in range(2)]
        time.sleep(600)
        os._exit(0)
    until(lambda: os.getpgid(pid) == pid)
    os.killpg(pid, signal.SIGTERM)
    return os.waitpid(pid, 0)[1]


@behaviour
def user_and_pid_namespaces():
    return run("unshare", "-Urpf", "sh", "-c", "echo $$; id -u; (exit 3); echo $?; exec sh -c 'kill -TERM 1; exit 5'")


@behaviour
def a_debugger():
    said = run("gdb", "-nx", "-batch", "-ex", "run", "--args", f"{FIXTURES}/exec_argv")[1]
    return "exited with code 01" in said


@behaviour
def another_tracer():
    return run("strace", "-o", "/dev/null", "/bin/sh", "-c", "exit 7")[0]


@behaviour
def a_debugger_that_attaches():
    """To a process with two threads, one of which is in a call that is interrupted by that."""
    script = "import threading, time; t = threading.Thread(target=time.sleep, args=(2,)); t.start(); input(); t.join(); print('done')"
    waits = subprocess.Popen(["python3", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    until(lambda: len(os.listdir(f"/proc/{waits.pid}/task")) == 2)
    said = run("gdb", "-nx", "-batch", "-p", str(waits.pid), "-ex", "info threads", "-ex", "detach")[1]
    out, _ = waits.communicate("\n", timeout=60)
    return said.count("Thread 0x"), "detached" in said, out, waits.returncode


@behaviour
def a_tracer_of_a_tree():
    with tempfile.TemporaryDirectory() as place:
        log = f"{place}/log"
        script = "for i in 1 2 3; do ls /proctrace-missing$i; done; cat /proctrace-missing & wait; exec true"
        code, said = run("strace", "-f", "-e", "trace=execve", "-e", "signal=none", "-o", log, "sh", "-c", script)
        with open(log) as file:
            lines = file.read()
    return code, said, lines.count("execve("), lines.count("+++ exited with 2 +++"), lines.count("+++ exited with 0 +++")


@behaviour
def a_leak_check_that_is_asked_for():
    code, text = run(os.environ["ASAN"], "leak", env={**os.environ, "LSAN_OPTIONS": "exitcode=9"})
    return code, "detected memory leaks" in text


@behaviour
def a_program_with_a_leak():
    code, text = run(os.environ["ASAN"], "leak")
    return code, "LeakSanitizer" in text, "has encountered a fatal error" in text


@behaviour
def a_program_without_a_leak():
    return run(os.environ["ASAN"])


@behaviour
def a_program_that_overruns():
    code, text = run(os.environ["ASAN"], "overrun")
    return code, "heap-buffer-overflow" in text


@behaviour
def undefined_behaviour():
    code, text = run(os.environ["UBSAN"])
    return code, "signed integer overflow" in text


@behaviour
def programs_of_32_bits():
    path = f"{FIXTURES}/compat32"
    return run(path)[0] if os.path.exists(path) else None


for each in BEHAVIOURS:
    # Each in a process of its own, so that none leaves anything to another one.
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            found = each()
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        os.write(write, repr(found).encode())
        os._exit(0)
    os.close(write)
    text = b""
    while piece := os.read(read, 65536):
        text += piece
    os.close(read)
    os.waitpid(pid, 0)
    print(f"{each.__name__}: {text.decode()}", flush=True)
