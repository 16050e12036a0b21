# shellcheck shell=bash
# What the scripts beside this file share. Sourced, never run.
# Exit code 3 means the same here as in the command line: a prerequisite is missing.

say() { printf 'ao-eval: %s\n' "$*" >&2; }

# Ends with exit 3; each argument is one line.
missing() {
  local line
  for line in "$@"; do say "$line"; done
  exit 3
}

# Not only installed but in charge: containers often have systemctl and no systemd.
has_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; }

can_apt() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 &&
    grep -Eqs '^ID(_LIKE)?=.*(debian|ubuntu)' /etc/os-release
}

# Quiet while all goes well; everything apt said when it fails.
apt_get() {
  local said code=0
  # RUNLEVEL=1 keeps maintainer scripts from starting services where no init system runs:
  # a daemon that we did not start ourselves could not be stopped by `make engine-stop`.
  local -a env=(DEBIAN_FRONTEND=noninteractive)
  has_systemd || env+=(RUNLEVEL=1)
  said=$(env "${env[@]}" apt-get -qq -y -o DPkg::Lock::Timeout=300 "$@" </dev/null 2>&1) || code=$?
  [ "$code" = 0 ] || printf '%s\n' "$said" >&2
  return "$code"
}

apt_install() {
  say "installing with apt: $*"
  # One unreachable source of many must not stop us: the install below decides.
  apt_get update || say "apt-get update reported errors; going on with the lists it has"
  apt_get install --no-install-recommends "$@" || missing "apt-get could not install: $*"
}
