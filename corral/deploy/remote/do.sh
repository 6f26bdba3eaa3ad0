# Does one step of `corral deploy up` on this machine, as root. The call of a function below follows this text, and braces
# enclose both: a connection that is cut before all of it came does nothing.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C DEBIAN_FRONTEND=noninteractive
export PATH LC_ALL DEBIAN_FRONTEND
# kubectl keeps what it learnt in the account's home otherwise.
export KUBECACHEDIR=/run/corral-kubectl
umask 022
STATE=/var/lib/corral/deploy
UNFINISHED=/var/lib/corral/unfinished
BACKUP=$STATE/backup
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
# UNFINISHED is what is to be done because of it, such as the restart of services. What was there before the first change
# is kept. A new config.toml is root's alone, as containerd's may hold the credentials of registries.
write_file() {
  now=none
  [ ! -e "$1" ] || now=$(digest "$1")
  [ "$2" = any ] || [ "$2" = "$now" ] || { echo 'corral: changed'; return 1; }
  for mark in ${3-}; do unfinished "$mark" || return; done
  beside=$1.corral-new
  make_folder "${1%/*}" && keep "$1" || return
  case $1 in */config.toml | */corral-values.yaml) mode=600 ;; *) mode=644 ;; esac
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
  case " $names " in *' docker-registry '*) bar_registry || return ;; esac
  case " $names " in *' haproxy '*) [ -e /var/lib/haproxy ] || note data /var/lib/haproxy ;; esac
  # shellcheck disable=SC2086
  timeout 600 apt-get "$@" -q update && timeout 1200 apt-get "$@" -q -y --no-install-recommends install $names || return
  for name in $names; do
    [ "$(dpkg-query -W -f '${Status}' "$name")" = 'install ok installed' ] || return
  done
  case " $names " in *' haproxy '*) stop_haproxy || return ;; esac
  rm -rf "$STATE/packages"
}

# The package starts haproxy with a configuration that leads nowhere; corral-balancer has its own. Systemd leaves a mount point
# in its folder, which a reset removes.
stop_haproxy() { grep -qx haproxy "$STATE/packages.before" || systemctl disable --now haproxy; }

# The package would start a registry that everyone may read and write; corral-registry is another unit. Its account stays when
# the package goes.
bar_registry() {
  ! grep -qx docker-registry "$STATE/packages.before" || return 0
  id docker-registry >/dev/null 2>&1 || note users docker-registry || return
  barred=/etc/systemd/system/docker-registry.service
  [ -e $barred ] || { keep $barred && ln -s /dev/null $barred; }
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
  as_listed || sha256sum --check --quiet list || { echo 'corral: damaged'; return 1; }
}

# OpenSSL takes a fifth of the time of sha256sum, where the processor has instructions for it; it is not on every host.
as_listed() {
  sums=$(sed 's/^[0-9a-f]*  //' list | xargs openssl dgst -sha256 -r 2>/dev/null | sed 's/ \*/  /')
  [ "$sums" = "$(cat list)" ]
}

# import_images NAME...: pinned, as a kubelet would remove unused ones where the disk is full, and no registry has them.
# With --local ctr unpacks an archive itself, in less than half of containerd's processor time, but for overlayfs alone. Hosts
# without overlayfs import by containerd.
import_images() {
  received || return
  while read -r _ file; do
    ctr -n k8s.io images import --local "$file" || ctr -n k8s.io images import "$file" || return
  done <list
  for name; do ctr -n k8s.io images label "$name" io.cri-containerd.pinned=pinned || return; done
  cd / && rm -rf "$STATE/received"
}

enable() {
  systemctl daemon-reload && systemctl enable "$1" && finished "$1"
}

restart() {
  [ "$1" != containerd ] || before_containerd || return
  systemctl daemon-reload && systemctl enable "$1" || return
  systemctl restart "$1" && systemctl is-active "$1" || { journalctl -q --no-pager -n 10 -u "$1"; return 1; }
  [ "$1" != containerd ] || serves_kubernetes || return
  finished "$1"
}

