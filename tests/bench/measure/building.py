"""Figure 20: what a first run costs: building, in clones of the last commit, with nothing in ccache; and memory."""
import collections
import os
import subprocess
import time

from measure.bench import EXAMPLE
from measure.store import ROOT

FIRST_RUN, BUILD = "== build/release/cli/paceline run", "== build "
CORE, ITS_TEST, ITS_CASES = "scheduler/rounds/round_state.cc", "paceline_scheduler_test", "WagmaMerge*:Allreduce*"


def clone(bench, name):
    folder = os.path.join(bench.folder, name)
    subprocess.run(["git", "clone", "--quiet", ROOT, folder], check=True)
    return folder, {**os.environ, "CCACHE_DIR": os.path.join(bench.folder, name + "-ccache")}


# Of a ./quickstart until the run that it ends with says something: minutes, minutes of these for installing, processor seconds
# (compilers, linkers, ccache), GB of its largest process.
FirstLine = collections.namedtuple("FirstLine", "took installing processor largest")


def first_line(*command, **where):
    begin = time.monotonic()
    installing = 0.0
    job = subprocess.Popen(command, **where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in job.stdout:
        if line.startswith(BUILD):
            installing = time.monotonic() - begin
        if line.startswith(FIRST_RUN):
            break
    said = job.stdout.readline()
    took = time.monotonic() - begin
    job.terminate()
    _, _, used = os.wait4(job.pid, 0)  # Of it, and of all that it waited for.
    if not said:
        raise SystemExit("./quickstart ended before its run said anything")
    return FirstLine(took / 60, installing / 60, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9)


def edited(folder, environment, round_number):
    """Seconds from an edit of a core to the answer of its unit tests."""
    def build_and_test():
        begin = time.monotonic()
        subprocess.run(["cmake", "--build", "build/release", "--target", ITS_TEST], cwd=folder, env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([os.path.join("build", "release", "scheduler", ITS_TEST), f"--gtest_filter={ITS_CASES}"], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - begin
    build_and_test()
    with open(os.path.join(folder, CORE), "a", encoding="utf-8") as file:
        file.write(f"static_assert({os.getpid()} + {round_number} > 0);\n")  # Not a comment, which ccache would not notice.
    return build_and_test()


def building(bench):
    values = {"first line": [], "processor": [], "edit": []}
    for k in range(bench.rounds_or(1)):
        folder, environment = clone(bench, f"building-{k}")
        measured = first_line("./quickstart", cwd=folder, env=environment)
        values["first line"].append(measured.took)
        values["processor"].append(measured.processor)
        values["edit"].extend(edited(folder, environment, edit) for edit in range(3))
    return {20: values}


def debian(bench, name):
    """The folder of a Debian 12 with nothing but what every one has, and this system's ways to the network."""
    folder = os.path.join(bench.folder, name)
    subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", folder], check=True, stdout=subprocess.DEVNULL)
    for path in ("/etc/resolv.conf", "/etc/apt/apt.conf.d"):
        subprocess.run(["cp", "-rL", path, folder + os.path.dirname(path)], check=True)
    return folder


def disk(folder):
    """GB."""
    return int(subprocess.run(["du", "-sxk", folder], check=True, capture_output=True, text=True).stdout.split()[0]) * 1024 / 1e9


def bare(bench):
    """Needs root and debootstrap. What it mounts is seen by nobody else, and gone with it."""
    values = {"bare": [], "installing": [], "packages": [], "build": [], "compiler": []}
    for k in range(bench.rounds_or(1)):
        folder = debian(bench, f"debian-{k}")
        empty = disk(folder)
        source, _ = clone(bench, f"bare-{k}")
        subprocess.run(["cp", "-r", source, os.path.join(folder, "root", "paceline")], check=True)
        inside = 'for name in proc sys dev dev/shm; do mount --bind /$name "$0/$name"; done; exec chroot "$0" /root/paceline/quickstart'
        measured = first_line("unshare", "--mount", "sh", "-ec", inside, folder, env={"PATH": os.environ["PATH"], "HOME": "/root"})
        built = disk(os.path.join(folder, "root"))
        values["bare"].append(measured.took)
        values["installing"].append(measured.installing)
        values["packages"].append(disk(folder) - empty - built)
        values["build"].append(built)
        values["compiler"].append(measured.largest)
    return {20: values}


def checking(bench):
    values = {"check cold": [], "check warm": []}
    folder, environment = clone(bench, "checking")
    for key in values:
        begin = time.monotonic()
        subprocess.run(["./check"], cwd=folder, env=environment, check=True)
        values[key].append((time.monotonic() - begin) / 60)
    return {20: values}


def checked(bench):
    """With the compiler's cache as it is: only what is left is measured."""
    folder, _ = clone(bench, "checked")
    subprocess.run(["./check"], cwd=folder, check=True)
    return {20: {"check disk": [disk(folder)]}}


def memory_of(mark):
    """GB of all processes with this text in their environment; what they share counts once."""
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() not in file.read():
                    continue
            with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:  # It has ended.
            continue
    return total * 1024 / 1e9


def memory(bench):
    """The most at a time, of a run of the example from its compilation's end on."""
    bench.run("--epochs", "0.1", "--target", "none")
    mark = os.environ["PACELINE_FIGURES_MARK"] = f"memory of {os.getpid()}"
    most = []
    for _ in range(bench.rounds_or(3)):
        job = bench.start(EXAMPLE, "--workers", "4", "--epochs", "1", "--target", "none")
        most.append(0.0)
        while job.poll() is None:
            most[-1] = max(most[-1], memory_of(mark))
            time.sleep(0.1)
        job.communicate()
        if job.returncode != 0:
            raise SystemExit("the run whose memory is measured failed")
    return {20: {"memory": most}}
