#!/usr/bin/env bash
# Verbs that free space can still commit on a disk without a free byte.
set -uo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tools/common.bash
. ../common.bash
cd "$work"

mkdir disk
trap 'umount disk 2>/dev/null; rm -rf "$work"' EXIT

rhizome generate planted --out demo --scale 12 --dim 32 >/dev/null || fail "generate"
rhizome generate planted --out big --scale 14 --dim 64 >/dev/null || fail "generate"
rhizome ingest big.rz --edges big/edges.npy --array feat=big/features.npy >/dev/null || fail "ingest"
rhizome backup big.rz bak >/dev/null || fail "backup"

# make_store: a store on the disk, with an array of 512 KiB, versions of another, an alias with a past, and a
# generation that is only kept.
make_store() {
  rhizome ingest disk/s.rz --edges demo/edges.npy --array feat=demo/features.npy >/dev/null || fail "ingest"
  rhizome array add disk/s.rz big=demo/features.npy >/dev/null || fail "add"
  for _ in 1 2 3; do rhizome array add disk/s.rz emb=demo/features.npy --new-version >/dev/null || fail "add a version"; done
  rhizome array alias disk/s.rz emb@live 2 >/dev/null || fail "alias"
  rhizome array alias disk/s.rz emb@live 3 >/dev/null || fail "alias"
}

# fill NAME: takes what is left of the disk, to the last byte that it gives.
fill() {
  dd if=/dev/zero of="disk/$1" bs=64k 2>/dev/null
  while printf x >>"disk/$1.more" 2>/dev/null && dd if=/dev/zero of="disk/$1.more" bs=1k seek=1 2>/dev/null; do :; done
  : >>"disk/$1"
  [ "$(stat -f -c %a disk)" = 0 ] || fail "the disk is not full: $(stat -f -c %a disk) blocks"
}

# frees VERB...: it works on the full disk, and the store is sound.
frees() {
  expect_exit 0 rhizome "$@"
  expect_exit 0 rhizome verify disk/s.rz
}

# leaves_nothing VERB...: it ends for want of space and leaves nothing on the disk beside what was there.
leaves_nothing() {
  local before after
  before=$(ls -A disk)
  expect_exit 5 rhizome "$@"
  after=$(ls -A disk)
  [ "$before" = "$after" ] || fail "$kind: $1 leaves: $(comm -13 <(echo "$before") <(echo "$after"))"
}

# What is refused leaves nothing behind, whether the disk is full at first or in the middle.
check_leftovers() {
  leaves_nothing ingest disk/c.rz --edges demo/edges.npy --array feat=big/features.npy
  leaves_nothing generate planted --out disk/deep/graph --scale 14 --dim 64
  if mkdir disk/empty 2>/dev/null; then  # there may be no room for a folder
    leaves_nothing generate planted --out disk/empty --scale 14 --dim 64
    rmdir disk/empty || fail "$kind: generate leaves files: $(ls -A disk/empty)"
  fi
  leaves_nothing restore bak disk/deep/r.rz
  leaves_nothing export big.rz --array feat --out disk/feat.npy
  [ ! -d /usr/share/wordnet ] || leaves_nothing import wordnet disk/w.rz
}

check_disk() {
  local kind=$1
  make_store
  fill first
  printf '1\t2\n' >one.tsv
  # What is set aside is not for whoever writes.
  expect_exit 5 rhizome put disk/s.rz one.tsv
  check_leftovers
  # A folder of backups that was begun is cleared by the next backup.
  leaves_nothing backup big.rz disk/b
  truncate -s -1M disk/first
  check_leftovers
  fill first
  frees array rename disk/s.rz big large
  fill second
  frees array rollback disk/s.rz emb@live
  fill third
  frees array drop disk/s.rz large
  [ "$(stat -f -c '%a' disk)" -gt 0 ] || fail "$kind: dropping an array freed nothing"
  rhizome array list disk/s.rz --json >o.json || fail "list"
  expect_json o.json 'not any(a["name"] in ("big", "large") for a in j["arrays"])' \
    '[a["version"] for a in j["aliases"]] == [2]'
  fill fourth
  frees array keep disk/s.rz emb 1
  fill fifth
  frees compact disk/s.rz --keep-generations 0
  # Then there is room again for others, too.
  rm disk/first disk/first.more disk/second disk/second.more
  expect_exit 0 rhizome put disk/s.rz one.tsv
  expect_exit 0 rhizome verify disk/s.rz
}

tried=0
if mount -t tmpfs -o size=24m tmpfs disk 2>err; then
  tried=$((tried + 1))
  check_disk tmpfs
  umount disk
else
  echo "skipped: a full tmpfs, mounting is not allowed here: $(head -n 1 err)"
fi
if truncate -s 40m image && mkfs.ext4 -q -m 0 image 2>err && mount -o loop image disk 2>err; then
  tried=$((tried + 1))
  check_disk ext4
  umount disk
else
  echo "skipped: a full ext4, no loop device can be mounted here: $(head -n 1 err)"
fi
echo "file systems: $tried"
finish