# A containerd whose part for Kubernetes could not begin runs all the same.
serves_kubernetes() {
  if ctr plugins ls | awk '$1 == "io.containerd.grpc.v1" && $2 == "cri" && $NF == "ok" { found = 1 } END { exit !found }'; then return; fi
  echo 'corral: no CRI'
  return 1
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

# Write down what kubeadm wrote here, by its digest, so that `diff` names what someone changes, adds or removes later.
# The taint of a node that is not validated goes from the kubelet's flags later, so these are taken without taints.
note_node_files() {
  for path in /var/lib/kubelet/config.yaml /var/lib/kubelet/instance-config.yaml /etc/kubernetes/manifests/*; do
    [ ! -f "$path" ] || sha256sum "$path" || return
  done >"$STATE/node-files.new" || return
  path=/var/lib/kubelet/kubeadm-flags.env
  [ ! -f $path ] || sed 's/ *--register-with-taints=[^ "]*//' $path | sha256sum | sed "s|-\$|$path|" >>"$STATE/node-files.new" || return
  mv -f "$STATE/node-files.new" "$STATE/node-files"
}

# node_ready KUBECONFIG NODE
node_ready() {
  whole kubectl --kubeconfig "$1" wait --for=create "node/$2" --timeout=300s &&
    whole kubectl --kubeconfig "$1" wait --for=condition=Ready "node/$2" --timeout=600s
}

# start_cluster FILE NODE: kubeadm's documents are in FILE.
start_cluster() {
  [ ! -e $ADMIN ] || [ -e "$UNFINISHED/kubeadm" ] || return 0
  begin_node && whole kubeadm init --skip-token-print --config "$1" && node_ready $ADMIN "$2" && note_node_files && finished kubeadm
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
  node_ready /etc/kubernetes/kubelet.conf "$1" && note_node_files && finished kubeadm
}

# join_plane NODE: as a control plane; the document has the key of the certificates, too. Its kubelet has a certificate
# before etcd has a member here, so what a cut left is always begun again.
join_plane() {
  document=/run/corral-join.yaml
  begin_node && (umask 077 && base64 -d >$document) && whole kubeadm join --config $document
  code=$?
  rm -f $document
  [ $code = 0 ] && node_ready $ADMIN "$1" && spread_dns && note_node_files && finished kubeadm
}

# The pods of the cluster's DNS were made while there was one node, and are all on it.
spread_dns() { admin -n kube-system rollout restart deployment/coredns; }

# upgrade_node apply|node VERSION: what kubeadm made here becomes of VERSION, which kubeadm itself has already. The job by
# which kubeadm tries the cluster finds no node where this is the only one, as it takes no pods meanwhile.
upgrade_node() {
  [ "$(kubeadm version -o short)" = "$2" ] || { echo 'corral: kubeadm has another version'; return 1; }
  case $1 in
  apply) whole kubeadm upgrade apply "$2" --yes --ignore-preflight-errors=CreateJob && until_answered || return ;;
  *) whole kubeadm upgrade node && { [ ! -e $ADMIN ] || until_answered; } || return ;;
  esac
  note_node_files && finished upgrade
}

# apply_network FILE NAMESPACE NAME: until its DaemonSet NAME and the cluster's DNS run.
apply_network() {
  admin apply -f "$1" && admin -n "$2" rollout status "daemonset/$3" --timeout=300s &&
    admin -n kube-system rollout status deployment/coredns --timeout=300s && finished network
}

# make_data FILE: the folders of a file's lines, each with its user and its path; nobody else sees into them.
make_data() {
  while read -r user path; do
    case $user in '#'*) continue ;; esac
    make_folder "${path%/*/*}" && note data "${path%/*}" && mkdir -p "$path" && chown "$user:$user" "$path" && chmod 700 "$path" ||
      return
  done <"$1"
  finished data
}

