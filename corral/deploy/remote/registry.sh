# What `up` does for the registry of the cluster's own, as root. This text follows that of do.sh, whose functions it calls.
REGISTRY_CONF=/etc/corral-registry
REGISTRY_FILL=/run/corral-registry.yml

# make_registry_keys: certificates and keys come as an archive in base64.
make_registry_keys() {
  unfinished registry-keys && unfinished corral-registry && make_folder $REGISTRY_CONF || return
  for file in ca.crt tls.crt tls.key client.pem; do keep $REGISTRY_CONF/$file || return; done
  (umask 077 && base64 -d | tar -m --no-same-owner --no-same-permissions -xf - -C $REGISTRY_CONF ca.crt tls.crt tls.key client.pem) &&
    chmod 644 $REGISTRY_CONF/ca.crt $REGISTRY_CONF/tls.crt && chown root:docker-registry $REGISTRY_CONF/tls.key &&
    chmod 640 $REGISTRY_CONF/tls.key && sync -f $REGISTRY_CONF/tls.key && finished registry-keys
}

# print_registry_access: the certificates by which another host asks the registry, as an archive in base64.
print_registry_access() { tar -C $REGISTRY_CONF -cf - ca.crt client.pem | base64; }

# trust_registry: they come as that archive. The authority's file is written last, as it tells that all is there.
trust_registry() {
  unfinished registry-trust && make_folder $REGISTRY_CONF && keep $REGISTRY_CONF/client.pem && keep $REGISTRY_CONF/ca.crt || return
  (umask 077 && base64 -d | tar -m --no-same-owner --no-same-permissions -xf - -C $REGISTRY_CONF client.pem ca.crt) && chmod 644 $REGISTRY_CONF/ca.crt &&
    sync -f $REGISTRY_CONF/ca.crt && finished registry-trust
}

# start_registry FOLDER: with the folder of its images, which its account alone sees into.
start_registry() {
  make_folder "${1%/*}" && note data "$1" && mkdir -p "$1" && chown docker-registry:docker-registry "$1" && chmod 700 "$1" &&
    restart corral-registry
}

# fill_registry WORD CONFIG FOLDER "NAME REPOSITORY DIGEST"...: push images to the registry. Archives of those that this host does
# not have itself were sent where WORD is `sent`, and none where it is `none`. The registry takes no image: another process with
# its folder does, at this host's own address alone. That and what it was given go, also after a failure.
fill_registry() {
  [ "$1" != sent ] || received || return
  word=$1 config=$2 folder=$3
  shift 3
  port=$(sed -n 's/^  addr: ".*:\([0-9]*\)"$/\1/p' "$config")
  sed "s/^  addr: .*/  addr: \"127.0.0.1:$port\"/; s/^    readonly: .*/    readonly: {enabled: false}/" "$config" >$REGISTRY_FILL &&
    end_filling && systemd-run --quiet --unit=corral-registry-fill --property=User=docker-registry \
      --property=RuntimeMaxSec=3600 /usr/bin/docker-registry serve $REGISTRY_FILL && registry_listens "$port" &&
    import_archives "$word" && push_images "127.0.0.1:$port" "$folder" "$@"
  code=$?
  [ $code = 0 ] || journalctl -q --no-pager -n 10 -u corral-registry-fill
  end_filling || code=1
  rm -f $REGISTRY_FILL && cd / && rm -rf "$STATE/received" && return $code
}

# What a cut left of it goes, too.
end_filling() {
  systemctl stop corral-registry-fill 2>/dev/null
  systemctl reset-failed corral-registry-fill 2>/dev/null
  forget_archives
}

registry_listens() {
  for _ in $(seq 300); do
    ! grep -q "$(printf ' 0100007F:%04X 00000000:0000 0A ' "$1")" /proc/net/tcp || return 0
    systemctl is-active --quiet corral-registry-fill || break
    sleep 0.1
  done
  echo 'corral: no registry to fill'
  return 1
}

# import_archives WORD: images of other hosts have a namespace of containerd's own, and are not unpacked.
import_archives() {
  [ "$1" = sent ] || return 0
  while read -r _ file; do ctr -n corral-registry images import --local --no-unpack "$file" || return; done <list
}

forget_archives() {
  left=$(ctr -n corral-registry images list -q) || return
  # shellcheck disable=SC2086
  [ -z "$left" ] || ctr -n corral-registry images remove --sync $left || return
  ! ctr namespaces list -q | grep -qx corral-registry || ctr namespaces remove corral-registry
}

# push_images ADDRESS FOLDER "NAME REPOSITORY DIGEST"...
push_images() {
  address=$1 folder=$2
  shift 2
  for image; do
    # shellcheck disable=SC2086
    push_image "$address" "$folder" $image || return
  done
}

# push_image ADDRESS FOLDER NAME REPOSITORY DIGEST
push_image() {
  space=k8s.io
  [ "$(image_digest k8s.io "$3")" = "$5" ] || space=corral-registry
  [ "$(image_digest $space "$3")" = "$5" ] || { echo "corral: another digest of $3"; return 1; }
  ctr -n $space images push --local --tlscacert $REGISTRY_CONF/ca.crt --tlscert $REGISTRY_CONF/client.pem \
    --tlskey $REGISTRY_CONF/client.pem "$1/$4" "$3" >"$STATE/output" 2>&1 || { tail -n 5 "$STATE/output"; return 1; }
  held=$(cat "$2/docker/registry/v2/repositories/${4%:*}/_manifests/tags/${4##*:}/current/link") && [ "$held" = "$5" ] ||
    { echo "corral: another digest of $3"; return 1; }
}

# image_digest NAMESPACE NAME
image_digest() { ctr -n "$1" images list "name==$2" | awk -v name="$2" '$1 == name { print $3 }'; }

reset_registry() {
  [ ! -e /etc/systemd/system/corral-registry.service ] || systemctl disable --now corral-registry
}
