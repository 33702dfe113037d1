"""clang refuses code that uses what a mutex guards without holding it."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent

ACCOUNT = """
#include "foundation/base/mutex.h"

class Account {
 public:
  %s

 private:
  void add(int cents) REQUIRES(mutex_) { cents_ += cents; }

  foliot::Mutex mutex_;
  foliot::Condition changed_;
  int cents_ GUARDED_BY(mutex_) = 0;
};
"""


def complaints(tmp_path, member):
    """What clang says of an Account with this member function."""
    source = tmp_path / "account.cc"
    source.write_text(ACCOUNT % member)
    command = ["clang++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wthread-safety", "-Werror", f"-I{ROOT}/src", source]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize(
    "member",
    [
        "void f() { const foliot::MutexLock lock(mutex_); add(1); }",
        "void f() { foliot::MutexLock lock(mutex_); lock.unlock(); lock.lock(); add(1); }",
        "void f() { const foliot::MutexLock lock(mutex_); changed_.wait(mutex_, [this]() REQUIRES(mutex_) { return cents_ > 0; }); }",
    ],
)
def test_what_holds_the_mutex_compiles(tmp_path, member):
    assert complaints(tmp_path, member) == ""


@pytest.mark.parametrize(
    "member, complaint",
    [
        ("void f() { ++cents_; }", "writing variable 'cents_' requires holding mutex 'mutex_' exclusively"),
        ("void f() { add(1); }", "calling function 'add' requires holding mutex 'mutex_' exclusively"),
        ("void f() { foliot::MutexLock lock(mutex_); lock.unlock(); add(1); }", "calling function 'add' requires holding mutex 'mutex_' exclusively"),
        ("void f() { changed_.wait(mutex_); }", "calling function 'wait' requires holding mutex 'mutex_' exclusively"),
        ("void f() { const foliot::MutexLock lock(mutex_); changed_.wait(mutex_, [this] { return cents_ > 0; }); }", "reading variable 'cents_' requires holding mutex 'mutex_'"),
    ],
)
def test_what_does_not_hold_it_is_refused(tmp_path, member, complaint):
    assert complaint in complaints(tmp_path, member)