# make_volumes FILE: the folders of a file's lines. A reset removes those that are empty then.
make_volumes() {
  while read -r path; do
    case $path in /*) make_folder "${path%/}" || return ;; esac
  done <"$1"
  finished volume-folders
}

# apply_volumes FILE
apply_volumes() { admin apply -f "$1" && finished volumes; }

# write_certificate FILE NAMESPACE: the portal's key and certificate come in base64. A server that runs is started again.
write_certificate() {
  unfinished portal && keep "$1" && (umask 077 && base64 -d >"$1.corral-new") && sync "$1.corral-new" && mv -f "$1.corral-new" "$1" ||
    return
  folder=/run/corral-portal
  rm -rf $folder && (umask 077 && mkdir $folder && split_certificate "$1" $folder) && admin_namespace "$2" &&
    kubectl --kubeconfig $ADMIN -n "$2" create secret tls corral-portal --cert=$folder/tls.crt --key=$folder/tls.key \
      --dry-run=client -o yaml >$folder/secret && admin apply --server-side --force-conflicts -f $folder/secret
  code=$?
  rm -rf $folder
  [ $code = 0 ] || return $code
  if kubectl --kubeconfig $ADMIN -n "$2" get deployment corral >/dev/null 2>&1; then
    admin -n "$2" rollout restart deployment/corral && admin -n "$2" rollout status deployment/corral --timeout=300s || return
  fi
  finished portal
}

split_certificate() {
  sed -n '/^-----BEGIN CERTIFICATE-----/,/^-----END CERTIFICATE-----/p' "$1" >$2/tls.crt &&
    sed '/^#/d;/^-----BEGIN CERTIFICATE-----/,/^-----END CERTIFICATE-----/d' "$1" >$2/tls.key
}

admin_namespace() {
  kubectl --kubeconfig $ADMIN get namespace "$1" >/dev/null 2>&1 || admin create namespace "$1"
}

# install_corral FILE NAMESPACE [agents]: helm's values are in FILE, and the chart was sent. What a cut left of helm's work is
# ended. With agents there is a Secret with their token.
install_corral() {
  received && unfinished corral && rm -f "$STATE/signed-in" && admin_namespace "$2" || return
  [ "${3-}" != agents ] || make_agent_token "$2" || return
  export HELM_CACHE_HOME=/run/corral-helm HELM_CONFIG_HOME=/run/corral-helm HELM_DATA_HOME=/run/corral-helm
  case $(helm --kubeconfig $ADMIN -n "$2" list --all --filter '^corral$' -o json | sed 's/.*"status":"\([a-z-]*\)".*/\1/') in
  pending-install) whole helm --kubeconfig $ADMIN -n "$2" uninstall corral --wait || return ;;
  pending-*) whole helm --kubeconfig $ADMIN -n "$2" rollback corral --wait || return ;;
  esac
  if ! whole helm --kubeconfig $ADMIN -n "$2" upgrade --install corral corral.tgz --values "$1" --wait --timeout 900s; then
    admin -n "$2" get pods -o wide
    admin -n "$2" get events --field-selector type=Warning
    echo 'corral: its pods are not ready'
    return 1
  fi
  cd / && rm -rf "$STATE/received" /run/corral-helm && finished corral
}

# make_agent_token NAMESPACE: the token by which the server asks the agents of nodes; one that is there stays.
make_agent_token() {
  ! kubectl --kubeconfig $ADMIN -n "$1" get secret corral-agent >/dev/null 2>&1 || return 0
  (umask 077 && head -c 32 /dev/urandom | base64 | tr -d '\n' >/run/corral-agent) &&
    admin -n "$1" create secret generic corral-agent --from-file=token=/run/corral-agent
  code=$?
  rm -f /run/corral-agent
  return $code
}

# print_link NAMESPACE: a one-time sign-in link, while no administrator has signed in. That one has is written down, as asking
# the server takes seconds. The pod says that it was asked: kubectl ends with 0 and no output when its connection breaks.
print_link() {
  ! grep -qxF -e "$1" "$STATE/signed-in" 2>/dev/null || return 0
  said=$(kubectl --kubeconfig $ADMIN -n "$1" exec deployment/corral -c front -- sh -c 'corral sign-in-link --first && echo asked') ||
    return
  case $said in
    asked) note signed-in "$1" ;;
    *asked) printf '%s\n' "${said%asked}" ;;
    *) echo 'The server did not answer.' >&2; return 1 ;;
  esac
}

# answers: whether this control plane has a Kubernetes that answers it.
answers() { kubectl --kubeconfig $ADMIN --request-timeout=30s get --raw /readyz; }

# prepare_backup NAMESPACE: gather what a new cluster cannot make again: Corral's store and key, the portal's certificate,
# and the authorities of Kubernetes. Only root sees into the folder; drop_backup removes it.
prepare_backup() {
  drop_backup && (umask 077 && mkdir -p "$BACKUP/pki/etcd") || return
  (umask 077 && gather "$1") || { drop_backup; return 1; }
  find "$BACKUP" -type f -size 0 | grep . && { echo 'corral: an empty part'; drop_backup; return 1; }
  return 0
}

