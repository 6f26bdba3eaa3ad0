# What `up` does for Hadoop on a host, as root. This text follows that of do.sh, whose functions it calls.
HADOOP_HOME=/opt/corral-hadoop
HADOOP_CONF=/etc/corral-hadoop
HADOOP_JAVA=/usr/lib/jvm/default-java/bin/java

# as_hadoop USER CLASS WORD...: one of Hadoop's own programs, as the account of the daemons.
as_hadoop() {
  account=$1
  shift
  whole runuser -u "$account" -- env "HADOOP_CONF_DIR=$HADOOP_CONF" "$HADOOP_JAVA" "@$HADOOP_CONF/java.options" "$@"
}

# install_hadoop DIGEST SERVICE...: the archive of a release that was sent; the services need a restart then.
install_hadoop() {
  received && note data $HADOOP_HOME && note data $HADOOP_HOME.new || return
  digest=$1
  shift
  for service; do unfinished "$service" || return; done
  read -r _ archive <list
  rm -rf $HADOOP_HOME.new && mkdir -p $HADOOP_HOME.new &&
    tar --no-same-owner --no-same-permissions --strip-components=1 -xf "$archive" -C $HADOOP_HOME.new || return
  [ -d $HADOOP_HOME.new/share/hadoop/common ] || { echo 'corral: no release of Hadoop'; return 1; }
  printf '%s\n' "$digest" >$HADOOP_HOME.new/release && sync -f $HADOOP_HOME.new/release && rm -rf $HADOOP_HOME &&
    mv $HADOOP_HOME.new $HADOOP_HOME || return
  cd / && rm -rf "$STATE/received"
}

