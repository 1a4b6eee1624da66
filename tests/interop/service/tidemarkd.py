"""Starts and stops tidemarkd for the tests that look at it from outside: on free ports, in a directory of its own."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def program(name="tidemarkd"):
    """$TIDEMARK_BIN names the directory of the programs; otherwise the release build's."""
    return os.path.join(os.environ.get("TIDEMARK_BIN", os.path.join(ROOT, "build", "release", "bin")), name)


def free_ports(count):
    """Ports that nobody listened on a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def until(condition, what, seconds=30.0):
    """Waits until condition() is true and returns its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.005)


class Tidemarkd:
    """A daemon over a directory. The directory outlives stop() and kill(), so that start() finds what was left."""

    def __init__(self, settings=None, directory=None, config=None):
        self._temporary = None
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tidemark-test-")
            directory = self._temporary.name
        self.directory = directory
        self.data = os.path.join(directory, "data")
        self.log_path = os.path.join(directory, "tidemarkd.log")
        self.admin_socket = os.path.join(directory, "admin.socket")
        self.port, self.http_port = free_ports(2)
        self.config = config
        self.settings = {
            "log.dirs": self.data,
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "http.listener": f"127.0.0.1:{self.http_port}",
            "admin.socket": self.admin_socket,
            **(settings or {}),
        }
        self.process = None

    @property
    def bootstrap(self):
        return f"127.0.0.1:{self.port}"

    def command(self):
        command = [program()]
        if self.config is not None:
            command += ["--config", self.config]
        for key, value in self.settings.items():
            command += ["--set", f"{key}={value}"]
        return command

    def start(self, ready=True, environment=None):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        if ready:
            until(self._is_ready, "tidemarkd is ready")
        return self

    def _is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"tidemarkd ended with {self.process.returncode}:\n{self.log()[-4000:]}")
        return self.get("/readyz")[0] == 200

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def get(self, path):
        """(status, text); status 0 when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http_port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def json(self, path):
        status, text = self.get(path)
        assert status == 200, f"{path}: {status} {text}"
        return json.loads(text)

    def metrics(self):
        """Series as it is written → value."""
        status, text = self.get("/metrics")
        assert status == 200, f"/metrics: {status}"
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line and not line.startswith("#")}

    def admin(self, method, target):
        """One request over the Unix socket: (status, body)."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30)
            s.connect(self.admin_socket)
            s.sendall(f"{method} {target} HTTP/1.1\r\nHost: tidemarkd\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            answer = b""
            while chunk := s.recv(65536):
                answer += chunk
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body.decode()

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, seconds=60):
        """SIGTERM; the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.kill()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind is not None and os.path.exists(self.log_path):
            print(f"--- tidemarkd's log\n{self.log()[-8000:]}---", flush=True)
        self.close()
