"""Versions that bench/against compares: the commit of a name, and the program built from it."""
import collections
import os
import re
import shlex
import shutil
import subprocess

# a row of RELEASES.md; more columns may follow
RELEASE = re.compile(r"\|\s*v?([0-9][^|\s]*)\s*\|\s*\d{4}-\d\d-\d\d\s*"
                     r"\|\s*`?([0-9a-f]{7,40})`?\s*(?:\||$)")
# settings of build/ that both programs are built with
SETTINGS = ("CMAKE_C_COMPILER", "CMAKE_C_FLAGS", "CMAKE_C_FLAGS_RELEASE", "CMAKE_EXE_LINKER_FLAGS",
            "GPULAB_PORTABLE", "GPULAB_SANITIZE")

Version = collections.namedtuple("Version", "name commit")


class VersionError(Exception):
    """The comparison can't begin; the text says why."""


def git(root, *words):
    """Output of git; None if it fails."""
    try:
        done = subprocess.run(["git", *words], cwd=root, check=False, capture_output=True,
                              text=True)
    except OSError:
        raise VersionError("git isn't installed: it exports the version to compare with") from None
    return None if done.returncode else done.stdout.strip()


# --- names ---

def releases(root):
    """Commits by version, in the order of the table in RELEASES.md."""
    try:
        with open(os.path.join(root, "RELEASES.md"), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    found = {}
    for number, line in enumerate(lines, 1):
        if re.match(r"\|\s*v?[0-9]", line):
            match = RELEASE.match(line)
            if not match:
                raise VersionError(f"RELEASES.md:{number}: not | version | YYYY-MM-DD | commit |: "
                                   f"'{line}'")
            found[match.group(1)] = match.group(2)
    return found


def commit_of(root, name):
    return git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")


def known_names(root):
    tags = (git(root, "tag", "--sort=-creatordate") or "").split()
    branches = (git(root, "branch", "--format=%(refname:short)") or "").splitlines()
    groups = {"tags": tags, "releases in RELEASES.md": list(releases(root)), "branches": branches}
    return "\n".join(f"  {group}: {', '.join(found[:20]) or 'none'}"
                     for group, found in groups.items())


def resolve(root, name):
    """The commit of a tag (with or without v), branch or hash, else of a release."""
    if git(root, "rev-parse", "--git-dir") is None:
        raise VersionError("not a git clone: the version to compare with can't be exported")
    commit = commit_of(root, name) or commit_of(root, f"v{name}")
    if commit:
        return Version(name, commit)
    listed = releases(root).get(name.removeprefix("v"))
    if not listed:
        raise VersionError(f"no version '{name}': give a tag, branch, commit or release\n"
                           f"{known_names(root)}")
    commit = commit_of(root, listed)
    if not commit:
        raise VersionError(f"release {name} is commit {listed} (RELEASES.md), not in this clone: "
                           "run 'git fetch --unshallow' or 'git fetch --all'")
    return Version(name, commit)


def describe_tree(root):
    """Commit of the working tree, and whether it has uncommitted changes."""
    commit = git(root, "rev-parse", "--short=12", "HEAD") or "unknown"
    return commit + (", modified" if git(root, "status", "--porcelain") else "")


# --- programs ---

def run_step(command, folder, log, what):
    """A step of a build; its output is appended to `log`."""
    with open(log, "a", encoding="utf-8") as file:
        print("$", shlex.join(command), file=file, flush=True)
        try:
            code = subprocess.run(command, cwd=folder, check=False, stdout=file,
                                  stderr=file).returncode
        except OSError as error:
            raise VersionError(f"{what}: {command[0]}: {error.strerror}") from None
    if code:
        with open(log, encoding="utf-8", errors="replace") as file:
            end = "".join(file.readlines()[-20:])
        raise VersionError(f"{what}: '{shlex.join(command[:4])}' failed\n{end}Log: {log}")


def build_program(source, log, what, settings=()):
    """Configures the release preset in `source` and builds gpulab alone."""
    run_step(["cmake", "--preset", "release", *settings], source, log,
             f"{what} can't be configured")
    run_step(["cmake", "--build", "--preset", "release", "--target", "gpulab"], source, log,
             f"{what} doesn't build")
    return os.path.join(source, "build", "gpulab")


def new_log(folder, name):
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, name)
    with open(log, "w", encoding="utf-8"):
        return log


def build_tree(root):
    """The program of the working tree as it is, in build/."""
    log = new_log(os.path.join(root, "build", "against"), "new.log")
    return build_program(root, log, "the working tree")


def settings_of(root):
    """Settings of build/ as words for cmake, and the version of its compiler."""
    with open(os.path.join(root, "build", "CMakeCache.txt"), encoding="utf-8") as file:
        cache = dict(re.findall(r"^(\w+):\w+=(.*)$", file.read(), re.MULTILINE))
    words = [f"-D{name}={cache[name]}" for name in SETTINGS if cache.get(name)]
    done = subprocess.run([cache["CMAKE_C_COMPILER"], "--version"], check=False,
                          capture_output=True, text=True)
    return words, done.stdout.split("\n")[0]


def export(root, commit, folder, log):
    """The files of a commit in `folder`, all or none."""
    part, what = f"{folder}.part", f"commit {commit[:12]} can't be exported"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    archive = os.path.join(part, "archive.tar")
    run_step(["git", "archive", "--format=tar", "-o", archive, commit], root, log, what)
    run_step(["tar", "-xf", "archive.tar"], part, log, what)
    os.remove(archive)
    os.rename(part, folder)


def build_commit(root, version):
    """The program of a commit, in build/against; reused if it was built with the same settings."""
    place = os.path.join(root, "build", "against", version.commit)
    source, stamp = os.path.join(place, "source"), os.path.join(place, "settings")
    words, compiler = settings_of(root)
    wanted = "\n".join([compiler, *words, ""])
    program = os.path.join(source, "build", "gpulab")
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == wanted and os.access(program, os.X_OK):
                return program
        shutil.rmtree(os.path.join(source, "build"), ignore_errors=True)
        os.remove(stamp)
    log = new_log(place, "build.log")
    if not os.path.isdir(source):
        export(root, version.commit, source, log)
    build_program(source, log, f"{version.name} ({version.commit[:12]})",
                  [*words, "-DGPULAB_TESTS=OFF"])
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(wanted)
    return program