gather() {
  kubectl --kubeconfig $ADMIN -n "$1" exec deployment/corral -c front -- corral backup - >"$BACKUP/store.db" &&
    kubectl --kubeconfig $ADMIN -n "$1" get secret corral-key -o 'jsonpath={.data.key}' >"$BACKUP/key.base64" &&
    base64 -d <"$BACKUP/key.base64" >"$BACKUP/corral.key" && rm "$BACKUP/key.base64" &&
    gather_portal "$1" && cd /etc/kubernetes/pki &&
    for file in ca.crt ca.key sa.key sa.pub front-proxy-ca.crt front-proxy-ca.key etcd/ca.crt etcd/ca.key; do
      cp $file "$BACKUP/pki/$file" || return
    done
}

# gather_portal NAMESPACE: the key and certificate that the cluster has. The file of this host may be an old one: it was the
# first control plane once. Its first line, which marks a certificate of Corral's own, is kept where both certificates agree.
gather_portal() {
  for part in key crt; do
    kubectl --kubeconfig $ADMIN -n "$1" get secret corral-portal -o "jsonpath={.data.tls\.$part}" >"$BACKUP/portal.base64" &&
      [ -s "$BACKUP/portal.base64" ] && base64 -d <"$BACKUP/portal.base64" >"$BACKUP/portal.$part" || return
  done
  there=$(sed -n '/^-----BEGIN CERTIFICATE-----/,/^-----END CERTIFICATE-----/p' /etc/kubernetes/corral-portal.pem 2>/dev/null)
  {
    [ "$there" != "$(cat "$BACKUP/portal.crt")" ] || sed -n '1{/^#/p;}' /etc/kubernetes/corral-portal.pem
    cat "$BACKUP/portal.key" "$BACKUP/portal.crt"
  } >"$BACKUP/portal.pem" && rm "$BACKUP/portal.base64" "$BACKUP/portal.key" "$BACKUP/portal.crt"
}

drop_backup() { rm -rf "$BACKUP"; }

# print_backup: as an archive.
print_backup() { tar -C "$BACKUP" -cf - .; }

# restore_corral NAMESPACE IMAGE: the store and the key that were sent, in place of those that are there. The database of
# before is kept under another name. `up` starts the server again where this does not come to its end.
restore_corral() {
  received && [ -s store.db ] && [ -s corral.key ] && unfinished corral && rm -f "$STATE/signed-in" || return
  before=corral_before_$(date -u +%Y%m%d%H%M%S)
  kubectl --kubeconfig $ADMIN -n "$1" create secret generic corral-key --from-file=key=corral.key --dry-run=client -o yaml \
    >key.yaml && chmod 600 key.yaml || return
  admin -n "$1" scale deployment/corral --replicas=0 &&
    admin -n "$1" wait --for=delete pod -l app.kubernetes.io/component=server --timeout=300s &&
    admin apply --server-side --force-conflicts -f key.yaml &&
    database "$1" "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'corral'" &&
    database "$1" "ALTER DATABASE corral RENAME TO $before" && database "$1" 'CREATE DATABASE corral' &&
    fill_store "$1" "$2" && admin -n "$1" scale deployment/corral --replicas=1 &&
    admin -n "$1" rollout status deployment/corral --timeout=600s || return
  echo "the database of before is $before"
  cd / && rm -rf "$STATE/received" && finished corral
}

# database NAMESPACE SQL
database() {
  whole kubectl --kubeconfig $ADMIN -n "$1" exec statefulset/corral-postgresql -- sh -c \
    'PGPASSWORD=$(cat /etc/corral/password) exec psql -h /tmp -U corral -d postgres -v ON_ERROR_STOP=1 -c "$1"' sh "$2"
}

