# Sourced by the scripts beside it: finds a Python, makes a virtual environment with it, and
# installs the project there. Needs nothing on the machine but Python and the network.
# shellcheck shell=sh

OLDEST_MINOR=11 # requires-python in pyproject.toml
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf '%s\n' "$*" >&2; }
die() {
    say "$0: $*"
    exit 1
}

# Prints "MINOR /the/interpreter" if $1 is a Python that can run the project. A pyenv shim gives
# the interpreter behind it, a virtual environment the interpreter that it was made with.
describe_python() {
    "$1" -c '
import os, sys
if sys.version_info < (3, int(sys.argv[1])):
    sys.exit(1)
print(sys.version_info[1], os.path.realpath(sys.executable))' "$OLDEST_MINOR" 2>/dev/null
}

# Prints the first suitable Python of PATH, the plain names first.
find_python() {
    for name in python3 python python3.15 python3.14 python3.13 python3.12 python3.11; do
        if described=$(describe_python "$name"); then
            printf '%s\n' "${described#* }"
            return
        fi
    done
    return 1
}

# Debian's python3 leaves ensurepip out, and a Python built without OpenSSL has no ssl.
has_venv() { "$1" -c 'import ensurepip, ssl, venv' 2>/dev/null; }

# use_venv PYTHON FOLDER [GROUP...]: makes FOLDER a virtual environment of PYTHON with the project
# and the dependency groups in it, and names it $venv. Installs only where pyproject.toml, the
# groups, the interpreter or the place has changed since.
use_venv() {
    python=$1
    venv=$2
    shift 2
    described=$(describe_python "$python") || die "$python is not Python 3.$OLDEST_MINOR or newer."
    minor=${described%% *}
    has_venv "$python" ||
        die "$python lacks venv, ensurepip or ssl (Debian, Ubuntu: apt install python3.$minor-venv)."
    stamp=$venv/.installed-$(IFS=+ && printf '%s' "${*:-alone}")
    state="$described $PWD $(cksum <pyproject.toml)"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$state" ] && "$venv/bin/python" -c '' 2>/dev/null; then
        return
    fi
    if [ "$(describe_python "$venv/bin/python")" != "$described" ]; then
        say "Making $venv with $python"
        "$python" -m venv --clear "$venv"
    fi
    say "Installing the project into $venv"
    # --group came with pip 25.1; an interpreter may bring a pip much older than that.
    "$venv/bin/python" -m pip install -qq --upgrade pip
    for group; do
        set -- "$@" --group "$group"
        shift
    done
    "$venv/bin/python" -m pip install -qq --editable . "$@"
    printf '%s\n' "$state" >"$stamp"
}
