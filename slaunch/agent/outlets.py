"""Where workers' output goes: into their files, which they write themselves, or by pipes to a process that writes them."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable
from fcntl import fcntl

from slaunch.agent.logs import open_log
from slaunch.frozen import dataclass, field
from slaunch.options import Options
from slaunch.plan.values import WorkerSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slaunch.agent.writer import Writer

PIPE_BYTES = 1 << 20
"""What a worker may print before the other process reads it: 10 ms of a worker that prints 100 MB a second."""
F_SETPIPE_SZ = 1031  # <linux/fcntl.h>; Python has it from 3.10 on, but not on every build
LIVES = 3
"""How often the process that writes the logs is started anew when something kills it."""


@dataclass(frozen=True)
class Form:
    """How output is written by that process.

    Attributes:
        timestamps: the time in front of each line.
        most: bytes after which a file is moved away to `<name>.1`; 0 = never.
        keep: how many such files are kept, `<name>.1` the youngest.
    """

    timestamps: bool = False
    most: int = 0
    keep: int = 5


@dataclass(frozen=True)
class Outlet:
    """What a worker is started with.

    Attributes:
        out, err: descriptors for its output and its errors; the same where they go to one file.
        log, start: the file of its output, and where this attempt's begins.
        err_log, err_start: likewise of its errors; "" where they go to one file.
    """

    out: int
    err: int
    log: str
    start: int
    err_log: str = ""
    err_start: int = 0

    def close(self) -> None:
        """The worker has them now."""
        for descriptor in {self.out, self.err}:
            os.close(descriptor)


@dataclass(frozen=True)
class Style:
    """How log files are written.

    Attributes:
        form: their content.
        always: by the other process even where workers could do it.
        each_anew: there is a file for each attempt, which is begun anew.
    """

    form: Form = field(default_factory=Form)
    always: bool = False
    each_anew: bool = False


def style_of(options: Options) -> Style:
    """What the user wants."""
    form = Form(options.log_timestamps, options.log_max_bytes, options.log_keep)
    return Style(form, options.log_writer == "slaunch", options.log_overwrite and "{attempt" in options.log_name)


class Outlets:
    """One agent's.

    Args:
        directory: of the logs.
        selector: tells when the process that writes them has said something.
        style: how they are written.
        tell: takes a line for the user.

    Attributes:
        spared: has that process's id while it runs: it is no worker's.
    """

    def __init__(
        self,
        directory: str,
        selector: selectors.BaseSelector,
        style: Style | None = None,
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        style = style or Style()
        self.spared: set[int] = set()
        self._directory = directory
        self._form = style.form
        self._pumped = style.always or style.form.timestamps or style.form.most > 0
        self._each_anew = style.each_anew
        self._selector = selector
        self._tell = tell
        self._pump: Writer | None = None
        self._pipes: list[tuple[str, int]] = []
        self._lives = LIVES

    def open(self, spec: WorkerSpec, overwrite: bool, attempt: int) -> Outlet:
        """Open a worker's files, anew or to go on with them.

        Raises:
            OutputError: one cannot be written.
            OSError: there are no descriptors left.
        """
        overwrite = overwrite or self._each_anew
        out, log, start = self._open(spec.log_name, overwrite, attempt)
        if not spec.err_name:
            return Outlet(out, out, log, start)
        try:
            err, err_log, err_start = self._open(spec.err_name, overwrite, attempt)
        except BaseException:
            os.close(out)
            raise
        return Outlet(out, err, log, start, err_log, err_start)

    def sync(self) -> None:
        """All that workers have said is in their files, if the disk works."""
        if self._pump is not None:
            self._pump.sync()

    def finish(self) -> None:
        """No worker is left: the same, and the process that wrote the files is gone."""
        if self._pump is not None:
            self._selector.unregister(self._pump.channel)
            self._pump.finish()
            self.spared.discard(self._pump.pid)
            self._pump = None
        for _, pipe in self._pipes:
            os.close(pipe)
        self._pipes.clear()

    def _open(self, name: str, overwrite: bool, attempt: int) -> tuple[int, str, int]:
        file, path, start = open_log(self._directory, name, overwrite, attempt)
        if not self._pumped:
            return file, path, start
        try:
            return self._connect(path, file), path, start
        finally:
            os.close(file)

    def _connect(self, path: str, file: int) -> int:
        """A pipe into a file; its end for the worker."""
        read, write = os.pipe()
        self._pipes.append((path, read))
        try:
            fcntl(read, F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:  # this user has used up its share (/proc/sys/fs/pipe-user-pages-soft): a smaller one will do
            pass
        try:
            self._writer().take(path, read, file)
        except BaseException:
            os.close(write)
            raise
        return write

    def _writer(self) -> Writer:
        if self._pump is None:
            from slaunch.agent.writer import Writer  # only where one is needed

            self._pump = Writer(self._form, self._tell)
            self.spared.add(self._pump.pid)
            self._selector.register(self._pump.channel, selectors.EVENT_READ, self._heard)
        return self._pump

    def _heard(self) -> None:
        """The other process has said something, or is gone: then another one goes on."""
        if self._pump is None or self._pump.hear():
            return
        self._selector.unregister(self._pump.channel)
        self.spared.discard(self._pump.pid)
        self._pump.finish()
        self._pump = None
        self._lives -= 1
        self._tell(f"the process that writes the logs was ended{'; another one goes on' if self._lives else ' again'}")
        try:
            if self._lives:
                self._begin_again()
                return
        except OSError as error:
            self._tell(f"it cannot be started anew: {error.strerror}")
        self.finish()  # workers must not wait for ever: they get an error when they print

    def _begin_again(self) -> None:
        for path, pipe in self._pipes:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            try:
                self._writer().take(path, pipe, file)
            finally:
                os.close(file)