# make_hadoop_data FILE USER: the account of the daemons, and their folders, which nobody else sees into. Containers run as that
# account: the folder above is root's, so that no container puts a link in the place of one of them.
make_hadoop_data() {
  if ! id "$2" >/dev/null 2>&1; then
    note users "$2" && useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$2" || return
  fi
  while read -r path; do
    case $path in /*) ;; *) continue ;; esac
    above=${path%/*}
    make_folder "${above%/*}" && note data "$above" && mkdir -p "$above" && chown root:root "$above" && chmod 755 "$above" || return
    [ ! -L "$path" ] || { echo "corral: $path is a link"; return 1; }
    mkdir -p "$path" && chown -h "$2:$2" "$path" && chmod 700 "$path" || return
  done <"$1"
  finished hadoop-data
}

# load_firewall UNIT: new rules take the place of old ones while the daemons run.
load_firewall() {
  systemctl daemon-reload && systemctl enable "$1" && systemctl reload-or-restart "$1" && systemctl is-active "$1" ||
    { journalctl -q --no-pager -n 10 -u "$1"; return 1; }
  finished "$1"
}

# restart_worker SERVICE: it is to be waited for.
restart_worker() { unfinished hadoop-worker && restart "$1"; }

# format_hdfs FILE USER: the folder of the NameNode is in FILE. One that is formatted stays as it is.
format_hdfs() {
  while read -r path; do
    case $path in /*) ;; *) continue ;; esac
    [ ! -e "$path/current/VERSION" ] || continue
    as_hadoop "$2" org.apache.hadoop.hdfs.server.namenode.NameNode -format -nonInteractive || return
  done <"$1"
  finished hadoop-format
}

# make_hdfs_folders FILE URL USER: the folders of a file's lines (owner, mode and path), by the NameNode's REST interface.
make_hdfs_folders() {
  python3 -c '
import sys, time, urllib.parse, urllib.request
def ask(path, operation, **words):
    query = urllib.parse.urlencode({"op": operation, "user.name": sys.argv[3], **words})
    url = sys.argv[2] + "/webhdfs/v1" + urllib.parse.quote(path) + "?" + query
    urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=60).read()
rows = [line.split() for line in open(sys.argv[1]) if not line.startswith("#")]
end = time.monotonic() + 300
while True:
    try:
        for owner, mode, path in rows:
            ask(path, "MKDIRS")
            ask(path, "SETOWNER", owner=owner)
            ask(path, "SETPERMISSION", permission=mode)
        break
    except OSError as error:
        if time.monotonic() > end:
            sys.exit(f"corral: the NameNode takes no folders: {error}")
    time.sleep(2)
' "$@" && finished hadoop-folders
}

# join_hadoop MASTER ADDRESS: until the ResourceManager and the NameNode have this host. They list a daemon for minutes after it has
# ended, so those of this host must answer, and its DataNode must have told the NameNode of itself since.
join_hadoop() {
  python3 -c '
import json, sys, time, urllib.request
master, address = sys.argv[1:]
begun = time.monotonic()
def ask(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.loads(answer.read(64 * 1024 * 1024))
def missing():
    for port, path, daemon in ((8042, "ws/v1/node/info", "NodeManager"), (9864, "jmx?qry=java.lang:type=Runtime", "DataNode")):
        try:
            ask(f"http://{address}:{port}/{path}")
        except OSError as error:
            return f"its {daemon} does not answer: {error}"
    nodes = (ask(f"http://{master}:8088/ws/v1/cluster/nodes?states=RUNNING")["nodes"] or {}).get("node", [])
    if not any(node["id"] == f"{address}:8041" for node in nodes):
        return "the ResourceManager has no running NodeManager of this host"
    beans = ask(f"http://{master}:9870/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")["beans"]
    live = json.loads(beans[0]["LiveNodes"]) if beans else {}
    own = [each for each in live.values() if each.get("xferaddr") == f"{address}:9866"]
    if not any(each.get("adminState") == "In Service" for each in own):
        return "the NameNode has its DataNode as one that leaves" if own else "the NameNode has no live DataNode of this host"
    if min(each.get("lastContact", 0) for each in own) > time.monotonic() - begun:
        return "the NameNode has not heard of its DataNode"
end = time.monotonic() + 300
while True:
    try:
        why = missing()
    except (OSError, ValueError, LookupError, TypeError) as error:
        why = f"{master} does not answer: {error}"
    if not why:
        break
    if time.monotonic() > end:
        sys.exit(f"corral: {why}")
    time.sleep(2)
' "$@" && finished hadoop-worker
}

# reread_hosts USER [-g -server]: the NameNode and the ResourceManager read which hosts leave; with -g no container is ended.
reread_hosts() {
  user=$1
  shift
  as_hadoop "$user" org.apache.hadoop.hdfs.tools.DFSAdmin -refreshNodes &&
    as_hadoop "$user" org.apache.hadoop.yarn.client.cli.RMAdminCLI -refreshNodes "$@"
}

# reread_excluded USER: after a change of the list of hosts.
reread_excluded() { reread_hosts "$1" -g -server && finished hadoop-excluded; }

# leave_hadoop ADDRESS USER [end-tasks|lost]: on the master, and not at all where blocks would be lost. HDFS copies the blocks
# of the host to others, and YARN starts no container on it. What runs there is ended only where this was asked for.
leave_hadoop() {
  case ${3-} in
    lost) sees_hadoop gone "$1" 30 || return ;;
    end-tasks) sees_hadoop alone "$1" 30 && sees_hadoop may "$1" 30 || return ;;
    *) sees_hadoop may "$1" 30 || return ;;
  esac
  exclude "$1" || return
  if [ -n "${3-}" ] && sees_hadoop alone "$1" 0; then reread_hosts "$2"; else reread_hosts "$2" -g -server; fi
}

# has_left_hadoop ADDRESS USER SECONDS: once no container runs on the host and its blocks are elsewhere. YARN waits for the ends
# of jobs that had some there, unless it is told not to, which ends all containers of hosts that leave.
has_left_hadoop() {
  sees_hadoop left "$1" "$3" || return
  ! sees_hadoop alone "$1" 0 || as_hadoop "$2" org.apache.hadoop.yarn.client.cli.RMAdminCLI -refreshNodes
}

# exclude ADDRESS: write down that the host leaves.
exclude() {
  file=$HADOOP_CONF/excluded
  ! grep -qxF -e "$1" "$file" || return 0
  { cat "$file" && printf '%s\n' "$1"; } >"$file.corral-new" && sync "$file.corral-new" && mv -f "$file.corral-new" "$file" ||
    { rm -f "$file.corral-new"; return 1; }
}

# sees_hadoop may|left|alone|gone ADDRESS SECONDS: whether a host may leave, has left, is the only one that leaves with containers,
# or has a DataNode that says nothing any more; else it prints what is in the way, in words that corral/deploy/steps/leaving.py
# reads. A DataNode that is not live may have blocks that are missing, which a NameNode in safe mode does not know yet.
sees_hadoop() {
  python3 -c '
import json, sys, time, urllib.request
from xml.etree import ElementTree
what, address, seconds, folder = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
def settings(name):
    rows = ElementTree.parse(f"{folder}/{name}.xml").iter("property")
    return {each.findtext("name"): each.findtext("value") for each in rows}
def ask(url):
    with urllib.request.urlopen("http://" + url, timeout=30) as answer:
        return json.loads(answer.read(64 * 1024 * 1024))
def of_yarn(site):
    at = site.get("yarn.resourcemanager.webapp.address") or site["yarn.resourcemanager.hostname"] + ":8088"
    nodes = (ask(at + "/ws/v1/cluster/nodes")["nodes"] or {}).get("node", [])
    states = ("NEW", "RUNNING", "UNHEALTHY", "DECOMMISSIONING")
    own = [each for each in nodes if each["id"] == address + ":8041" and each["state"] in states]
    if what == "alone":
        others = [each for each in nodes if each not in own and each["state"] == "DECOMMISSIONING"]
        held = sum(each["numContainers"] for each in others)
        return f"others {held}" if held else ""
    held = sum(each["numContainers"] for each in own)
    return f"tasks {held}" if held or any(each["state"] != "DECOMMISSIONING" for each in own) else ""
def of_hdfs(site):
    (bean,) = ask(site["dfs.namenode.http-address"] + "/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo")["beans"]
    live, leaving = (list(json.loads(bean[name]).values()) for name in ("LiveNodes", "DecomNodes"))
    own = [each for each in live if each["xferaddr"] == address + ":9866"]
    if what == "gone":
        quiet = [each["lastContact"] for each in own]
        return "lives {}".format(min(quiet)) if quiet and min(quiet) < 30 else ""
    if bean["Safemode"]:
        return "safe"
    if not own and bean["NumberOfMissingBlocks"]:
        return "missing {}".format(bean["NumberOfMissingBlocks"])
    if what == "left":
        keys = ("underReplicatedBlocks", "decommissionOnlyReplicas", "underReplicateInOpenFiles")
        counts = [sum(each[key] for each in leaving if each["xferaddr"] == address + ":9866") for key in keys]
        return "blocks {} {} {}".format(*counts) if any(each["adminState"] != "Decommissioned" for each in own) else ""
    others = sum(each["adminState"] == "In Service" and each not in own for each in live)
    copies = int(site["dfs.replication"])
    return "" if not own or others >= copies else f"copies {copies} {others}" if others else "last"
end = time.monotonic() + seconds
while True:
    try:
        why = "" if what in ("may", "gone") else of_yarn(settings("yarn-site"))
        why = why or ("" if what == "alone" else of_hdfs(settings("hdfs-site")))
    except (OSError, ValueError, LookupError, TypeError, ElementTree.ParseError) as error:
        why = f"silent {error}"
    if not why:
        break
    if time.monotonic() > end or (what != "left" and not why.startswith("silent")):
        sys.exit(f"corral: leaves: {why}")
    time.sleep(1)
' "$@" "$HADOOP_CONF"
}

# prepare_hdfs_backup FILE USER: the NameNode's last image and the edits since then. Its folder is in FILE. The edits of now are
# ended first, so that what is copied is whole; HDFS goes on.
prepare_hdfs_backup() {
  name=$(grep -m 1 '^/' "$1") && drop_backup && (umask 077 && mkdir -p "$BACKUP/hdfs") || return
  as_hadoop "$2" org.apache.hadoop.hdfs.tools.DFSAdmin -rollEdits && (umask 077 && gather_image "$name/current") ||
    { drop_backup; return 1; }
}

# gather_image FOLDER: seen_txid is that of the last of these edits, as a NameNode wants to have read all up to it.
gather_image() {
  cd "$1" || return
  image=$(ls | sed -n 's/^fsimage_\([0-9]\{19\}\)$/\1/p' | sort | tail -n 1)
  [ -n "$image" ] || { echo 'corral: the NameNode has no image'; return 1; }
  edits=$(ls | sed -n 's/^edits_[0-9]\{19\}-\([0-9]\{19\}\)$/\1 &/p' | sort | awk -v after="x$image" '"x" $1 > after { print $2 }')
  last=$(printf '%s\n' "$edits" | sed -n '$s/.*-//p')
  printf '%s\n' "${last:-$image}" | sed 's/^0*\(.\)/\1/' >"$BACKUP/seen_txid" &&
    printf '%s\n' VERSION "fsimage_$image" "fsimage_$image.md5" $edits | tar -cf "$BACKUP/hdfs/name.tar" -T - -C "$BACKUP" seen_txid &&
    rm "$BACKUP/seen_txid"
}

# restore_hdfs FILE USER [asked]: the image that was sent, in place of the one that is there, which is kept beside it. One of the
# same HDFS is left as it is unless this was asked for: it has the files that were written since, and DataNodes would remove them.
restore_hdfs() {
  received && name=$(grep -m 1 '^/' "$1") && [ -d "$name" ] && rm -rf "$name/corral-restored" && mkdir -m 700 "$name/corral-restored" &&
    tar --no-same-owner --no-same-permissions -xf name.tar -C "$name/corral-restored" || return
  odd=$(cd "$name/corral-restored" && find . -mindepth 1 ! -type f && ls -A |
    grep -vE '^(VERSION|seen_txid|fsimage_[0-9]{19}(\.md5)?|edits_[0-9]{19}-[0-9]{19})$')
  cluster=$(sed -n 's/^clusterID=\([A-Za-z0-9-]*\)$/\1/p' "$name/corral-restored/VERSION")
  if [ -n "$odd" ] || [ -z "$cluster" ]; then
    rm -rf "$name/corral-restored"
    echo 'corral: no image of a NameNode'
    return 1
  fi
  if [ "${3-}" != asked ] && grep -qx "clusterID=$cluster" "$name/current/VERSION" 2>/dev/null; then
    cd / && rm -rf "$name/corral-restored" "$STATE/received" && echo corral-hdfs-kept
    return
  fi
  unfinished corral-namenode && chown -R -h "$2:$2" "$name/corral-restored" && sync -f "$name/corral-restored" &&
    systemctl stop corral-namenode || return
  [ ! -e "$name/current" ] || mv "$name/current" "$name-before-$(date -u +%Y%m%d%H%M%S)" || return
  mv "$name/corral-restored" "$name/current" && restart corral-namenode || return
  cd / && rm -rf "$STATE/received" && printf 'corral-hdfs-cluster %s\n' "$cluster"
}

# rejoin_hdfs FILE CLUSTER: the DataNode's folder is in FILE. One that belongs to another HDFS begins anew, if it has no block.
rejoin_hdfs() {
  blocks=$(grep -m 1 '/blocks$' "$1") || return
  there=$(sed -n 's/^clusterID=//p' "$blocks/current/VERSION" 2>/dev/null)
  if [ -n "$there" ] && [ "$there" != "$2" ]; then
    [ -z "$(find "$blocks" -name 'blk_*' | head -n 1)" ] || { echo 'corral: its DataNode has blocks of another HDFS'; return 1; }
    unfinished corral-datanode && systemctl stop corral-datanode && find "$blocks" -mindepth 1 -delete || return
  fi
  restart_worker corral-datanode && finished hadoop-worker
}

# print_hdfs_state WORKERS SECONDS USER: once the NameNode has so many DataNodes with all blocks, and has left safe mode; else how it is.
# It stays there while DataNodes have blocks that are younger than its image: those of files that a restore gives up.
# With few blocks it leaves that before they are told. Blocks that no DataNode told for a minute do not come.
# It fails where the NameNode does not answer in these seconds or has fewer DataNodes.
print_hdfs_state() {
  hdfs_state "$1" "$2" && return
  [ $? = 3 ] || return 1
  as_hadoop "$3" org.apache.hadoop.hdfs.tools.DFSAdmin -safemode forceExit && hdfs_state "$1" "$2"
}

# hdfs_state WORKERS SECONDS: the same; its exit code is 3 as soon as younger blocks alone keep the NameNode in safe mode.
hdfs_state() {
  address=$(sed -n 's/.*<name>dfs.namenode.http-address<\/name><value>\([^<]*\)<.*/\1/p' $HADOOP_CONF/hdfs-site.xml)
  python3 -c '
import json, sys, time, urllib.request
address, workers, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end, told, quiet, says, fails = time.monotonic() + seconds, (), 0.0, "it was not asked", True
while time.monotonic() < (min(end, quiet) if quiet else end):
    try:
        url = f"http://{address}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
        with urllib.request.urlopen(url, timeout=30) as answer:
            (found,) = json.loads(answer.read(64 * 1024 * 1024))["beans"]
        nodes, missing, total = json.loads(found["LiveNodes"]).values(), found["NumberOfMissingBlocks"], found["TotalBlocks"]
        says = f"{len(nodes)} of {workers} DataNodes are there, and {missing} blocks are missing"
        fails, blocks = len(nodes) < workers, sum(each["numBlocks"] for each in nodes)
        whole = not missing and blocks >= total
        if not fails and whole and not found["Safemode"]:
            break
        if not fails and whole and "generation stamps in future" in found["Safemode"]:
            sys.exit(3)
        if fails or whole:
            quiet = 0.0
        elif not quiet or told != (len(nodes), blocks):
            quiet = time.monotonic() + 60
        told = len(nodes), blocks
        says += f"; it is in safe mode, told of {blocks} copies of {total} blocks" if found["Safemode"] else ""
    except (OSError, ValueError, LookupError, TypeError) as error:
        says, fails = f"the NameNode does not answer: {error}", True
    time.sleep(1)
print(f"corral: {says}" if fails else says)
sys.exit(fails)
' "$address" "$1" "$2"
}

