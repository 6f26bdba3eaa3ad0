# Does one step of `corral deploy up` on this machine, as root. The call of a function below follows this text, and braces
# enclose both: a connection that is cut before all of it came does nothing.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
export PATH LC_ALL DEBIAN_FRONTEND
# kubectl keeps what it learnt in the account's home otherwise.
export KUBECACHEDIR=/run/corral-kubectl
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

# note LIST LINE: write down what a reset takes back.
note() {
  grep -qxF -e "$2" "$STATE/$1" 2>/dev/null || printf '%s\n' "$2" >>"$STATE/$1"
}

# keep PATH: before its first change a file is copied, or written down as one that was not there.
keep() {
  if [ -e "$STATE/before$1" ] || grep -qxF -e "$1" "$STATE/made" 2>/dev/null; then return; fi
  [ -e "$1" ] || { note made "$1"; return; }
  mkdir -p "$STATE/before${1%/*}" && cp -p "$1" "$STATE/before$1.new" && mv "$STATE/before$1.new" "$STATE/before$1"
}

make_folder() {
  [ -z "$1" ] || [ -d "$1" ] || { make_folder "${1%/*}" && note folders "$1" && mkdir -p "$1"; }
}

# write_file PATH DIGEST [UNFINISHED]: the content comes in base64. DIGEST is that of the file that was seen, none, or any.
# UNFINISHED is what is to be done because of it, such as the restart of a service. What was there before the first change
# is kept. A new config.toml is root's alone, as containerd's may hold the credentials of registries.
write_file() {
  now=none
  [ ! -e "$1" ] || now=$(digest "$1")
  [ "$2" = any ] || [ "$2" = "$now" ] || { echo 'corral: changed'; return 1; }
  [ $# -lt 3 ] || unfinished "$3" || return
  beside=$1.corral-new
  make_folder "${1%/*}" && keep "$1" || return
  case $1 in */config.toml) mode=600 ;; *) mode=644 ;; esac
  if (umask 077 && base64 -d >"$beside") && chmod "$(stat -c %a "$1" 2>/dev/null || echo $mode)" "$beside" && sync "$beside" &&
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
  [ -e "$STATE/packages.before" ] || installed >"$STATE/packages.before" || return
  # shellcheck disable=SC2086
  timeout 600 apt-get "$@" -q update && timeout 1200 apt-get "$@" -q -y --no-install-recommends install $names || return
  for name in $names; do
    [ "$(dpkg-query -W -f '${Status}' "$name")" = 'install ok installed' ] || return
  done
  rm -rf "$STATE/packages"
}

installed() { dpkg-query -W -f '${binary:Package}\n'; }

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
    [ ! -r "/proc/sys/${setting%%=*}" ] || grep -q "^${setting%%=*}=" "$STATE/settings" 2>/dev/null ||
      note settings "${setting%%=*}=$(cat "/proc/sys/${setting%%=*}")" || return
    printf '%s\n' "${setting#*=}" >"/proc/sys/${setting%%=*}" || return
  done
}

# install_programs SERVICE: the files that were sent, by a list of digests and paths in base64; SERVICE needs a restart then.
install_programs() {
  received && unfinished "$1" || return
  while read -r _ path; do
    make_folder "/${path%/*}" && keep "/$path" && cp "$path" "/$path.corral-new" && chmod 755 "/$path.corral-new" &&
      mv -f "/$path.corral-new" "/$path" || return
  done <list
  cd / && rm -rf "$STATE/received"
}

# Enter the folder of the files that were sent; the list of their digests comes in base64.
received() {
  cd "$STATE/received" && base64 -d >list || return
  sha256sum --check --quiet list || { echo 'corral: damaged'; return 1; }
}

# import_images NAME...: pinned, as a kubelet would remove unused ones where the disk is full, and no registry has them.
import_images() {
  received || return
  while read -r _ file; do
    ctr -n k8s.io images import "$file" || return
  done <list
  for name; do ctr -n k8s.io images label "$name" io.cri-containerd.pinned=pinned || return; done
  cd / && rm -rf "$STATE/received"
}

enable() {
  systemctl daemon-reload && systemctl enable "$1" && finished "$1"
}

restart() {
  [ "$1" != containerd ] || before_containerd || return
  systemctl daemon-reload && systemctl enable "$1" && systemctl restart "$1" && systemctl is-active "$1" && finished "$1"
}

# Write down what containerd makes itself. Images that are there already are somebody else's, also after a reset.
before_containerd() {
  for folder in /etc/cni/net.d /opt/containerd/bin /opt/containerd/lib; do make_folder $folder || return; done
  make_folder /var/lib/containerd || return
  [ -n "$(ls -A /var/lib/containerd)" ] || [ -e "$STATE/emptied" ] || stat -c %a /var/lib/containerd >"$STATE/emptied"
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
  for folder in /etc/kubernetes /usr/libexec/kubernetes/kubelet-plugins/volume/exec /lib/modules; do
    make_folder $folder || return
  done
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

# Take back what `up` made here, the last first; what is written down goes at the end, so it can be begun again.
reset_host() {
  if [ -e /usr/local/bin/kubeadm ]; then whole kubeadm reset --force || return; fi
  for service in kubelet containerd; do
    ! grep -qxF "/etc/systemd/system/$service.service" "$STATE/made" || [ ! -e "/etc/systemd/system/$service.service" ] ||
      systemctl disable --now "$service" || return
  done
  reset_network && reset_files && reset_packages && reset_settings || return
  systemctl daemon-reload && systemctl reset-failed && rm -rf /var/lib/corral
}

reset_network() {
  for link in cni0 flannel.1 flannel-v6.1; do
    ! ip link show "$link" >/dev/null 2>&1 || ip link delete "$link" || return
  done
  for family in iptables ip6tables; do
    rules=$($family-save) || return
    case $rules in *KUBE-* | *FLANNEL-* | *CNI-*) ;; *) continue ;; esac
    printf '%s\n' "$rules" | grep -vE 'KUBE-|FLANNEL-|CNI-' | $family-restore || return
  done
}

reset_files() {
  rm -rf /var/lib/cni /run/flannel /var/lib/kubelet /var/lib/etcd /var/log/pods /var/log/containers || return
  if [ -e "$STATE/emptied" ]; then
    find /var/lib/containerd -mindepth 1 -delete && chmod "$(cat "$STATE/emptied")" /var/lib/containerd || return
  fi
  while read -r path; do rm -f "$path" || return; done <"$STATE/made"
  if [ -d "$STATE/before" ]; then
    (cd "$STATE/before" && find . -type f ! -name '*.new' | while read -r path; do cp -p "$path" "/$path" || exit; done) || return
  fi
  rm -rf /etc/kubernetes/pki /etc/kubernetes/manifests /etc/kubernetes/tmp
  [ ! -e "$STATE/folders" ] || sort -r "$STATE/folders" | while read -r path; do
    [ ! -d "$path" ] || rmdir --ignore-fail-on-non-empty "$path" || exit
  done
}

reset_packages() {
  [ -e "$STATE/packages.before" ] || return 0
  added=$(installed | grep -vxFf "$STATE/packages.before") || return 0
  # shellcheck disable=SC2086
  apt-get -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -q -y purge $added
}

reset_settings() {
  [ ! -e "$STATE/settings" ] || while read -r setting; do
    printf '%s\n' "${setting#*=}" >"/proc/sys/${setting%%=*}" || return
  done <"$STATE/settings"
  ! grep -q ' swap ' /etc/fstab || swapon -a
}

# forget_node NAME: after its reset.
forget_node() { admin delete node "$1" --ignore-not-found; }
