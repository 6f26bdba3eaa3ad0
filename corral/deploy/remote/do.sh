# Does one step of `corral deploy up` on this machine, as root. The call of a function below follows this text, and braces
# enclose both: a connection that is cut before all of it came does nothing.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
export PATH LC_ALL DEBIAN_FRONTEND
umask 022
STATE=/var/lib/corral/deploy
UNFINISHED=/var/lib/corral/unfinished
ADMIN=/etc/kubernetes/admin.conf

# A step whose connection was cut may still run: the next one waits for it.
alone() {
  mkdir -p "$STATE" && chmod 700 "$STATE" || return
  exec 9>/run/corral-deploy.lock || return
  flock -w 300 9 || { echo 'corral: busy'; return 1; }
}

digest() { sha256sum <"$1" | cut -d ' ' -f 1; }

# unfinished NAME, finished NAME: what was begun is remembered until it is done, also after a cut.
unfinished() {
  mkdir -p "$UNFINISHED" && : >"$UNFINISHED/$1" && sync "$UNFINISHED/$1" "$UNFINISHED"
}
finished() { rm -f "$UNFINISHED/$1"; }

# write_file PATH DIGEST [UNFINISHED]: the content comes in base64. DIGEST is that of the file that was seen, none, or any.
# UNFINISHED is what is to be done because of it, such as the restart of a service. What was there before the first change
# is kept.
write_file() {
  now=none
  [ ! -e "$1" ] || now=$(digest "$1")
  [ "$2" = any ] || [ "$2" = "$now" ] || { echo 'corral: changed'; return 1; }
  kept=$STATE/before$1
  if [ -e "$1" ] && [ ! -e "$kept" ]; then
    mkdir -p "$(dirname "$kept")" && cp -p "$1" "$kept.new" && mv "$kept.new" "$kept" || return
  fi
  [ $# -lt 3 ] || unfinished "$3" || return
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

# install_programs SERVICE: the files that were sent, by a list of digests and paths in base64; SERVICE needs a restart then.
install_programs() {
  received && unfinished "$1" || return
  while read -r _ path; do
    mkdir -p "/${path%/*}" && cp "$path" "/$path.corral-new" && chmod 755 "/$path.corral-new" &&
      mv -f "/$path.corral-new" "/$path" || return
  done <list
  cd / && rm -rf "$STATE/received"
}

# Enter the folder of the files that were sent; the list of their digests comes in base64.
received() {
  cd "$STATE/received" && base64 -d >list || return
  sha256sum --check --quiet list || { echo 'corral: damaged'; return 1; }
}

import_images() {
  received || return
  while read -r _ file; do
    ctr -n k8s.io images import "$file" || return
  done <list
  cd / && rm -rf "$STATE/received"
}

enable() {
  systemctl daemon-reload && systemctl enable "$1" && finished "$1"
}

restart() {
  systemctl daemon-reload && systemctl enable "$1" && systemctl restart "$1" && systemctl is-active "$1" && finished "$1"
}

# Run a program to its end, also where the connection is cut: it would be ended by its first word.
whole() {
  "$@" >"$STATE/output" 2>&1
  code=$?
  cat "$STATE/output"
  return $code
}

# What a cut left of kubeadm's work is removed before it begins again.
begin_node() {
  mkdir -p /etc/kubernetes || return
  [ ! -e "$UNFINISHED/kubeadm" ] || whole kubeadm reset --force || return
  unfinished kubeadm
}

# node_ready KUBECONFIG NODE
node_ready() {
  whole kubectl --kubeconfig "$1" wait --for=create "node/$2" --timeout=120s &&
    whole kubectl --kubeconfig "$1" wait --for=condition=Ready "node/$2" --timeout=300s
}

# start_cluster FILE NODE: kubeadm's documents are in FILE.
start_cluster() {
  [ ! -e $ADMIN ] || [ -e "$UNFINISHED/kubeadm" ] || return 0
  begin_node && whole kubeadm init --skip-token-print --config "$1" && node_ready $ADMIN "$2" && finished kubeadm
}

# join_cluster NODE: kubeadm's document comes in base64; it has a token, so only memory keeps it. A kubelet that has its
# own certificate has joined.
join_cluster() {
  document=/run/corral-join.yaml
  if [ -e /etc/kubernetes/kubelet.conf ]; then
    systemctl restart kubelet || return
  else
    begin_node && (umask 077 && base64 -d >$document) && whole kubeadm join --config $document
    code=$?
    rm -f $document
    [ $code = 0 ] || return $code
  fi
  node_ready /etc/kubernetes/kubelet.conf "$1" && finished kubeadm
}

# apply_network FILE NAMESPACE NAME: until its DaemonSet NAME and the cluster's DNS run.
apply_network() {
  admin apply -f "$1" && admin -n "$2" rollout status "daemonset/$3" --timeout=300s &&
    admin -n kube-system rollout status deployment/coredns --timeout=300s && finished network
}

admin() { whole kubectl --kubeconfig $ADMIN "$@"; }

# Print a token that lets hosts join for ten minutes, and the hash of the key of the cluster's authority.
make_token() {
  kubeadm token create --ttl 10m --description 'corral deploy up' --print-join-command
}

# Renew what kubeadm signed, and restart the containers that read it only once.
renew_certificates() {
  whole kubeadm certs renew all || return
  old=
  for name in etcd kube-apiserver kube-controller-manager kube-scheduler; do
    old="$old $(ctr -n k8s.io containers list -q "labels.\"io.kubernetes.container.name\"==$name")" || return
  done
  # The kubelet starts them again.
  for container in $old; do ctr -n k8s.io tasks kill --signal SIGTERM "$container" 2>/dev/null; done
  for container in $old; do ended "$container" || return; done
  until_answered
}

ended() {
  for _ in $(seq 150); do
    ctr -n k8s.io tasks list | awk -v name="$1" '$1 == name && $3 == "RUNNING" { found = 1 } END { exit found }' && return
    sleep 1
  done
  echo "the container $1 does not end"
  return 1
}

# Until Kubernetes answers with its new certificate.
until_answered() {
  for _ in $(seq 150); do
    sleep 2
    ! admin get --raw /readyz || return 0
  done
  return 1
}
