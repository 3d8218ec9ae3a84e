"""A network of its own, in which the node of a cluster can be cut off from all others while its processes live.

    with private_network():                  this process and those that it starts have a loopback device of their own
        ...                                  a cluster is started: directory
        with CutOff(directory, node) as cut:
            ...                              its agent was started anew, a job is started
            cut.cut()                        nothing that it sends arrives anywhere, and nothing reaches it; nobody is told

Agents speak tcp over that device: what comes over it from or to the agent is dropped, and so is every packet that opens a
connection, since the agent's next ones have ports that nobody knows yet. So are pulses, which are UDP. The head is spoken to
over a Unix socket: the agent's way to it goes through a relay, which stops.
"""
import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import threading
import time

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SHOT = 2  # What a filter says of a packet that goes no further.


class Unavailable(Exception):
    """Why there is no such network here."""


def tool(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise Unavailable(f"there is no {command[0]}: install iproute2") from None
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command[:6])}: {done.stderr.strip()}")


def unshare(libc):
    """As root without further ado, else as root of a user namespace, which this process cannot leave any more."""
    if libc.unshare(CLONE_NEWNET) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        raise Unavailable(f"no network of its own for a process: {os.strerror(ctypes.get_errno())}")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)


@contextlib.contextmanager
def private_network():
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/self/ns/net", os.O_RDONLY)
    try:
        unshare(libc)
        try:
            tool("ip", "link", "set", "lo", "up")
            tool("tc", "qdisc", "add", "dev", "lo", "clsact")
            install(dropping(range(1)))  # Does this kernel take such a filter?
            restore()
            yield
        finally:
            libc.setns(before, CLONE_NEWNET)
    finally:
        os.close(before)


def dropping(ports):
    """A classic BPF program: UDP, what opens a connection, and TCP from or to one of the ports is dropped."""
    ports = sorted(ports)
    program = [
        (0x28, 12), ("is", 0x800, None, "keep"),      # IPv4
        (0x30, 23), ("is", 17, "drop", None), ("is", 6, None, "keep"),
        (0xb1, 14), (0x50, 14 + 13), (0x54, 0x12), ("is", 0x02, "drop", None),  # SYN without ACK.
        (0x48, 14), *(("is", port, "drop", None) for port in ports),
        (0x48, 16), *(("is", port, "drop", None) for port in ports)]
    ends = {"keep": len(program), "drop": len(program) + 1}
    lines = []
    for place, (code, number, *ways) in enumerate(program):
        yes, no = (ends[way] - place - 1 if way else 0 for way in ways) if ways else (0, 0)
        lines.append(f"{0x15 if code == 'is' else code} {yes} {no} {number}")
    lines += ["6 0 0 0", f"6 0 0 {SHOT}"]
    return f"{len(lines)}," + ",".join(lines)


def install(program):
    tool("tc", "filter", "add", "dev", "lo", "ingress", "bpf", "direct-action", "bytecode", program)


def restore():
    tool("tc", "filter", "del", "dev", "lo", "ingress")


def ports_of(pid):
    """Of all TCP sockets of a process."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    with open(f"/proc/{pid}/net/tcp", encoding="utf-8") as file:
        rows = [line.split() for line in file.read().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[9] in inodes}


class Relay:
    """Stands at the address of a Unix socket, and passes on what comes to who listened there, until it stops."""

    def __init__(self, path):
        self.path, self.real = path, path + ".real"
        os.rename(path, self.real)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.listener.setblocking(False)
        self.ways = selectors.DefaultSelector()
        self.ways.register(self.listener, selectors.EVENT_READ)
        self.open = threading.Event()
        self.open.set()
        self.over = False
        self.passed = 0  # Connections.
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over:
            if not self.open.wait(0.02):
                continue
            for key, _ in self.ways.select(0.02):
                if not self.open.is_set() or key.fileobj.fileno() < 0:
                    continue
                if key.fileobj is self.listener:
                    self.connect()
                else:
                    self.pass_on(key.fileobj, key.data)

    def connect(self):
        ends = self.listener.accept()[0], socket.socket(socket.AF_UNIX)
        ends[1].connect(self.real)
        for here, there in (ends, ends[::-1]):
            self.ways.register(here, selectors.EVENT_READ, there)
        self.passed += 1

    def pass_on(self, here, there):
        try:
            what = here.recv(1 << 16)
            there.sendall(what)
        except OSError:
            what = b""
        if what:
            return
        for end in (here, there):
            self.ways.unregister(end)
            end.close()

    def close(self):
        """From here on as if it had not been there; what went through it is cut."""
        self.over = True
        self.thread.join()
        for end in [key.fileobj for key in self.ways.get_map().values()]:
            end.close()
        with contextlib.suppress(OSError):  # The cluster is down already.
            os.rename(self.real, self.path)


class CutOff:
    """Cuts this node of the cluster in `directory` off. Its agent is started anew for that: its way to the head is another."""

    def __init__(self, directory, node):
        self.pid_file = os.path.join(directory, f"agent-{node}.pid")
        self.relay = Relay(os.path.join(directory, "head.sock"))
        before = self.agent()
        os.kill(before, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while not self.relay.passed or self.agent() in (0, before):
            if time.monotonic() > deadline:
                self.relay.close()
                raise RuntimeError(f"the agent of node {node} is not started again")
            time.sleep(0.01)

    def agent(self):
        """0: it is just written."""
        with open(self.pid_file, encoding="utf-8") as file:
            return int(file.read() or 0)

    def cut(self):
        self.relay.open.clear()
        install(dropping(ports_of(self.agent())))

    def restore(self):
        with contextlib.suppress(Unavailable):  # Nothing is cut.
            restore()
        self.relay.open.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.restore()
        self.relay.close()
