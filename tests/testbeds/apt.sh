#!/usr/bin/env bash
# Installs the Debian packages that the tests use and this machine lacks; quick when none is missing.
# Not root, or not Debian: names them, and the tests that need them skip (or fail, under CI=true).
# Usage: apt.sh [PACKAGE...]   (without arguments: what `make test` needs)
set -euo pipefail

wanted=("$@")
if [ ${#wanted[@]} -eq 0 ]; then
  wanted=(chromium-headless-shell fonts-dejavu-core postgresql openmpi-bin libopenmpi-dev docker.io docker-registry busybox-static runc containernetworking-plugins iproute2 openssh-server git debootstrap systemd-container fio perftest default-jre-headless maven nfs-ganesha nfs-ganesha-vfs nfs-common libnfs-utils krb5-kdc krb5-admin-server krb5-user curl gcc g++ libc6-dev zstd)
fi

command -v dpkg-query >/dev/null || { echo "not Debian: the tests that need ${wanted[*]} will skip" >&2; exit 0; }

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "missing Debian packages: ${missing[*]} (apt-get install them; the tests that need them will skip)" >&2
  exit 0
fi

echo "installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
  tail -n 20 "$log" >&2
  echo "apt-get could not install ${missing[*]}; see above" >&2
  exit 1
fi