# Stop the daemons, with the containers that outlive their NodeManager, and take the rules and the account away.
reset_hadoop() {
  for service in corral-nodemanager corral-datanode corral-resourcemanager corral-namenode corral-zookeeper \
    corral-hadoop-firewall; do
    [ ! -e "/etc/systemd/system/$service.service" ] || systemctl disable --now "$service" || return
  done
  if iptables --wait -S CORRAL-HADOOP >/dev/null 2>&1; then
    # shellcheck disable=SC2086
    iptables --wait -S INPUT | sed -n 's/^-A \(.* -j CORRAL-HADOOP\)$/-D \1/p' | while read -r rule; do
      iptables --wait $rule || exit
    done && iptables --wait -F CORRAL-HADOOP && iptables --wait -X CORRAL-HADOOP || return
  fi
  [ ! -e "$STATE/users" ] || while read -r user; do
    ! id "$user" >/dev/null 2>&1 || { end_processes "$user" &&
      find /tmp /var/tmp -xdev -mindepth 1 -maxdepth 1 -user "$user" -exec rm -rf {} + && userdel "$user"; } || return
  done <"$STATE/users"
}

# end_processes USER: containers outlive their NodeManager.
end_processes() {
  for _ in $(seq 100); do
    pkill -KILL -u "$1" || return 0
    sleep 0.1
  done
  echo "processes of $1 do not end"
  return 1
}
