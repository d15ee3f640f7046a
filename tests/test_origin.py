"""The commit a result names, read from git's own words."""

import subprocess
from pathlib import Path

from tokensphere.origin import commit_in

STATUS = ("status", "--porcelain=2", "--branch", "--untracked-files=no")


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *names, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_commit_is_the_head_and_says_when_files_differ(tmp_path: Path) -> None:
    git(tmp_path, "init")
    assert commit_in(git(tmp_path, *STATUS)) is None
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "first")
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    assert commit_in(git(tmp_path, *STATUS)) == head
    (tmp_path / "other").write_text("untracked")
    assert commit_in(git(tmp_path, *STATUS)) == head
    (tmp_path / "file").write_text("two")
    assert commit_in(git(tmp_path, *STATUS)) == head + "+"
