# Prints how the parts of the cluster on this machine are, as fields between tabs; it changes nothing. Runs as root.
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
export PATH LC_ALL KUBECACHEDIR=/run/corral-kubectl
ADMIN=/etc/kubernetes/admin.conf

main() {
  printf 'corral-status begin 1\n'
  # A host that has Hadoop alone is no node.
  if [ ! -e /etc/systemd/system/corral-hadoop-firewall.service ] || [ -e /etc/systemd/system/kubelet.service ]; then
    unit containerd "$(containerd --version 2>/dev/null | awk '{ print $3 }')"
    unit kubelet "$(kubelet --version 2>/dev/null | awk '{ print $2 }')"
  fi
  [ ! -e /etc/systemd/system/corral-balancer.service ] ||
    unit corral-balancer "$(haproxy -v 2>/dev/null | awk 'NR == 1 { print $3 }')"
  if [ -e /etc/systemd/system/corral-registry.service ]; then
    unit corral-registry "$(docker-registry --version 2>/dev/null | awk '{ print $NF }')"
    printf 'registry\t%s\n' "$(sed -n '1s/^# Corral.s own certificate for .* until \([0-9]\{1,11\}\)$/\1/p' /etc/corral-registry/tls.crt 2>/dev/null)"
  fi
  for service in corral-hadoop-firewall corral-zookeeper corral-namenode corral-resourcemanager corral-datanode \
    corral-nodemanager; do
    [ ! -e "/etc/systemd/system/$service.service" ] || unit "$service" "$(hadoop_version)"
  done
  [ ! -e /etc/systemd/system/corral-namenode.service ] || hadoop_workers /etc/corral-hadoop
  [ ! -e $ADMIN ] || cluster
  printf 'corral-status end 1\n'
}

# The version that the jar of a release has in its name.
hadoop_version() {
  for path in /opt/corral-hadoop/share/hadoop/common/hadoop-common-*.jar; do
    case $path in *-tests.jar | *'*'*) ;; *) path=${path##*/hadoop-common-} && printf '%s\n' "${path%.jar}" && return ;; esac
  done
}

# hadoop_workers FOLDER: the workers that HDFS or YARN does not use now, as they leave or are lost; by the name that the list
# gives them, as YARN has it, else by their address.
hadoop_workers() {
  timeout 60 python3 -c '
import json, sys, urllib.request
from xml.etree import ElementTree
def settings(name):
    rows = ElementTree.parse(f"{sys.argv[1]}/{name}.xml").iter("property")
    return {each.findtext("name"): each.findtext("value") for each in rows}
def ask(url):
    with urllib.request.urlopen("http://" + url, timeout=20) as answer:
        return json.loads(answer.read(64 * 1024 * 1024))
def say(name, part, state, good=""):
    print("worker", name, part, " ".join(state.split()), good, sep="\t", flush=True)
names = {}
try:
    site = settings("yarn-site")
    at = site.get("yarn.resourcemanager.webapp.address") or site["yarn.resourcemanager.hostname"] + ":8088"
    for each in (ask(at + "/ws/v1/cluster/nodes")["nodes"] or {}).get("node", []):
        address = each["id"].rpartition(":")[0]
        attributes = (each.get("nodeAttributesInfo") or {}).get("nodeAttributeInfo") or []
        names[address] = next((one["value"] for one in attributes if one["name"] == "corral-node"), address)
        if each["state"] == "DECOMMISSIONING":
            say(names[address], "yarn", "leaves, with {} containers".format(each["numContainers"]), "well")
        elif each["state"] in ("UNHEALTHY", "LOST"):
            say(names[address], "yarn", each["state"].lower())
except (OSError, ValueError, LookupError, TypeError, ElementTree.ParseError) as error:
    say("", "yarn", f"the ResourceManager does not answer: {error}")
try:
    at = settings("hdfs-site")["dfs.namenode.http-address"]
    (bean,) = ask(at + "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")["beans"]
    few = {each["xferaddr"]: each["underReplicatedBlocks"] for each in json.loads(bean["DecomNodes"]).values()}
    for each in json.loads(bean["LiveNodes"]).values():
        name = each["xferaddr"].rpartition(":")[0]
        if each["adminState"] != "In Service":
            rest = "leaves, with {} blocks to copy".format(few[each["xferaddr"]]) if each["xferaddr"] in few else "has left"
            say(names.get(name, name), "hdfs", rest, "well")
    for each in json.loads(bean["DeadNodes"]).values():
        name = each["xferaddr"].rpartition(":")[0]
        if not each["decommissioned"]:
            say(names.get(name, name), "hdfs", "its DataNode is not live")
except (OSError, ValueError, LookupError, TypeError, ElementTree.ParseError) as error:
    say("", "hdfs", f"the NameNode does not answer: {error}")
' "$1" || printf 'worker\t\thdfs\tit does not tell of its workers within 60 s\t\n'
}

unit() {
  since=$(systemctl show --property StateChangeTimestamp --value "$1" 2>/dev/null)
  [ -z "$since" ] || since=$(date --utc --date "$since" +%Y-%m-%dT%H:%M:%SZ)
  printf 'unit\t%s\t%s\t%s\t%s\n' "$1" "$(systemctl is-active "$1" 2>/dev/null)" "$since" "$2"
}

cluster() {
  nodes='{range .items[*]}node{"\t"}{.metadata.name}{"\t"}{range .status.conditions[?(@.type=="Ready")]}{.status}{"\t"}{.lastTransitionTime}{end}{"\t"}{.status.nodeInfo.kubeletVersion}{"\t"}{.spec.unschedulable}{"\n"}{end}'
  pods='{range .items[*]}pod{"\t"}{.metadata.namespace}/{.metadata.name}{"\t"}{.spec.nodeName}{"\t"}{.status.phase}{"\t"}{.status.containerStatuses[*].ready}{"\t"}{.status.startTime}{"\t"}{.spec.containers[0].image}{"\n"}{end}'
  ask get nodes -o jsonpath="$nodes" && ask -n kube-system get pods -o jsonpath="$pods" &&
    ask -n kube-flannel get pods -o jsonpath="$pods" &&
    ask get pods --all-namespaces -l app.kubernetes.io/name=corral -o jsonpath="$pods" || return
  printf 'certificates\t%s\n' "$(timeout 60 kubeadm certs check-expiration -o json 2>/dev/null | tr -d '\n\t')"
}

# What kubectl prints, or one line that says why not.
ask() {
  if answer=$(timeout 60 kubectl --kubeconfig $ADMIN --request-timeout=30s "$@" 2>&1); then
    [ -z "$answer" ] || printf '%s\n' "$answer"
  else
    printf 'silent\t%s\n' "$(printf '%s' "$answer" | tail -n 1 | tr '\t' ' ')"
    return 1
  fi
}

main </dev/null