# fill_store NAMESPACE IMAGE: by a pod of its own, as the server is stopped.
fill_store() {
  admin -n "$1" delete pod corral-restore --ignore-not-found --wait || return
  # JSON, as YAML has no quotes that a shell keeps.
  printf '%s' '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "corral-restore"}, "spec": {"restartPolicy": "Never",
    "automountServiceAccountToken": false, "enableServiceLinks": false, "activeDeadlineSeconds": 3600,
    "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [{"name": "main", "image": "'"$2"'", "imagePullPolicy": "IfNotPresent", "command": ["sleep", "3600"],
    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    "env": [{"name": "HOME", "value": "/tmp"}, {"name": "CORRAL_ADMINISTRATOR", "value": "admin"},
      {"name": "CORRAL_DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "corral-database", "key": "url"}}}]}]}}' >pod.json
  admin -n "$1" apply -f pod.json && admin -n "$1" wait --for=condition=Ready pod/corral-restore --timeout=300s &&
    whole timeout 1800 kubectl --kubeconfig $ADMIN -n "$1" exec -i corral-restore -- corral restore - --yes --data /tmp/restored <store.db
  code=$?
  admin -n "$1" delete pod corral-restore --now --ignore-not-found
  return $code
}

admin() { whole kubectl --kubeconfig $ADMIN "$@"; }

# Print a token that lets hosts join for ten minutes, and the hash of the key of the cluster's authority.
make_token() {
  kubeadm token create --ttl 10m --description 'corral deploy up' --print-join-command
}

# Print the same for a control plane, and the key of the certificates that it needs, which kubeadm keeps encrypted in the
# cluster for two hours. Only memory has the key here.
make_plane_token() {
  document=/run/corral-key.yaml
  key=$(kubeadm certs certificate-key) || return
  (umask 077 && key_document >$document) && kubeadm init phase upload-certs --upload-certs --config $document >/dev/null
  code=$?
  rm -f $document
  [ $code = 0 ] && printf 'corral-certificate-key %s\n' "$key" && make_token
}

key_document() {
  cat <<END
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
certificateKey: $key
localAPIEndpoint: {advertiseAddress: "$(own_address)"}
nodeRegistration: {criSocket: "unix:///run/containerd/containerd.sock"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $(kubeadm version -o short)
END
}

# The address of the control plane on this host.
own_address() { sed -n 's/^ *- --advertise-address=//p' /etc/kubernetes/manifests/kube-apiserver.yaml; }

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

# Until the control plane of this host answers with its new certificate.
until_answered() {
  address=$(own_address)
  case $address in *:*) address="[$address]" ;; esac
  for _ in $(seq 150); do
    sleep 2
    ! admin --server "https://$address:6443" get --raw /readyz || return 0
  done
  return 1
}

# Whether `up` began to make this host a node: it wrote the units. Otherwise a Kubernetes here is somebody else's.
made_node() {
  for unit in kubelet containerd; do
    unit=/etc/systemd/system/$unit.service
    if [ -e "$STATE/before$unit" ] || grep -qxF "$unit" "$STATE/made" 2>/dev/null; then return 0; fi
  done
  return 1
}

# Take back what `up` made here, the last first; what is written down goes at the end, so it can be begun again.
reset_host() {
  unfinished reset && reset_registry && reset_hadoop || return
  if made_node && [ -e /usr/local/bin/kubeadm ]; then whole kubeadm reset --force || return; fi
  for service in corral-balancer kubelet containerd; do
    ! grep -qxF "/etc/systemd/system/$service.service" "$STATE/made" || [ ! -e "/etc/systemd/system/$service.service" ] ||
      systemctl disable --now "$service" || return
  done
  { ! made_node || { reset_network && reset_node_files; }; } && reset_files && reset_packages && reset_settings || return
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

reset_node_files() {
  rm -rf /var/lib/cni /run/flannel /var/lib/kubelet /var/lib/etcd /var/log/pods /var/log/containers \
    /etc/kubernetes/pki /etc/kubernetes/manifests /etc/kubernetes/tmp
}

reset_files() {
  if [ -e "$STATE/emptied" ]; then
    find /var/lib/containerd -mindepth 1 -delete && chmod "$(cat "$STATE/emptied")" /var/lib/containerd || return
  fi
  while read -r path; do rm -f "$path" || return; done <"$STATE/made"
  if [ -d "$STATE/before" ]; then
    (cd "$STATE/before" && find . -type f ! -name '*.new' | while read -r path; do cp -p "$path" "/$path" || exit; done) || return
  fi
  [ ! -e "$STATE/data" ] || while read -r path; do rm -rf "$path" || return; done <"$STATE/data"
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
