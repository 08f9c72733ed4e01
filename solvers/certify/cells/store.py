"""A store of finished cells: an SQLite file that survives a crash at any moment, and that several runs may share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from mtpp.errors import InputError
from mtpp.inference.certificate_table import CertificateRow
from mtpp.solvers.certify.cells.keys import CellKey

VERSION = 1
"""Of the layout; in the file as SQLite's ``user_version``."""

_APPLICATION = 0x6D747070  # "mtpp": tells our files from other programs'
_MAGIC = b"SQLite format 3\0"
_APPLICATION_AT, _HEAD_BYTES = 68, 72  # of the header of a file of SQLite
_BUSY_S = 60.0
_LAYOUT = """
CREATE TABLE certificates (
    graph TEXT NOT NULL,
    k INTEGER NOT NULL,
    system TEXT NOT NULL,
    parameters TEXT NOT NULL,
    version TEXT NOT NULL,
    row TEXT NOT NULL,
    stored_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    UNIQUE (graph, k, system, parameters, version)
)
"""
_PLACE = "graph = ? AND k = ? AND system = ? AND parameters = ? AND version = ?"


class Store:
    """Rows by the key of their cell.

    Parameters
    ----------
    path
        Of the file, which is made if there is none.

    Raises
    ------
    InputError
        If it cannot be opened or made, is no such store, or one of another version. Every method raises it if the file
        cannot be read or written; what is in it stays.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = str(path)
        if Path(path).is_dir():
            raise InputError("is a directory", source=self._path, remedy="give the name of a file")
        if not Path(path).absolute().parent.is_dir():
            raise InputError("there is no directory to make it in", source=self._path, remedy="make it first")
        _refuse_foreign(self._path)
        with self._told():
            # Transactions are begun and ended below, not by the module.
            self._connection = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
            try:
                self._check_layout()
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = FULL")
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get(self, key: CellKey) -> CertificateRow | None:
        """Return the row of a cell, None if it has none yet."""
        with self._told():
            found = self._connection.execute(f"SELECT row FROM certificates WHERE {_PLACE}", _values(key)).fetchone()
        if found is None:
            return None
        try:
            return CertificateRow.from_document(json.loads(found[0]))
        except InputError:
            raise
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"a row is damaged: {error}", source=self._path, remedy="use another store") from None

    def put(self, key: CellKey, row: CertificateRow) -> CertificateRow:
        """Keep a row, on the disk when this returns, unless its cell has one; return the one that is kept."""
        text = json.dumps(row.to_document())
        with self._told():
            self._connection.execute(
                "INSERT OR IGNORE INTO certificates (graph, k, system, parameters, version, row) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (*_values(key), text),
            )
        return self.get(key) or row

    def close(self) -> None:
        """Close the file."""
        with self._told():
            self._connection.close()

    def _check_layout(self) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")  # of two runs that make the file together, one waits
        try:
            (application,) = execute("PRAGMA application_id").fetchone()
            (version,) = execute("PRAGMA user_version").fetchone()
            (tables,) = execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application == 0 and version == 0 and tables == 0:
                execute(_LAYOUT)
                execute(f"PRAGMA application_id = {_APPLICATION}")
                execute(f"PRAGMA user_version = {VERSION}")
            elif application != _APPLICATION:
                raise InputError("is a database of another program", source=self._path, remedy="name another file")
            elif version != VERSION:
                raise InputError(
                    f"is a store of version {version}, and this program knows version {VERSION}",
                    source=self._path,
                    remedy="name another file, or use the program that made it",
                )
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what SQLite says into one line."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "not a database" in text:
                raise InputError("is not a store", source=self._path, remedy="name another file") from None
            if "disk is full" in text or "disk I/O" in text:
                text += "; what was stored stays"
            remedy = "see that there is room and that it may be written" if "stays" in text else "name another file"
            raise InputError(f"cannot be used: {text}", source=self._path, remedy=remedy) from None


def _refuse_foreign(path: str) -> None:
    """Raise InputError if there is a file that is no store; SQLite, asked to open it, may write to it first."""
    if not Path(path).exists():
        return
    if not Path(path).is_file():
        raise InputError("is no regular file", source=path, remedy="name another file")
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(f"cannot be used: {error.strerror}", source=path, remedy="name another file") from None
    if head and not head.startswith(_MAGIC):
        raise InputError("is not a store", source=path, remedy="name another file")
    if head and head[_APPLICATION_AT:_HEAD_BYTES] != _APPLICATION.to_bytes(4, "big"):
        raise InputError("is a database of another program", source=path, remedy="name another file")


def _values(key: CellKey) -> tuple[str, int, str, str, str]:
    return key.graph, key.k, key.system, key.parameters, key.version
