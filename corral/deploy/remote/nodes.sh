# What add-node and remove-node do on a control plane, as root. This text follows that of do.sh, whose functions it calls.

# list_nodes: a line for each node, between marks: name, whether it is cordoned, keys of its taints, Ready, the version of
# its kubelet, and what close_node noted.
list_nodes() {
  printf 'corral-nodes begin 2\n'
  kubectl --kubeconfig $ADMIN --request-timeout=60s get nodes -o jsonpath='{range .items[*]}{.metadata.name}{"\t"}{.spec.unschedulable}{"\t"}{.spec.taints[*].key}{"\t"}{range .status.conditions[?(@.type=="Ready")]}{.status}{end}{"\t"}{.status.nodeInfo.kubeletVersion}{"\t"}{.metadata.annotations.corral\.dev/cordoned-before-upgrade}{"\n"}{end}' || return
  printf 'corral-nodes end 2\n'
}

# validate_node NODE IMAGE: a pod there must start, reach the cluster's DNS through the pods' network, and have logs.
validate_node() {
  pod=corral-validation-$1
  admin -n kube-system delete pod "$pod" --ignore-not-found --now || return
  dns=$(kubectl --kubeconfig $ADMIN -n kube-system get service kube-dns -o 'jsonpath={.spec.clusterIP}') || return
  validation_pod "$pod" "$1" "$2" "$dns" | admin apply -f - && validated "$pod"
  code=$?
  admin -n kube-system delete pod "$pod" --ignore-not-found --now
  return $code
}

# validation_pod POD NODE IMAGE ADDRESS: the kubelet of the node itself connects to the address, until it can.
validation_pod() {
  cat <<END
apiVersion: v1
kind: Pod
metadata: {name: "$1", namespace: kube-system}
spec:
  nodeName: "$2"
  automountServiceAccountToken: false
  tolerations: [{operator: Exists}]
  containers:
  - name: main
    image: "$3"
    imagePullPolicy: IfNotPresent
    readinessProbe: {tcpSocket: {host: "$4", port: 53}, periodSeconds: 1, timeoutSeconds: 5}
END
}

validated() {
  if ! admin -n kube-system wait --for=condition=Ready "pod/$1" --timeout=300s; then
    admin -n kube-system describe pod "$1"
    case $(kubectl --kubeconfig $ADMIN -n kube-system get pod "$1" -o 'jsonpath={.status.phase}') in
      Running) echo 'corral: no way to the DNS' ;;
      *) echo 'corral: no pod starts' ;;
    esac
    return 1
  fi
  admin -n kube-system logs "$1" || { echo 'corral: no logs'; return 1; }
}

# open_node NODE TAINT: the scheduler may use it.
open_node() {
  case " $(kubectl --kubeconfig $ADMIN get node "$1" -o 'jsonpath={.spec.taints[*].key}') " in
    *" $2 "*) admin taint node "$1" "$2-" ;;
  esac
}

# forget_taint TAINT: on the node itself. kubeadm lets its kubelet register with the taint, also when it registers anew.
forget_taint() {
  flags=/var/lib/kubelet/kubeadm-flags.env
  ! grep -q "register-with-taints=$1" $flags || sed -i "s| *--register-with-taints=$1[^ \"]*||" $flags
}

# empty_node NODE SECONDS [--force]: no new pods, and those that are there end; the pods of DaemonSets stay.
empty_node() {
  node=$1 seconds=$2
  shift 2
  admin cordon "$node" && admin drain "$node" --ignore-daemonsets --delete-emptydir-data "--timeout=${seconds}s" "$@"
}

# close_node NODE: no new pods until open_again. A node that someone has cordoned stays so.
NOTE=corral.dev/cordoned-before-upgrade
close_node() {
  noted=$(noted_of "$1") || return
  if [ -z "$noted" ]; then
    before=$(kubectl --kubeconfig $ADMIN get node "$1" -o 'jsonpath={.spec.unschedulable}') || return
    admin annotate node "$1" "$NOTE=${before:-false}" || return
  fi
  admin cordon "$1"
}

noted_of() { kubectl --kubeconfig $ADMIN get node "$1" -o 'jsonpath={.metadata.annotations.corral\.dev/cordoned-before-upgrade}'; }

# open_again NODE: as it was before close_node.
open_again() {
  noted=$(noted_of "$1") || return
  [ "$noted" != false ] || admin uncordon "$1" || return
  [ -z "$noted" ] || admin annotate node "$1" "$NOTE-"
}

# wait_for_tasks NODE SECONDS: until no pod runs there that nobody would start again elsewhere; prints those that still do.
wait_for_tasks() {
  until=$(($(date +%s) + $2))
  while tasks=$(tasks_on "$1") || return; [ -n "$tasks" ] && [ "$(date +%s)" -lt $until ]; do sleep 2; done
  printf 'corral-tasks begin\n%s\ncorral-tasks end\n' "$tasks"
}

# Pods of a controller have an owner, and those that the kubelet itself starts have the node as theirs.
tasks_on() {
  pods=$(kubectl --kubeconfig $ADMIN get pods --all-namespaces \
    --field-selector "spec.nodeName=$1,status.phase!=Succeeded,status.phase!=Failed" \
    -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.ownerReferences[*].kind}{"\n"}{end}') || return
  printf '%s\n' "$pods" | awk 'NF == 1'
}

# has_version NODE VERSION: its kubelet tells that version, and it is ready.
has_version() {
  admin wait "--for=jsonpath={.status.nodeInfo.kubeletVersion}=$2" "node/$1" --timeout=300s &&
    admin wait --for=condition=Ready "node/$1" --timeout=300s
}

# drop_lost NODE: take out a node that does not answer any more, and its pods, which nobody else would end.
drop_lost() {
  admin get node "$1" --ignore-not-found -o name || return
  admin delete pods --all-namespaces --field-selector "spec.nodeName=$1" --force --grace-period=0 && forget_node "$1"
}

# forget_plane NAME, drop_lost_plane NAME: the same of a control plane, and of etcd.
forget_plane() { drop_member "$1" && forget_node "$1"; }
drop_lost_plane() { drop_member "$1" && drop_lost "$1"; }

# drop_member NAME: etcd on this control plane takes out a member, if there is one of the name.
drop_member() {
  members=$(ask_etcd list '{}') || { echo "$members"; return 1; }
  id=$(printf '%s' "$members" | tr '{}' '\n\n' | sed -n "/\"name\":\"$1\"/s/.*\"ID\":\"\([0-9]*\)\".*/\1/p")
  [ -z "$id" ] || ask_etcd remove "{\"ID\": \"$id\"}"
}

# ask_etcd list|remove JSON: by its gateway of HTTP, as not every image of etcd has etcdctl. It drops a question whose sender
# ends before the answer, so the end of the input is not passed on.
ask_etcd() {
  keys=/etc/kubernetes/pki/etcd
  answer=$(printf 'POST /v3/cluster/member/%s HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' \
    "$1" "${#2}" "$2" | timeout 60 socat -,ignoreeof \
    "OPENSSL:127.0.0.1:2379,commonname=localhost,cafile=$keys/ca.crt,cert=$keys/healthcheck-client.crt,key=$keys/healthcheck-client.key")
  printf '%s\n' "$answer"
  case $answer in 'HTTP/1.'?' 200 '*) ;; *) echo 'corral: etcd does not answer'; return 1 ;; esac
}
