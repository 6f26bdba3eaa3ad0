# Does one step of `corral deploy up` on this machine, as root. The call of a function below follows this text, and braces
# enclose both: a connection that is cut before all of it came does nothing.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
export PATH LC_ALL DEBIAN_FRONTEND
umask 022
STATE=/var/lib/corral/deploy

# A step whose connection was cut may still run: the next one waits for it.
alone() {
  mkdir -p "$STATE" && chmod 700 "$STATE" || return
  exec 9>/run/corral-deploy.lock || return
  flock -w 300 9 || { echo 'corral: busy'; return 1; }
}

digest() { sha256sum <"$1" | cut -d ' ' -f 1; }

# write_file PATH DIGEST: the content comes in base64. DIGEST is that of the file that was seen, none, or any.
# What was there before the first change is kept.
write_file() {
  now=none
  [ ! -e "$1" ] || now=$(digest "$1")
  [ "$2" = any ] || [ "$2" = "$now" ] || { echo 'corral: changed'; return 1; }
  kept=$STATE/before$1
  if [ -e "$1" ] && [ ! -e "$kept" ]; then
    mkdir -p "$(dirname "$kept")" && cp -p "$1" "$kept.new" && mv "$kept.new" "$kept" || return
  fi
  beside=$1.corral-new
  mkdir -p "$(dirname "$1")" || return
  if base64 -d >"$beside" && chmod "$(stat -c %a "$1" 2>/dev/null || echo 644)" "$beside" && sync "$beside" &&
    mv -f "$beside" "$1"; then return; fi
  rm -f "$beside"
  return 1
}

# install_packages folder|sources NAME...: from the .deb files that were sent, or from the machine's own sources.
install_packages() {
  sources=$1
  shift
  names=$*
  # A cut may have left packages half-configured.
  dpkg --configure -a || return
  set -- -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold
  if [ "$sources" = folder ]; then
    list_packages || return
    set -- "$@" -o "Dir::Etc::SourceList=$STATE/packages/corral.list" -o Dir::Etc::SourceParts=/dev/null \
      -o "Dir::State::Lists=$STATE/packages/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
      -o APT::Sandbox::User=root -o Acquire::Languages=none
  fi
  # shellcheck disable=SC2086
  timeout 600 apt-get "$@" -q update && timeout 1200 apt-get "$@" -q -y --no-install-recommends install $names || return
  for name in $names; do
    [ "$(dpkg-query -W -f '${Status}' "$name")" = 'install ok installed' ] || return
  done
  rm -rf "$STATE/packages"
}

# Make a source of packages of the files that were sent: apt-get then takes what is needed of them, and no more.
list_packages() {
  mkdir -p "$STATE/packages/lists/partial" && cd "$STATE/packages" || return
  : >Packages || return
  for file in *.deb; do
    [ -e "$file" ] || continue
    { dpkg-deb -f "$file" && printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$file" "$(stat -c %s "$file")" \
      "$(digest "$file")"; } >>Packages || return
  done
  printf 'deb [trusted=yes] file:%s ./\n' "$STATE/packages" >corral.list
}

turn_off_swap() {
  swapoff -a && [ "$(wc -l </proc/swaps)" -le 1 ]
}

load_modules() {
  for name; do
    modprobe "$name" || return
  done
}

# set_kernel NAME=VALUE...: names are paths below /proc/sys.
set_kernel() {
  for setting; do
    printf '%s\n' "${setting#*=}" >"/proc/sys/${setting%%=*}" || return
  done
}
